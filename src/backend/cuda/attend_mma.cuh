/* attend_mma.cuh: floats as operands of bf16 matrix instructions.
 *
 * x = hi + lo, both bf16, keeps 17 bits. A product of two such sums is hi hi + lo hi + hi lo, in
 * this order and in float accumulators. A term whose operand is all zero changes no bit and is left
 * out: most rows of the caches are exact in bf16.
 */
#ifndef HADAL_BACKEND_CUDA_ATTEND_MMA_CUH
#define HADAL_BACKEND_CUDA_ATTEND_MMA_CUH

#include "backend/cuda/cuda.cuh"
#include "backend/cuda/mma.cuh"

/* 8 bytes, as copy_16. */
static __device__ inline void copy_8(void *shared, const void *global)
{
    uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(global));
}

/* Two neighbours, the first in the low half. */
static __device__ inline void split_pair(float x, float y, uint32_t &hi, uint32_t &lo)
{
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(hi) : "f"(y), "f"(x));
    float rest_x = x - __uint_as_float(hi << 16);
    float rest_y = y - __uint_as_float(hi & 0xffff0000u);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(lo) : "f"(rest_y), "f"(rest_x));
}

/* Four neighbours as two registers each. */
static __device__ inline void split_four(const float4 &x, uint32_t hi[2], uint32_t lo[2])
{
    split_pair(x.x, x.y, hi[0], lo[0]);
    split_pair(x.z, x.w, hi[1], lo[1]);
}

/* A row of a cache: its address, with the lowest bit set where it is stored as BF16. */
typedef uintptr_t cache_row;

static __device__ inline cache_row cache_row_at(const struct tensor &t, int64_t row)
{
    return (uintptr_t)t.data + row * t.row_bytes + (t.type == DT_BF16);
}
static __device__ inline float cache_value(cache_row row, int64_t i)
{
    if (row & 1)
        return __uint_as_float((uint32_t)((const uint16_t *)(row - 1))[i] << 16);
    return ((const float *)row)[i];
}
/* Values i .. i + 3 of a row of n; 0 behind its end. PLAIN: any type, size and alignment, else F32,
 * whole fours, aligned. */
template <bool PLAIN>
static __device__ inline float4 cache_four(cache_row row, int64_t i, int64_t n)
{
    if (!PLAIN)
        return i < n ? *(const float4 *)((const float *)row + i) : make_float4(0, 0, 0, 0);
    return make_float4(i < n ? cache_value(row, i) : 0, i + 1 < n ? cache_value(row, i + 1) : 0,
        i + 2 < n ? cache_value(row, i + 2) : 0, i + 3 < n ? cache_value(row, i + 3) : 0);
}

/* Whether vectors of 16 bytes may be read from rows of a cache or of activations. */
static inline int is_plain(const struct tensor *t)
{
    return t && (t->type != DT_F32 || t->row_bytes % 16 || (uintptr_t)t->data % 16);
}

#endif
