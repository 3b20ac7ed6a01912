/* ladder_tables.h: ladder_arithmetic.h for AVX-512: the sixteen values of a ladder are one
 * register, computed once, and codes choose among them. The permutation reads the lowest four bits
 * of a lane, so nothing has to be cleared; ladders of two-bit codes repeat.
 */
#ifndef HADAL_BACKEND_CPU_LADDER_H
#define HADAL_BACKEND_CPU_LADDER_H

#include "tensor/decode.h"

struct ladder {
    v16 value;
};

VEC v16 ladder_at(const struct ladder *l, b16 codes, int shift)
{
    __m512i index = _mm512_srli_epi32(_mm512_cvtepu8_epi32(codes), (unsigned)shift);
    return _mm512_permutexvar_ps(index, l->value);
}

VEC struct ladder ladder_e2m1(float scale)
{
    v16 one = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f,
        -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
    return (struct ladder){v16_mul(v16_set(scale), one)};
}

VEC v16 ladder_e2m1_at(const struct ladder *l, b16 codes, int shift)
{
    return ladder_at(l, codes, shift);
}

VEC struct ladder ladder_iq4(float scale)
{
    return (struct ladder){v16_mul(v16_set(scale), v16_from_i8(b16_load(iquants_value4)))};
}

VEC v16 ladder_iq4_at(const struct ladder *l, b16 codes, int shift)
{
    return ladder_at(l, codes, shift);
}

VEC struct ladder ladder_steps(float scale, float minimum, int mask)
{
    v16 all = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    v16 few = _mm512_setr_ps(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
    v16 step = mask == 3 ? few : all;
    return (struct ladder){v16_sub(v16_mul(v16_set(scale), step), v16_set(minimum))};
}

VEC v16 ladder_steps_at(const struct ladder *l, b16 codes, int shift, int mask)
{
    (void)mask;
    return ladder_at(l, codes, shift);
}

/* The eighth sign makes their number even. */
#define LADDER_EIGHT(i)                                                                            \
    ((i) | (((i) ^ (i) >> 1 ^ (i) >> 2 ^ (i) >> 3 ^ (i) >> 4 ^ (i) >> 5 ^ (i) >> 6) & 1) << 7)
#define LADDER_4(i)  LADDER_EIGHT(i), LADDER_EIGHT(i + 1), LADDER_EIGHT(i + 2), LADDER_EIGHT(i + 3)
#define LADDER_16(i) LADDER_4(i), LADDER_4(i + 4), LADDER_4(i + 8), LADDER_4(i + 12)
static const uint8_t ladder_signs[128] = {LADDER_16(0), LADDER_16(16), LADDER_16(32), LADDER_16(48),
    LADDER_16(64), LADDER_16(80), LADDER_16(96), LADDER_16(112)};

VEC v16 ladder_signed(v16 x, uint32_t bits)
{
    int negative = ladder_signs[bits & 127] | ladder_signs[bits >> 7 & 127] << 8;
    return _mm512_mask_xor_ps(x, (__mmask16)negative, x, _mm512_set1_ps(-0.0f));
}

/* 0.5 + s for the scales s */
static const float ladder_halves[16] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f, 8.5f, 9.5f,
    10.5f, 11.5f, 12.5f, 13.5f, 14.5f, 15.5f};

/* scale[g] = d * (0.5 + the highest four bits of word g) for 8 words of 8 bytes */
VEC void ladder_scales8(float *scale, float d, const uint8_t *words)
{
    __m512i high = _mm512_srli_epi64(_mm512_loadu_si512(words), 60);
    __m256 half = _mm256_add_ps(_mm512_cvtepu64_ps(high), _mm256_set1_ps(0.5f));
    _mm256_storeu_ps(scale, _mm256_mul_ps(_mm256_set1_ps(d), half));
}

#endif
