/* chain.cu: what happens to a row between a product and its use, in one kernel: norm, rotation,
 * Hadamard, rounding, the way into a cache. A block takes a row; rows too long for it take the ops'
 * definitions. */
#include "backend/cuda/round.cuh"
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

extern "C" {
#include "ops/fused.h"
}

enum { THREADS = 128, MOST_COLS = 8192 };

struct chain {
    struct tensor x, cs, weight, cache, slot, at;
    struct cuda_fault *fault;
    uint32_t n_col, n_stage, n_head,
        n_pair; /* n_stage: floats of a stage for n_col; n_head: of a row of cs */
    int is_normed, has_weight, has_hadamard, has_cache;
    int rounding, block, n_group;
    float eps, hadamard_scale;
};

/* value = rms_norm(x) */
static __device__ inline void chain_norm(const struct chain &a, float *value, const float *weight)
{
    const float *x = cuda_row(a.x, blockIdx.x);
    float *stage = value + a.n_stage;
    for (uint32_t i = threadIdx.x; i < a.n_col; i += THREADS)
        stage[stage_place(i)] = value[i] = x[i];
    __syncthreads();
    float factor = stage_factor(stage, a.n_col, a.eps);
    for (uint32_t i = threadIdx.x; i < a.n_col; i += THREADS) {
        float normal = value[i] * factor;
        value[i] = a.has_weight ? normal * weight[i] : normal;
    }
}

static __device__ inline void chain_rotate(const struct chain &a, float *value)
{
    const float *angle = cuda_row(a.cs, (int64_t)(blockIdx.x / a.n_head) * a.n_pair);
    float *tail = value + a.n_col - 2 * a.n_pair;
    for (uint32_t i = threadIdx.x; i < a.n_pair; i += THREADS) {
        const float *at = (const float *)((const char *)angle + i * a.cs.row_bytes);
        float c = at[0], s = at[1], even = tail[2 * i], odd = tail[2 * i + 1];
        tail[2 * i] = fmaf(even, c, -(odd * s));
        tail[2 * i + 1] = fmaf(even, s, odd * c);
    }
}

static __device__ inline void chain_hadamard(const struct chain &a, float *value)
{
    for (uint32_t stride = 1; stride < a.n_col; stride *= 2) {
        for (uint32_t pair = threadIdx.x; pair < a.n_col / 2; pair += THREADS) {
            uint32_t i = 2 * pair - pair % stride;
            float low = value[i], high = value[i + stride];
            value[i] = low + high;
            value[i + stride] = low - high;
        }
        __syncthreads();
    }
    for (uint32_t i = threadIdx.x; i < a.n_col; i += THREADS)
        value[i] *= a.hadamard_scale;
    __syncthreads();
}

template <typename R> static __device__ inline void chain_round(const struct chain &a, float *value)
{
    for (int group = (int)threadIdx.x / 32; group < a.n_group; group += THREADS / 32)
        round_group<R>(value + group * a.block, a.block);
    __syncthreads();
}

static __device__ inline void chain_store(const struct chain &a, const float *value)
{
    int64_t r = blockIdx.x;
    float *x = cuda_row(a.x, r);
    for (uint32_t i = threadIdx.x; i < a.n_col; i += THREADS)
        x[i] = value[i];
    if (!a.has_cache)
        return;
    int32_t to = cuda_ints(a.slot, 0)[r], at = cuda_ints(a.at, 0)[r];
    if (cuda_refuse(a.fault, CUDA_APPEND_SLOT, to, a.cache.dim[0]) ||
        cuda_refuse(a.fault, CUDA_APPEND_POSITION, at, INT32_MAX))
        return;
    int64_t row = to * a.cache.dim[1] + at % a.cache.dim[1];
    for (uint32_t i = threadIdx.x; i < a.n_col; i += THREADS)
        cache_put(a.cache, row, i, value[i]);
}

/* Weights are there before the results of the kernel before. */
static __global__ void __launch_bounds__(THREADS) chain_kernel(struct chain a)
{
    extern __shared__ float4 memory[];
    float *value = (float *)memory, *weight = value + 2 * a.n_stage;
    struct value_range range = {0, a.n_col, threadIdx.x, THREADS};
    if (a.has_weight)
        value_each(value_row_of(a.weight, 0), range, [&](uint32_t i, float w) { weight[i] = w; });
    cuda_wait();
    if (a.is_normed)
        chain_norm(a, value, weight);
    else
        for (uint32_t i = threadIdx.x; i < a.n_col; i += THREADS)
            value[i] = cuda_row(a.x, blockIdx.x)[i];
    __syncthreads();
    chain_rotate(a, value);
    __syncthreads();
    if (a.has_hadamard)
        chain_hadamard(a, value);
    if (a.rounding == ROUND_FP8)
        chain_round<fp8>(a, value);
    else if (a.rounding == ROUND_FP4)
        chain_round<fp4>(a, value);
    else if (a.rounding == ROUND_FP4_E4M3)
        chain_round<fp4_e4m3>(a, value);
    chain_store(a, value);
}

static struct chain chain_of(const struct tensor *x, const struct tensor *cs)
{
    struct chain c = {};
    int64_t n_col = tensor_n_col(x);
    c.x = *x;
    c.cs = *cs;
    c.n_col = (uint32_t)n_col;
    c.n_stage = (uint32_t)(stage_bytes(n_col) / sizeof(float));
    c.n_head = x->n_dim == 3 ? (uint32_t)x->dim[1] : 1;
    c.n_pair = (uint32_t)cs->dim[1];
    return c;
}

static void add_norm(struct backend *be, struct chain &c, const struct tensor *w, float eps)
{
    c.is_normed = 1;
    c.eps = eps;
    c.has_weight = w != NULL;
    if (w)
        c.weight = cuda_weight(be, w);
}

static void add_hadamard(struct chain &c)
{
    c.has_hadamard = 1;
    c.hadamard_scale = 1.0f / sqrtf((float)c.n_col);
}

static void add_rounding(struct chain &c, int rounding, int block, int n_col)
{
    c.rounding = rounding;
    c.block = block;
    c.n_group = rounding == ROUND_NONE ? 0 : (n_col ? n_col : (int)c.n_col) / block;
}

static void launch(struct backend *be, const char *name, const struct chain &c)
{
    size_t n_area = c.has_weight ? 3 : c.is_normed ? 2 : 1;
    cuda_launch(be, name, chain_kernel,
        {dim3((unsigned)tensor_n_row(&c.x)), THREADS, n_area * c.n_stage * sizeof(float)}, c);
}

static bool is_fit(const struct tensor *x)
{
    return tensor_n_col(x) > 0 && tensor_n_col(x) <= MOST_COLS;
}

void cuda_norm_rope(struct backend *be, const void *args)
{
    const struct op_norm_rope *a = (const struct op_norm_rope *)args;
    if (!is_fit(a->x)) {
        fused_norm_rope(be, args);
        return;
    }
    struct chain c = chain_of(a->x, a->cs);
    add_norm(be, c, a->w, a->eps);
    launch(be, "norm_rope", c);
}

void cuda_rotate_round(struct backend *be, const void *args)
{
    const struct op_rotate_round *a = (const struct op_rotate_round *)args;
    if (!is_fit(a->x)) {
        fused_rotate_round(be, args);
        return;
    }
    struct chain c = chain_of(a->x, a->cs);
    if (a->has_hadamard)
        add_hadamard(c);
    add_rounding(c, a->rounding, a->block, a->n_col);
    launch(be, "rotate_round", c);
}

void cuda_keep_row(struct backend *be, const void *args)
{
    const struct op_keep_row *a = (const struct op_keep_row *)args;
    if (!is_fit(a->x)) {
        fused_keep_row(be, args);
        return;
    }
    struct chain c = chain_of(a->x, a->cs);
    if (a->w)
        add_norm(be, c, a->w, a->eps);
    if (a->has_hadamard)
        add_hadamard(c);
    add_rounding(c, a->rounding, a->block, a->n_col);
    c.has_cache = 1;
    c.cache = *a->y;
    c.slot = *a->slot;
    c.at = *a->at;
    c.fault = cuda_fault_of(be);
    launch(be, "keep_row", c);
}
