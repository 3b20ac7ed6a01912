/* moe.c: choosing experts and running them. v4 spec 6, v41 spec 8 */
#include "base/fmath.h"
#include "ops/ref/ref.h"

#include <string.h>

/* weight_k = scale p_k / (sum of p + 1e-20) for the chosen experts */
static void weigh(const float *logits, const int32_t *idx, int64_t k, float scale, float *weight)
{
    float sum = 0;
    for (int64_t i = 0; i < k; i++) {
        weight[i] = sqrtf(fmath_softplus(logits[idx[i]]));
        sum += weight[i];
    }
    float denominator = sum + 1e-20f;
    for (int64_t i = 0; i < k; i++)
        weight[i] = scale * weight[i] / denominator;
}

/* The k largest values in descending order, ties to the lower index. */
static void choose_largest(float *value, int64_t n, int32_t *idx, int64_t k)
{
    for (int64_t i = 0; i < k; i++) {
        int64_t best = 0;
        for (int64_t e = 1; e < n; e++)
            if (value[e] > value[best])
                best = e;
        idx[i] = (int32_t)best;
        value[best] = -INFINITY;
    }
}

void ref_router(struct backend *be, const void *args)
{
    const struct op_router *a = args;
    int64_t n_expert = a->logits->dim[1], k = a->idx->dim[1];
    const float *bias = a->bias ? ref_weight_row(be, a->bias, 0) : NULL;
    float *value = backend_scratch(be, (size_t)n_expert * sizeof *value);
    if (!value || (a->bias && !bias))
        return;
    for (int64_t r = 0; r < a->idx->dim[0]; r++) {
        const float *logits = ref_row(a->logits, r);
        for (int64_t e = 0; e < n_expert; e++) {
            float p = sqrtf(fmath_softplus(logits[e]));
            value[e] = bias ? p + bias[e] : p;
        }
        choose_largest(value, n_expert, ref_ints(a->idx, r), k);
        weigh(logits, ref_ints(a->idx, r), k, a->scale, ref_row(a->weight, r));
    }
}

static int64_t table_entry(const struct tensor *table, int64_t row, int64_t i)
{
    const char *p = (const char *)table->data + row * table->row_bytes;
    int32_t narrow;
    int64_t wide;
    if (table->type == DT_I32)
        wide = (memcpy(&narrow, p + 4 * i, sizeof narrow), narrow);
    else
        memcpy(&wide, p + 8 * i, sizeof wide);
    return wide;
}

void ref_router_by_token(struct backend *be, const void *args)
{
    const struct op_router_by_token *a = args;
    int64_t k = a->idx->dim[1];
    for (int64_t r = 0; r < a->idx->dim[0]; r++) {
        int32_t id = ref_ints(a->id, 0)[r], *idx = ref_ints(a->idx, r);
        if (ref_refuse_index(be, "router_by_token: token", id, a->table->dim[0]))
            return;
        for (int64_t i = 0; i < k; i++) {
            int64_t expert = table_entry(a->table, id, i);
            if (ref_refuse_index(be, "router_by_token: expert", expert, a->logits->dim[1]))
                return;
            idx[i] = (int32_t)expert;
        }
        weigh(ref_row(a->logits, r), idx, k, a->scale, ref_row(a->weight, r));
    }
}

/* y = m x for one row */
static void matvec(const struct tensor *m, const float *x, float *y, float *decoded)
{
    int64_t n_in = m->dim[1];
    for (int64_t o = 0; o < m->dim[0]; o++) {
        tensor_decode(m, o, 0, n_in, decoded);
        y[o] = ref_dot(decoded, x, n_in);
    }
}

struct expert_memory {
    float *gate, *up, *out, *decoded;
};

/* y += down (weight swiglu(gate x, up x)) for one expert and one row */
static void run_expert(
    const struct op_expert_mlp *a, int64_t r, int64_t i, const struct expert_memory *m)
{
    int64_t e = ref_ints(a->idx, r)[i], f = a->gate->dim[1];
    float weight = ref_row(a->weight, r)[i], *y = ref_row(a->y, r);
    struct tensor gate = tensor_matrix(a->gate, e), up = tensor_matrix(a->up, e),
                  down = tensor_matrix(a->down, e);
    matvec(&gate, ref_row(a->x, r), m->gate, m->decoded);
    matvec(&up, ref_row(a->x, r), m->up, m->decoded);
    for (int64_t c = 0; c < f; c++)
        m->gate[c] = weight * fmath_swiglu(m->gate[c], m->up[c], a->limit);
    matvec(&down, m->gate, m->out, m->decoded);
    for (int64_t c = 0; c < a->y->dim[1]; c++)
        y[c] += m->out[c];
}

void ref_expert_mlp(struct backend *be, const void *args)
{
    const struct op_expert_mlp *a = args;
    int64_t n_expert = a->gate->dim[0], f = a->gate->dim[1], d = a->y->dim[1], k = a->idx->dim[1];
    float *memory = backend_scratch(be, (size_t)(2 * f + d + (f > d ? f : d)) * sizeof *memory);
    if (!memory)
        return;
    struct expert_memory m = {memory, memory + f, memory + 2 * f, memory + 2 * f + d};
    for (int64_t r = 0; r < a->y->dim[0]; r++) {
        memset(ref_row(a->y, r), 0, (size_t)d * sizeof(float));
        for (int64_t i = 0; i < k; i++) {
            if (ref_refuse_index(be, "expert_mlp: expert", ref_ints(a->idx, r)[i], n_expert))
                return;
            run_expert(a, r, i, &m);
        }
    }
}
