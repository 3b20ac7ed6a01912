/* index.cuh: scores of compressed rows, for keeping (index_score) or for choosing at once
 * (index_select).
 *
 * Order of additions: a dot product's steps of 16 values in ascending order; then threads 0..3 of
 * four add weighted heads 2t, 2t + 1, 8 + 2t, 8 + 2t + 1, ... in ascending order, fused, and fold
 * 1, 2.
 */
#ifndef HADAL_BACKEND_CUDA_INDEX_CUH
#define HADAL_BACKEND_CUDA_INDEX_CUH

#include "backend/cuda/attend_mma.cuh"

/* Candidates of a row: its visible rows, or those of them in the listed blocks, ascending. Tensors
 * that are not given have no data. */
struct candidates {
    struct tensor visible, block, n_block;
    int block_size;
};
/* How many places for candidates a row has. */
static __device__ inline int candidate_places(const candidates &c, int64_t r, int visible)
{
    if (!c.block.data)
        return visible;
    int n = cuda_ints(c.n_block, 0)[r], most = (int)c.block.dim[1];
    return (n < 0 ? 0 : n < most ? n : most) * c.block_size;
}
/* The row at a place; -1: none. */
static __device__ inline int candidate_row(const candidates &c, int64_t r, int visible, int place)
{
    int row = place;
    if (c.block.data)
        row = cuda_ints(c.block, r)[place / c.block_size] * c.block_size + place % c.block_size;
    return row < visible ? row : -1;
}

struct score_job {
    struct tensor q, w, keys, slot;
    struct candidates from;
    struct cuda_fault *fault;
    float scale;
    int64_t first_row, n_row; /* rows [first_row, first_row + n_row) of the call */
    float *s;                 /* score of place i of row first_row + r at s[r * pitch + i] */
    int64_t pitch;
    int64_t n_place; /* at most so many */
    /* Rows are left alone that have no more than n_free candidates, and of which no more than
     * n_free_block blocks are visible. -1: none. */
    int64_t n_free, n_free_block;
};
void index_scores(struct backend *be, const struct score_job *job);

#endif
