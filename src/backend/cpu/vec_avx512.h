/* vec_avx512.h: v16 and b16 (vec_avx2.h) for AVX-512: a v16 is one register. */
#ifndef HADAL_BACKEND_CPU_VEC_H
#define HADAL_BACKEND_CPU_VEC_H

#include <immintrin.h>
#include <stdint.h>

#define VEC static inline __attribute__((always_inline))

typedef __m512 v16;
typedef __m128i b16;

VEC v16 v16_set(float x)
{
    return _mm512_set1_ps(x);
}

/* x in lanes 0..7, y in 8..15 */
VEC v16 v16_pair(float x, float y)
{
    return _mm512_insertf32x8(_mm512_set1_ps(x), _mm256_set1_ps(y), 1);
}

VEC v16 v16_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

/* 8 and 8 floats */
VEC v16 v16_halves(const float *a, const float *b)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(a)), _mm256_loadu_ps(b), 1);
}

/* 4, 4, 4 and 4 floats */
VEC v16 v16_quarters(const float *a, const float *b, const float *c, const float *d)
{
    __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1);
    __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(c)), _mm_loadu_ps(d), 1);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

VEC void v16_store(float *p, v16 x)
{
    _mm512_storeu_ps(p, x);
}

VEC v16 v16_add(v16 x, v16 y)
{
    return _mm512_add_ps(x, y);
}

VEC v16 v16_sub(v16 x, v16 y)
{
    return _mm512_sub_ps(x, y);
}

VEC v16 v16_mul(v16 x, v16 y)
{
    return _mm512_mul_ps(x, y);
}

VEC v16 v16_div(v16 x, v16 y)
{
    return _mm512_div_ps(x, y);
}

/* x * y + z, one rounding */
VEC v16 v16_fma(v16 x, v16 y, v16 z)
{
    return _mm512_fmadd_ps(x, y, z);
}

/* x > y ? x : y, and x < y ? x : y: not-a-number in x gives y */
VEC v16 v16_max(v16 x, v16 y)
{
    return _mm512_max_ps(x, y);
}

VEC v16 v16_min(v16 x, v16 y)
{
    return _mm512_min_ps(x, y);
}

VEC v16 v16_neg(v16 x)
{
    return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
}

/* The last step of fmath_exp: p * 2^(n / 2) * 2^(n - n / 2), n = bits(shifted) - base */
VEC v16 v16_scale(v16 p, v16 shifted, int base)
{
    __m512i n = _mm512_sub_epi32(_mm512_castps_si512(shifted), _mm512_set1_epi32(base));
    __m512i half = _mm512_srai_epi32(n, 1), rest = _mm512_sub_epi32(n, half),
            bias = _mm512_set1_epi32(127);
    __m512 f = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(half, bias), 23));
    __m512 g = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(rest, bias), 23));
    return _mm512_mul_ps(_mm512_mul_ps(p, f), g);
}

/* Lanes 16 -> 8 -> 4 */
VEC __m128 vec_fold_to_4(v16 x)
{
    __m256 s = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

/* The folded sums of four vectors */
VEC void v16_fold4(float *out, v16 x0, v16 x1, v16 x2, v16 x3)
{
    __m128 r0 = vec_fold_to_4(x0), r1 = vec_fold_to_4(x1), r2 = vec_fold_to_4(x2),
           r3 = vec_fold_to_4(x3);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3); /* r_l: lane l of all four */
    _mm_storeu_ps(out, _mm_add_ps(_mm_add_ps(r0, r2), _mm_add_ps(r1, r3)));
}

VEC v16 v16_from_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

VEC v16 v16_from_bf16(const void *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}

VEC float vec_f16_to_float(const void *p)
{
    uint16_t h;
    __builtin_memcpy(&h, p, sizeof h);
    return _cvtsh_ss(h);
}

VEC b16 b16_load(const void *p)
{
    return _mm_loadu_si128(p);
}

/* Two words of 8 bytes, lowest byte first */
VEC b16 b16_words(uint64_t low, uint64_t high)
{
    return _mm_set_epi64x((long long)high, (long long)low);
}

VEC b16 b16_set(int x)
{
    return _mm_set1_epi8((char)x);
}

VEC b16 b16_or(b16 x, b16 y)
{
    return _mm_or_si128(x, y);
}

VEC b16 b16_sub(b16 x, b16 y)
{
    return _mm_sub_epi8(x, y);
}

/* (x >> n) & mask in every byte; n is a constant once inlined */
VEC b16 b16_bits(b16 x, int n, int mask)
{
    return _mm_and_si128(_mm_srli_epi16(x, n), _mm_set1_epi8((char)mask));
}

/* x << n in every byte; no bit leaves its byte */
VEC b16 b16_up(b16 x, int n)
{
    return _mm_slli_epi16(x, n);
}

/* table[x], x < 16 */
VEC b16 b16_lookup(b16 table, b16 x)
{
    return _mm_shuffle_epi8(table, x);
}

/* x0 y0 x1 y1 ..: the first and the last 16 bytes */
VEC b16 b16_zip_low(b16 x, b16 y)
{
    return _mm_unpacklo_epi8(x, y);
}

VEC b16 b16_zip_high(b16 x, b16 y)
{
    return _mm_unpackhi_epi8(x, y);
}

VEC v16 v16_from_u8(b16 x)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(x));
}

VEC v16 v16_from_i8(b16 x)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x));
}

/* The part of a v16 that fits a register, for sums that need many of them */
enum { VEC_PART = 16, VEC_TILE_X = 6 };
typedef __m512 vec_part;

VEC vec_part vec_part_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

VEC void vec_part_store(float *p, vec_part x)
{
    _mm512_storeu_ps(p, x);
}

VEC vec_part vec_part_fma(vec_part x, vec_part y, vec_part z)
{
    return _mm512_fmadd_ps(x, y, z);
}

/* Bytes as the high halves of f16 numbers */
VEC v16 v16_from_f16_high(b16 x)
{
    return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(x), 8));
}

/* 32 E4M3 bytes / 256: the same bits with 4 of the 5 exponent bits of f16. In front of the largest
 * code, which is not a number, a step carries into the fifth. */
VEC void v16_from_e4m3_256th(const void *p, v16 out[2])
{
    __m512i wide = _mm512_slli_epi16(_mm512_cvtepi8_epi16(_mm256_loadu_si256(p)), 7);
    __m512i half = _mm512_and_si512(wide, _mm512_set1_epi16((short)0xbfff));
    __m512i next = _mm512_add_epi16(half, _mm512_set1_epi16(0x80));
    half = _mm512_ternarylogic_epi32(half, next, _mm512_set1_epi16(0x4000), 0xf8); /* a | (b & c) */
    out[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(half));
    out[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1));
}

#endif
