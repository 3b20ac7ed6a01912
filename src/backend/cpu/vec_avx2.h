/* vec_avx2.h: the vector types that kernels are written in, for AVX2 + FMA + F16C.
 *
 *   v16   16 floats: the 16 lanes of a sum (op_list.h). Here two registers of 8.
 *   b16   16 bytes: packed codes of a weight format.
 *
 * The other vec_*.h define the same names; each operation rounds like the scalar one, so all levels
 * give the same bits.
 */
#ifndef HADAL_BACKEND_CPU_VEC_H
#define HADAL_BACKEND_CPU_VEC_H

#include <immintrin.h>
#include <stdint.h>

#define VEC static inline __attribute__((always_inline))

typedef struct {
    __m256 a, b; /* lanes 0..7, 8..15 */
} v16;
typedef __m128i b16;

VEC v16 v16_set(float x)
{
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

/* x in lanes 0..7, y in 8..15 */
VEC v16 v16_pair(float x, float y)
{
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(y)};
}

VEC v16 v16_load(const float *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

/* 8 and 8 floats */
VEC v16 v16_halves(const float *a, const float *b)
{
    return (v16){_mm256_loadu_ps(a), _mm256_loadu_ps(b)};
}

/* 4, 4, 4 and 4 floats */
VEC v16 v16_quarters(const float *a, const float *b, const float *c, const float *d)
{
    return (v16){_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1),
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(c)), _mm_loadu_ps(d), 1)};
}

VEC void v16_store(float *p, v16 x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}

VEC v16 v16_add(v16 x, v16 y)
{
    return (v16){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}

VEC v16 v16_sub(v16 x, v16 y)
{
    return (v16){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}

VEC v16 v16_mul(v16 x, v16 y)
{
    return (v16){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}

VEC v16 v16_div(v16 x, v16 y)
{
    return (v16){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}

/* x * y + z, one rounding */
VEC v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}

/* x > y ? x : y, and x < y ? x : y: not-a-number in x gives y */
VEC v16 v16_max(v16 x, v16 y)
{
    return (v16){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}

VEC v16 v16_min(v16 x, v16 y)
{
    return (v16){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}

VEC v16 v16_neg(v16 x)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_xor_ps(x.a, sign), _mm256_xor_ps(x.b, sign)};
}

/* One half of v16_scale: p * 2^(n / 2) * 2^(n - n / 2) with n in the low bits of `shifted` */
VEC __m256 vec_scale8(__m256 p, __m256 shifted, int base)
{
    __m256i n = _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(base));
    __m256i half = _mm256_srai_epi32(n, 1), rest = _mm256_sub_epi32(n, half),
            bias = _mm256_set1_epi32(127);
    __m256 f = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    __m256 g = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(p, f), g);
}

/* The last step of fmath_exp: n = bits(shifted) - base */
VEC v16 v16_scale(v16 p, v16 shifted, int base)
{
    return (v16){vec_scale8(p.a, shifted.a, base), vec_scale8(p.b, shifted.b, base)};
}

/* Lanes 16 -> 8 -> 4 */
VEC __m128 vec_fold_to_4(v16 x)
{
    __m256 s = _mm256_add_ps(x.a, x.b);
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
    const __m128i *h = p;
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128(h)), _mm256_cvtph_ps(_mm_loadu_si128(h + 1))};
}

VEC v16 v16_from_bf16(const void *p)
{
    const __m128i *h = p;
    __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128(h)),
            b = _mm256_cvtepu16_epi32(_mm_loadu_si128(h + 1));
    return (v16){_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
        _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
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
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(x)),
        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(x, 8)))};
}

VEC v16 v16_from_i8(b16 x)
{
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)),
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
}

/* The part of a v16 that fits a register, for sums that need many of them */
enum { VEC_PART = 8, VEC_TILE_X = 3 };
typedef __m256 vec_part;

VEC vec_part vec_part_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

VEC void vec_part_store(float *p, vec_part x)
{
    _mm256_storeu_ps(p, x);
}

VEC vec_part vec_part_fma(vec_part x, vec_part y, vec_part z)
{
    return _mm256_fmadd_ps(x, y, z);
}

/* Bytes as the high halves of f16 numbers */
VEC v16 v16_from_f16_high(b16 x)
{
    __m128i zero = _mm_setzero_si128();
    return (v16){
        _mm256_cvtph_ps(_mm_unpacklo_epi8(zero, x)), _mm256_cvtph_ps(_mm_unpackhi_epi8(zero, x))};
}

/* E4M3 bytes as high halves -> f16 numbers / 256: the same bits with 4 of the 5 exponent bits. In
 * front of the largest code, which is not a number, a step carries into the fifth. */
VEC __m128i vec_e4m3_half(__m128i high)
{
    __m128i half = _mm_and_si128(_mm_srai_epi16(high, 1), _mm_set1_epi16((short)0xbfff));
    __m128i next = _mm_add_epi16(half, _mm_set1_epi16(0x80));
    return _mm_or_si128(half, _mm_and_si128(next, _mm_set1_epi16(0x4000)));
}

VEC v16 vec_from_e4m3(b16 x)
{
    __m128i zero = _mm_setzero_si128();
    return (v16){_mm256_cvtph_ps(vec_e4m3_half(_mm_unpacklo_epi8(zero, x))),
        _mm256_cvtph_ps(vec_e4m3_half(_mm_unpackhi_epi8(zero, x)))};
}

/* 32 E4M3 bytes / 256 */
VEC void v16_from_e4m3_256th(const uint8_t *p, v16 out[2])
{
    out[0] = vec_from_e4m3(b16_load(p));
    out[1] = vec_from_e4m3(b16_load(p + 16));
}

#endif
