/* round.h: the scalar conversions every format is made of: halves, E4M3, E2M1, E8M0. Bit exact,
 * round to nearest even. spec deepseek-v41.md 3.1 and 3.3. Inline because kernels of every backend
 * on the host share them. */
#ifndef HADAL_TENSOR_ROUND_H
#define HADAL_TENSOR_ROUND_H

#include "base/device_inline.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

DEVICE_INLINE uint32_t float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

DEVICE_INLINE float bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

DEVICE_INLINE float bf16_to_float(uint16_t h)
{
    return bits_float((uint32_t)h << 16);
}

DEVICE_INLINE uint16_t float_to_bf16(float x)
{
    uint32_t u = float_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

DEVICE_INLINE float f16_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    if (exponent == 31)
        return bits_float(sign | 0x7f800000u | mantissa << 13);
    if (exponent)
        return bits_float(sign | (exponent + 112) << 23 | mantissa << 13);
    float x = (float)mantissa * 0x1p-24f;
    return sign ? -x : x;
}

DEVICE_INLINE uint16_t float_to_f16(float x)
{
    uint32_t u = float_bits(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffffu;
    if (magnitude >= 0x7f800000u)
        return (uint16_t)(sign | 0x7c00 | (magnitude > 0x7f800000u ? 0x200 : 0));
    if (magnitude >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000u) /* subnormal or zero: let the float adder round */
        return (uint16_t)(sign | (float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

/* UE8M0: 2^(e - 127); 0 is 2^-127, 255 is NaN. */
DEVICE_INLINE float e8m0_to_float(uint8_t e)
{
    if (e == 255)
        return bits_float(0x7fc00000u);
    return e ? bits_float((uint32_t)e << 23) : 0x1p-127f;
}

/* E4M3 (OCP, "fn"): bias 7, largest 448, 0x7f and 0xff NaN, no infinities. */
DEVICE_INLINE float e4m3_to_float(uint8_t b)
{
    uint32_t sign = (uint32_t)(b & 0x80) << 24, exponent = b >> 3 & 15, mantissa = b & 7;
    if (exponent == 15 && mantissa == 7)
        return bits_float(sign | 0x7fc00000u);
    if (exponent)
        return bits_float(sign | (exponent + 120) << 23 | mantissa << 20);
    float x = (float)mantissa * 0x1p-9f;
    return sign ? -x : x;
}

/* Nearest E4M3, saturating at 448. */
DEVICE_INLINE uint8_t float_to_e4m3(float x)
{
    uint32_t u = float_bits(x), sign = u >> 24 & 0x80, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint8_t)(sign | 0x7f);
    if (magnitude >= 0x43e00000u) /* 448 */
        return (uint8_t)(sign | 0x7e);
    if (magnitude < 0x3c800000u) /* below 2^-6: multiples of 2^-9 */
        return (uint8_t)(sign | (float_bits(bits_float(magnitude) + 0x1p14f) - 0x46800000u));
    uint32_t rounded = (magnitude + 0x7ffffu + (magnitude >> 20 & 1)) >> 20;
    return (uint8_t)(sign | (rounded - (120u << 3)));
}

/* E2M1 magnitudes by code 0..7; bit 3 is the sign. */
DEVICE_INLINE float e2m1_to_float(uint8_t code)
{
    static const float value[16] = {
        0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6};
    return value[code & 15];
}

/* Nearest E2M1 code of |x| <= 6; ties go to the even code (spec 3.3). */
DEVICE_INLINE uint8_t float_to_e2m1(float x)
{
    float a = fabsf(x);
    uint8_t code = (uint8_t)((a > .25f) + (a >= .75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) +
                             (a >= 3.5f) + (a > 5));
    return (uint8_t)(code | (signbit(x) ? 8 : 0));
}

/* The smallest power of two >= x, for normal x > 0. */
DEVICE_INLINE float pow2_ceil(float x)
{
    uint32_t u = float_bits(x);
    return bits_float((u & 0x7fffffu) ? (u & 0x7f800000u) + 0x800000u : u);
}

#endif
