/* kernel_formats.h: weight formats decoded 32 values at a time into registers. Included once per
 * instruction set, after a vec_*.h.
 *
 * For every format: NAME_head reads a block's scales, NAME_load gives values 32 g .. 32 g + 31 of
 * the block with the float operations of the scalar decoder (tensor/decode.h), in its order.
 * DEFINE_FORMAT makes two kernels of them: decode (to memory) and dot4 (four weight rows against
 * one activation row, lane sums).
 */
#ifndef HADAL_BACKEND_CPU_KERNEL_FORMATS_H
#define HADAL_BACKEND_CPU_KERNEL_FORMATS_H

#include "backend/cpu/micro.h"
#include "tensor/round.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* A loop over registers: unrolled, so that arrays of them are none */
#define EACH(i, n) _Pragma("GCC unroll 24") for (int i = 0; i < (n); i++)

/* What a block's loads need: its codes and its scales and minima per sub-block. Q4_K, Q5_K: eight
 * scales, then eight minima. */
struct head {
    const uint8_t *codes, *high;
    float scale[16], minimum[16];
};

/* e8m0_to_float without branches. */
VEC float exponent_to_float(uint8_t e)
{
    return bits_float((uint32_t)e << 23 | (uint32_t)(e == 0 || e == 255) << 22);
}

/* ---- Plain values: blocks of 32, no scales ---- */

VEC void plain4_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    h->codes = block;
}

#define f32_head  plain4_head
#define f16_head  plain4_head
#define bf16_head plain4_head

VEC void f32_load(const struct head *h, int g, v16 out[2])
{
    (void)g;
    out[0] = v16_load((const float *)(const void *)h->codes);
    out[1] = v16_load((const float *)(const void *)(h->codes + 64));
}

VEC void f16_load(const struct head *h, int g, v16 out[2])
{
    (void)g;
    out[0] = v16_from_f16(h->codes);
    out[1] = v16_from_f16(h->codes + 32);
}

VEC void bf16_load(const struct head *h, int g, v16 out[2])
{
    (void)g;
    out[0] = v16_from_bf16(h->codes);
    out[1] = v16_from_bf16(h->codes + 32);
}

/* ---- One scale per 32 values ---- */

VEC void q8_0_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    h->codes = block + 2;
    h->scale[0] = vec_f16_to_float(block);
}

VEC void q8_0_load(const struct head *h, int g, v16 out[2])
{
    (void)g;
    v16 d = v16_set(h->scale[0]);
    out[0] = v16_mul(d, v16_from_i8(b16_load(h->codes)));
    out[1] = v16_mul(d, v16_from_i8(b16_load(h->codes + 16)));
}

VEC void mxfp4_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    h->codes = block + 1;
    h->scale[0] = exponent_to_float(block[0]);
}

VEC void mxfp4_load(const struct head *h, int g, v16 out[2])
{
    (void)g;
    struct ladder ladder = ladder_e2m1(h->scale[0]);
    b16 codes = b16_load(h->codes);
    out[0] = ladder_e2m1_at(&ladder, codes, 0);
    out[1] = ladder_e2m1_at(&ladder, codes, 4);
}

VEC void fp4_row_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    h->codes = block;
    h->scale[0] = exponent_to_float(scale[b]);
}

VEC void fp4_row_load(const struct head *h, int g, v16 out[2])
{
    (void)g;
    struct ladder ladder = ladder_e2m1(h->scale[0]);
    b16 even = b16_load(h->codes), odd = b16_bits(even, 4, 15);
    out[0] = ladder_e2m1_at(&ladder, b16_zip_low(even, odd), 0);
    out[1] = ladder_e2m1_at(&ladder, b16_zip_high(even, odd), 0);
}

VEC void fp8_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    h->codes = block;
    h->scale[0] = 256.0f * exponent_to_float(scale[b]);
}

VEC void fp8_128_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    fp8_head(block, scale, b / 4, h);
    h->codes = block;
}

VEC void fp8_load(const struct head *h, int g, v16 out[2])
{
    (void)g;
    v16 d = v16_set(h->scale[0]);
    v16_from_e4m3_256th(h->codes, out);
    out[0] = v16_mul(out[0], d);
    out[1] = v16_mul(out[1], d);
}

#define fp8_128_load fp8_load

/* ---- K-quants: 256 values, sub-blocks with small integer scales ---- */

VEC void q2_k_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    float d = vec_f16_to_float(block + 80), dmin = vec_f16_to_float(block + 82);
    b16 packed = b16_load(block);
    h->codes = block + 16;
    v16_store(h->scale, v16_mul(v16_set(d), v16_from_u8(b16_bits(packed, 0, 15))));
    v16_store(h->minimum, v16_mul(v16_set(dmin), v16_from_u8(b16_bits(packed, 4, 15))));
}

VEC void q2_k_load(const struct head *h, int g, v16 out[2])
{
    const uint8_t *codes = h->codes + 32 * (g / 4);
    int shift = 2 * (g % 4);
    for (int i = 0; i < 2; i++) {
        struct ladder ladder = ladder_steps(h->scale[2 * g + i], h->minimum[2 * g + i], 3);
        out[i] = ladder_steps_at(&ladder, b16_load(codes + 16 * i), shift, 3);
    }
}

VEC void q3_k_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    const uint8_t *packed = block + 96;
    uint32_t low0 = load_u32(packed), low1 = load_u32(packed + 4), high = load_u32(packed + 8);
    uint32_t s0 = (low0 & 0x0f0f0f0f) | (high & 0x03030303) << 4;
    uint32_t s1 = (low1 & 0x0f0f0f0f) | (high >> 2 & 0x03030303) << 4;
    uint32_t s2 = (low0 >> 4 & 0x0f0f0f0f) | (high >> 4 & 0x03030303) << 4;
    uint32_t s3 = (low1 >> 4 & 0x0f0f0f0f) | (high >> 6 & 0x03030303) << 4;
    b16 scales = b16_sub(b16_words(s0 | (uint64_t)s1 << 32, s2 | (uint64_t)s3 << 32), b16_set(32));
    h->high = block;
    h->codes = block + 32;
    v16_store(h->scale, v16_mul(v16_set(vec_f16_to_float(block + 108)), v16_from_i8(scales)));
}

VEC void q3_k_load(const struct head *h, int g, v16 out[2])
{
    for (int i = 0; i < 2; i++) {
        b16 low = b16_bits(b16_load(h->codes + 32 * (g / 4) + 16 * i), 2 * (g % 4), 3);
        b16 high =
            b16_bits(b16_load(h->high + 16 * i), g, 1); /* set: nothing is taken off; else 4 */
        b16 q = b16_sub(b16_or(low, b16_up(high, 2)), b16_set(4));
        out[i] = v16_mul(v16_set(h->scale[2 * g + i]), v16_from_i8(q));
    }
}

/* Eight scales, then eight minima, 6 bits each in 12 bytes (kquants_scale_min), all at once. */
VEC void q4_q5_head(const uint8_t *block, struct head *h)
{
    uint32_t a = load_u32(block + 4), b = load_u32(block + 8), c = load_u32(block + 12);
    uint32_t scale0 = a & 0x3f3f3f3f, scale4 = (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4;
    uint32_t minimum0 = b & 0x3f3f3f3f, minimum4 = (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303)
                                                                               << 4;
    b16 packed = b16_words(scale0 | (uint64_t)scale4 << 32, minimum0 | (uint64_t)minimum4 << 32);
    v16 both = v16_pair(vec_f16_to_float(block), vec_f16_to_float(block + 2));
    v16_store(h->scale, v16_mul(both, v16_from_u8(packed)));
}

VEC void q4_k_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    q4_q5_head(block, h);
    h->codes = block + 16;
}

VEC void q4_k_load(const struct head *h, int g, v16 out[2])
{
    struct ladder ladder = ladder_steps(h->scale[g], h->scale[8 + g], 15);
    for (int i = 0; i < 2; i++)
        out[i] =
            ladder_steps_at(&ladder, b16_load(h->codes + 32 * (g / 2) + 16 * i), 4 * (g % 2), 15);
}

VEC void q5_k_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    q4_q5_head(block, h);
    h->high = block + 16;
    h->codes = block + 48;
}

VEC void q5_k_load(const struct head *h, int g, v16 out[2])
{
    v16 d = v16_set(h->scale[g]), minimum = v16_set(h->scale[8 + g]);
    for (int i = 0; i < 2; i++) {
        b16 low = b16_bits(b16_load(h->codes + 32 * (g / 2) + 16 * i), 4 * (g % 2), 15);
        b16 high = b16_up(b16_bits(b16_load(h->high + 16 * i), g, 1), 4);
        out[i] = v16_sub(v16_mul(d, v16_from_u8(b16_or(low, high))), minimum);
    }
}

VEC void q6_k_head(const uint8_t *block, const uint8_t *scale, int64_t b, struct head *h)
{
    (void)scale;
    (void)b;
    h->codes = block;
    h->high = block + 128;
    v16_store(h->scale,
        v16_mul(v16_set(vec_f16_to_float(block + 208)), v16_from_i8(b16_load(block + 192))));
}

VEC void q6_k_load(const struct head *h, int g, v16 out[2])
{
    int half = g / 4, j = g % 4;
    for (int i = 0; i < 2; i++) {
        b16 low =
            b16_bits(b16_load(h->codes + 64 * half + 32 * (j % 2) + 16 * i), j < 2 ? 0 : 4, 15);
        b16 high = b16_up(b16_bits(b16_load(h->high + 32 * half + 16 * i), 2 * j, 3), 4);
        b16 q = b16_sub(b16_or(low, high), b16_set(32));
        out[i] = v16_mul(v16_set(h->scale[2 * g + i]), v16_from_i8(q));
    }
}

#endif
