/* attend.cuh: attention in two kernels, the same ones for one row and for thousands.
 *
 * Keys of a row are numbered in their joint order, compressed rows first, and cut into pieces of
 * 16. With m_c the largest score of piece c:
 *
 *   scores:  e_k = exp(s_k - m_c), and the sum of a piece's e
 *   sum:     o = sum_k (e_k exp(m_c - m)) key_k / (sum_c sum_e exp(m_c - m) + exp(sink - m))
 *
 * Order of additions: a score's products in steps of 16 values; step i belongs to part i mod 8,
 * parts are summed by themselves, steps ascending, and then with each other, ascending. The
 * weighted sum goes over pieces in ascending order in one accumulator. The denominator has eight
 * lanes, pieces ascending in each, folded 4, 2, 1.
 */
#ifndef HADAL_BACKEND_CUDA_ATTEND_CUH
#define HADAL_BACKEND_CUDA_ATTEND_CUH

#include "backend/cuda/attend_mma.cuh"
#include "base/fmath.h"

enum { PIECE = 16, SCORE_PARTS = 8, SCORE_STEPS = 4, SCORE_THREADS = 32 * SCORE_PARTS };

/* Tensors that are not given have no data. */
struct attend_job {
    struct tensor o, q, ring, comp, slot, last, rows, n_row, first, sink;
    struct cuda_fault *fault;
    int window;
    float scale;
    int64_t first_row; /* block x works on row first_row + x */
    int64_t pitch;     /* room for keys: a multiple of PIECE */
    float *e;          /* [row, head, pitch] */
    float2 *piece;     /* [row, head, pitch / PIECE] largest score, sum of e */
    cache_row *key;    /* [row, pitch] */
};

/* One row's keys. */
struct row_keys {
    int64_t slot;
    int n, n_comp, oldest; /* oldest: place in the ring of the oldest window row */
    const int32_t *rows;   /* NULL: compressed rows 0, 1, 2, ... */
};

/* n is 0 when something was refused. */
static __device__ inline row_keys keys_of_row(const struct attend_job &a, int64_t r)
{
    row_keys k = {cuda_ints(a.slot, 0)[r], 0, 0, 0, NULL};
    int last = cuda_ints(a.last, 0)[r];
    int n_window = last + 1 - (a.first.data ? cuda_ints(a.first, 0)[r] : 0);
    n_window = n_window < 0 ? 0 : n_window < a.window ? n_window : a.window;
    int n_comp = a.comp.data ? cuda_ints(a.n_row, 0)[r] : 0;
    if (cuda_refuse(a.fault, CUDA_ATTEND_SLOT, k.slot, a.ring.dim[0]) ||
        (a.comp.data && cuda_refuse(a.fault, CUDA_ATTEND_ROW, n_comp, a.comp.dim[1] + 1)) ||
        (a.rows.data && cuda_refuse(a.fault, CUDA_ATTEND_ROW, n_comp, a.rows.dim[1] + 1)))
        return k;
    k.n_comp = n_comp;
    k.n = n_comp + n_window;
    k.oldest = n_window ? (last - n_window + 1) % (int)a.ring.dim[1] : 0;
    k.rows = a.rows.data ? cuda_ints(a.rows, r) : NULL;
    return k;
}

/* Key j; behind the last one, the last one again. */
static __device__ inline cache_row key_at(const struct attend_job &a, const row_keys &k, int j)
{
    j = j < k.n ? j : k.n - 1;
    if (j < k.n_comp) {
        int64_t row = k.rows ? k.rows[j] : j;
        if (cuda_refuse(a.fault, CUDA_ATTEND_ROW, row, a.comp.dim[1]))
            row = 0;
        return cache_row_at(a.comp, k.slot * a.comp.dim[1] + row);
    }
    int at = k.oldest + j - k.n_comp;
    at = at < (int)a.ring.dim[1] ? at : at - (int)a.ring.dim[1];
    return cache_row_at(a.ring, k.slot * a.ring.dim[1] + at);
}

static __device__ inline int piece_count(const row_keys &k)
{
    return (k.n + PIECE - 1) / PIECE;
}

/* Scores: block (row, share of the pieces, 16 M heads). PLAIN: any size, type and alignment. */
void attend_scores(struct backend *be, const struct attend_job *a, int64_t n_row, int is_plain);

#endif
