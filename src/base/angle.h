/* angle.h: sine and cosine of large angles. The angle is reduced and the series are summed in double
 * by a fixed sequence, so that every machine and device gets the same bits; the C library's sin and
 * cos do not promise that. */
#ifndef HADAL_BASE_ANGLE_H
#define HADAL_BASE_ANGLE_H

#include "base/device_inline.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* sin and cos of |r| <= pi/4 by their Taylor series; the first term left out is below 2^-53. */
DEVICE_INLINE double angle_sin_near_zero(double r)
{
    static const double term[] = {-1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
        1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0};
    double z = r * r, p = term[0];
    for (size_t i = 1; i < sizeof term / sizeof *term; i++)
        p = fma(p, z, term[i]);
    return fma(p * z, r, r);
}

DEVICE_INLINE double angle_cos_near_zero(double r)
{
    static const double term[] = {1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
        -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5};
    double z = r * r, p = term[0];
    for (size_t i = 1; i < sizeof term / sizeof *term; i++)
        p = fma(p, z, term[i]);
    return fma(p, z, 1.0);
}

/* cos and sin of an angle of any size that fits an int64 of quarter turns, rounded to float. */
DEVICE_INLINE void angle_cos_sin(double angle, float *cosine, float *sine)
{
    double n = floor(angle * 0x1.45f306dc9c883p-1 + 0.5); /* 2 / pi */
    double r = fma(-n, 0x1.921fb54442d18p+0, angle);      /* pi / 2 in two pieces */
    r = fma(-n, 0x1.1a62633145c07p-54, r);
    double s = angle_sin_near_zero(r), c = angle_cos_near_zero(r);
    int quarter = (int)((int64_t)n & 3);
    double swapped_c = quarter & 1 ? s : c, swapped_s = quarter & 1 ? c : s;
    *cosine = (float)(quarter == 1 || quarter == 2 ? -swapped_c : swapped_c);
    *sine = (float)(quarter >= 2 ? -swapped_s : swapped_s);
}

#endif
