/* formats.cuh: weights of a storage format as operands of matrix instructions.
 *
 * A slice is 256 values of a weight row, its bytes in shared memory as in the file, at any
 * alignment that the format's blocks allow. Values are split into what halves hold exactly (codes,
 * codebook entries, their products with small integer scales) and a factor that is applied to the
 * sums in float, so no weight is rounded:
 *
 *   value = factor(group) * half                            HAS_GROUP_FACTORS
 *   value = factor(slice) * half - least(slice) * minimum   a minimum per 16 values, a half too
 *
 * A slice is eight groups of 32 values, two steps of the matrix instruction each. Thread t of four
 * has values 8t .. 8t + 3 in the first step and the next four in the second (IS_WIDE), or 4t ..
 * 4t + 3 of either half of the group. Layouts: tensor/kquants.c, iquants.c, fp4.c, fp8.c, q8_0.c.
 */
#ifndef HADAL_BACKEND_CUDA_FORMATS_CUH
#define HADAL_BACKEND_CUDA_FORMATS_CUH

#include "backend/cuda/cuda.cuh"
#include "tensor/round.h"

#include <cuda_fp16.h>

enum { SLICE = 256, SLICE_GROUPS = 8 };

/* One row's slice: bytes of it, the scales that stand beside (formats that have them), a codebook
 * in shared memory (formats that have one). */
struct weight_slice {
    const uint8_t *bytes, *scales;
    const uint32_t *grid;
};

static __device__ inline uint32_t half2_bits(half2 h)
{
    uint32_t u;
    memcpy(&u, &h, sizeof u);
    return u;
}
static __device__ inline half2 bits_half2(uint32_t u)
{
    half2 h;
    memcpy(&h, &u, sizeof h);
    return h;
}
static __device__ inline uint32_t shared_u16(const uint8_t *p)
{
    return *(const uint16_t *)p;
}
/* Four bytes at an even address. */
static __device__ inline uint32_t shared_u32_even(const uint8_t *p)
{
    return shared_u16(p) | shared_u16(p + 2) << 16;
}
static __device__ inline uint32_t shared_u32_any(const uint8_t *p)
{
    return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}
static __device__ inline float half_at(const uint8_t *p)
{
    return __half2float(__ushort_as_half((unsigned short)shared_u16(p)));
}
static __device__ inline float e8m0_at(const uint8_t *p)
{
    return e8m0_to_float(*p);
}

/* Bytes 0 .. 255 as halves: 1024 + byte has the byte in its low bits. offset: 1024 or more. */
static __device__ inline void bytes_to_halves(uint32_t bytes, float offset, uint32_t out[2])
{
    half2 shift = __float2half2_rn(offset);
    out[0] = half2_bits(__hsub2(bits_half2(__byte_perm(bytes, 0x64646464u, 0x4140)), shift));
    out[1] = half2_bits(__hsub2(bits_half2(__byte_perm(bytes, 0x64646464u, 0x4342)), shift));
}
/* Low four bits of four bytes, E2M1, as halves 2^14 times too small. */
static __device__ inline uint32_t e2m1_pair(uint32_t x)
{
    return (x & 0x00070007u) << 9 | (x & 0x00080008u) << 12;
}
static __device__ inline void e2m1_to_halves(uint32_t bytes, uint32_t out[2])
{
    out[0] = e2m1_pair(__byte_perm(bytes, 0, 0x4140));
    out[1] = e2m1_pair(__byte_perm(bytes, 0, 0x4342));
}
/* Two E4M3 as halves 2^8 times too small; NaN stays NaN. */
static __device__ inline uint32_t e4m3_pair(uint32_t x)
{
    uint32_t is_nan = ((x & 0x007f007fu) + 0x00010001u) & 0x00800080u;
    return (x & 0x00800080u) << 8 | (x & 0x007f007fu) << 7 | is_nan * 0xf8u;
}

/* A thread's eight values of a group, as halves: two steps of two pairs; and their factor. */
struct group_values {
    uint32_t half[4];
    float factor;
};

template <enum dtype T> struct format;

/* What many formats have: a factor per group, no minimum, no codebook, no scales beside, nothing to
 * know about the slice. */
struct format_of_32 {
    enum { HAS_GROUP_FACTORS = 1, IS_WIDE = 1, HAS_MINIMUM = 0, HAS_GRID = 0, SCALE_ROWS = 0 };
    struct head {
        float factor, least;
    };
    static __device__ head open(const weight_slice &)
    {
        return {1, 0};
    }
    static __device__ void minimum(const weight_slice &, int, uint32_t[2])
    {
    }
};
/* A number below 1024 twice as halves. */
static __device__ inline half2 small_half2(uint32_t n)
{
    return __hsub2(bits_half2(n * 0x00010001u | 0x64006400u), __float2half2_rn(1024));
}
/* Bytes times a factor whose products halves hold: (1024 + byte) factor - 1024 factor, fused. */
static __device__ inline void bytes_times(uint32_t bytes, half2 factor, uint32_t out[2])
{
    half2 shift = __hmul2(factor, __float2half2_rn(-1024));
    out[0] =
        half2_bits(__hfma2(bits_half2(__byte_perm(bytes, 0x64646464u, 0x4140)), factor, shift));
    out[1] =
        half2_bits(__hfma2(bits_half2(__byte_perm(bytes, 0x64646464u, 0x4342)), factor, shift));
}

template <> struct format<DT_Q8_0> : format_of_32 {
    enum { SLICE_BYTES = 8 * 34 };
    static __device__ void group(group_values &v, const weight_slice &s, head, int b, int t)
    {
        const uint8_t *block = s.bytes + 34 * b, *p = block + 2 + 8 * t;
        bytes_to_halves(shared_u32_even(p) ^ 0x80808080u, 1024 + 128, v.half);
        bytes_to_halves(shared_u32_even(p + 4) ^ 0x80808080u, 1024 + 128, v.half + 2);
        v.factor = half_at(block);
    }
};

template <> struct format<DT_F16> : format_of_32 {
    enum { SLICE_BYTES = 2 * SLICE, HAS_GROUP_FACTORS = 0 };
    static __device__ void group(group_values &v, const weight_slice &s, head, int b, int t)
    {
        uint4 u = *(const uint4 *)(s.bytes + 64 * b + 16 * t);
        v.half[0] = u.x, v.half[1] = u.y, v.half[2] = u.z, v.half[3] = u.w;
    }
};

template <> struct format<DT_MXFP4> : format_of_32 {
    enum { SLICE_BYTES = 8 * 17, IS_WIDE = 0 };
    static __device__ void group(group_values &v, const weight_slice &s, head, int b, int t)
    {
        uint32_t u = shared_u32_any(s.bytes + 17 * b + 1 + 4 * t);
        e2m1_to_halves(u, v.half);
        e2m1_to_halves(u >> 4, v.half + 2);
        v.factor = e8m0_at(s.bytes + 17 * b) * 0x1p14f;
    }
};

template <> struct format<DT_FP4_ROW> : format_of_32 {
    enum { SLICE_BYTES = 8 * 16, SCALE_ROWS = 1, SCALE_COLS = 32 };
    static __device__ void group(group_values &v, const weight_slice &s, head, int b, int t)
    {
        uint32_t u = *(const uint32_t *)(s.bytes + 16 * b + 4 * t);
        for (int i = 0; i < 4; i++) {
            uint32_t x = u >> 8 * i;
            v.half[i] = e2m1_pair((x & 15) | (x & 0xf0) << 12);
        }
        v.factor = e8m0_at(s.scales + b) * 0x1p14f;
    }
};

template <int TILE> struct format_fp8 : format_of_32 {
    enum { SLICE_BYTES = SLICE, SCALE_ROWS = TILE, SCALE_COLS = TILE };
    static __device__ void group(group_values &v, const weight_slice &s, head, int b, int t)
    {
        uint2 u = *(const uint2 *)(s.bytes + 32 * b + 8 * t);
        v.half[0] = e4m3_pair(__byte_perm(u.x, 0, 0x4140));
        v.half[1] = e4m3_pair(__byte_perm(u.x, 0, 0x4342));
        v.half[2] = e4m3_pair(__byte_perm(u.y, 0, 0x4140));
        v.half[3] = e4m3_pair(__byte_perm(u.y, 0, 0x4342));
        v.factor = e8m0_at(s.scales + 32 * b / TILE) * 0x1p8f;
    }
};
template <> struct format<DT_FP8_TILE32> : format_fp8<32> {
};
template <> struct format<DT_FP8_TILE128> : format_fp8<128> {
};

/* Blocks that are a slice: | scales and minima, four bits each, per 16 values | codes | d | dmin |
 */
template <> struct format<DT_Q2_K> : format_of_32 {
    enum { SLICE_BYTES = 84, HAS_GROUP_FACTORS = 0, IS_WIDE = 0, HAS_MINIMUM = 1 };
    static __device__ head open(const weight_slice &s)
    {
        return {half_at(s.bytes + 80), half_at(s.bytes + 82)};
    }
    static __device__ void group(group_values &v, const weight_slice &s, head, int b, int t)
    {
        const uint8_t *q = s.bytes + 16 + 32 * (b / 4) + 4 * t;
        uint32_t scales = shared_u16(s.bytes + 2 * b);
        for (int step = 0; step < 2; step++) {
            uint32_t u = *(const uint32_t *)(q + 16 * step);
            half2 scale = small_half2(scales >> 8 * step & 15);
            bytes_times(u >> 2 * (b % 4) & 0x03030303u, scale, v.half + 2 * step);
        }
    }
    /* Those of 16-value blocks 4t .. 4t + 3. */
    static __device__ void minimum(const weight_slice &s, int t, uint32_t out[2])
    {
        uint32_t u = *(const uint32_t *)(s.bytes + 4 * t);
        bytes_to_halves(u >> 4 & 0x0f0f0f0fu, 1024, out);
    }
};

template <> struct format<DT_Q4_K> : format_of_32 {
    enum { SLICE_BYTES = 144, HAS_GROUP_FACTORS = 0, HAS_MINIMUM = 1 };
    static __device__ head open(const weight_slice &s)
    {
        return {half_at(s.bytes), half_at(s.bytes + 2)};
    }
    static __device__ int least(const uint8_t *p, int b)
    {
        return b < 4 ? p[b + 4] & 63 : p[b + 4] >> 4 | (p[b] >> 6) << 4;
    }
    static __device__ void group(group_values &v, const weight_slice &s, head, int b, int t)
    {
        uint2 u = *(const uint2 *)(s.bytes + 16 + 32 * (b / 2) + 8 * t);
        const uint8_t *p = s.bytes + 4;
        half2 scale =
            small_half2(b < 4 ? p[b] & 63 : (p[b + 4] & 15) | (uint32_t)(p[b - 4] >> 6) << 4);
        bytes_times(u.x >> 4 * (b & 1) & 0x0f0f0f0fu, scale, v.half);
        bytes_times(u.y >> 4 * (b & 1) & 0x0f0f0f0fu, scale, v.half + 2);
    }
    /* One per 32 values stands for two of 16. */
    static __device__ void minimum(const weight_slice &s, int t, uint32_t out[2])
    {
        for (int i = 0; i < 2; i++)
            out[i] = half2_bits(small_half2((uint32_t)least(s.bytes + 4, 2 * t + i)));
    }
};

template <> struct format<DT_IQ2_XXS> : format_of_32 {
    enum { SLICE_BYTES = 66, HAS_GROUP_FACTORS = 0, HAS_GRID = 1 };
    /* d (0.5 + s) 0.25 = d / 8 (2 s + 1), and (2 s + 1) times a magnitude is below 2048 */
    static __device__ head open(const weight_slice &s)
    {
        return {half_at(s.bytes) * 0.125f, 0};
    }
    /* The eighth sign makes their number even. Bit 2i of the signs goes to bit 15 of pair i, bit
     * 2i + 1 to bit 31. */
    static __device__ void group(group_values &v, const weight_slice &s, head, int b, int t)
    {
        const uint8_t *group = s.bytes + 2 + 8 * b;
        uint32_t word = shared_u32_even(group + 4), sign = word >> 7 * t & 127;
        sign |= __popc(sign) << 7;
        uint2 grid = *(const uint2 *)(s.grid + 2 * group[t]);
        half2 scale = small_half2((word >> 27 & 30) | 1);
        bytes_times(grid.x, scale, v.half);
        bytes_times(grid.y, scale, v.half + 2);
#pragma unroll
        for (int i = 0; i < 4; i++)
            v.half[i] ^= sign * (0x40008000u >> 2 * i) & 0x80008000u;
    }
};

/* The formats that have all this. */
#define CUDA_FORMATS(X)                                                                            \
    X(DT_Q8_0)                                                                                     \
    X(DT_F16) X(DT_MXFP4) X(DT_FP4_ROW) X(DT_FP8_TILE32) X(DT_FP8_TILE128) X(DT_Q2_K) X(DT_Q4_K)   \
        X(DT_IQ2_XXS)

#endif
