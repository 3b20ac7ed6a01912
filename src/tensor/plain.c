/* plain.c: one value per element, no scales. Value = the element, converted to float (integers
 * round to nearest). */
#include "tensor/decode.h"
#include "tensor/encode.h"
#include "tensor/round.h"

void plain_decode_f32(const struct decode_run *r)
{
    memcpy(r->out, r->row + 4 * r->first, (size_t)r->n * 4);
}

void plain_decode_f16(const struct decode_run *r)
{
    const uint8_t *p = r->row + 2 * r->first;
    for (int64_t i = 0; i < r->n; i++)
        r->out[i] = f16_to_float(load_u16(p + 2 * i));
}

void plain_decode_bf16(const struct decode_run *r)
{
    const uint8_t *p = r->row + 2 * r->first;
    for (int64_t i = 0; i < r->n; i++)
        r->out[i] = bf16_to_float(load_u16(p + 2 * i));
}

void plain_decode_i32(const struct decode_run *r)
{
    const uint8_t *p = r->row + 4 * r->first;
    for (int64_t i = 0; i < r->n; i++)
        r->out[i] = (float)(int32_t)load_u32(p + 4 * i);
}

void plain_decode_i64(const struct decode_run *r)
{
    const uint8_t *p = r->row + 8 * r->first;
    for (int64_t i = 0; i < r->n; i++)
        r->out[i] = (float)(int64_t)((uint64_t)load_u32(p + 8 * i) |
                                     (uint64_t)load_u32(p + 8 * i + 4) << 32);
}

void plain_decode_i8(const struct decode_run *r)
{
    for (int64_t i = 0; i < r->n; i++)
        r->out[i] = (float)(int8_t)r->row[r->first + i];
}

void plain_encode_f32(const float *values, int64_t n, uint8_t *out)
{
    memcpy(out, values, (size_t)n * 4);
}

static void store_u16(uint8_t *p, uint16_t x)
{
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}

void plain_encode_f16(const float *values, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++)
        store_u16(out + 2 * i, float_to_f16(values[i]));
}

void plain_encode_bf16(const float *values, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++)
        store_u16(out + 2 * i, float_to_bf16(values[i]));
}
