/* kernel_rows.h: element-wise kernels: exponentials, softmax parts, norms, streams. Included after
 * kernel_dots.h. */
#ifndef HADAL_BACKEND_CPU_KERNEL_ROWS_H
#define HADAL_BACKEND_CPU_KERNEL_ROWS_H

#include "backend/cpu/kernel_dots.h"
#include "base/fmath.h"

/* n < 16 values at the end of a row, filled up with `fill`. */
VEC v16 rows_load(const float *p, int64_t n, float fill)
{
    float part[16];
    for (int64_t i = 0; i < 16; i++)
        part[i] = i < n ? p[i] : fill;
    return v16_load(part);
}

VEC void rows_store(float *p, v16 x, int64_t n)
{
    float part[16];
    v16_store(part, x);
    for (int64_t i = 0; i < n; i++)
        p[i] = part[i];
}

/* Runs `body` for every 16 values: IN(p) loads and OUT(p, x) stores at i. */
#define ROWS_EACH(n, body)                                                                         \
    int64_t i = 0;                                                                                 \
    for (; i + 16 <= (n); i += 16) {                                                               \
        body(ROWS_IN, ROWS_OUT, (n));                                                              \
    }                                                                                              \
    if (i < (n)) {                                                                                 \
        body(ROWS_IN_PART, ROWS_OUT_PART, (n));                                                    \
    }
#define ROWS_IN(p, n)          v16_load((p) + i)
#define ROWS_OUT(p, x, n)      v16_store((p) + i, x)
#define ROWS_IN_PART(p, n)     rows_load((p) + i, (n)-i, 0)
#define ROWS_OUT_PART(p, x, n) rows_store((p) + i, x, (n)-i)

/* fmath_exp in every lane */
VEC v16 rows_exp(v16 x)
{
    x = v16_min(v16_set(FMATH_EXP_MAX), x);
    x = v16_max(v16_set(FMATH_EXP_MIN), x);
    v16 shifted = v16_fma(x, v16_set(FMATH_LOG2_E), v16_set(FMATH_ROUND));
    v16 whole = v16_sub(shifted, v16_set(FMATH_ROUND));
    v16 r = v16_fma(whole, v16_set(-FMATH_LN2_HIGH), x);
    r = v16_fma(whole, v16_set(-FMATH_LN2_LOW), r);
    v16 p = v16_fma(v16_set(FMATH_EXP_P4), r, v16_set(FMATH_EXP_P3));
    p = v16_fma(p, r, v16_set(FMATH_EXP_P2));
    p = v16_fma(p, r, v16_set(FMATH_EXP_P1));
    p = v16_fma(p, r, v16_set(FMATH_EXP_P0));
    p = v16_fma(p, v16_mul(r, r), r);
    p = v16_add(p, v16_set(1.0f));
    return v16_scale(p, shifted, 0x4b400000);
}

static float rows_max(const float *x, int64_t n)
{
    v16 most = rows_load(x, n < 16 ? n : 16, x[0]);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        most = v16_max(v16_load(x + i), most);
    if (i < n)
        most = v16_max(rows_load(x + i, n - i, x[0]), most);
    float lane[16], largest;
    v16_store(lane, most);
    largest = lane[0];
    for (int l = 1; l < 16; l++)
        largest = lane[l] > largest ? lane[l] : largest;
    return largest;
}

static float rows_exp_sum(float *x, float largest, int64_t n)
{
    v16 acc = v16_set(0), m = v16_set(largest);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 e = rows_exp(v16_sub(v16_load(x + i), m));
        v16_store(x + i, e);
        acc = v16_add(acc, e);
    }
    float lanes[1][16], sum;
    v16_store(lanes[0], acc);
    if (i < n) {
        rows_store(x + i, rows_exp(v16_sub(rows_load(x + i, n - i, 0), m)), n - i);
        for (int64_t j = 0; i + j < n; j++)
            lanes[0][j] += x[i + j];
    }
    dots_fold((const float(*)[16])lanes, 1, &sum);
    return sum;
}

static void rows_relu_sum(float *s, const float *dot, float weight, int64_t n)
{
    v16 w = v16_set(weight), zero = v16_set(0);
#define RELU_BODY(in, out, m) out(s, v16_fma(w, v16_max(in(dot, m), zero), in(s, m)), m)
    ROWS_EACH(n, RELU_BODY)
}

static void rows_scale(float *y, const float *x, const float *w, float scale, int64_t n)
{
    v16 f = v16_set(scale);
#define SCALE_BODY(in, out, m)        out(y, v16_mul(in(x, m), f), m)
#define SCALE_WEIGHT_BODY(in, out, m) out(y, v16_mul(v16_mul(in(x, m), f), in(w, m)), m)
    if (w) {
        ROWS_EACH(n, SCALE_WEIGHT_BODY)
    } else {
        ROWS_EACH(n, SCALE_BODY)
    }
}

static void rows_divide(float *y, const float *x, float divisor, int64_t n)
{
    v16 d = v16_set(divisor);
#define DIVIDE_BODY(in, out, m) out(y, v16_div(in(x, m), d), m)
    ROWS_EACH(n, DIVIDE_BODY)
}

static void rows_add(float *y, const float *x, int64_t n)
{
#define ADD_BODY(in, out, m) out(y, v16_add(in(y, m), in(x, m)), m)
    ROWS_EACH(n, ADD_BODY)
}

static void rows_add_scaled(float *y, const float *x, float factor, int64_t n)
{
    v16 f = v16_set(factor);
#define ADD_SCALED_BODY(in, out, m) out(y, v16_fma(f, in(x, m), in(y, m)), m)
    ROWS_EACH(n, ADD_SCALED_BODY)
}

/* fmath_swiglu in every lane */
VEC v16 rows_swiglu_value(v16 gate, v16 up, float limit)
{
    v16 g = v16_min(v16_set(limit), gate);
    v16 u = v16_max(v16_set(-limit), v16_min(v16_set(limit), up));
    v16 silu = v16_div(g, v16_add(v16_set(1.0f), rows_exp(v16_neg(g))));
    return v16_mul(silu, u);
}

static void rows_swiglu(
    float *y, const float *gate, const float *up, const float limit_weight[2], int64_t n)
{
    float limit = limit_weight[0];
    v16 weight = v16_set(limit_weight[1]);
#define SWIGLU_BODY(in, out, m)                                                                    \
    out(y, v16_mul(weight, rows_swiglu_value(in(gate, m), in(up, m), limit)), m)
    ROWS_EACH(n, SWIGLU_BODY)
}

VEC v16 rows_at(const float *p, int64_t i, int64_t n)
{
    return i + 16 <= n ? v16_load(p + i) : rows_load(p + i, n - i, 0);
}

VEC void rows_put(float *p, v16 x, int64_t i, int64_t n)
{
    if (i + 16 <= n)
        v16_store(p + i, x);
    else
        rows_store(p + i, x, n - i);
}

static void rows_pool(const struct micro_pool *p)
{
    for (int64_t i = 0; i < p->n; i += 16) {
        v16 most = rows_at(p->score[0], i, p->n), numerator = v16_set(0), denominator = v16_set(0);
        for (int64_t j = 1; j < p->n_token; j++)
            most = v16_max(rows_at(p->score[j], i, p->n), most);
        for (int64_t j = 0; j < p->n_token; j++) {
            v16 e = rows_exp(v16_sub(rows_at(p->score[j], i, p->n), most));
            numerator = v16_fma(e, rows_at(p->kv[j], i, p->n), numerator);
            denominator = v16_add(denominator, e);
        }
        rows_put(p->y, v16_div(numerator, denominator), i, p->n);
    }
}

enum { ROWS_MAX_STREAM = 16 };

static void rows_merge(const struct micro_streams *s)
{
    int64_t n_stream = s->n_stream;
    for (int64_t i = 0; i < s->n; i += 16) {
        v16 before[ROWS_MAX_STREAM], y = rows_at(s->y, i, s->n);
        for (int64_t j = 0; j < n_stream; j++)
            before[j] = rows_at(s->x[j], i, s->n);
        for (int64_t j = 0; j < n_stream; j++) {
            v16 sum = v16_mul(v16_set(s->post[j]), y);
            for (int64_t k = 0; k < n_stream; k++)
                sum = v16_fma(v16_set(s->comb[k * n_stream + j]), before[k], sum);
            rows_put(s->x[j], sum, i, s->n);
        }
    }
}

static void rows_collapse(const struct micro_streams *s)
{
    for (int64_t i = 0; i < s->n; i += 16) {
        v16 sum = v16_set(0);
        for (int64_t j = 0; j < s->n_stream; j++)
            sum = v16_fma(v16_set(s->pre[j]), rows_at(s->x[j], i, s->n), sum);
        rows_put(s->y, sum, i, s->n);
    }
}

static void rows_butterfly(float *low, float *high, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        v16 a = rows_at(low, i, n), b = rows_at(high, i, n);
        rows_put(low, v16_add(a, b), i, n);
        rows_put(high, v16_sub(a, b), i, n);
    }
}

#endif
