/* q8_0.c: | f16 d | 32 x int8 q |, value = float(d) * float(q). v4 spec appendix C */
#include "tensor/decode.h"
#include "tensor/encode.h"
#include "tensor/round.h"

enum { N_VALUE = 32, N_BYTE = 34 };

void q8_0_decode(const struct decode_run *r)
{
    const uint8_t *block = r->row + r->first / N_VALUE * N_BYTE;
    for (int64_t i = 0; i < r->n; i += N_VALUE, block += N_BYTE) {
        float d = f16_to_float(load_u16(block));
        for (int k = 0; k < N_VALUE; k++)
            r->out[i + k] = d * (float)(int8_t)block[2 + k];
    }
}

static float largest_magnitude(const float *x)
{
    float largest = 0;
    for (int k = 0; k < N_VALUE; k++)
        largest = fmaxf(largest, fabsf(x[k]));
    return largest;
}

/* d = amax / 127; q = round(x * (1 / d)), halves away from zero, as ggml does it. */
void q8_0_encode(const float *values, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i += N_VALUE, out += N_BYTE) {
        float d = largest_magnitude(values + i) / 127.0f;
        float inverse = d > 0 ? 1.0f / d : 0;
        uint16_t h = float_to_f16(d);
        out[0] = (uint8_t)h;
        out[1] = (uint8_t)(h >> 8);
        for (int k = 0; k < N_VALUE; k++)
            out[2 + k] = (uint8_t)(int8_t)roundf(values[i + k] * inverse);
    }
}
