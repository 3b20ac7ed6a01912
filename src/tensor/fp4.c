/* fp4.c: E2M1 codes with one E8M0 scale per 32 values; value = scale * code, exact but for overflow
 * to infinity.
 *
 *   MXFP4    | scale | 16 bytes |, byte j: element j low, element j + 16 high
 *   FP4_ROW  | n / 2 bytes |, byte j: element 2j low, element 2j + 1 high; scales in an array of
 * their own
 *
 * v4 spec 6.6, v41 spec 3.1 and 3.2
 */
#include "tensor/decode.h"
#include "tensor/encode.h"
#include "tensor/round.h"

enum { N_VALUE = 32, N_BYTE = 17, N_CODE_BYTE = 16 };

void fp4_decode_mxfp4(const struct decode_run *r)
{
    const uint8_t *block = r->row + r->first / N_VALUE * N_BYTE;
    for (int64_t i = 0; i < r->n; i += N_VALUE, block += N_BYTE) {
        float scale = e8m0_to_float(block[0]);
        for (int j = 0; j < N_CODE_BYTE; j++) {
            r->out[i + j] = scale * e2m1_to_float(block[1 + j] & 15);
            r->out[i + j + 16] = scale * e2m1_to_float(block[1 + j] >> 4);
        }
    }
}

void fp4_decode_row(const struct decode_run *r)
{
    for (int64_t i = 0; i < r->n; i += N_VALUE) {
        float scale = e8m0_to_float(r->scale[(r->first + i) / N_VALUE]);
        const uint8_t *codes = r->row + (r->first + i) / 2;
        for (int j = 0; j < N_CODE_BYTE; j++) {
            r->out[i + 2 * j] = scale * e2m1_to_float(codes[j] & 15);
            r->out[i + 2 * j + 1] = scale * e2m1_to_float(codes[j] >> 4);
        }
    }
}

void fp4_repack_mxfp4(const uint8_t *codes, const uint8_t *scales, int64_t n_block, uint8_t *out)
{
    for (int64_t b = 0; b < n_block; b++, codes += N_CODE_BYTE, out += N_BYTE) {
        out[0] = scales[b];
        for (int j = 0; j < N_CODE_BYTE; j++) {
            int shift = 4 * (j & 1);
            int low = codes[j / 2] >> shift & 15, high = codes[8 + j / 2] >> shift & 15;
            out[1 + j] = (uint8_t)(low | high << 4);
        }
    }
}

/* Codes of 32 values for one scale exponent; returns the squared error. */
static double encode_with(const float *x, int exponent, uint8_t *codes)
{
    double error = 0, scale = ldexp(1, exponent - 127);
    for (int k = 0; k < N_VALUE; k++) {
        double scaled = fmin(fmax(x[k] / scale, -6), 6);
        codes[k] = float_to_e2m1((float)scaled);
        double difference = x[k] - scale * (double)e2m1_to_float(codes[k]);
        error += difference * difference;
    }
    return error;
}

/* The better of the two scales that put the largest magnitude near 6: one clips values in (6, 8),
 * one does not. */
static uint8_t encode_block(const float *x, uint8_t *codes)
{
    float largest = 0;
    for (int k = 0; k < N_VALUE; k++)
        largest = fmaxf(largest, fabsf(x[k]));
    int e = 0;
    if (largest > 0 && largest <= 3e38f)
        e = ilogbf(largest) - 2 + 127;
    e = e < 0 ? 0 : e > 253 ? 253 : e;
    uint8_t wider[N_VALUE];
    if (encode_with(x, e + 1, wider) >= encode_with(x, e, codes))
        return (uint8_t)e;
    memcpy(codes, wider, sizeof wider);
    return (uint8_t)(e + 1);
}

void fp4_encode_mxfp4(const float *values, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i += N_VALUE, out += N_BYTE) {
        uint8_t codes[N_VALUE];
        out[0] = encode_block(values + i, codes);
        for (int j = 0; j < N_CODE_BYTE; j++)
            out[1 + j] = (uint8_t)(codes[j] | codes[j + 16] << 4);
    }
}

void fp4_encode_row(const float *values, int64_t n, uint8_t *codes, uint8_t *scales)
{
    for (int64_t i = 0; i < n; i += N_VALUE, codes += N_CODE_BYTE) {
        uint8_t code[N_VALUE];
        scales[i / N_VALUE] = encode_block(values + i, code);
        for (int j = 0; j < N_CODE_BYTE; j++)
            codes[j] = (uint8_t)(code[2 * j] | code[2 * j + 1] << 4);
    }
}
