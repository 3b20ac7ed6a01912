/* moe.cu: choosing experts; a warp takes one row. v4 spec 6, v41 spec 8 */
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

struct router {
    struct tensor idx, weight, logits, bias; /* bias.data NULL: none */
    float scale;
};

static __device__ inline float affinity(float logit)
{
    return sqrtf(fmath_softplus(logit));
}

/* weight_k = scale p_k / (sum of p + 1e-20) for the chosen experts; p [k]. */
static __device__ void weigh(const struct router &a, const int32_t *idx, float *p)
{
    const float *logits = cuda_row(a.logits, blockIdx.x);
    float *weight = cuda_row(a.weight, blockIdx.x), sum = 0;
    int k = (int)a.idx.dim[1], lane = (int)threadIdx.x;
    for (int i = lane; i < k; i += 32)
        p[i] = affinity(logits[idx[i]]);
    __syncwarp();
    for (int i = 0; i < k; i++)
        sum += p[i];
    float denominator = sum + 1e-20f;
    for (int i = lane; i < k; i += 32)
        weight[i] = a.scale * p[i] / denominator;
}

/* The k largest of n values in descending order, ties to the lower index; takes them away. */
static __device__ void choose_largest(float *value, int n, int32_t *idx, int k)
{
    int lane = (int)threadIdx.x;
    for (int i = 0; i < k; i++) {
        uint64_t key = 0;
        for (int e = lane; e < n; e += 32) {
            uint64_t other = choice_key(value[e], (uint32_t)e);
            key = other > key ? other : key;
        }
        int best = (int)choice_index(choice_best(key));
        if (lane == 0) {
            idx[i] = best;
            value[best] = -INFINITY;
        }
        __syncwarp();
    }
}

/* Shared memory: n_expert values, k experts, k weights. */
static __global__ void router_kernel(struct router a)
{
    cuda_wait();
    extern __shared__ float value[];
    int n = (int)a.logits.dim[1], k = (int)a.idx.dim[1], lane = (int)threadIdx.x;
    int32_t *chosen = (int32_t *)(value + n);
    const float *logits = cuda_row(a.logits, blockIdx.x);
#pragma unroll 4
    for (int e = lane; e < n; e += 32)
        value[e] = affinity(logits[e]);
    struct value_range range = {0, (uint32_t)n, threadIdx.x, 32};
    if (a.bias.data)
        value_each(value_row_of(a.bias, 0), range, [&](uint32_t e, float b) { value[e] += b; });
    __syncwarp();
    choose_largest(value, n, chosen, k);
    for (int i = lane; i < k; i += 32)
        cuda_ints(a.idx, blockIdx.x)[i] = chosen[i];
    weigh(a, chosen, value + n + k);
}

void cuda_router(struct backend *be, const void *args)
{
    const struct op_router *a = (const struct op_router *)args;
    struct router r = {*a->idx, *a->weight, *a->logits, {}, a->scale};
    if (a->bias)
        r.bias = cuda_weight(be, a->bias);
    size_t shared = sizeof(float) * (size_t)(a->logits->dim[1] + 2 * a->idx->dim[1]);
    cuda_launch(be, "router", router_kernel, {dim3((unsigned)a->idx->dim[0]), 32, shared}, r);
}

static __device__ inline int64_t table_entry(const struct tensor &table, int64_t row, int i)
{
    const char *p = (const char *)table.data + row * table.row_bytes;
    return table.type == DT_I32 ? ((const int32_t *)p)[i] : ((const int64_t *)p)[i];
}

/* Shared memory: k experts, k weights. */
static __global__ void by_token_kernel(
    struct router a, struct tensor table, struct tensor id, struct cuda_fault *fault)
{
    cuda_wait();
    extern __shared__ float p[];
    int k = (int)a.idx.dim[1], lane = (int)threadIdx.x, is_refused = 0;
    int32_t token = cuda_ints(id, 0)[blockIdx.x], *chosen = (int32_t *)(p + k);
    if (cuda_refuse(fault, CUDA_ROUTER_TOKEN, token, table.dim[0]))
        return;
    for (int i = lane; i < k; i += 32) {
        int64_t expert = table_entry(table, token, i);
        if (cuda_refuse(fault, CUDA_EXPERT, expert, a.logits.dim[1]))
            is_refused = 1;
        else
            cuda_ints(a.idx, blockIdx.x)[i] = chosen[i] = (int32_t)expert;
    }
    if (!__any_sync(0xffffffffu, is_refused))
        weigh(a, chosen, p);
}

void cuda_router_by_token(struct backend *be, const void *args)
{
    const struct op_router_by_token *a = (const struct op_router_by_token *)args;
    struct router r = {*a->idx, *a->weight, *a->logits, {}, a->scale};
    cuda_launch(be, "router_by_token", by_token_kernel,
        {dim3((unsigned)a->idx->dim[0]), 32, sizeof(float) * 2 * (size_t)a->idx->dim[1]}, r,
        *a->table, *a->id, cuda_fault_of(be));
}
