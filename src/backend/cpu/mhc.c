/* mhc.c: hyper-connections. The control vector is a matmul; its split is the reference's. */
#include "backend/cpu/cpu.h"
#include "base/fmath.h"
#include "ops/ref/ref.h"

/* m[r][i] = (fn_i . flat(x_r)) / sqrt(mean(flat(x_r)^2) + eps), M values each; NULL: failed. */
static float **control(struct cpu *c, const struct tensor *x, const struct tensor *fn, float eps)
{
    int64_t n = x->dim[0], s = x->dim[1], n_value = s * x->dim[2], n_out = fn->dim[0];
    const float **rows = backend_scratch(&c->base, (size_t)n * sizeof *rows);
    float **m = backend_scratch(&c->base, (size_t)n * sizeof *m);
    float *memory = backend_scratch(&c->base, (size_t)(n * n_out) * sizeof *memory);
    if (!rows || !m || !memory)
        return NULL;
    for (int64_t r = 0; r < n; r++) {
        rows[r] = ref_row(x, r * s);
        m[r] = memory + r * n_out;
    }
    struct cpu_matmul job = {*fn, n, rows, m};
    cpu_matmul_all(c, &job);
    for (int64_t r = 0; r < n; r++) {
        float scale = 1.0f / sqrtf(c->micro->dot(rows[r], rows[r], n_value) / (float)n_value + eps);
        for (int64_t i = 0; i < n_out; i++)
            m[r][i] *= scale;
    }
    return m;
}

void cpu_mhc_mix(struct backend *be, const void *args)
{
    const struct op_mhc_mix *a = args;
    if (ref_refuse_index(be, "mhc_mix: streams", a->x->dim[1], REF_MAX_STREAM + 1))
        return;
    struct ref_mhc h = {.n_stream = a->x->dim[1],
        .n_iter = a->n_iter,
        .eps = a->eps,
        .pre = a->pre,
        .post = a->post,
        .comb = a->comb,
        .scale = ref_weight_row(be, a->scale, 0),
        .base = ref_weight_row(be, a->base, 0)};
    float **m = control(cpu_of(be), a->x, a->fn, a->norm_eps);
    for (int64_t r = 0; m && h.scale && h.base && r < a->x->dim[0]; r++)
        ref_mhc_split(&h, m[r], r);
}

void cpu_mhc_head(struct backend *be, const void *args)
{
    const struct op_mhc_head *a = args;
    const float *scale = ref_weight_row(be, a->scale, 0), *base = ref_weight_row(be, a->base, 0);
    float **m = control(cpu_of(be), a->x, a->fn, a->norm_eps);
    for (int64_t r = 0; m && scale && base && r < a->x->dim[0]; r++)
        for (int64_t j = 0; j < a->x->dim[1]; j++)
            ref_row(a->pre, r)[j] = fmath_sigmoid(fmaf(m[r][j], scale[0], base[j])) + a->eps;
}

static void collapse(struct backend *be, const void *args)
{
    const struct op_mhc_collapse *a = args;
    int64_t s = a->x->dim[1];
    for (int64_t r = 0; r < a->y->dim[0]; r++) {
        float *x[REF_MAX_STREAM];
        for (int64_t j = 0; j < s; j++)
            x[j] = ref_row(a->x, r * s + j);
        struct micro_streams m = {.x = x,
            .n_stream = s,
            .n = a->x->dim[2],
            .y = ref_row(a->y, r),
            .pre = ref_row(a->pre, r)};
        cpu_of(be)->micro->collapse(&m);
    }
}

void cpu_mhc_collapse(struct backend *be, const void *args)
{
    const struct op_mhc_collapse *a = args;
    if (!ref_refuse_index(be, "mhc_collapse: streams", a->x->dim[1], REF_MAX_STREAM + 1))
        cpu_run_rows(be, OP_mhc_collapse, args, collapse, 1);
}

static void merge(struct backend *be, const void *args)
{
    const struct op_mhc_merge *a = args;
    int64_t s = a->x->dim[1];
    for (int64_t r = 0; r < a->x->dim[0]; r++) {
        float *x[REF_MAX_STREAM], comb[REF_MAX_STREAM * REF_MAX_STREAM];
        for (int64_t j = 0; j < s * s; j++)
            comb[j] = ref_row(a->comb, r * s + j / s)[j % s];
        for (int64_t j = 0; j < s; j++)
            x[j] = ref_row(a->x, r * s + j);
        struct micro_streams m = {.x = x,
            .n_stream = s,
            .n = a->x->dim[2],
            .y = ref_row(a->y, r),
            .post = ref_row(a->post, r),
            .comb = comb};
        cpu_of(be)->micro->merge(&m);
    }
}

void cpu_mhc_merge(struct backend *be, const void *args)
{
    const struct op_mhc_merge *a = args;
    if (!ref_refuse_index(be, "mhc_merge: streams", a->x->dim[1], REF_MAX_STREAM + 1))
        cpu_run_rows(be, OP_mhc_merge, args, merge, 1);
}
