/* mhc.cu: hyper-connections: how the streams are mixed, collapsed and written back. v4 spec 2.2,
 * 2.3; v41 spec 5
 *
 * The control vectors come from mhc_control.cu; here are their split and the ops that apply it.
 */
#include "backend/cuda/mhc.cuh"
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

extern "C" {
#include "ops/fused.h"
}

static int refuses_streams(struct backend *be, const char *op, int64_t n_stream)
{
    if (n_stream <= MHC_MAX_STREAM)
        return 0;
    backend_fail(be, ERR_ARGUMENT, "%s: streams %lld, expected 0 to %d", op, (long long)n_stream,
        MHC_MAX_STREAM);
    return 1;
}

struct split {
    struct tensor pre, post, comb, scale, base;
    const float *m; /* rows x M */
    float eps;
    int n_iter;
};

/* sum_j c[first + j step] */
static __device__ inline float line_sum(const float *c, int first, int step, int n)
{
    float sum = 0;
    for (int j = 0; j < n; j++)
        sum += c[first + j * step];
    return sum;
}

/* Entry `at` of the matrix of logits c, after row sums and column sums are brought to 1; a thread
 * per entry. Two matrices alternate. */
template <int FIXED>
static __device__ float sinkhorn(
    float c[2][MHC_MAX_STREAM * MHC_MAX_STREAM], int s, int at, int n_iter, float eps)
{
    int n = FIXED ? FIXED : s, row = at / n * n, col = at % n;
    float largest = c[0][row];
    for (int k = 1; k < n; k++)
        largest = c[0][row + k] > largest ? c[0][row + k] : largest;
    float value = fmath_exp(c[0][at] - largest);
    c[1][at] = value;
    __syncthreads();
    value = value / line_sum(c[1], row, 1, n) + eps;
    c[0][at] = value;
    __syncthreads();
    for (int pass = 0; pass < 2 * n_iter - 1; pass++) { /* columns, rows, ..., columns */
        const float *from = c[pass & 1];
        float sum = pass & 1 ? line_sum(from, row, 1, n) : line_sum(from, col, n, n);
        value /= sum + eps;
        c[~pass & 1][at] = value;
        __syncthreads();
    }
    return value;
}

/* FIXED: the number of streams, 0: read from the tensors. */
template <int FIXED> static __global__ void split_kernel(struct split a)
{
    cuda_wait();
    __shared__ float c[2][MHC_MAX_STREAM * MHC_MAX_STREAM];
    int s = FIXED ? FIXED : (int)a.pre.dim[1], t = (int)threadIdx.x;
    int64_t r = blockIdx.x;
    const float *m = a.m + r * (2 + s) * s;
    int at = t < s * s ? t : 0; /* threads in excess do what the first one does */
    c[0][at] = fmaf(m[2 * s + at], value_at(a.scale, 0, 2), value_at(a.base, 0, 2 * s + at));
    __syncthreads();
    float value = sinkhorn<FIXED>(c, s, at, a.n_iter, a.eps);
    cuda_row(a.comb, r * s + at / s)[at % s] = value;
    if (t >= s)
        return;
    float pre = fmaf(m[t], value_at(a.scale, 0, 0), value_at(a.base, 0, t));
    float post = fmaf(m[s + t], value_at(a.scale, 0, 1), value_at(a.base, 0, s + t));
    cuda_row(a.pre, r)[t] = fmath_sigmoid(pre) + a.eps;
    cuda_row(a.post, r)[t] = 2.0f * fmath_sigmoid(post);
}

void cuda_mhc_mix(struct backend *be, const void *args)
{
    const struct op_mhc_mix *a = (const struct op_mhc_mix *)args;
    int64_t s = a->x->dim[1];
    if (refuses_streams(be, "mhc_mix", s))
        return;
    const float *m = mhc_control(be, a->x, a->fn, a->norm_eps);
    struct split split = {*a->pre, *a->post, *a->comb, cuda_weight(be, a->scale),
        cuda_weight(be, a->base), m, a->eps, a->n_iter};
    if (m)
        cuda_launch(be, "mhc_mix", s == 4 ? split_kernel<4> : split_kernel<0>,
            {dim3((unsigned)a->x->dim[0]), (unsigned)((s * s + 31) / 32 * 32), 0}, split);
}

static __global__ void head_kernel(struct split a)
{
    cuda_wait();
    int j = (int)threadIdx.x, s = (int)a.pre.dim[1];
    if (j >= s)
        return;
    float m = a.m[(int64_t)blockIdx.x * s + j];
    float logit = fmaf(m, value_at(a.scale, 0, 0), value_at(a.base, 0, j));
    cuda_row(a.pre, blockIdx.x)[j] = fmath_sigmoid(logit) + a.eps;
}

void cuda_mhc_head(struct backend *be, const void *args)
{
    const struct op_mhc_head *a = (const struct op_mhc_head *)args;
    if (refuses_streams(be, "mhc_head", a->x->dim[1]))
        return;
    const float *m = mhc_control(be, a->x, a->fn, a->norm_eps);
    struct split split = {
        *a->pre, {}, {}, cuda_weight(be, a->scale), cuda_weight(be, a->base), m, a->eps, 0};
    if (m)
        cuda_launch(be, "mhc_head", head_kernel, {dim3((unsigned)a->x->dim[0]), 32, 0}, split);
}

static __global__ void collapse_kernel(struct tensor y, struct tensor pre, struct tensor x)
{
    cuda_wait();
    int64_t r = blockIdx.x, i = row_column(), s = x.dim[1];
    if (i >= y.dim[1])
        return;
    const float *factor = cuda_row(pre, r);
    float sum = 0;
#pragma unroll 4
    for (int64_t j = 0; j < s; j++)
        sum = fmaf(factor[j], cuda_row(x, r * s + j)[i], sum);
    cuda_row(y, r)[i] = sum;
}

void cuda_mhc_collapse(struct backend *be, const void *args)
{
    const struct op_mhc_collapse *a = (const struct op_mhc_collapse *)args;
    cuda_launch(be, "mhc_collapse", collapse_kernel,
        {row_grid(a->y->dim[0], a->y->dim[1]), ROW_THREADS, 0}, *a->y, *a->pre, *a->x);
}

/* ---- mhc_open: with four streams, the control vectors and one kernel ---- */

enum { OPEN_THREADS = 1024, OPEN_EACH = 4, OPEN_STREAMS = 4, OPEN_MOST = 8192 };

struct open {
    struct split split;
    struct tensor y, x, before, norm; /* before.data NULL: the pre of split */
    uint32_t n_col, n_stage;          /* n_stage: floats of a stage for n_col */
    float norm_eps;
};

/* Sum of four entries of the matrix that 16 neighbouring lanes hold. */
static __device__ inline float line_of_lanes(float value, int first, int step)
{
    float c[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        c[j] = __shfl_sync(0xffffffffu, value, first + j * step, 16);
    return 0.0f + c[0] + c[1] + c[2] + c[3];
}

/* As sinkhorn, for the logit of lane % 16; a whole warp. */
static __device__ float sinkhorn_in_warp(float value, int n_iter, float eps)
{
    int at = (int)threadIdx.x % 16, row = at & ~3, col = at & 3;
    float largest = __shfl_sync(0xffffffffu, value, row, 16);
#pragma unroll
    for (int k = 1; k < 4; k++) {
        float other = __shfl_sync(0xffffffffu, value, row + k, 16);
        largest = other > largest ? other : largest;
    }
    value = fmath_exp(value - largest);
    value = value / line_of_lanes(value, row, 1) + eps;
    value /= line_of_lanes(value, col, 4) + eps;
    for (int pass = 1; pass < n_iter; pass++) {
        value /= line_of_lanes(value, row, 1) + eps;
        value /= line_of_lanes(value, col, 4) + eps;
    }
    return value;
}

/* One warp. Weights are there before the results of the kernel before. */
static __device__ void open_split(const struct split &a)
{
    int t = (int)threadIdx.x, at = t % 16, j = t % 8; /* j: of pre, then of post */
    int64_t r = blockIdx.x;
    float scale = value_at(a.scale, 0, 2), base = value_at(a.base, 0, 8 + at);
    float scale_j = value_at(a.scale, 0, j / 4), base_j = value_at(a.base, 0, j);
    cuda_wait();
    const float *m = a.m + r * 24;
    float gate = fmath_sigmoid(fmaf(m[j], scale_j, base_j));
    float comb = sinkhorn_in_warp(fmaf(m[8 + at], scale, base), a.n_iter, a.eps);
    if (t < 4)
        cuda_row(a.pre, r)[t] = gate + a.eps;
    else if (t < 8)
        cuda_row(a.post, r)[t - 4] = 2.0f * gate;
    if (t < 16)
        cuda_row(a.comb, r * 4 + t / 4)[t % 4] = comb;
}

struct open_columns {
    float x[OPEN_EACH][OPEN_STREAMS];
};

static __device__ inline void open_fetch(
    const struct open &a, uint32_t first, struct open_columns &c)
{
#pragma unroll
    for (uint32_t j = 0; j < OPEN_STREAMS; j++) {
        const float *x = cuda_row(a.x, (int64_t)blockIdx.x * OPEN_STREAMS + j);
#pragma unroll
        for (uint32_t e = 0; e < OPEN_EACH; e++) {
            uint32_t i = first + threadIdx.x + e * OPEN_THREADS;
            c.x[e][j] = i < a.n_col ? x[i] : 0.0f;
        }
    }
}

/* The collapsed row into the stage. */
static __device__ inline void open_collapse(const struct open &a, float *stage)
{
    int lane = (int)threadIdx.x % 4;
    float scale = value_at(a.split.scale, 0, 0), base = value_at(a.split.base, 0, lane);
    struct open_columns c;
    cuda_wait();
    open_fetch(a, 0, c);
    float own, pre[OPEN_STREAMS];
    if (a.before.data)
        own = cuda_row(a.before, blockIdx.x)[lane];
    else
        own = fmath_sigmoid(fmaf(a.split.m[(int64_t)blockIdx.x * 24 + lane], scale, base)) +
              a.split.eps;
#pragma unroll
    for (int j = 0; j < OPEN_STREAMS; j++)
        pre[j] = __shfl_sync(0xffffffffu, own, j, 4);
    for (uint32_t first = 0;;) {
#pragma unroll
        for (uint32_t e = 0; e < OPEN_EACH; e++) {
            uint32_t i = first + threadIdx.x + e * OPEN_THREADS;
            float sum = 0;
#pragma unroll
            for (int j = 0; j < OPEN_STREAMS; j++)
                sum = fmaf(pre[j], c.x[e][j], sum);
            if (i < a.n_col)
                stage[stage_place(i)] = sum;
        }
        first += OPEN_EACH * OPEN_THREADS;
        if (first >= a.n_col)
            return;
        open_fetch(a, first, c);
    }
}

/* Block (r, 0) makes row r of y, block (r, 1) the split, which takes about as long. */
static __global__ void __launch_bounds__(OPEN_THREADS) open_kernel(struct open a)
{
    extern __shared__ float4 memory[];
    float *stage = (float *)memory, *weight = stage + a.n_stage;
    if (blockIdx.y) {
        if (threadIdx.x < 32)
            open_split(a.split);
        return;
    }
    struct value_range range = {0, a.n_col, threadIdx.x, OPEN_THREADS};
    value_each(value_row_of(a.norm, 0), range, [&](uint32_t i, float w) { weight[i] = w; });
    open_collapse(a, stage);
    __syncthreads();
    float factor = stage_factor(stage, a.n_col, a.norm_eps), *y = cuda_row(a.y, blockIdx.x);
    for (uint32_t i = threadIdx.x; i < a.n_col; i += OPEN_THREADS) {
        float normal = stage[stage_place(i)] * factor;
        y[i] = normal * weight[i];
    }
}

void cuda_mhc_open(struct backend *be, const void *args)
{
    const struct op_mhc_open *a = (const struct op_mhc_open *)args;
    int64_t n_col = a->x->dim[2];
    if (a->x->dim[1] != OPEN_STREAMS || a->n_iter < 1 || n_col < 1 || n_col > OPEN_MOST) {
        fused_mhc_open(be, args);
        return;
    }
    const float *m = mhc_control(be, a->x, a->fn, a->norm_eps);
    if (!m)
        return;
    struct open open = {};
    open.split = {*a->pre, *a->post, *a->comb, cuda_weight(be, a->scale), cuda_weight(be, a->base),
        m, a->eps, a->n_iter};
    open.y = *a->y;
    open.x = *a->x;
    if (a->before)
        open.before = *a->before;
    open.norm = cuda_weight(be, a->norm);
    open.n_col = (uint32_t)n_col;
    open.n_stage = (uint32_t)(stage_bytes(n_col) / sizeof(float));
    open.norm_eps = a->norm_eps;
    cuda_launch(be, "mhc_open", open_kernel,
        {dim3((unsigned)a->x->dim[0], 2), OPEN_THREADS, 2 * stage_bytes(n_col)}, open);
}

/* ---- Writing back ---- */

/* MAX: at least the number of streams; the streams of a column stay in registers. more.data NULL:
 * nothing is added to y. */
template <int MAX>
static __global__ void merge_kernel(
    struct tensor x, struct tensor y, struct tensor more, struct tensor post, struct tensor comb)
{
    cuda_wait();
    __shared__ float factor[MAX][MAX], of_y[MAX];
    int64_t r = blockIdx.x, i = row_column();
    int s = (int)x.dim[1];
    for (int t = (int)threadIdx.x; t < s * s; t += ROW_THREADS)
        factor[t / s][t % s] = cuda_row(comb, r * s + t / s)[t % s];
    if (threadIdx.x < s)
        of_y[threadIdx.x] = cuda_row(post, r)[threadIdx.x];
    __syncthreads();
    if (i >= x.dim[2])
        return;
    float before[MAX], added = cuda_row(y, r)[i];
    if (more.data) {
        added += cuda_row(more, r)[i];
        cuda_row(y, r)[i] = added;
    }
#pragma unroll
    for (int j = 0; j < MAX; j++)
        before[j] = j < s ? cuda_row(x, r * s + j)[i] : 0;
    for (int j = 0; j < s; j++) {
        float sum = of_y[j] * added;
#pragma unroll
        for (int k = 0; k < MAX; k++)
            sum = k < s ? fmaf(factor[k][j], before[k], sum) : sum;
        cuda_row(x, r * s + j)[i] = sum;
    }
}

static void launch_merge(struct backend *be, const struct op_mhc_merge *a, struct tensor more)
{
    int64_t s = a->x->dim[1];
    if (!refuses_streams(be, "mhc_merge", s))
        cuda_launch(be, "mhc_merge", s <= 4 ? merge_kernel<4> : merge_kernel<MHC_MAX_STREAM>,
            {row_grid(a->x->dim[0], a->x->dim[2]), ROW_THREADS, 0}, *a->x, *a->y, more, *a->post,
            *a->comb);
}

void cuda_mhc_merge(struct backend *be, const void *args)
{
    launch_merge(be, (const struct op_mhc_merge *)args, {});
}

void cuda_mhc_merge_sum(struct backend *be, const void *args)
{
    const struct op_mhc_merge_sum *a = (const struct op_mhc_merge_sum *)args;
    struct op_mhc_merge merge = {a->x, a->y, a->post, a->comb};
    launch_merge(be, &merge, *a->more);
}
