/* iquants.c: decoding of the codebook formats, 256 values a block. Tables in iquant_tables.c.
 *
 * Float operations, each rounded: IQ2_XXS: D = (d * (0.5 + s)) * 0.25, IQ3_XXS: D = (d * (0.5 + s))
 * * 0.5, value = D * magnitude, negated where the sign bit is set. IQ4_XS: D = d * (s - 32), value
 * = D * table[code]. v4 spec appendix C
 */
#include "tensor/decode.h"
#include "tensor/round.h"

enum { N_VALUE = 256 };

/* | d | 8 x (4 codebook rows, sign and scale word) | */
static void decode_iq2_xxs(const uint8_t *block, float *out)
{
    float d = f16_to_float(load_u16(block));
    for (int v = 0; v < N_VALUE; v += 8) {
        const uint8_t *group = block + 2 + 8 * (v / 32);
        uint32_t word = load_u32(group + 4);
        float scale = d * (0.5f + (float)(word >> 28)) * 0.25f;
        int l = v % 32 / 8;
        const float *grid = iquants_grid2[group[l]], *sign = iquants_signs[word >> 7 * l & 127];
        for (int k = 0; k < 8; k++)
            out[v + k] = scale * grid[k] * sign[k];
    }
}

/* | d | 64 codebook rows | 8 sign and scale words | */
static void decode_iq3_xxs(const uint8_t *block, float *out)
{
    float d = f16_to_float(load_u16(block));
    for (int v = 0; v < N_VALUE; v += 8) {
        uint32_t word = load_u32(block + 66 + 4 * (v / 32));
        float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;
        const float *sign = iquants_signs[word >> 7 * (v % 32 / 8) & 127];
        for (int k = 0; k < 8; k++)
            out[v + k] = scale * iquants_grid3[block[2 + v / 4 + k / 4]][k % 4] * sign[k];
    }
}

/* | d | high scale bits, 16 | low scale bits[4] | codes[128]: 16 bytes per 32 values, low nibbles
 * first | */
static void decode_iq4_xs(const uint8_t *block, float *out)
{
    float d = f16_to_float(load_u16(block));
    uint16_t high = load_u16(block + 2);
    for (int b = 0; b < 8; b++) {
        int s = (block[4 + b / 2] >> 4 * (b & 1) & 15) | (high >> 2 * b & 3) << 4;
        float scale = d * (float)(s - 32);
        const uint8_t *codes = block + 8 + 16 * b;
        for (int k = 0; k < 32; k++)
            out[32 * b + k] = scale * (float)iquants_value4[codes[k % 16] >> (k < 16 ? 0 : 4) & 15];
    }
}

static void decode_run(
    const struct decode_run *r, int n_byte, void (*decode)(const uint8_t *, float *))
{
    const uint8_t *block = r->row + r->first / N_VALUE * n_byte;
    for (int64_t i = 0; i < r->n; i += N_VALUE, block += n_byte)
        decode(block, r->out + i);
}

void iquants_decode_iq2_xxs(const struct decode_run *r)
{
    decode_run(r, 66, decode_iq2_xxs);
}

void iquants_decode_iq3_xxs(const struct decode_run *r)
{
    decode_run(r, 98, decode_iq3_xxs);
}

void iquants_decode_iq4_xs(const struct decode_run *r)
{
    decode_run(r, 136, decode_iq4_xs);
}
