/* ladder_tables.h: ladder_arithmetic.h for AVX-512: the sixteen values of a ladder are one register,
 * computed once, and codes choose among them. The permutation reads the lowest four bits of a lane,
 * so nothing has to be cleared; ladders of two-bit codes repeat.
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

#endif
