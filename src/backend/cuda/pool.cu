/* pool.cu: closing a compressed row from the tokens of its group. v4 spec 4.3, v41 spec 7.1
 *
 * A block takes 32 channels of one row. All its warps fetch scores and values of the tokens and
 * compute the exponentials; the first warp adds, oldest token first.
 */
#include "backend/cuda/rows.cuh"

enum { N_CHANNEL = 32, N_WARP = 8 };

struct pool {
    struct tensor y, kv, score, slot, pos;
    int ratio, overlap;
};

/* The tokens of one row; see ops/ref/pool.c. */
struct group {
    int64_t slot, first;
    int n_token, n_before; /* n_before: tokens of the group before */
};

static __device__ struct group group_of(const struct pool &a, int64_t r)
{
    struct group g = {cuda_ints(a.slot, 0)[r], 0, a.ratio, 0};
    g.first = (int64_t)cuda_ints(a.pos, 0)[r] - a.ratio + 1;
    if (a.overlap && g.first >= a.ratio) {
        g.n_before = a.ratio;
        g.first -= a.ratio;
        g.n_token += a.ratio;
    }
    return g;
}

static __device__ float token_value(
    const struct pool &a, const struct group &g, const struct tensor &t, int j, int64_t c)
{
    uint32_t ring = (uint32_t)t.dim[1], at = (uint32_t)(g.first + j) % ring;
    int64_t column = a.overlap && j >= g.n_before ? a.y.dim[1] + c : c;
    return cuda_row(t, g.slot * ring + at)[column];
}

/* Both as n_token x N_CHANNEL; returns the largest score of this thread's channel. */
static __device__ float stage_tokens(
    const struct pool &a, const struct group &g, int64_t c, float *score, float *kv)
{
    __shared__ float of_warp[N_WARP][N_CHANNEL];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    float largest = -INFINITY;
#pragma unroll 4
    for (int j = warp; j < g.n_token; j += N_WARP) {
        float s = token_value(a, g, a.score, j, c);
        score[j * N_CHANNEL + lane] = s;
        kv[j * N_CHANNEL + lane] = token_value(a, g, a.kv, j, c);
        largest = s > largest ? s : largest;
    }
    of_warp[warp][lane] = largest;
    __syncthreads();
    for (int i = 0; i < N_WARP; i++)
        largest = of_warp[i][lane] > largest ? of_warp[i][lane] : largest;
    return largest;
}

static __global__ void pool_kernel(struct pool a, struct cuda_fault *fault)
{
    cuda_wait();
    extern __shared__ float score[];
    int64_t r = blockIdx.x, channel = (int64_t)blockIdx.y * N_CHANNEL + threadIdx.x % 32;
    int lane = (int)threadIdx.x % 32;
    if (cuda_refuse(fault, CUDA_POOL_ROW, cuda_ints(a.slot, 0)[r], a.kv.dim[0]) ||
        cuda_refuse(fault, CUDA_POOL_ROW, (int64_t)cuda_ints(a.pos, 0)[r] - a.ratio + 1, INT32_MAX))
        return;
    struct group g = group_of(a, r);
    float *kv = score + (1 + a.overlap) * a.ratio * N_CHANNEL;
    int64_t c = channel < a.y.dim[1] ? channel : 0;
    float largest = stage_tokens(a, g, c, score, kv);
    for (int j = (int)threadIdx.x / 32; j < g.n_token; j += N_WARP)
        score[j * N_CHANNEL + lane] = fmath_exp(score[j * N_CHANNEL + lane] - largest);
    __syncthreads();
    if (threadIdx.x >= N_CHANNEL || channel >= a.y.dim[1])
        return;
    float numerator = 0, denominator = 0;
#pragma unroll 8
    for (int j = 0; j < g.n_token; j++) {
        float e = score[j * N_CHANNEL + lane];
        numerator = fmaf(e, kv[j * N_CHANNEL + lane], numerator);
        denominator += e;
    }
    cuda_row(a.y, r)[channel] = numerator / denominator;
}

void cuda_pool(struct backend *be, const void *args)
{
    const struct op_pool *a = (const struct op_pool *)args;
    struct pool p = {*a->y, *a->kv, *a->score, *a->slot, *a->pos, a->ratio, a->overlap};
    size_t shared = sizeof(float) * 2 * N_CHANNEL * (size_t)(a->ratio * (1 + a->overlap));
    cuda_launch(be, "pool", pool_kernel,
        {dim3((unsigned)a->y->dim[0], (unsigned)((a->y->dim[1] + N_CHANNEL - 1) / N_CHANNEL)),
            32 * N_WARP, shared},
        p, cuda_fault_of(be));
}
