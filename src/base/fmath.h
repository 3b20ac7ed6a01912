/* fmath.h: exponentials and logarithms as fixed sequences of float operations.
 *
 * The C library's expf differs from system to system; these do not. Every line is one or two IEEE
 * operations (fused multiply-add where fmaf is written), without branches on values, so that a SIMD
 * version that runs the same sequence per lane returns the same bits. Largest errors, measured over
 * all arguments: exp 1.06 ulp, log1p_unit 1.97, sigmoid 2.5, softplus 2.8.
 */
#ifndef HADAL_BASE_FMATH_H
#define HADAL_BASE_FMATH_H

#include "base/device_inline.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define FMATH_EXP_MAX  89.0f     /* above: infinity */
#define FMATH_EXP_MIN  (-104.0f) /* below: zero */
#define FMATH_LOG2_E   0x1.715476p+0f
#define FMATH_LN2_HIGH 0x1.62e4p-1f /* 15 bits: n * high is exact for |n| < 2^9 */
#define FMATH_LN2_LOW  0x1.7f7d1cp-20f
#define FMATH_ROUND    0x1.8p+23f /* adding it rounds to an integer, which is then in the low bits */
/* exp(r) = 1 + r + r^2 P(r) on |r| <= ln(2)/2 */
#define FMATH_EXP_P0 0x1p-1f
#define FMATH_EXP_P1 0x1.5554dcp-3f
#define FMATH_EXP_P2 0x1.5554e8p-5f
#define FMATH_EXP_P3 0x1.120c68p-7f
#define FMATH_EXP_P4 0x1.6d444ep-10f

/* 2^n for -126 <= n <= 127 */
DEVICE_INLINE float fmath_pow2(int32_t n)
{
    uint32_t u = (uint32_t)(n + 127) << 23;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

DEVICE_INLINE float fmath_exp(float x)
{
    x = x > FMATH_EXP_MAX ? FMATH_EXP_MAX : x;
    x = x < FMATH_EXP_MIN ? FMATH_EXP_MIN : x;
    float shifted = fmaf(x, FMATH_LOG2_E, FMATH_ROUND);
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    int32_t n = (int32_t)(bits - 0x4b400000u);
    float whole = shifted - FMATH_ROUND;
    float r = fmaf(whole, -FMATH_LN2_HIGH, x);
    r = fmaf(whole, -FMATH_LN2_LOW, r);
    float p = fmaf(FMATH_EXP_P4, r, FMATH_EXP_P3);
    p = fmaf(p, r, FMATH_EXP_P2);
    p = fmaf(p, r, FMATH_EXP_P1);
    p = fmaf(p, r, FMATH_EXP_P0);
    p = fmaf(p, r * r, r);
    p = p + 1.0f;
    int32_t half = n >> 1; /* two factors, because 2^n alone may be no normal number */
    return p * fmath_pow2(half) * fmath_pow2(n - half);
}

/* log(1 + t) for 0 <= t <= 1: 2 atanh(t / (2 + t)) */
DEVICE_INLINE float fmath_log1p_unit(float t)
{
    float s = t / (2.0f + t);
    float z = s * s;
    float p = fmaf(0x1.dbef8ep-3f, z, 0x1.bc7be0p-3f);
    p = fmaf(p, z, 0x1.24c9bep-2f);
    p = fmaf(p, z, 0x1.9998d2p-2f);
    p = fmaf(p, z, 0x1.555556p-1f);
    float twice = s + s;
    return fmaf(p * z, s, twice);
}

DEVICE_INLINE float fmath_sigmoid(float x)
{
    return 1.0f / (1.0f + fmath_exp(-x));
}

DEVICE_INLINE float fmath_silu(float x)
{
    return x / (1.0f + fmath_exp(-x));
}

/* log(1 + exp(x)) without overflow: max(x, 0) + log1p(exp(-|x|)) */
DEVICE_INLINE float fmath_softplus(float x)
{
    float largest = x > 0 ? x : 0.0f;
    return largest + fmath_log1p_unit(fmath_exp(-fabsf(x)));
}

/* silu(min(gate, limit)) * clamp(up, -limit, limit) */
DEVICE_INLINE float fmath_swiglu(float gate, float up, float limit)
{
    float g = gate > limit ? limit : gate;
    float u = up > limit ? limit : up;
    u = u < -limit ? -limit : u;
    return fmath_silu(g) * u;
}

#endif
