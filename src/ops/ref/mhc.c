/* mhc.c: hyper-connections: how the streams are mixed, collapsed and written back. v4
 * spec 2.2, 2.3; v41 spec 5 */
#include "base/fmath.h"
#include "ops/ref/ref.h"

void ref_sinkhorn(float *c, int64_t s, int n_iter, float eps)
{
    for (int64_t j = 0; j < s; j++) { /* rows: softmax + eps */
        float largest = c[j * s], sum = 0;
        for (int64_t k = 1; k < s; k++)
            largest = c[j * s + k] > largest ? c[j * s + k] : largest;
        for (int64_t k = 0; k < s; k++) {
            c[j * s + k] = fmath_exp(c[j * s + k] - largest);
            sum += c[j * s + k];
        }
        for (int64_t k = 0; k < s; k++)
            c[j * s + k] = c[j * s + k] / sum + eps;
    }
    for (int pass = 0; pass < 2 * n_iter - 1; pass++) { /* columns, rows, columns, ..., columns */
        int64_t step = pass % 2 ? 1 : s, line = pass % 2 ? s : 1;
        for (int64_t k = 0; k < s; k++) {
            float sum = 0;
            for (int64_t j = 0; j < s; j++)
                sum += c[k * line + j * step];
            float denominator = sum + eps;
            for (int64_t j = 0; j < s; j++)
                c[k * line + j * step] /= denominator;
        }
    }
}

void ref_mhc_split(const struct ref_mhc *h, const float *m, int64_t r)
{
    int64_t s = h->n_stream;
    float *pre = ref_row(h->pre, r), *post = ref_row(h->post, r),
          comb[REF_MAX_STREAM * REF_MAX_STREAM];
    for (int64_t j = 0; j < s; j++) {
        pre[j] = fmath_sigmoid(fmaf(m[j], h->scale[0], h->base[j])) + h->eps;
        post[j] = 2.0f * fmath_sigmoid(fmaf(m[s + j], h->scale[1], h->base[s + j]));
    }
    for (int64_t j = 0; j < s * s; j++)
        comb[j] = fmaf(m[2 * s + j], h->scale[2], h->base[2 * s + j]);
    ref_sinkhorn(comb, s, h->n_iter, h->eps);
    for (int64_t j = 0; j < s * s; j++)
        ref_row(h->comb, r * s + j / s)[j % s] = comb[j];
}

/* m_i = (fn_i . v) / sqrt(mean(v^2) + eps) for the n_out rows of fn */
static void control(const float *fn, int64_t n_out, const float *v, int64_t n, float eps, float *m)
{
    float scale = 1.0f / sqrtf(ref_dot(v, v, n) / (float)n + eps);
    for (int64_t i = 0; i < n_out; i++)
        m[i] = ref_dot(fn + i * n, v, n) * scale;
}

void ref_mhc_mix(struct backend *be, const void *args)
{
    const struct op_mhc_mix *a = args;
    int64_t s = a->x->dim[1], n = s * a->x->dim[2];
    if (ref_refuse_index(be, "mhc_mix: streams", s, REF_MAX_STREAM + 1))
        return;
    const float *fn = ref_weight_values(be, a->fn);
    struct ref_mhc h = {.n_stream = s,
        .n_iter = a->n_iter,
        .eps = a->eps,
        .pre = a->pre,
        .post = a->post,
        .comb = a->comb,
        .scale = ref_weight_row(be, a->scale, 0),
        .base = ref_weight_row(be, a->base, 0)};
    float m[(2 + REF_MAX_STREAM) * REF_MAX_STREAM];
    for (int64_t r = 0; fn && h.scale && h.base && r < a->x->dim[0]; r++) {
        control(fn, (2 + s) * s, ref_row(a->x, r * s), n, a->norm_eps, m);
        ref_mhc_split(&h, m, r);
    }
}

void ref_mhc_head(struct backend *be, const void *args)
{
    const struct op_mhc_head *a = args;
    int64_t s = a->x->dim[1], n = s * a->x->dim[2];
    if (ref_refuse_index(be, "mhc_head: streams", s, REF_MAX_STREAM + 1))
        return;
    const float *fn = ref_weight_values(be, a->fn), *scale = ref_weight_row(be, a->scale, 0);
    const float *base = ref_weight_row(be, a->base, 0);
    float m[REF_MAX_STREAM];
    for (int64_t r = 0; fn && scale && base && r < a->x->dim[0]; r++) {
        control(fn, s, ref_row(a->x, r * s), n, a->norm_eps, m);
        for (int64_t j = 0; j < s; j++)
            ref_row(a->pre, r)[j] = fmath_sigmoid(fmaf(m[j], scale[0], base[j])) + a->eps;
    }
}

void ref_mhc_collapse(struct backend *be, const void *args)
{
    (void)be;
    const struct op_mhc_collapse *a = args;
    int64_t s = a->x->dim[1], d = a->x->dim[2];
    for (int64_t r = 0; r < a->y->dim[0]; r++) {
        const float *pre = ref_row(a->pre, r);
        float *y = ref_row(a->y, r);
        for (int64_t i = 0; i < d; i++) {
            float sum = 0;
            for (int64_t j = 0; j < s; j++)
                sum = fmaf(pre[j], ref_row(a->x, r * s + j)[i], sum);
            y[i] = sum;
        }
    }
}

/* Column i of all streams of row r. */
static void merge_column(const struct op_mhc_merge *a, int64_t r, int64_t i)
{
    int64_t s = a->x->dim[1];
    float before[REF_MAX_STREAM], y = ref_row(a->y, r)[i];
    for (int64_t j = 0; j < s; j++)
        before[j] = ref_row(a->x, r * s + j)[i];
    for (int64_t j = 0; j < s; j++) {
        float sum = ref_row(a->post, r)[j] * y;
        for (int64_t k = 0; k < s; k++)
            sum = fmaf(ref_row(a->comb, r * s + k)[j], before[k], sum);
        ref_row(a->x, r * s + j)[i] = sum;
    }
}

void ref_mhc_merge(struct backend *be, const void *args)
{
    const struct op_mhc_merge *a = args;
    if (ref_refuse_index(be, "mhc_merge: streams", a->x->dim[1], REF_MAX_STREAM + 1))
        return;
    for (int64_t r = 0; r < a->x->dim[0]; r++)
        for (int64_t i = 0; i < a->x->dim[2]; i++)
            merge_column(a, r, i);
}
