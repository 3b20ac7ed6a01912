/* select.cu: choosing the best of many scores, exactly and in one order: larger first, ties to the
 * lower place, -0 as +0; what is chosen is written in ascending order.
 *
 * One block chooses for one row. Scores become integers that sort alike, thread by thread in
 * registers, and the threshold is found by bisection: how many are at least so large? A row longer
 * than a block's registers is cut into segments whose best are chosen first.
 */
#include "backend/cuda/index.cuh"

#include "tensor/round.h"

enum { THREADS = 1024, EACH = 16, SEGMENT = THREADS * EACH };

/* What is chosen from. Places are rows or, for is_blocks, blocks of rows. */
struct choice_job {
    struct candidates from;
    struct cuda_fault *fault;
    const float *s; /* [n, pitch]; row first_row + r is at r */
    int64_t pitch, first_row, n_score;
    int is_packed; /* scores stand place by place, not row by row */
    int is_blocks; /* the newest block is always chosen */
    struct tensor out, n_out;
    /* With segments: the best of each as (score as integer, row) and how many there are. */
    int64_t n_segment;
    uint2 *best; /* [n, n_segment, columns of out] */
    int *n_best; /* [n, n_segment] */
};

/* Integers that sort like the scores; 0: no candidate. */
static __device__ inline uint32_t score_order(float x)
{
    uint32_t u = float_bits(x + 0.0f);
    u = u & 0x80000000u ? ~u : u | 0x80000000u;
    return u < 1 ? 1 : u > 0xfffffffeu ? 0xfffffffeu : u;
}

/* ---- Where candidates come from: order(place) and row(place) ---- */

struct row_source {
    const struct choice_job *job;
    const float *s;
    int64_t r;
    int visible;
    __device__ int row(int place) const
    {
        return candidate_row(job->from, r, visible, place);
    }
    __device__ uint32_t order(int place) const
    {
        int at = row(place);
        return at < 0 ? 0 : score_order(s[job->is_packed ? place : at]);
    }
};

struct block_source {
    const float *s;
    int size;
    __device__ int row(int place) const
    {
        return place;
    }
    __device__ uint32_t order(int place) const
    {
        uint32_t most = 0;
        for (int i = 0; i < size; i++) {
            uint32_t x = score_order(s[(int64_t)place * size + i]);
            most = x > most ? x : most;
        }
        return most;
    }
};

/* The best of the segments, one after the other. */
struct best_source {
    const uint2 *best;
    const int *n_best;
    int n_each;
    __device__ int row(int place) const
    {
        return (int)best[place].y;
    }
    __device__ uint32_t order(int place) const
    {
        return place % n_each < n_best[place / n_each] ? best[place].x : 0;
    }
};

/* ---- A block's places ---- */

/* A warp has consecutive places, a thread every 32nd of them; the first EACH in registers. */
template <typename SOURCE> struct places {
    SOURCE source;
    int first, n, n_each; /* places [first, first + n); n_each per thread */
    uint32_t x[EACH];

    __device__ int place(int i) const
    {
        return ((int)threadIdx.x / 32 * n_each + i) * 32 + (int)threadIdx.x % 32;
    }
    __device__ uint32_t load(int i) const
    {
        int at = place(i);
        return i < n_each && at < n ? source.order(first + at) : 0;
    }
    __device__ void open(int from, int count)
    {
        first = from;
        n = count;
        n_each = (n + THREADS - 1) / THREADS;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            x[i] = load(i);
    }
    /* f(i, order) for each of this thread's places, ascending. */
    template <typename F> __device__ void each(F f) const
    {
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (i < n_each)
                f(i, x[i]);
        for (int i = EACH; i < n_each; i++)
            f(i, load(i));
    }
};

/* Sums over the block: every thread gets them. Two in turn, so that one barrier is enough. */
struct block_sums {
    uint32_t part[2][THREADS / 32];
};
static __device__ inline uint32_t sum_block(block_sums &sums, int turn, uint32_t x)
{
    x = __reduce_add_sync(0xffffffffu, x);
    if (threadIdx.x % 32 == 0)
        sums.part[turn & 1][threadIdx.x / 32] = x;
    __syncthreads();
    return __reduce_add_sync(0xffffffffu, sums.part[turn & 1][threadIdx.x % 32]);
}
static __device__ inline uint32_t max_block(block_sums &sums, int turn, uint32_t x)
{
    x = __reduce_max_sync(0xffffffffu, x);
    if (threadIdx.x % 32 == 0)
        sums.part[turn & 1][threadIdx.x / 32] = x;
    __syncthreads();
    return __reduce_max_sync(0xffffffffu, sums.part[turn & 1][threadIdx.x % 32]);
}

/* Chosen is what is larger than `above`, and the first n_equal of those equal to it. */
struct threshold {
    uint32_t above, n_equal;
};

template <typename SOURCE>
static __device__ inline threshold find_threshold(
    const places<SOURCE> &p, block_sums &sums, uint32_t k)
{
    uint32_t n = 0, most = 0, least = 0;
    int turn = 0;
    p.each([&](int, uint32_t x) {
        n += x > 0;
        most = x > most ? x : most;
        least = x && ~x > least ? ~x : least;
    });
    n = sum_block(sums, turn++, n);
    if (n <= k || k == 0)
        return (threshold){n <= k ? 0 : 0xffffffffu, 0};
    /* at least k are >= low, fewer, `n_high`, are >= high */
    uint32_t high = max_block(sums, turn++, most) + 1, low = ~max_block(sums, turn++, least);
    uint32_t n_high = 0;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2, count = 0;
        p.each([&](int, uint32_t x) { count += x >= middle; });
        count = sum_block(sums, turn++, count);
        if (count == k)
            return (threshold){middle - 1, 0};
        if (count > k)
            low = middle;
        else
            high = middle, n_high = count;
    }
    return (threshold){low, k - n_high};
}

/* What of the places of one warp's thread is chosen comes behind `n_larger` larger and `n_equal`
 * equal ones. */
struct ranks {
    uint32_t n_larger, n_equal;
};
template <typename SOURCE>
static __device__ inline ranks count_before(
    const places<SOURCE> &p, block_sums &sums, const threshold &t)
{
    uint32_t n_larger = 0, n_equal = 0, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    p.each([&](int, uint32_t x) {
        n_larger += x > t.above;
        n_equal += x == t.above && x;
    });
    n_larger = __reduce_add_sync(0xffffffffu, n_larger);
    n_equal = __reduce_add_sync(0xffffffffu, n_equal);
    __syncthreads();
    if (lane == 0)
        sums.part[0][warp] = n_larger, sums.part[1][warp] = n_equal;
    __syncthreads();
    ranks before;
    before.n_larger = __reduce_add_sync(0xffffffffu, lane < warp ? sums.part[0][lane] : 0);
    before.n_equal = __reduce_add_sync(0xffffffffu, lane < warp ? sums.part[1][lane] : 0);
    return before;
}

/* take(rank, order, row) for what is chosen, ranks in ascending order of places. Returns how many
 * are chosen. */
template <typename SOURCE, typename F>
static __device__ inline uint32_t choose(
    const places<SOURCE> &p, block_sums &sums, uint32_t k, F take)
{
    threshold t = find_threshold(p, sums, k);
    ranks before = count_before(p, sums, t);
    uint32_t below = (1u << threadIdx.x % 32) - 1, n = 0;
    p.each([&](int i, uint32_t x) {
        bool is_larger = x > t.above, is_equal = x == t.above && x;
        uint32_t larger = __ballot_sync(0xffffffffu, is_larger);
        uint32_t equal = __ballot_sync(0xffffffffu, is_equal);
        uint32_t rank_larger = before.n_larger + __popc(larger & below);
        uint32_t rank_equal = before.n_equal + __popc(equal & below);
        uint32_t in = rank_equal < t.n_equal ? rank_equal : t.n_equal;
        if (is_larger || (is_equal && rank_equal < t.n_equal)) {
            take(rank_larger + in, x, p.source.row(p.first + p.place(i)));
            n++;
        }
        before.n_larger += __popc(larger);
        before.n_equal += __popc(equal);
    });
    __syncthreads();
    return sum_block(sums, 0, n);
}

/* ---- Kernels ---- */

static __device__ inline void finish_row(const struct choice_job &a, int64_t r, uint32_t n)
{
    int32_t *out = cuda_ints(a.out, r);
    for (int64_t i = n + threadIdx.x; i < a.out.dim[1]; i += blockDim.x)
        out[i] = -1;
    if (threadIdx.x == 0)
        cuda_ints(a.n_out, 0)[r] = (int32_t)n;
}

static __device__ inline int visible_of(const struct choice_job &a, int64_t r)
{
    int visible = cuda_ints(a.from.visible, 0)[r];
    return cuda_refuse(a.fault, CUDA_TOPK_VISIBLE, visible, a.n_score + 1) ? 0 : visible;
}

/* Block (row, segment). A row that fits into one segment is finished here. */
static __global__ void __launch_bounds__(THREADS, 1)
    choose_rows_kernel(const __grid_constant__ struct choice_job a)
{
    cuda_wait();
    __shared__ block_sums sums;
    int64_t at = blockIdx.x, r = a.first_row + at, k = a.out.dim[1];
    int visible = visible_of(a, r), n = candidate_places(a.from, r, visible);
    places<row_source> p;
    p.source = (row_source){&a, a.s + at * a.pitch, r, visible};
    int is_whole = a.n_segment == 1 || n <= SEGMENT;
    int first = is_whole ? 0 : (int)blockIdx.y * SEGMENT;
    if (is_whole && blockIdx.y)
        return;
    p.open(first, is_whole || n - first < SEGMENT ? (n > first ? n - first : 0) : SEGMENT);
    if (is_whole) {
        int32_t *out = cuda_ints(a.out, r);
        uint32_t n_out = choose(
            p, sums, (uint32_t)k, [&](uint32_t rank, uint32_t, int row) { out[rank] = row; });
        finish_row(a, r, n_out);
        return;
    }
    uint2 *best = a.best + (at * a.n_segment + blockIdx.y) * k;
    uint32_t n_best = choose(p, sums, (uint32_t)k,
        [&](uint32_t rank, uint32_t x, int row) { best[rank] = make_uint2(x, (uint32_t)row); });
    if (threadIdx.x == 0)
        a.n_best[at * a.n_segment + blockIdx.y] = (int)n_best;
}

/* Rows of several segments: the best of the segments' best. */
static __global__ void __launch_bounds__(THREADS, 1)
    choose_best_kernel(const __grid_constant__ struct choice_job a)
{
    cuda_wait();
    __shared__ block_sums sums;
    int64_t at = blockIdx.x, r = a.first_row + at, k = a.out.dim[1];
    int visible = visible_of(a, r), n = candidate_places(a.from, r, visible);
    if (n <= SEGMENT)
        return;
    places<best_source> p;
    p.source = (best_source){a.best + at * a.n_segment * k, a.n_best + at * a.n_segment, (int)k};
    p.open(0, (n + SEGMENT - 1) / SEGMENT * (int)k);
    int32_t *out = cuda_ints(a.out, r);
    uint32_t n_out =
        choose(p, sums, (uint32_t)k, [&](uint32_t rank, uint32_t, int row) { out[rank] = row; });
    finish_row(a, r, n_out);
}

static __global__ void __launch_bounds__(THREADS, 1)
    choose_blocks_kernel(const __grid_constant__ struct choice_job a)
{
    cuda_wait();
    __shared__ block_sums sums;
    int64_t at = blockIdx.x, r = a.first_row + at;
    int size = a.from.block_size, n_block = (visible_of(a, r) + size - 1) / size;
    places<block_source> p;
    p.source = (block_source){a.s + at * a.pitch, size};
    p.open(0, n_block ? n_block - 1 : 0);
    int32_t *out = cuda_ints(a.out, r);
    uint32_t n_out = choose(p, sums, (uint32_t)a.out.dim[1] - 1,
        [&](uint32_t rank, uint32_t, int block) { out[rank] = block; });
    if (n_block && threadIdx.x == 0)
        out[n_out] = n_block - 1;
    finish_row(a, r, n_out + (n_block > 0));
}

/* ---- Launches ---- */

/* Segments of rows that have up to n_place candidates; lists of more than twice a block's registers
 * would gain nothing. */
static int64_t count_segments(int64_t n_place, int64_t k)
{
    int64_t n = (n_place + SEGMENT - 1) / SEGMENT;
    return n > 1 && n * k <= 2 * SEGMENT ? n : 1;
}

static void choose_rows(struct backend *be, const struct choice_job *job, int64_t n_row)
{
    if (job->is_blocks) {
        cuda_launch(
            be, "candidate_blocks", choose_blocks_kernel, {(unsigned)n_row, THREADS, 0}, *job);
        return;
    }
    cuda_launch(be, "topk", choose_rows_kernel,
        {dim3((unsigned)n_row, (unsigned)job->n_segment), THREADS, 0}, *job);
    if (job->n_segment > 1)
        cuda_launch(be, "topk", choose_best_kernel, {(unsigned)n_row, THREADS, 0}, *job);
}

/* Memory for the segments of n_row rows. */
static int64_t segment_bytes(const struct choice_job *job)
{
    return job->n_segment > 1 ? job->n_segment * (job->out.dim[1] * 8 + 4) : 0;
}
static int take_segments(struct backend *be, struct choice_job *job, int64_t n_row)
{
    if (job->n_segment < 2)
        return 0;
    int64_t n = n_row * job->n_segment;
    job->best = (uint2 *)backend_scratch(be, (size_t)(n * job->out.dim[1]) * sizeof *job->best);
    job->n_best = (int *)backend_scratch(be, (size_t)n * sizeof *job->n_best);
    return job->best && job->n_best ? 0 : -1;
}

static struct candidates candidates_of(const struct tensor *visible, const struct tensor *block,
    const struct tensor *n_block, int size)
{
    struct candidates c = {};
    c.visible = *visible;
    c.block_size = size;
    if (block)
        c.block = *block, c.n_block = *n_block;
    return c;
}

void cuda_topk(struct backend *be, const void *args)
{
    enum { GROUP_BYTES = 64 << 20 };
    const struct op_topk *a = (const struct op_topk *)args;
    struct choice_job job = {};
    int64_t n = a->rows->dim[0], n_place = a->s->dim[1];
    job.from = candidates_of(a->visible, a->block, a->n_block, a->block_size);
    job.fault = cuda_fault_of(be);
    job.s = (const float *)a->s->data;
    job.pitch = a->s->row_bytes / (int64_t)sizeof(float);
    job.n_score = a->s->dim[1];
    job.out = *a->rows, job.n_out = *a->n_row;
    if (a->block)
        n_place = a->block->dim[1] * a->block_size;
    job.n_segment = count_segments(n_place, a->rows->dim[1]);
    int64_t n_each = GROUP_BYTES / (segment_bytes(&job) + 1);
    n_each = n_each < 1 ? 1 : n_each < n ? n_each : n;
    if (take_segments(be, &job, n_each))
        return;
    for (; job.first_row < n; job.first_row += n_each, job.s += n_each * job.pitch)
        choose_rows(be, &job, n - job.first_row < n_each ? n - job.first_row : n_each);
}

void cuda_candidate_blocks(struct backend *be, const void *args)
{
    const struct op_candidate_blocks *a = (const struct op_candidate_blocks *)args;
    struct choice_job job = {};
    job.from = candidates_of(a->visible, NULL, NULL, a->block_size);
    job.fault = cuda_fault_of(be);
    job.s = (const float *)a->s->data;
    job.pitch = a->s->row_bytes / (int64_t)sizeof(float);
    job.n_score = a->s->dim[1];
    job.is_blocks = 1;
    job.out = *a->block, job.n_out = *a->n_block;
    choose_rows(be, &job, a->block->dim[0]);
}

/* Scores of some rows after the other, chosen from before the next ones are made. */
struct selection {
    struct score_job score;
    struct choice_job rows, blocks;
    int makes_blocks;
    int64_t row_bytes; /* of memory */
};

static struct selection selection_of(struct backend *be, const struct op_index_select *a)
{
    struct selection s = {};
    int scores_all = !a->block || a->make_block;
    s.score.q = *a->q, s.score.w = *a->w, s.score.keys = *a->keys, s.score.slot = *a->slot;
    s.score.from =
        candidates_of(a->visible, scores_all ? NULL : a->block, a->n_block, a->block_size);
    s.score.fault = s.rows.fault = cuda_fault_of(be);
    s.score.scale = a->scale;
    s.score.n_place = scores_all ? a->keys->dim[1] : a->block->dim[1] * a->block_size;
    s.score.pitch = (s.score.n_place + 3) / 4 * 4;
    s.score.n_free = a->rows->dim[1];
    s.score.n_free_block = a->make_block ? a->make_block->dim[1] : -1;
    s.rows.from = candidates_of(a->visible, a->block, a->n_block, a->block_size);
    s.rows.pitch = s.score.pitch;
    s.rows.n_score = a->keys->dim[1];
    s.rows.is_packed = !scores_all;
    s.rows.out = *a->rows, s.rows.n_out = *a->n_row;
    s.rows.n_segment = count_segments(
        a->block ? a->block->dim[1] * a->block_size : a->keys->dim[1], a->rows->dim[1]);
    s.row_bytes = s.score.pitch * 4 + segment_bytes(&s.rows);
    if (!a->make_block)
        return s;
    s.makes_blocks = 1;
    s.blocks = s.rows;
    s.blocks.is_blocks = 1;
    s.blocks.out = *a->make_block, s.blocks.n_out = *a->n_make_block;
    return s;
}

void cuda_index_select(struct backend *be, const void *args)
{
    enum { SCRATCH_BYTES = 192 << 20 };
    const struct op_index_select *a = (const struct op_index_select *)args;
    struct selection s = selection_of(be, a);
    int64_t n = a->q->dim[0], n_each = SCRATCH_BYTES / (s.row_bytes + 1);
    n_each = n_each < 1 ? 1 : n_each < n ? n_each : n;
    s.score.s = (float *)backend_scratch(be, (size_t)(n_each * s.score.pitch) * sizeof(float));
    if (!s.score.s || take_segments(be, &s.rows, n_each))
        return;
    s.rows.s = s.blocks.s = s.score.s;
    for (int64_t first = 0; first < n; first += n_each) {
        s.score.first_row = s.rows.first_row = s.blocks.first_row = first;
        s.score.n_row = n - first < n_each ? n - first : n_each;
        index_scores(be, &s.score);
        choose_rows(be, &s.rows, s.score.n_row);
        if (s.makes_blocks)
            choose_rows(be, &s.blocks, s.score.n_row);
    }
}
