/* kernel_codebooks.h: the codebook formats, continuing kernel_formats.h. Magnitudes and signs are
 * looked up as floats, 4 or 8 at a time. */
#ifndef HADAL_BACKEND_CPU_KERNEL_CODEBOOKS_H
#define HADAL_BACKEND_CPU_KERNEL_CODEBOOKS_H

#include "backend/cpu/kernel_formats.h"

/* Scales are d * (0.5 + s) / 4: with the power of two in front, the same bits. */
VEC void iq2_xxs_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    float d = 0.25f * vec_f16_to_float(block);
    h->codes = block + 2;
    ladder_scales8(h->scale, d, block + 2);
}

VEC v16 iq2_xxs_values(const uint8_t *codes, v16 scale, uint32_t signs)
{
    v16 magnitude = v16_halves(iquants_grid2[codes[0]], iquants_grid2[codes[1]]);
    return ladder_signed(v16_mul(scale, magnitude), signs);
}

VEC void iq2_xxs_load(const struct head *h, int g, v16 out[2])
{
    const uint8_t *codes = h->codes + 8 * g;
    uint32_t word = load_u32(codes + 4);
    v16 scale = v16_set(h->scale[g]);
    out[0] = iq2_xxs_values(codes, scale, word);
    out[1] = iq2_xxs_values(codes + 2, scale, word >> 14);
}

VEC void iq3_xxs_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    float d = 0.5f * vec_f16_to_float(block);
    h->codes = block + 2;
    h->high = block + 66;
    EACH (g, 8)
        h->scale[g] = d * ladder_halves[h->high[4 * g + 3] >> 4];
}

VEC v16 iq3_xxs_values(const uint8_t *codes, v16 scale, uint32_t signs)
{
    v16 magnitude = v16_quarters(iquants_grid3[codes[0]], iquants_grid3[codes[1]],
        iquants_grid3[codes[2]], iquants_grid3[codes[3]]);
    return ladder_signed(v16_mul(scale, magnitude), signs);
}

VEC void iq3_xxs_load(const struct head *h, int g, v16 out[2])
{
    const uint8_t *codes = h->codes + 8 * g;
    uint32_t word = load_u32(h->high + 4 * g);
    v16 scale = v16_set(h->scale[g]);
    out[0] = iq3_xxs_values(codes, scale, word);
    out[1] = iq3_xxs_values(codes + 4, scale, word >> 14);
}

VEC void iq4_xs_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    float d = vec_f16_to_float(block);
    uint32_t high = load_u16(block + 2);
    h->codes = block + 8;
    for (int g = 0; g < 8; g++) {
        int s = (block[4 + g / 2] >> 4 * (g % 2) & 15) | (int)(high >> 2 * g & 3) << 4;
        h->scale[g] = d * (float)(s - 32);
    }
}

VEC void iq4_xs_load(const struct head *h, int g, v16 out[2])
{
    struct ladder ladder = ladder_iq4(h->scale[g]);
    b16 codes = b16_load(h->codes + 16 * g);
    out[0] = ladder_iq4_at(&ladder, codes, 0);
    out[1] = ladder_iq4_at(&ladder, codes, 4);
}

#endif
