/* vec_neon.h: v16 and b16 (vec_avx2.h) for 64-bit ARM: a v16 is four registers. */
#ifndef HADAL_BACKEND_CPU_VEC_H
#define HADAL_BACKEND_CPU_VEC_H

#include <arm_neon.h>
#include <stdint.h>

#define VEC static inline __attribute__((always_inline))

typedef struct {
    float32x4_t a, b, c, d; /* lanes 0..3, 4..7, 8..11, 12..15 */
} v16;
typedef uint8x16_t b16;

VEC v16 v16_set(float x)
{
    float32x4_t v = vdupq_n_f32(x);
    return (v16){v, v, v, v};
}

VEC v16 v16_pair(float x, float y)
{
    float32x4_t low = vdupq_n_f32(x), high = vdupq_n_f32(y);
    return (v16){low, low, high, high};
}

VEC v16 v16_load(const float *p)
{
    return (v16){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}

VEC v16 v16_halves(const float *a, const float *b)
{
    return (v16){vld1q_f32(a), vld1q_f32(a + 4), vld1q_f32(b), vld1q_f32(b + 4)};
}

VEC v16 v16_quarters(const float *a, const float *b, const float *c, const float *d)
{
    return (v16){vld1q_f32(a), vld1q_f32(b), vld1q_f32(c), vld1q_f32(d)};
}

VEC void v16_store(float *p, v16 x)
{
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}

VEC v16 v16_add(v16 x, v16 y)
{
    return (v16){
        vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c), vaddq_f32(x.d, y.d)};
}

VEC v16 v16_sub(v16 x, v16 y)
{
    return (v16){
        vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b), vsubq_f32(x.c, y.c), vsubq_f32(x.d, y.d)};
}

VEC v16 v16_mul(v16 x, v16 y)
{
    return (v16){
        vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c), vmulq_f32(x.d, y.d)};
}

VEC v16 v16_div(v16 x, v16 y)
{
    return (v16){
        vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b), vdivq_f32(x.c, y.c), vdivq_f32(x.d, y.d)};
}

VEC v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
        vfmaq_f32(z.d, x.d, y.d)};
}

/* x > y ? x : y; the maximum instruction treats not-a-number and signed zeros otherwise */
VEC float32x4_t vec_max4(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}

VEC float32x4_t vec_min4(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcltq_f32(x, y), x, y);
}

VEC v16 v16_max(v16 x, v16 y)
{
    return (v16){vec_max4(x.a, y.a), vec_max4(x.b, y.b), vec_max4(x.c, y.c), vec_max4(x.d, y.d)};
}

VEC v16 v16_min(v16 x, v16 y)
{
    return (v16){vec_min4(x.a, y.a), vec_min4(x.b, y.b), vec_min4(x.c, y.c), vec_min4(x.d, y.d)};
}

VEC v16 v16_neg(v16 x)
{
    return (v16){vnegq_f32(x.a), vnegq_f32(x.b), vnegq_f32(x.c), vnegq_f32(x.d)};
}

VEC float32x4_t vec_scale4(float32x4_t p, float32x4_t shifted, int base)
{
    int32x4_t n = vsubq_s32(vreinterpretq_s32_f32(shifted), vdupq_n_s32(base));
    int32x4_t half = vshrq_n_s32(n, 1), rest = vsubq_s32(n, half), bias = vdupq_n_s32(127);
    float32x4_t f = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(half, bias), 23));
    float32x4_t g = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(rest, bias), 23));
    return vmulq_f32(vmulq_f32(p, f), g);
}

/* The last step of fmath_exp: p * 2^(n / 2) * 2^(n - n / 2), n = bits(shifted) - base */
VEC v16 v16_scale(v16 p, v16 shifted, int base)
{
    return (v16){vec_scale4(p.a, shifted.a, base), vec_scale4(p.b, shifted.b, base),
        vec_scale4(p.c, shifted.c, base), vec_scale4(p.d, shifted.d, base)};
}

/* Lanes 16 -> 8 -> 4 -> 2 */
VEC float32x2_t vec_fold_to_2(v16 x)
{
    float32x4_t s = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    return vadd_f32(vget_low_f32(s), vget_high_f32(s));
}

VEC void v16_fold4(float *out, v16 x0, v16 x1, v16 x2, v16 x3)
{
    vst1_f32(out, vpadd_f32(vec_fold_to_2(x0), vec_fold_to_2(x1)));
    vst1_f32(out + 2, vpadd_f32(vec_fold_to_2(x2), vec_fold_to_2(x3)));
}

VEC float32x4_t vec_widen(uint16x4_t h)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(h));
}

VEC v16 vec_widen16(uint16x8_t x, uint16x8_t y)
{
    return (v16){vec_widen(vget_low_u16(x)), vec_widen(vget_high_u16(x)),
        vec_widen(vget_low_u16(y)), vec_widen(vget_high_u16(y))};
}

VEC v16 v16_from_f16(const void *p)
{
    const uint8_t *h = p;
    return vec_widen16(vreinterpretq_u16_u8(vld1q_u8(h)), vreinterpretq_u16_u8(vld1q_u8(h + 16)));
}

VEC float32x4_t vec_bf16(uint16x4_t h)
{
    return vreinterpretq_f32_u32(vshll_n_u16(h, 16));
}

VEC v16 v16_from_bf16(const void *p)
{
    const uint8_t *h = p;
    uint16x8_t x = vreinterpretq_u16_u8(vld1q_u8(h)), y = vreinterpretq_u16_u8(vld1q_u8(h + 16));
    return (v16){vec_bf16(vget_low_u16(x)), vec_bf16(vget_high_u16(x)), vec_bf16(vget_low_u16(y)),
        vec_bf16(vget_high_u16(y))};
}

VEC float vec_f16_to_float(const void *p)
{
    uint16_t h;
    __builtin_memcpy(&h, p, sizeof h);
    return vgetq_lane_f32(vec_widen(vdup_n_u16(h)), 0);
}

VEC b16 b16_load(const void *p)
{
    return vld1q_u8(p);
}

VEC b16 b16_words(uint64_t low, uint64_t high)
{
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
}

VEC b16 b16_set(int x)
{
    return vdupq_n_u8((uint8_t)x);
}

VEC b16 b16_or(b16 x, b16 y)
{
    return vorrq_u8(x, y);
}

VEC b16 b16_sub(b16 x, b16 y)
{
    return vsubq_u8(x, y);
}

/* (x >> n) & mask in every byte */
VEC b16 b16_bits(b16 x, int n, int mask)
{
    return vandq_u8(vshlq_u8(x, vdupq_n_s8((int8_t)-n)), vdupq_n_u8((uint8_t)mask));
}

VEC b16 b16_up(b16 x, int n)
{
    return vshlq_u8(x, vdupq_n_s8((int8_t)n));
}

VEC b16 b16_lookup(b16 table, b16 x)
{
    return vqtbl1q_u8(table, x);
}

VEC b16 b16_zip_low(b16 x, b16 y)
{
    return vzip1q_u8(x, y);
}

VEC b16 b16_zip_high(b16 x, b16 y)
{
    return vzip2q_u8(x, y);
}

VEC v16 v16_from_u8(b16 x)
{
    uint16x8_t low = vmovl_u8(vget_low_u8(x)), high = vmovl_u8(vget_high_u8(x));
    return (v16){vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))),
        vcvtq_f32_u32(vmovl_u16(vget_high_u16(low))), vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))),
        vcvtq_f32_u32(vmovl_u16(vget_high_u16(high)))};
}

VEC v16 v16_from_i8(b16 x)
{
    int8x16_t s = vreinterpretq_s8_u8(x);
    int16x8_t low = vmovl_s8(vget_low_s8(s)), high = vmovl_s8(vget_high_s8(s));
    return (v16){vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
        vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))), vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
        vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))};
}

/* Bytes as the high halves of f16 numbers */
VEC v16 v16_from_f16_high(b16 x)
{
    b16 zero = vdupq_n_u8(0);
    return vec_widen16(
        vreinterpretq_u16_u8(vzip1q_u8(zero, x)), vreinterpretq_u16_u8(vzip2q_u8(zero, x)));
}

/* E4M3 bytes as high halves -> f16 numbers / 256: the same bits with 4 of the 5 exponent bits. In
 * front of the largest code, which is not a number, a step carries into the fifth. */
VEC uint16x8_t vec_e4m3_half(uint8x16_t high)
{
    int16x8_t s = vshrq_n_s16(vreinterpretq_s16_u8(high), 1);
    uint16x8_t half = vandq_u16(vreinterpretq_u16_s16(s), vdupq_n_u16(0xbfff));
    uint16x8_t next = vaddq_u16(half, vdupq_n_u16(0x80));
    return vorrq_u16(half, vandq_u16(next, vdupq_n_u16(0x4000)));
}

VEC v16 vec_from_e4m3(b16 x)
{
    b16 zero = vdupq_n_u8(0);
    return vec_widen16(vec_e4m3_half(vzip1q_u8(zero, x)), vec_e4m3_half(vzip2q_u8(zero, x)));
}

/* 32 E4M3 bytes / 256 */
VEC void v16_from_e4m3_256th(const uint8_t *p, v16 out[2])
{
    out[0] = vec_from_e4m3(b16_load(p));
    out[1] = vec_from_e4m3(b16_load(p + 16));
}

/* The part of a v16 that fits a register, for sums that need many of them */
enum { VEC_PART = 4, VEC_TILE_X = 6 };
typedef float32x4_t vec_part;

VEC vec_part vec_part_load(const float *p)
{
    return vld1q_f32(p);
}

VEC void vec_part_store(float *p, vec_part x)
{
    vst1q_f32(p, x);
}

VEC vec_part vec_part_fma(vec_part x, vec_part y, vec_part z)
{
    return vfmaq_f32(z, x, y);
}

#endif
