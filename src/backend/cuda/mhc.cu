/* mhc.cu: hyper-connections: how the streams are mixed, collapsed and written back. v4 spec 2.2,
 * 2.3; v41 spec 5
 *
 * The control vectors come from mhc_control.cu; here are their split and the ops that apply it.
 */
#include "backend/cuda/mhc.cuh"
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

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
template <int FIXED>
static __global__ void split_kernel(struct split a)
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
        cuda_launch(be, "mhc_mix", s == 4 ? split_kernel<4> : split_kernel<0>, {dim3((unsigned)a->x->dim[0]), (unsigned)((s * s + 31) / 32 * 32), 0}, split);
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
    cuda_launch(be, "mhc_collapse", collapse_kernel, {row_grid(a->y->dim[0], a->y->dim[1]),
        ROW_THREADS, 0}, *a->y, *a->pre, *a->x);
}

/* MAX: at least the number of streams; the streams of a column stay in registers. */
template <int MAX>
static __global__ void merge_kernel(
    struct tensor x, struct tensor y, struct tensor post, struct tensor comb)
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

void cuda_mhc_merge(struct backend *be, const void *args)
{
    const struct op_mhc_merge *a = (const struct op_mhc_merge *)args;
    int64_t s = a->x->dim[1];
    if (!refuses_streams(be, "mhc_merge", s))
        cuda_launch(be, "mhc_merge", s <= 4 ? merge_kernel<4> : merge_kernel<MHC_MAX_STREAM>, {row_grid(a->x->dim[0], a->x->dim[2]), ROW_THREADS, 0}, *a->x, *a->y, *a->post, *a->comb);
}
