/* kernel_codebooks.h: the codebook formats, continuing kernel_formats.h. Magnitudes and signs of 8
 * values are put together in one 64-bit word: a magnitude is never 0, so that ~m + 1 per byte
 * carries into no other byte. */
#ifndef HADAL_BACKEND_CPU_KERNEL_CODEBOOKS_H
#define HADAL_BACKEND_CPU_KERNEL_CODEBOOKS_H

#include "backend/cpu/kernel_formats.h"

/* 8 magnitudes negated where the 7 sign bits, and an eighth that makes their number even, say so.
 */
VEC uint64_t codebook_signed(uint64_t magnitudes, uint32_t seven_bits)
{
    uint32_t parity = seven_bits ^ seven_bits >> 4;
    parity = 0x6996u >> (parity & 15) & 1;
    uint64_t bits = seven_bits | parity << 7;
    uint64_t spread = (bits * 0x0101010101010101u) & 0x8040201008040201u;
    uint64_t ones = ((spread + 0x7f7f7f7f7f7f7f7fu) & 0x8080808080808080u) >> 7;
    return (magnitudes ^ ones * 255) + ones;
}

/* 8 magnitudes, the first in the lowest byte */
VEC uint64_t codebook_row(const uint8_t *row)
{
    return load_u32(row) | (uint64_t)load_u32(row + 4) << 32;
}

/* 16 values: two codebook rows with the sign bits that begin at bit `at` of the word */
VEC v16 codebook_values(float scale, uint64_t row0, uint64_t row1, uint32_t word, int at)
{
    uint64_t low = codebook_signed(row0, word >> at & 127),
             high = codebook_signed(row1, word >> (at + 7) & 127);
    return v16_mul(v16_set(scale), v16_from_i8(b16_words(low, high)));
}

VEC void iq2_xxs_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    float d = vec_f16_to_float(block);
    h->codes = block + 2;
    for (int g = 0; g < 8; g++)
        h->scale[g] = d * (0.5f + (float)(load_u32(block + 6 + 8 * g) >> 28)) * 0.25f;
}

VEC void iq2_xxs_load(const struct head *h, int g, v16 out[2])
{
    const uint8_t *codes = h->codes + 8 * g;
    uint32_t word = load_u32(codes + 4);
    out[0] = codebook_values(h->scale[g], codebook_row(iquants_grid2[codes[0]]),
        codebook_row(iquants_grid2[codes[1]]), word, 0);
    out[1] = codebook_values(h->scale[g], codebook_row(iquants_grid2[codes[2]]),
        codebook_row(iquants_grid2[codes[3]]), word, 14);
}

/* Two rows of four magnitudes */
VEC uint64_t codebook_pair(const uint8_t *codes)
{
    return load_u32(iquants_grid3[codes[0]]) | (uint64_t)load_u32(iquants_grid3[codes[1]]) << 32;
}

VEC void iq3_xxs_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    float d = vec_f16_to_float(block);
    h->codes = block + 2;
    h->high = block + 66;
    for (int g = 0; g < 8; g++)
        h->scale[g] = d * (0.5f + (float)(load_u32(h->high + 4 * g) >> 28)) * 0.5f;
}

VEC void iq3_xxs_load(const struct head *h, int g, v16 out[2])
{
    const uint8_t *codes = h->codes + 8 * g;
    uint32_t word = load_u32(h->high + 4 * g);
    out[0] = codebook_values(h->scale[g], codebook_pair(codes), codebook_pair(codes + 2), word, 0);
    out[1] =
        codebook_values(h->scale[g], codebook_pair(codes + 4), codebook_pair(codes + 6), word, 14);
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
    b16 codes = b16_load(h->codes + 16 * g), table = b16_load(iquants_value4);
    v16 d = v16_set(h->scale[g]);
    out[0] = v16_mul(d, v16_from_i8(b16_lookup(table, b16_bits(codes, 0, 15))));
    out[1] = v16_mul(d, v16_from_i8(b16_lookup(table, b16_bits(codes, 4, 15))));
}

#endif
