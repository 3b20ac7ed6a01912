/* ladder_arithmetic.h: values of codes of up to four bits that share a scale, computed code by
 * code. ladder_tables.h has the same functions by looking values up. Included after a vec_*.h.
 *
 * A ladder holds what its codes have in common; the three kinds of ladder are not to be mixed.
 */
#ifndef HADAL_BACKEND_CPU_LADDER_H
#define HADAL_BACKEND_CPU_LADDER_H

#include "tensor/decode.h"

struct ladder {
    v16 scale, minimum;
};

/* High bytes of the f16 numbers 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives */
static const uint8_t ladder_e2m1_high[16] = {
    0, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46, 0x80, 0xb8, 0xbc, 0xbe, 0xc0, 0xc2, 0xc4, 0xc6};

/* scale * (value of E2M1) */
VEC struct ladder ladder_e2m1(float scale)
{
    return (struct ladder){.scale = v16_set(scale)};
}

/* Codes are the bits from `shift` on, in every byte. */
VEC v16 ladder_e2m1_at(const struct ladder *l, b16 codes, int shift)
{
    b16 high = b16_lookup(b16_load(ladder_e2m1_high), b16_bits(codes, shift, 15));
    return v16_mul(l->scale, v16_from_f16_high(high));
}

/* scale * (value of IQ4) */
VEC struct ladder ladder_iq4(float scale)
{
    return (struct ladder){.scale = v16_set(scale)};
}

VEC v16 ladder_iq4_at(const struct ladder *l, b16 codes, int shift)
{
    b16 value = b16_lookup(b16_load(iquants_value4), b16_bits(codes, shift, 15));
    return v16_mul(l->scale, v16_from_i8(value));
}

/* scale * code - minimum; mask is 3 or 15 */
VEC struct ladder ladder_steps(float scale, float minimum, int mask)
{
    (void)mask;
    return (struct ladder){v16_set(scale), v16_set(minimum)};
}

VEC v16 ladder_steps_at(const struct ladder *l, b16 codes, int shift, int mask)
{
    return v16_sub(v16_mul(l->scale, v16_from_u8(b16_bits(codes, shift, mask))), l->minimum);
}

/* Magnitudes with the signs that the lowest 14 bits stand for, 7 for each 8 (iquants.c) */
VEC v16 ladder_signed(v16 x, uint32_t bits)
{
    return v16_mul(x, v16_halves(iquants_signs[bits & 127], iquants_signs[bits >> 7 & 127]));
}

/* 0.5 + s for the scales s */
static const float ladder_halves[16] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f, 8.5f, 9.5f,
    10.5f, 11.5f, 12.5f, 13.5f, 14.5f, 15.5f};

/* scale[g] = d * (0.5 + the highest four bits of word g) for 8 words of 8 bytes */
VEC void ladder_scales8(float *scale, float d, const uint8_t *words)
{
    for (int g = 0; g < 8; g++)
        scale[g] = d * ladder_halves[words[8 * g + 7] >> 4];
}

#endif
