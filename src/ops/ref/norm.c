/* norm.c: element-wise ops on rows that need the whole row first: RMS norm, Hadamard; and SwiGLU.
 */
#include "base/fmath.h"
#include "ops/ref/ref.h"

void ref_rms_norm(struct backend *be, const void *args)
{
    const struct op_rms_norm *a = args;
    int64_t d = tensor_n_col(a->x);
    const float *w = a->w ? ref_weight_row(be, a->w, 0) : NULL;
    if (a->w && !w)
        return;
    for (int64_t r = 0; r < tensor_n_row(a->x); r++) {
        const float *x = ref_row(a->x, r);
        float *y = ref_row(a->y, r);
        float mean = ref_dot(x, x, d) / (float)d;
        float scale = 1.0f / sqrtf(mean + a->eps);
        for (int64_t i = 0; i < d; i++) {
            float normal = x[i] * scale;
            y[i] = w ? normal * w[i] : normal;
        }
    }
}

void ref_butterflies(float *x, int64_t d, int64_t stride)
{
    for (int64_t i = 0; i < d; i++) {
        if (i & stride)
            continue;
        float low = x[i], high = x[i + stride];
        x[i] = low + high;
        x[i + stride] = low - high;
    }
}

void ref_hadamard(struct backend *be, const void *args)
{
    (void)be;
    const struct op_hadamard *a = args;
    int64_t d = tensor_n_col(a->x);
    float scale = 1.0f / sqrtf((float)d);
    for (int64_t r = 0; r < tensor_n_row(a->x); r++) {
        float *x = ref_row(a->x, r);
        for (int64_t stride = 1; stride < d; stride *= 2)
            ref_butterflies(x, d, stride);
        for (int64_t i = 0; i < d; i++)
            x[i] *= scale;
    }
}

void ref_swiglu(struct backend *be, const void *args)
{
    (void)be;
    const struct op_swiglu *a = args;
    for (int64_t r = 0; r < tensor_n_row(a->y); r++) {
        const float *gate = ref_row(a->gate, r), *up = ref_row(a->up, r);
        float *y = ref_row(a->y, r);
        for (int64_t i = 0; i < tensor_n_col(a->y); i++)
            y[i] = fmath_swiglu(gate[i], up[i], a->limit);
    }
}
