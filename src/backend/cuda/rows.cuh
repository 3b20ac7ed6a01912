/* rows.cuh: what kernels on whole rows share: grids, lane sums over staged rows, choices. */
#ifndef HADAL_BACKEND_CUDA_ROWS_CUH
#define HADAL_BACKEND_CUDA_ROWS_CUH

#include "backend/cuda/cuda.cuh"

#include "base/fmath.h"
#include "tensor/round.h"

/* Blocks of ROW_THREADS threads, one value a thread: rows along x, parts of a row along y. */
enum { ROW_THREADS = 128 };
static inline dim3 row_grid(int64_t n_row, int64_t n_col)
{
    return dim3((unsigned)n_row, (unsigned)((n_col + ROW_THREADS - 1) / ROW_THREADS));
}
static __device__ inline int64_t row_column(void)
{
    return (int64_t)blockIdx.y * ROW_THREADS + threadIdx.x;
}

/* Value i of a cache's flat row. */
static __device__ inline void cache_put(const struct tensor &cache, int64_t row, int64_t i, float x)
{
    float *to = cuda_row(cache, row);
    if (cache.type == DT_F32)
        to[i] = x;
    else
        ((uint16_t *)to)[i] = float_to_bf16(x);
}

/* ---- Lane sums over rows in shared memory ----
 *
 * A stage holds a lane's next four values side by side:
 *
 *   | lane 0: i = 0, 16, 32, 48 | lane 1: i = 1, 17, 33, 49 | ... | lane 0: i = 64, 80, ...
 *
 * It begins at a multiple of 16 bytes and holds whole groups of 64 floats. */
enum { STAGE_GROUP = 64 };
static __device__ inline uint32_t stage_place(uint32_t i)
{
    return (i & ~63u) | (i & 15) << 2 | (i >> 4 & 3);
}
static inline size_t stage_bytes(int64_t n)
{
    return (size_t)((n + STAGE_GROUP - 1) / STAGE_GROUP * STAGE_GROUP) * sizeof(float);
}

/* This lane's part of sum_i a_i b_i over n staged values, added to sum. */
static __device__ inline float stage_walk(
    const float *a, const float *b, uint32_t n, uint32_t lane, float sum)
{
    uint32_t i = 0;
#pragma unroll 4
    for (; i + STAGE_GROUP <= n; i += STAGE_GROUP) {
        float4 x = *(const float4 *)(a + i + 4 * lane), y = *(const float4 *)(b + i + 4 * lane);
        sum = fmaf(x.x, y.x, sum);
        sum = fmaf(x.y, y.y, sum);
        sum = fmaf(x.z, y.z, sum);
        sum = fmaf(x.w, y.w, sum);
    }
    for (i += lane; i < n; i += 16)
        sum = fmaf(a[stage_place(i)], b[stage_place(i)], sum);
    return sum;
}

/* 1 / sqrt(mean of squares + eps) of n staged values; for every thread of the block, which has met
 * since the stage was written. */
static __device__ inline float stage_factor(const float *stage, uint32_t n, float eps)
{
    __shared__ float factor;
    if (threadIdx.x < 32) {
        float mean = cuda_fold(stage_walk(stage, stage, n, threadIdx.x % 16, 0)) / (float)n;
        if (threadIdx.x == 0)
            factor = 1.0f / sqrtf(mean + eps);
    }
    __syncthreads();
    return factor;
}

/* ---- Choices ---- */

/* The largest key belongs to the largest value, ties to the lower index. As in a scan that starts
 * with index 0, what is no number is never larger, and nothing is larger than it in front. */
static __device__ inline uint64_t choice_key(float x, uint32_t index)
{
    uint32_t u = float_bits(x + 0.0f), order = u & 0x80000000u ? ~u : u | 0x80000000u;
    if (x != x)
        order = index ? 0 : 0xffffffffu;
    return (uint64_t)order << 32 | (uint32_t)~index;
}
static __device__ inline uint32_t choice_index(uint64_t key)
{
    return ~(uint32_t)key;
}
/* The largest of a warp. */
static __device__ inline uint64_t choice_best(uint64_t key)
{
    for (int half = 16; half; half /= 2) {
        uint64_t other = __shfl_xor_sync(0xffffffffu, key, half);
        key = other > key ? other : key;
    }
    return key;
}

#endif
