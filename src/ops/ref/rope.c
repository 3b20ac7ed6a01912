/* rope.c: rotary positions. The angle is reduced and its sine and cosine are summed in double by a
 * fixed sequence, so that every machine gets the same bits; the C library's sin and cos do not
 * promise that. v4 spec 3.2 */
#include "ops/ref/ref.h"

/* sin and cos of |r| <= pi/4 by their Taylor series; the first term left out is below 2^-53. */
static double sin_near_zero(double r)
{
    static const double term[] = {-1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
        1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0};
    double z = r * r, p = term[0];
    for (size_t i = 1; i < sizeof term / sizeof *term; i++)
        p = fma(p, z, term[i]);
    return fma(p * z, r, r);
}

static double cos_near_zero(double r)
{
    static const double term[] = {1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
        -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5};
    double z = r * r, p = term[0];
    for (size_t i = 1; i < sizeof term / sizeof *term; i++)
        p = fma(p, z, term[i]);
    return fma(p, z, 1.0);
}

void ref_angle(double angle, float *cosine, float *sine)
{
    double n = floor(angle * 0x1.45f306dc9c883p-1 + 0.5); /* 2 / pi */
    double r = fma(-n, 0x1.921fb54442d18p+0, angle);      /* pi / 2 in two pieces */
    r = fma(-n, 0x1.1a62633145c07p-54, r);
    double s = sin_near_zero(r), c = cos_near_zero(r);
    int quarter = (int)((int64_t)n & 3);
    double swapped_c = quarter & 1 ? s : c, swapped_s = quarter & 1 ? c : s;
    *cosine = (float)(quarter == 1 || quarter == 2 ? -swapped_c : swapped_c);
    *sine = (float)(quarter >= 2 ? -swapped_s : swapped_s);
}

void ref_rope_angles(struct backend *be, const void *args)
{
    (void)be;
    const struct op_rope_angles *a = args;
    int64_t n_pair = a->freq->dim[0];
    const int32_t *pos = ref_ints(a->pos, 0);
    const float *freq = ref_row(a->freq, 0);
    for (int64_t r = 0; r < a->cs->dim[0]; r++) {
        for (int64_t i = 0; i < n_pair; i++) {
            float *cs = ref_row(a->cs, r * n_pair + i);
            ref_angle((double)pos[r] * (double)freq[i], &cs[0], &cs[1]);
        }
    }
}

void ref_rope_tail(struct backend *be, const void *args)
{
    (void)be;
    const struct op_rope_tail *a = args;
    int64_t n_head = a->x->dim[1], d = a->x->dim[2], n_pair = a->cs->dim[1];
    for (int64_t r = 0; r < a->x->dim[0] * n_head; r++) {
        float *x = ref_row(a->x, r) + d - 2 * n_pair;
        for (int64_t i = 0; i < n_pair; i++) {
            const float *cs = ref_row(a->cs, r / n_head * n_pair + i);
            float c = cs[0], s = a->is_inverse ? -cs[1] : cs[1];
            float even = x[2 * i], odd = x[2 * i + 1];
            x[2 * i] = fmaf(even, c, -(odd * s));
            x[2 * i + 1] = fmaf(even, s, odd * c);
        }
    }
}
