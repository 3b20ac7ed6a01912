/* rope.c: rotary positions. v4 spec 3.2 */
#include "base/angle.h"
#include "ops/ref/ref.h"

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
            angle_cos_sin((double)pos[r] * (double)freq[i], &cs[0], &cs[1]);
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
