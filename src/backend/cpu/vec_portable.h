/* vec_portable.h: v16 and b16 (vec_avx2.h) in plain C, one lane at a time. */
#ifndef HADAL_BACKEND_CPU_VEC_H
#define HADAL_BACKEND_CPU_VEC_H

#include "tensor/round.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define VEC static inline

typedef struct {
    float l[16];
} v16;
typedef struct {
    uint8_t l[16];
} b16;

#define VEC_EACH(type, expression)                                                                 \
    type r;                                                                                        \
    for (int i = 0; i < 16; i++)                                                                   \
        r.l[i] = expression;                                                                       \
    return r

VEC v16 v16_set(float x)
{
    VEC_EACH(v16, x);
}

VEC v16 v16_pair(float x, float y)
{
    VEC_EACH(v16, i < 8 ? x : y);
}

VEC v16 v16_load(const float *p)
{
    VEC_EACH(v16, p[i]);
}

VEC v16 v16_halves(const float *a, const float *b)
{
    VEC_EACH(v16, (i < 8 ? a : b)[i % 8]);
}

VEC v16 v16_quarters(const float *a, const float *b, const float *c, const float *d)
{
    VEC_EACH(v16, (i < 8 ? i < 4 ? a : b : i < 12 ? c : d)[i % 4]);
}

VEC void v16_store(float *p, v16 x)
{
    memcpy(p, x.l, sizeof x.l);
}

VEC v16 v16_add(v16 x, v16 y)
{
    VEC_EACH(v16, x.l[i] + y.l[i]);
}

VEC v16 v16_sub(v16 x, v16 y)
{
    VEC_EACH(v16, x.l[i] - y.l[i]);
}

VEC v16 v16_mul(v16 x, v16 y)
{
    VEC_EACH(v16, x.l[i] * y.l[i]);
}

VEC v16 v16_div(v16 x, v16 y)
{
    VEC_EACH(v16, x.l[i] / y.l[i]);
}

VEC v16 v16_fma(v16 x, v16 y, v16 z)
{
    VEC_EACH(v16, fmaf(x.l[i], y.l[i], z.l[i]));
}

VEC v16 v16_max(v16 x, v16 y)
{
    VEC_EACH(v16, x.l[i] > y.l[i] ? x.l[i] : y.l[i]);
}

VEC v16 v16_min(v16 x, v16 y)
{
    VEC_EACH(v16, x.l[i] < y.l[i] ? x.l[i] : y.l[i]);
}

VEC v16 v16_neg(v16 x)
{
    VEC_EACH(v16, -x.l[i]);
}

VEC float vec_scale1(float p, float shifted, int base)
{
    int32_t n = (int32_t)(float_bits(shifted) - (uint32_t)base), half = n >> 1;
    float f = bits_float((uint32_t)(half + 127) << 23),
          g = bits_float((uint32_t)(n - half + 127) << 23);
    return p * f * g;
}

VEC v16 v16_scale(v16 p, v16 shifted, int base)
{
    VEC_EACH(v16, vec_scale1(p.l[i], shifted.l[i], base));
}

VEC float vec_fold(v16 x)
{
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            x.l[i] += x.l[i + half];
    return x.l[0];
}

VEC void v16_fold4(float *out, v16 x0, v16 x1, v16 x2, v16 x3)
{
    out[0] = vec_fold(x0);
    out[1] = vec_fold(x1);
    out[2] = vec_fold(x2);
    out[3] = vec_fold(x3);
}

/* The part of a v16 that fits a register */
enum { VEC_PART = 1, VEC_TILE_X = 3 };
typedef float vec_part;

VEC vec_part vec_part_load(const float *p)
{
    return *p;
}

VEC void vec_part_store(float *p, vec_part x)
{
    *p = x;
}

VEC vec_part vec_part_fma(vec_part x, vec_part y, vec_part z)
{
    return fmaf(x, y, z);
}

VEC uint16_t vec_half(const void *p, int i)
{
    uint16_t h;
    memcpy(&h, (const char *)p + 2 * i, sizeof h);
    return h;
}

VEC v16 v16_from_f16(const void *p)
{
    VEC_EACH(v16, f16_to_float(vec_half(p, i)));
}

VEC v16 v16_from_bf16(const void *p)
{
    VEC_EACH(v16, bf16_to_float(vec_half(p, i)));
}

VEC float vec_f16_to_float(const void *p)
{
    return f16_to_float(vec_half(p, 0));
}

VEC b16 b16_load(const void *p)
{
    b16 r;
    memcpy(r.l, p, sizeof r.l);
    return r;
}

VEC b16 b16_words(uint64_t low, uint64_t high)
{
    VEC_EACH(b16, (uint8_t)((i < 8 ? low : high) >> 8 * (i % 8)));
}

VEC b16 b16_set(int x)
{
    VEC_EACH(b16, (uint8_t)x);
}

VEC b16 b16_or(b16 x, b16 y)
{
    VEC_EACH(b16, x.l[i] | y.l[i]);
}

VEC b16 b16_sub(b16 x, b16 y)
{
    VEC_EACH(b16, (uint8_t)(x.l[i] - y.l[i]));
}

VEC b16 b16_bits(b16 x, int n, int mask)
{
    VEC_EACH(b16, (uint8_t)(x.l[i] >> n & mask));
}

VEC b16 b16_up(b16 x, int n)
{
    VEC_EACH(b16, (uint8_t)(x.l[i] << n));
}

VEC b16 b16_lookup(b16 table, b16 x)
{
    VEC_EACH(b16, table.l[x.l[i] & 15]);
}

VEC b16 b16_zip_low(b16 x, b16 y)
{
    VEC_EACH(b16, i % 2 ? y.l[i / 2] : x.l[i / 2]);
}

VEC b16 b16_zip_high(b16 x, b16 y)
{
    VEC_EACH(b16, i % 2 ? y.l[8 + i / 2] : x.l[8 + i / 2]);
}

VEC v16 v16_from_u8(b16 x)
{
    VEC_EACH(v16, (float)x.l[i]);
}

VEC v16 v16_from_i8(b16 x)
{
    VEC_EACH(v16, (float)(int8_t)x.l[i]);
}

VEC v16 v16_from_f16_high(b16 x)
{
    VEC_EACH(v16, f16_to_float((uint16_t)(x.l[i] << 8)));
}

VEC v16 vec_from_e4m3(b16 x)
{
    VEC_EACH(v16, e4m3_to_float(x.l[i]) * 0x1p-8f);
}

/* 32 E4M3 bytes / 256 */
VEC void v16_from_e4m3_256th(const uint8_t *p, v16 out[2])
{
    out[0] = vec_from_e4m3(b16_load(p));
    out[1] = vec_from_e4m3(b16_load(p + 16));
}

#endif
