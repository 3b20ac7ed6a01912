/* kquants.c: decoding of the K-quants, 256 values a block, sub-blocks with small integer scales.
 *
 * Float operations, each rounded: D = d * scale, M = dmin * minimum, value = D * q - M (Q2_K, Q4_K,
 * Q5_K) or D * q. Layouts and bit positions: v4 spec appendix C.
 */
#include "tensor/decode.h"
#include "tensor/round.h"

enum { N_VALUE = 256 };

/* | scales[16]: low nibble scale, high minimum | q[64], 2 bits each | d | dmin | */
static void decode_q2_k(const uint8_t *block, float *out)
{
    const uint8_t *scales = block, *q = block + 16;
    float d = f16_to_float(load_u16(block + 80)), dmin = f16_to_float(load_u16(block + 82));
    for (int s = 0; s < 16; s++) {
        float scale = d * (float)(scales[s] & 15), minimum = dmin * (float)(scales[s] >> 4);
        const uint8_t *bytes = q + 32 * (s / 8) + 16 * (s & 1);
        int shift = s / 2 % 4 * 2;
        for (int k = 0; k < 16; k++)
            out[16 * s + k] = scale * (float)(bytes[k] >> shift & 3) - minimum;
    }
}

/* | high bit mask[32] | q[64], 2 bits each | scales[12], 6 bits each | d | */
static void decode_q3_k(const uint8_t *block, float *out)
{
    const uint8_t *mask = block, *q = block + 32, *packed = block + 96;
    float d = f16_to_float(load_u16(block + 108));
    for (int s = 0; s < 16; s++) {
        int low = packed[s % 8] >> (s < 8 ? 0 : 4) & 15,
            high = packed[8 + s % 4] >> 2 * (s / 4) & 3;
        float scale = d * (float)((low | high << 4) - 32);
        int shift = s / 2 % 4 * 2, offset = 16 * (s & 1);
        for (int k = 0; k < 16; k++) {
            int is_high = mask[offset + k] >> s / 2 & 1;
            int value = (q[32 * (s / 8) + offset + k] >> shift & 3) - (is_high ? 0 : 4);
            out[16 * s + k] = scale * (float)value;
        }
    }
}

void kquants_scale_min(const uint8_t *packed, int b, int *scale, int *minimum)
{
    if (b < 4) {
        *scale = packed[b] & 63;
        *minimum = packed[b + 4] & 63;
    } else {
        *scale = (packed[b + 4] & 15) | (packed[b - 4] >> 6) << 4;
        *minimum = packed[b + 4] >> 4 | (packed[b] >> 6) << 4;
    }
}

/* | d | dmin | scales[12] | high bits[32], if any | q[128], 4 bits each | */
static void decode_q4_q5(const uint8_t *block, const uint8_t *high, const uint8_t *q, float *out)
{
    float d = f16_to_float(load_u16(block)), dmin = f16_to_float(load_u16(block + 2));
    for (int b = 0; b < 8; b++) {
        int scale, minimum;
        kquants_scale_min(block + 4, b, &scale, &minimum);
        float ds = d * (float)scale, dm = dmin * (float)minimum;
        for (int k = 0; k < 32; k++) {
            int value = q[32 * (b / 2) + k] >> 4 * (b & 1) & 15;
            if (high)
                value |= (high[k] >> b & 1) << 4;
            out[32 * b + k] = ds * (float)value - dm;
        }
    }
}

static void decode_q4_k(const uint8_t *block, float *out)
{
    decode_q4_q5(block, NULL, block + 16, out);
}

static void decode_q5_k(const uint8_t *block, float *out)
{
    decode_q4_q5(block, block + 16, block + 48, out);
}

/* | low[128], 4 bits each | high[64], 2 bits each | scales[16] | d | */
static void decode_q6_k(const uint8_t *block, float *out)
{
    const uint8_t *low = block, *high = block + 128, *scales = block + 192;
    float d = f16_to_float(load_u16(block + 208));
    for (int v = 0; v < N_VALUE; v++) {
        int half = v / 128, column = v % 32, j = v % 128 / 32;
        int q = low[64 * half + column + 32 * (j & 1)] >> (j < 2 ? 0 : 4) & 15;
        q |= (high[32 * half + column] >> 2 * j & 3) << 4;
        float scale = d * (float)(int8_t)scales[v / 16];
        out[v] = scale * (float)(q - 32);
    }
}

static void decode_run(
    const struct decode_run *r, int n_byte, void (*decode)(const uint8_t *, float *))
{
    const uint8_t *block = r->row + r->first / N_VALUE * n_byte;
    for (int64_t i = 0; i < r->n; i += N_VALUE, block += n_byte)
        decode(block, r->out + i);
}

void kquants_decode_q2_k(const struct decode_run *r)
{
    decode_run(r, 84, decode_q2_k);
}

void kquants_decode_q3_k(const struct decode_run *r)
{
    decode_run(r, 110, decode_q3_k);
}

void kquants_decode_q4_k(const struct decode_run *r)
{
    decode_run(r, 144, decode_q4_k);
}

void kquants_decode_q5_k(const struct decode_run *r)
{
    decode_run(r, 176, decode_q5_k);
}

void kquants_decode_q6_k(const struct decode_run *r)
{
    decode_run(r, 210, decode_q6_k);
}
