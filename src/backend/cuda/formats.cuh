/* formats.cuh: weights of a storage format as operands of matrix instructions.
 *
 * A slice is 256 values of a weight row, its bytes in shared memory as in the file, at any
 * alignment that the format's blocks allow. Values are split into what halves hold exactly (codes,
 * codebook entries) and a factor per 16 or 32 values that is applied to the sums in float, so no
 * weight is rounded:
 *
 *   value = factor(b, step) * half - minimum(b, step)
 *
 * Group b (0..7) is 32 values, two steps of 16. Thread t of four holds values 4t .. 4t + 3 of a step
 * (mma.cuh). Layouts: tensor/kquants.c, iquants.c, fp4.c, fp8.c, q8_0.c.
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

template <enum dtype T> struct format;

/* Formats with one factor per 32 values or more share this. */
struct format_of_32 {
    enum { FACTORS_16 = 0, HAS_MINIMUM = 0, HAS_GRID = 0, SCALE_ROWS = 0 };
    static __device__ float minimum(const weight_slice &, int, int)
    {
        return 0;
    }
};

template <> struct format<DT_Q8_0> : format_of_32 {
    enum { SLICE_BYTES = 8 * 34 };
    static __device__ void halves(const weight_slice &s, int b, int step, int t, uint32_t out[2])
    {
        uint32_t u = shared_u32_even(s.bytes + 34 * b + 2 + 16 * step + 4 * t);
        bytes_to_halves(u ^ 0x80808080u, 1024 + 128, out);
    }
    static __device__ float factor(const weight_slice &s, int b, int)
    {
        return half_at(s.bytes + 34 * b);
    }
};

template <> struct format<DT_F16> : format_of_32 {
    enum { SLICE_BYTES = 2 * SLICE };
    static __device__ void halves(const weight_slice &s, int b, int step, int t, uint32_t out[2])
    {
        const uint8_t *p = s.bytes + 64 * b + 32 * step + 8 * t;
        out[0] = shared_u32_even(p);
        out[1] = shared_u32_even(p + 4);
    }
    static __device__ float factor(const weight_slice &, int, int)
    {
        return 1;
    }
};

template <> struct format<DT_MXFP4> : format_of_32 {
    enum { SLICE_BYTES = 8 * 17 };
    static __device__ void halves(const weight_slice &s, int b, int step, int t, uint32_t out[2])
    {
        e2m1_to_halves(shared_u32_any(s.bytes + 17 * b + 1 + 4 * t) >> 4 * step, out);
    }
    static __device__ float factor(const weight_slice &s, int b, int)
    {
        return e8m0_at(s.bytes + 17 * b) * 0x1p14f;
    }
};

template <> struct format<DT_FP4_ROW> : format_of_32 {
    enum { SLICE_BYTES = 8 * 16, SCALE_ROWS = 1, SCALE_COLS = 32 };
    static __device__ void halves(const weight_slice &s, int b, int step, int t, uint32_t out[2])
    {
        uint32_t x = shared_u16(s.bytes + 16 * b + 8 * step + 2 * t);
        out[0] = e2m1_pair((x & 15) | (x & 0xf0) << 12);
        out[1] = e2m1_pair((x >> 8 & 15) | (x & 0xf000) << 4);
    }
    static __device__ float factor(const weight_slice &s, int b, int)
    {
        return e8m0_at(s.scales + b) * 0x1p14f;
    }
};

template <int TILE> struct format_fp8 : format_of_32 {
    enum { SLICE_BYTES = SLICE, SCALE_ROWS = TILE, SCALE_COLS = TILE };
    static __device__ void halves(const weight_slice &s, int b, int step, int t, uint32_t out[2])
    {
        uint32_t u = *(const uint32_t *)(s.bytes + 32 * b + 16 * step + 4 * t);
        out[0] = e4m3_pair(__byte_perm(u, 0, 0x4140));
        out[1] = e4m3_pair(__byte_perm(u, 0, 0x4342));
    }
    static __device__ float factor(const weight_slice &s, int b, int)
    {
        return e8m0_at(s.scales + 32 * b / TILE) * 0x1p8f;
    }
};
template <> struct format<DT_FP8_TILE32> : format_fp8<32> {};
template <> struct format<DT_FP8_TILE128> : format_fp8<128> {};

template <> struct format<DT_Q2_K> {
    enum { SLICE_BYTES = 84, FACTORS_16 = 1, HAS_MINIMUM = 1, HAS_GRID = 0, SCALE_ROWS = 0 };
    static __device__ void halves(const weight_slice &s, int b, int step, int t, uint32_t out[2])
    {
        uint32_t u = shared_u32_even(s.bytes + 16 + 32 * (b / 4) + 16 * step + 4 * t);
        bytes_to_halves(u >> 2 * (b % 4) & 0x03030303u, 1024, out);
    }
    static __device__ float factor(const weight_slice &s, int b, int step)
    {
        return half_at(s.bytes + 80) * (float)(s.bytes[2 * b + step] & 15);
    }
    static __device__ float minimum(const weight_slice &s, int b, int step)
    {
        return half_at(s.bytes + 82) * (float)(s.bytes[2 * b + step] >> 4);
    }
};

template <> struct format<DT_Q4_K> {
    enum { SLICE_BYTES = 144, FACTORS_16 = 0, HAS_MINIMUM = 1, HAS_GRID = 0, SCALE_ROWS = 0 };
    static __device__ void halves(const weight_slice &s, int b, int step, int t, uint32_t out[2])
    {
        uint32_t u = *(const uint32_t *)(s.bytes + 16 + 32 * (b / 2) + 16 * step + 4 * t);
        bytes_to_halves(u >> 4 * (b & 1) & 0x0f0f0f0fu, 1024, out);
    }
    static __device__ float factor(const weight_slice &s, int b, int)
    {
        const uint8_t *p = s.bytes + 4;
        int scale = b < 4 ? p[b] & 63 : (p[b + 4] & 15) | (p[b - 4] >> 6) << 4;
        return half_at(s.bytes) * (float)scale;
    }
    static __device__ float minimum(const weight_slice &s, int b, int)
    {
        const uint8_t *p = s.bytes + 4;
        int least = b < 4 ? p[b + 4] & 63 : p[b + 4] >> 4 | (p[b] >> 6) << 4;
        return half_at(s.bytes + 2) * (float)least;
    }
};

template <> struct format<DT_IQ2_XXS> : format_of_32 {
    enum { SLICE_BYTES = 66, HAS_GRID = 1 };
    static __device__ void halves(const weight_slice &s, int b, int step, int t, uint32_t out[2])
    {
        const uint8_t *group = s.bytes + 2 + 8 * b;
        int l = 2 * step + (t >> 1);
        uint32_t seven = shared_u32_even(group + 4) >> 7 * l & 127;
        uint32_t sign = (seven | (uint32_t)(__popc(seven) & 1) << 7) >> 4 * (t & 1);
        bytes_to_halves(s.grid[2 * group[l] + (t & 1)], 1024, out);
        out[0] ^= (sign & 1) << 15 | (sign & 2) << 30;
        out[1] ^= (sign & 4) << 13 | (sign & 8) << 28;
    }
    static __device__ float factor(const weight_slice &s, int b, int)
    {
        uint32_t word = shared_u32_even(s.bytes + 2 + 8 * b + 4);
        return half_at(s.bytes) * (0.5f + (float)(word >> 28)) * 0.25f;
    }
};

/* The formats that have all this. */
#define CUDA_FORMATS(X)                                                                            \
    X(DT_Q8_0) X(DT_F16) X(DT_MXFP4) X(DT_FP4_ROW) X(DT_FP8_TILE32) X(DT_FP8_TILE128) X(DT_Q2_K)   \
    X(DT_Q4_K) X(DT_IQ2_XXS)

#endif
