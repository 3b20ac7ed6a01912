/* index.cu: index scores by matrix instructions: keys are rows, heads are columns.
 *
 * A warp keeps some keys of a tile as operands in registers; the queries of one batch row after the
 * other pass through shared memory, as operands too. Trained keys and queries are exact in bf16;
 * where some are not, those rows are computed again with the terms that were left out.
 */
#include "backend/cuda/index.cuh"

enum { STEPS = 8, MOST_HEADS = 64, ROWS = 32, UNITS = MOST_HEADS * STEPS * 2 };

/* ---- Any size ---- */

/* 16 keys: values 16 s + 4t .. of keys g and g + 8, hi and lo. */
struct key_operand {
    uint32_t hi[STEPS][4], lo[STEPS][4];
};
static __device__ inline void load_operand(
    key_operand &o, const cache_row key[2], int64_t first, int64_t d)
{
#pragma unroll
    for (int i = 0; i < 2 * STEPS; i++) {
        uint32_t hi[2], lo[2];
        split_four(
            cache_four<true>(key[i % 2], first + 16 * (i / 2) + 4 * (threadIdx.x % 4), d), hi, lo);
        o.hi[i / 2][i % 2] = hi[0], o.hi[i / 2][2 + i % 2] = hi[1];
        o.lo[i / 2][i % 2] = lo[0], o.lo[i / 2][2 + i % 2] = lo[1];
    }
}

/* c += products of 16 keys and this thread's head, values first .. first + 127. */
static __device__ inline void add_products(
    float c[4], const key_operand &key, cache_row query, int64_t first, int64_t d)
{
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        uint32_t hi[2] = {0, 0}, lo[2] = {0, 0};
        if (query)
            split_four(cache_four<true>(query, first + 16 * s + 4 * (threadIdx.x % 4), d), hi, lo);
        mma_bf16(c, key.hi[s], hi);
        mma_bf16(c, key.lo[s], hi);
        mma_bf16(c, key.hi[s], lo);
    }
}

/* Adds two heads of keys g and g + 8 to their scores. */
static __device__ inline void add_heads(float score[2], const float c[4], float w0, float w1)
{
    score[0] = fmaf(w0, fmaxf(c[0], 0), score[0]);
    score[0] = fmaf(w1, fmaxf(c[1], 0), score[0]);
    score[1] = fmaf(w0, fmaxf(c[2], 0), score[1]);
    score[1] = fmaf(w1, fmaxf(c[3], 0), score[1]);
}

/* The scores of keys g and g + 8. */
static __device__ inline void fold_scores(float score[2])
{
    for (int step = 1; step < 4; step *= 2) {
        score[0] += __shfl_xor_sync(0xffffffffu, score[0], step);
        score[1] += __shfl_xor_sync(0xffffffffu, score[1], step);
    }
}

/* LONG: more than 128 values. */
template <bool LONG>
static __device__ inline void score_any(
    const struct score_job &a, int64_t r, const cache_row key[2], float score[2])
{
    int64_t n_head = a.q.dim[1], d = a.q.dim[2];
    const float *w = cuda_row(a.w, r);
    key_operand operand;
    load_operand(operand, key, 0, d);
    score[0] = score[1] = 0;
    for (int64_t h = 0; h < n_head; h += 8) {
        float c[4] = {0, 0, 0, 0};
        int64_t own = h + threadIdx.x % 32 / 4, at = h + 2 * (threadIdx.x % 4);
        cache_row query = own < n_head ? (cache_row)cuda_row(a.q, r * n_head + own) : 0;
        add_products(c, operand, query, 0, d);
        for (int64_t first = 16 * STEPS; LONG && first < d; first += 16 * STEPS) {
            key_operand more;
            load_operand(more, key, first, d);
            add_products(c, more, query, first, d);
        }
        add_heads(
            score, c, at < n_head ? w[at] * a.scale : 0, at + 1 < n_head ? w[at + 1] * a.scale : 0);
    }
    fold_scores(score);
}

/* ---- Rows of a block ---- */

struct score_rows {
    int n[ROWS], visible[ROWS], n_row, most; /* n: places that need scores */
    int64_t slot[ROWS];
};

static __device__ inline int places_to_score(const struct score_job &a, int64_t r, int visible)
{
    int n = candidate_places(a.from, r, visible), n_real = n < visible ? n : visible;
    int n_block = a.n_free_block < 0 ? 0 : (visible + a.from.block_size - 1) / a.from.block_size;
    return n_real <= a.n_free && n_block <= (a.n_free_block < 0 ? 0 : a.n_free_block) ? 0 : n;
}

static __device__ inline void look_at_rows(score_rows &rows, const struct score_job &a)
{
    int64_t first = (int64_t)blockIdx.y * ROWS;
    int n = (int)(a.n_row - first < ROWS ? a.n_row - first : ROWS), i = threadIdx.x;
    if (i < n) {
        int64_t r = a.first_row + first + i, capacity = a.keys.dim[1];
        int64_t limit = !a.from.block.data && a.n_place < capacity ? a.n_place : capacity;
        rows.slot[i] = cuda_ints(a.slot, 0)[r];
        rows.visible[i] = cuda_ints(a.from.visible, 0)[r];
        int is_wrong = cuda_refuse(a.fault, CUDA_SCORE_SLOT, rows.slot[i], a.keys.dim[0]) ||
                       cuda_refuse(a.fault, CUDA_SCORE_VISIBLE, rows.visible[i], limit + 1);
        rows.n[i] = is_wrong ? 0 : places_to_score(a, r, rows.visible[i]);
    }
    __syncthreads();
    if (i < ROWS) {
        int most = (int)__reduce_max_sync(0xffffffffu, i < n ? (uint32_t)rows.n[i] : 0);
        if (i == 0)
            rows.n_row = n, rows.most = most;
    }
    __syncthreads();
}

/* Key at a place of row i; where there is none, any. Without listed blocks it is the same for all
 * rows of a sequence, also behind what row i sees. */
static __device__ inline cache_row key_at(
    const struct score_job &a, const score_rows &rows, int i, int place)
{
    int row = place < rows.most ? place : rows.most - 1;
    if (a.from.block.data) {
        int64_t r = a.first_row + (int64_t)blockIdx.y * ROWS + i;
        row = candidate_row(a.from, r, rows.visible[i], place < rows.n[i] ? place : rows.n[i] - 1);
        row = row < 0 ? 0 : row;
    }
    return cache_row_at(a.keys, rows.slot[i] * a.keys.dim[1] + row);
}

/* Places first + g, first + g + 8. */
static __device__ inline void write_scores(
    const struct score_job &a, const score_rows &rows, int i, int first, const float score[2])
{
    int t = threadIdx.x % 4, place = first + threadIdx.x % 32 / 4 + 8 * t;
    if (t < 2 && place < rows.n[i])
        a.s[((int64_t)blockIdx.y * ROWS + i) * a.pitch + place] = t ? score[1] : score[0];
}

/* 16 places from `first` on, with all terms. */
template <bool LONG>
static __device__ inline void score_places(
    const struct score_job &a, const score_rows &rows, int i, int first)
{
    int place = first + threadIdx.x % 32 / 4;
    cache_row key[2] = {key_at(a, rows, i, place), key_at(a, rows, i, place + 8)};
    float score[2];
    score_any<LONG>(a, a.first_row + (int64_t)blockIdx.y * ROWS + i, key, score);
    write_scores(a, rows, i, first, score);
}

static __global__ void __launch_bounds__(256)
    scores_any_kernel(const __grid_constant__ struct score_job a)
{
    cuda_wait();
    __shared__ score_rows rows;
    look_at_rows(rows, a);
    int step = (int)gridDim.x * 128;
    for (int first = (int)blockIdx.x * 128 + threadIdx.x / 32 * 16; first < rows.most;
         first += step)
        for (int i = 0; i < rows.n_row; i++)
            if (first < rows.n[i])
                score_places<true>(a, rows, i, first);
}

/* ---- 128 values, up to 64 heads in whole eights ---- */

/* Queries of a row as operands. Unit (8 heads j, 32 values p, lane): what the lane holds of two
 * steps. */
struct query_stage {
    uint4 unit[2][UNITS];
    float w[2][MOST_HEADS];
};
/* A thread's units on the way from device to shared memory. */
template <int N> struct query_units {
    float4 x[N][2];
    float w;
};

template <int N>
static __device__ inline void load_units(query_units<N> &u, const struct score_job &a, int64_t r)
{
    int64_t n_head = a.q.dim[1];
    if (threadIdx.x < MOST_HEADS)
        u.w = threadIdx.x < n_head ? cuda_row(a.w, r)[threadIdx.x] * a.scale : 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        int i = threadIdx.x + k * blockDim.x, lane = i % 32;
        int64_t head = i / 128 * 8 + lane / 4;
        const float *q = cuda_row(a.q, r * n_head + head) + i / 32 % 4 * 32 + 4 * (lane % 4);
        u.x[k][0] = head < n_head ? *(const float4 *)q : make_float4(0, 0, 0, 0);
        u.x[k][1] = head < n_head ? *(const float4 *)(q + 16) : make_float4(0, 0, 0, 0);
    }
}
/* Whether one of them is not exact in bf16. */
template <int N>
static __device__ inline int store_units(query_stage &stage, const query_units<N> &u, int turn)
{
    uint32_t rest = 0;
    if (threadIdx.x < MOST_HEADS)
        stage.w[turn][threadIdx.x] = u.w;
#pragma unroll
    for (int k = 0; k < N; k++) {
        uint32_t hi[4], lo[4];
        split_four(u.x[k][0], hi, lo);
        split_four(u.x[k][1], hi + 2, lo + 2);
        stage.unit[turn][threadIdx.x + k * blockDim.x] = make_uint4(hi[0], hi[1], hi[2], hi[3]);
        rest |= lo[0] | lo[1] | lo[2] | lo[3];
    }
    return rest != 0;
}

/* A warp's 16 K keys. */
template <int K> struct exact_keys {
    uint32_t a[K][STEPS][4];
    int64_t slot;
    int is_exact;
};
template <int K>
static __device__ inline void load_exact(
    exact_keys<K> &keys, const struct score_job &a, const score_rows &rows, int i, int first)
{
    uint32_t rest = 0;
#pragma unroll
    for (int k = 0; k < 2 * K; k++) {
        cache_row key = key_at(a, rows, i, first + 8 * k + threadIdx.x % 32 / 4);
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            uint32_t hi[2], lo[2];
            split_four(cache_four<false>(key, 16 * s + 4 * (threadIdx.x % 4), 16 * STEPS), hi, lo);
            keys.a[k / 2][s][k % 2] = hi[0], keys.a[k / 2][s][2 + k % 2] = hi[1];
            rest |= lo[0] | lo[1];
        }
    }
    keys.is_exact = !__any_sync(0xffffffffu, rest);
    keys.slot = rows.slot[i];
}

/* Scores of the warp's keys for the row in the stage. */
template <int K>
static __device__ inline void score_exact(
    float score[K][2], const exact_keys<K> &keys, const query_stage &stage, int turn, int n_head)
{
    const uint4 *unit = stage.unit[turn] + threadIdx.x % 32;
    const float *w = stage.w[turn] + 2 * (threadIdx.x % 4);
#pragma unroll
    for (int k = 0; k < 2 * K; k++)
        score[k / 2][k % 2] = 0;
#pragma unroll 1
    for (int h = 0; h < n_head; h += 16, unit += 256) {
        float c[2][K][4] = {};
#pragma unroll
        for (int p = 0; p < STEPS / 2; p++) {
            uint4 x = unit[32 * p], y = unit[128 + 32 * p];
            uint32_t b[2][2][2] = {{{x.x, x.y}, {y.x, y.y}}, {{x.z, x.w}, {y.z, y.w}}};
#pragma unroll
            for (int i = 0; i < 4 * K; i++)
                mma_bf16(c[i % 2][i / 2 % K], keys.a[i / 2 % K][2 * p + i / (2 * K)],
                    b[i / (2 * K)][i % 2]);
        }
#pragma unroll
        for (int i = 0; i < 2 * K; i++) {
            float2 two = *(const float2 *)(w + h + 8 * (i / K));
            add_heads(score[i % K], c[i / K][i % K], two.x, two.y);
        }
    }
#pragma unroll
    for (int k = 0; k < K; k++)
        fold_scores(score[k]);
}

static __device__ inline int next_row(const score_rows &rows, int i, int first)
{
    for (i++; i < rows.n_row && rows.n[i] <= first;)
        i++;
    return i;
}

/* One tile of the block's keys, all its rows. */
template <int K, int WARPS>
static __device__ inline void score_tile(
    const struct score_job &a, const score_rows &rows, query_stage &stage, int tile)
{
    constexpr int N = UNITS / (32 * WARPS);
    int own = tile + threadIdx.x / 32 * 16 * K, i = next_row(rows, -1, tile), turn = 0;
    int64_t row0 = a.first_row + (int64_t)blockIdx.y * ROWS;
    uint32_t inexact = 0; /* rows to compute with all terms */
    exact_keys<K> keys;
    query_units<N> units;
    load_units<N>(units, a, row0 + i);
    load_exact<K>(keys, a, rows, i, own);
    int has_rest = store_units<N>(stage, units, 0);
    while (i < rows.n_row) {
        has_rest = __syncthreads_or(has_rest);
        int next = next_row(rows, i, tile);
        if (next < rows.n_row)
            load_units<N>(units, a, row0 + next);
        if (has_rest || !keys.is_exact) {
            inexact |= 1u << i;
        } else {
            float score[K][2];
            score_exact<K>(score, keys, stage, turn, (int)a.q.dim[1]);
            for (int k = 0; k < K; k++)
                write_scores(a, rows, i, own + 16 * k, score[k]);
        }
        turn ^= 1;
        has_rest = 0;
        if (next < rows.n_row) {
            if (a.from.block.data || rows.slot[next] != keys.slot)
                load_exact<K>(keys, a, rows, next, own);
            has_rest = store_units<N>(stage, units, turn);
        }
        i = next;
    }
    __syncthreads();
    for (; inexact; inexact &= inexact - 1)
        for (int k = 0; k < K; k++)
            if (own + 16 * k < rows.n[__ffs(inexact) - 1])
                score_places<false>(a, rows, __ffs(inexact) - 1, own + 16 * k);
}

template <int K, int WARPS>
static __global__ void __launch_bounds__(32 * WARPS, 1)
    scores_kernel(const __grid_constant__ struct score_job a)
{
    cuda_wait();
    __shared__ score_rows rows;
    __shared__ query_stage stage;
    constexpr int TILE = 16 * K * WARPS;
    look_at_rows(rows, a);
    for (int tile = (int)blockIdx.x * TILE; tile < rows.most; tile += (int)gridDim.x * TILE)
        score_tile<K, WARPS>(a, rows, stage, tile);
}

/* ---- Ops ---- */

static int has_fast_shape(const struct score_job *job)
{
    return job->q.dim[2] == 16 * STEPS && job->q.dim[1] % 8 == 0 && job->q.dim[1] <= MOST_HEADS &&
           !is_plain(&job->q) && !is_plain(&job->keys);
}

void index_scores(struct backend *be, const struct score_job *job)
{
    enum { TILE_FEW = 128, TILE_MANY = 512, MOST_BLOCKS = 64 };
    int64_t n_group = (job->n_row + ROWS - 1) / ROWS;
    int is_few = job->n_row < ROWS;
    int64_t n_tile =
        (job->n_place + (is_few ? TILE_FEW : TILE_MANY) - 1) / (is_few ? TILE_FEW : TILE_MANY);
    int64_t most = is_few ? 2 * cuda_of(be)->n_multiprocessor : MOST_BLOCKS;
    dim3 grid((unsigned)(n_tile < most ? n_tile : most), (unsigned)n_group);
    if (!has_fast_shape(job))
        cuda_launch(be, "index_score", scores_any_kernel, {grid, 256, 0}, *job);
    else if (is_few)
        cuda_launch(be, "index_score", scores_kernel<1, 8>, {grid, 256, 0}, *job);
    else
        cuda_launch(be, "index_score", scores_kernel<2, 16>, {grid, 512, 0}, *job);
}

void cuda_index_score(struct backend *be, const void *args)
{
    const struct op_index_score *a = (const struct op_index_score *)args;
    struct score_job job = {};
    job.q = *a->q, job.w = *a->w, job.keys = *a->keys, job.slot = *a->slot;
    job.from.visible = *a->visible;
    job.fault = cuda_fault_of(be);
    job.scale = a->scale;
    job.n_row = a->q->dim[0];
    job.s = (float *)a->s->data;
    job.pitch = a->s->row_bytes / (int64_t)sizeof *job.s;
    job.n_place = a->s->dim[1] < a->keys->dim[1] ? a->s->dim[1] : a->keys->dim[1];
    job.n_free = job.n_free_block = -1;
    index_scores(be, &job);
}
