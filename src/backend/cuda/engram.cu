/* engram.cu: the gate through which an n-gram memory enters a stream; a block takes one stream of
 * one row. v41 spec 9.3 */
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

enum { THREADS = 512, CHUNK = 2048 };

struct engram {
    struct tensor x, kv, q, k;
    float eps;
};

/* Shared memory during the sums: x key, q k, x and key of CHUNK columns. */
struct stage {
    float xkey[CHUNK], qk[CHUNK], x[CHUNK], key[CHUNK];
};

static __device__ void fill_stage(
    const struct engram &a, uint32_t first, uint32_t n, struct stage *to)
{
    int64_t n_stream = a.x.dim[1], r = blockIdx.x / n_stream, s = blockIdx.x % n_stream;
    const float *x = cuda_row(a.x, blockIdx.x) + first;
    const float *key = cuda_row(a.kv, r) + s * a.x.dim[2] + first;
    struct value_range range = {first, n, threadIdx.x, THREADS};
    value_each(value_row_of(a.q, s), range, [&](uint32_t i, float q) {
        uint32_t at = stage_place(i);
        to->qk[at] = q;
        to->x[at] = x[i];
        to->key[at] = key[i];
        to->xkey[at] = to->x[at] * to->key[at];
    });
    value_each(
        value_row_of(a.k, s), range, [&](uint32_t i, float k) { to->qk[stage_place(i)] *= k; });
}

/* From the sums of (x key)(q k), x^2 and key^2. */
static __device__ float gate_of(const float sum[3], float d, float eps)
{
    float scale_x = 1.0f / sqrtf(sum[1] / d + eps), scale_key = 1.0f / sqrtf(sum[2] / d + eps);
    float dot = sum[0] * scale_x * scale_key * (1.0f / sqrtf(d));
    float magnitude = fabsf(dot) > 1e-6f ? fabsf(dot) : 1e-6f;
    return fmath_sigmoid(copysignf(sqrtf(magnitude), dot));
}

/* Three groups of 16 threads add; a fourth keeps their second warp whole. */
static __global__ void gate_kernel(struct engram a)
{
    cuda_wait();
    __shared__ __align__(16) struct stage stage;
    __shared__ float total[4];
    uint32_t d = (uint32_t)a.x.dim[2], group = threadIdx.x / 16, lane = threadIdx.x % 16;
    float sum = 0;
    for (uint32_t first = 0; first < d; first += CHUNK) {
        uint32_t n = min((uint32_t)CHUNK, d - first);
        __syncthreads();
        fill_stage(a, first, n, &stage);
        __syncthreads();
        const float *left = group == 0 ? stage.xkey : group == 1 ? stage.x : stage.key;
        if (group < 4)
            sum = stage_walk(left, group == 0 ? stage.qk : left, n, lane, sum);
    }
    if (group < 4) {
        sum = cuda_fold(sum);
        if (lane == 0)
            total[group] = sum;
    }
    __syncthreads();
    float gate = gate_of(total, (float)d, a.eps);
    const float *value = cuda_row(a.kv, blockIdx.x / a.x.dim[1]) + a.x.dim[1] * a.x.dim[2];
    float *x = cuda_row(a.x, blockIdx.x);
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < d; i += THREADS)
        x[i] = fmaf(gate, value[i], x[i]);
}

void cuda_engram_gate(struct backend *be, const void *args)
{
    const struct op_engram_gate *a = (const struct op_engram_gate *)args;
    struct engram g = {*a->x, *a->kv, cuda_weight(be, a->q), cuda_weight(be, a->k), a->eps};
    cuda_launch(be, "engram_gate", gate_kernel,
        {dim3((unsigned)(a->x->dim[0] * a->x->dim[1])), THREADS, 0}, g);
}
