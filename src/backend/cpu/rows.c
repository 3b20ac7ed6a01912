/* rows.c: ops on whole rows with vector kernels: add, RMS norm, SwiGLU, Hadamard, pooling, the
 * Engram gate. Each function does a whole call on a lane; cpu_run_rows gives it part of the batch
 * rows. */
#include "backend/cpu/cpu.h"
#include "base/fmath.h"
#include "ops/ref/ref.h"

static void add(struct backend *be, const void *args)
{
    const struct op_add *a = args;
    for (int64_t r = 0; r < tensor_n_row(a->y); r++)
        cpu_of(be)->micro->add(ref_row(a->y, r), ref_row(a->x, r), tensor_n_col(a->y));
}

void cpu_add(struct backend *be, const void *args)
{
    cpu_run_rows(be, OP_add, args, add, 1);
}

static void rms_norm(struct backend *be, const void *args)
{
    const struct op_rms_norm *a = args;
    const struct micro *micro = cpu_of(be)->micro;
    int64_t d = tensor_n_col(a->x);
    const float *w = a->w ? ref_weight_row(be, a->w, 0) : NULL;
    if (a->w && !w)
        return;
    for (int64_t r = 0; r < tensor_n_row(a->x); r++) {
        const float *x = ref_row(a->x, r);
        float scale = 1.0f / sqrtf(micro->dot(x, x, d) / (float)d + a->eps);
        micro->scale(ref_row(a->y, r), x, w, scale, d);
    }
}

void cpu_rms_norm(struct backend *be, const void *args)
{
    cpu_run_rows(be, OP_rms_norm, args, rms_norm, 1);
}

static void swiglu(struct backend *be, const void *args)
{
    const struct op_swiglu *a = args;
    const float limit_weight[2] = {a->limit, 1.0f};
    for (int64_t r = 0; r < tensor_n_row(a->y); r++)
        cpu_of(be)->micro->swiglu(ref_row(a->y, r), ref_row(a->gate, r), ref_row(a->up, r),
            limit_weight, tensor_n_col(a->y));
}

void cpu_swiglu(struct backend *be, const void *args)
{
    cpu_run_rows(be, OP_swiglu, args, swiglu, 2);
}

static void hadamard(struct backend *be, const void *args)
{
    const struct op_hadamard *a = args;
    const struct micro *micro = cpu_of(be)->micro;
    int64_t d = tensor_n_col(a->x);
    float scale = 1.0f / sqrtf((float)d);
    for (int64_t r = 0; r < tensor_n_row(a->x); r++) {
        float *x = ref_row(a->x, r);
        for (int64_t stride = 1; stride < d && stride < 16; stride *= 2)
            ref_butterflies(x, d, stride);
        for (int64_t stride = 16; stride < d; stride *= 2)
            for (int64_t i = 0; i < d; i += 2 * stride)
                micro->butterfly(x + i, x + i + stride, stride);
        micro->scale(x, x, NULL, scale, d);
    }
}

void cpu_hadamard(struct backend *be, const void *args)
{
    cpu_run_rows(be, OP_hadamard, args, hadamard, 3);
}

/* ---- Pooling ---- */

struct pool_rows {
    const float **kv, **score;
    int64_t n;
};

/* The rows of one group, oldest first, each at the columns that count for it. */
static void list_tokens(const struct op_pool *a, int64_t slot, int64_t pos, struct pool_rows *p)
{
    int64_t ring = a->kv->dim[1], d = a->y->dim[1], first = pos - a->ratio + 1;
    int64_t start = a->overlap && first >= a->ratio ? first - a->ratio : first;
    p->n = 0;
    for (int64_t t = start; t <= pos; t++, p->n++) {
        int64_t column = a->overlap && t >= first ? d : 0;
        p->kv[p->n] = ref_row(a->kv, slot * ring + t % ring) + column;
        p->score[p->n] = ref_row(a->score, slot * ring + t % ring) + column;
    }
}

static void pool(struct backend *be, const void *args)
{
    const struct op_pool *a = args;
    size_t n_token = (size_t)a->ratio * (size_t)(1 + a->overlap);
    struct pool_rows p = {.kv = backend_scratch(be, n_token * sizeof *p.kv)};
    p.score = backend_scratch(be, n_token * sizeof *p.score);
    for (int64_t r = 0; p.kv && p.score && r < a->y->dim[0]; r++) {
        int64_t slot = ref_ints(a->slot, 0)[r], pos = ref_ints(a->pos, 0)[r];
        if (ref_refuse_index(be, "pool: slot", slot, a->kv->dim[0]) ||
            ref_refuse_index(
                be, "pool: position of the group's first token", pos - a->ratio + 1, INT32_MAX))
            return;
        list_tokens(a, slot, pos, &p);
        struct micro_pool m = {p.kv, p.score, p.n, a->y->dim[1], ref_row(a->y, r)};
        cpu_of(be)->micro->pool(&m);
    }
}

void cpu_pool(struct backend *be, const void *args)
{
    const struct op_pool *a = args;
    cpu_run_rows(be, OP_pool, args, pool, 3 * a->ratio * (1 + a->overlap));
}

/* ---- Engram ---- */

struct engram_job {
    const struct op_engram_gate *a;
    const float *qk; /* q k, S x D */
};

/* Items: streams of all rows. */
static void run_engram(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    const struct engram_job *j = job;
    const struct micro *micro = lane->micro;
    int64_t s = j->a->x->dim[1], d = j->a->x->dim[2];
    for (int64_t r = first; r < end; r++) {
        float *x = ref_row(j->a->x, r);
        const float *kv = ref_row(j->a->kv, r / s), *key = kv + r % s * d;
        float dot = micro->dot3(x, key, j->qk + r % s * d, d);
        float scale_x = 1.0f / sqrtf(micro->dot(x, x, d) / (float)d + j->a->eps);
        float scale_key = 1.0f / sqrtf(micro->dot(key, key, d) / (float)d + j->a->eps);
        dot = dot * scale_x * scale_key * (1.0f / sqrtf((float)d));
        float magnitude = fabsf(dot) > 1e-6f ? fabsf(dot) : 1e-6f;
        micro->add_scaled(x, kv + s * d, fmath_sigmoid(copysignf(sqrtf(magnitude), dot)), d);
    }
}

void cpu_engram_gate(struct backend *be, const void *args)
{
    const struct op_engram_gate *a = args;
    int64_t s = a->x->dim[1], d = a->x->dim[2];
    const float *q = ref_weight_values(be, a->q), *k = ref_weight_values(be, a->k);
    float *qk = backend_scratch(be, (size_t)(s * d) * sizeof *qk);
    if (!q || !k || !qk)
        return;
    for (int64_t i = 0; i < s * d; i++)
        qk[i] = q[i] * k[i];
    struct engram_job job = {a, qk};
    cpu_run(cpu_of(be), (struct cpu_split){a->x->dim[0] * s, 1, d}, run_engram, &job);
}
