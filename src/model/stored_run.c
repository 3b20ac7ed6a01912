/* stored_run.c: experts and rows from disk in a forward pass. See stored.h. */
#include "model/stored_inside.h"

#include <string.h>

static void fail_step(struct forward *f, const struct err *e)
{
    backend_fail(f->be, e->code, "%s", e->text);
}

/* ---- Rows of n-gram tables ---- */

int stored_has_rows(const struct stored *s, int table)
{
    return s->table_of[table] >= 0;
}

void stored_want_rows(struct forward *f, int layer)
{
    struct stored *s = f->stored;
    struct err e = {0};
    if (!s->rows || f->be->failure.code)
        return;
    rows_begin(s->rows);
    for (int i = 0; i < f->config->n_engram; i++) {
        const struct tensor *id = &f->scratch.engram_id[i];
        if (!stored_has_rows(s, i) || f->config->engram[i].layer < layer)
            continue;
        if (rows_want(s->rows, s->table_of[i], id->data, f->scratch.n * (int)tensor_n_col(id), &e))
            fail_step(f, &e);
    }
}

void stored_gather(struct forward *f, int table, const struct tensor *y)
{
    struct stored *s = f->stored;
    const struct tensor *ids = &f->scratch.engram_id[table];
    const int32_t *id = ids->data;
    int at = s->table_of[table], dim = f->config->engram_head_dim;
    struct tensor row = tensor_of(s->table_type[table], NULL, 1, dim, 0, 0);
    struct err e = {0};
    if (f->be->failure.code)
        return;
    if (rows_wait(s->rows, at, &e)) {
        fail_step(f, &e);
        return;
    }
    for (int64_t i = 0; i < f->scratch.n * tensor_n_col(ids); i++) {
        const uint8_t *bytes = rows_find(s->rows, at, id[i]);
        row.data = (void *)(uintptr_t)bytes;
        row.scale = bytes + row.row_bytes;
        tensor_decode(&row, 0, 0, dim, (float *)y->data + i * dim);
    }
}

/* ---- Experts ---- */

int stored_has_experts(const struct stored *s, int layer)
{
    return s->layer[layer].n_expert > 0;
}

void stored_want_experts(struct forward *f, int layer, const struct tensor *idx)
{
    struct stored *s = f->stored;
    const int32_t *expert = idx->data;
    int64_t n = idx->dim[0] * idx->dim[1];
    s->has_demand = 0;
    if (f->be->failure.code)
        return; /* idx is not what a router has written */
    for (int64_t i = 0; i < n; i++)
        if (expert[i] < 0 || expert[i] >= s->layer[layer].n_expert) {
            backend_fail(f->be, ERR_ARGUMENT, "layer %d: expert %d of %d", layer, (int)expert[i],
                s->layer[layer].n_expert);
            return;
        }
    demand_begin(&s->demand, layer, expert, n);
    s->has_demand = 1;
}

/* Addresses of an expert's parts, where the tensors of a call find them. */
static void point(struct stored *s, int layer, int expert, int slot)
{
    const struct layer_weights *w = &s->weights->layer[layer];
    const struct tensor *m[3] = {&w->ffn_gate_exps, &w->ffn_up_exps, &w->ffn_down_exps};
    for (int i = 0, p = 0; i < 3; i++) {
        s->data[i][expert] = experts_part(s->experts, layer, slot, p++);
        if (dtype_info(m[i]->type)->scale_rows)
            s->scale[i][expert] = experts_part(s->experts, layer, slot, p++);
    }
}

static void point_given(struct stored *s)
{
    const struct demand *d = &s->demand;
    for (int i = 0; i < d->n_now; i++)
        point(s, d->layer, d->wanted[d->given[i]], d->slot[d->given[i]]);
}

/* A call on the experts that were pointed to. */
static void run(struct forward *f, const struct op_expert_mlp *call)
{
    struct stored *s = f->stored;
    const struct layer_weights *w = &s->weights->layer[s->demand.layer];
    struct tensor m[3] = {w->ffn_gate_exps, w->ffn_up_exps, w->ffn_down_exps};
    for (int i = 0; i < 3; i++) {
        m[i].part = s->data[i];
        m[i].scale_part = dtype_info(m[i].type)->scale_rows ? s->scale[i] : NULL;
    }
    RUN(f->be, expert_mlp, .y = call->y, .x = call->x, .idx = call->idx, .weight = call->weight,
        .gate = &m[0], .up = &m[1], .down = &m[2], .limit = call->limit);
}

static const void *row_of(const struct tensor *t, int64_t row)
{
    return (const char *)t->data + row * t->row_bytes;
}

/* Pairs [0, n) of a list, each as a row with one choice, to rows of `out` from `at` on. */
static void run_pairs(
    struct forward *f, const struct op_expert_mlp *call, const int32_t *pair, int n, int at)
{
    struct stored *s = f->stored;
    int64_t k = call->idx->dim[1], row_bytes = call->x->row_bytes;
    for (int i = 0; i < n; i++) {
        memcpy((char *)s->x.data + i * row_bytes, row_of(call->x, pair[i] / k), (size_t)row_bytes);
        ((int32_t *)s->idx.data)[i] = ((const int32_t *)call->idx->data)[pair[i]];
        ((float *)s->weight.data)[i] = ((const float *)call->weight->data)[pair[i]];
        s->place[pair[i]] = at + i;
    }
    struct tensor y = tensor_slice(&s->out, at, n), x = tensor_slice(&s->x, 0, n),
                  idx = tensor_slice(&s->idx, 0, n), weight = tensor_slice(&s->weight, 0, n);
    run(f, &(struct op_expert_mlp){
               .y = &y, .x = &x, .idx = &idx, .weight = &weight, .limit = call->limit});
}

/* Pairs of the experts at hand, in slices; how many. */
static int run_given(struct forward *f, const struct op_expert_mlp *call, int at)
{
    struct stored *s = f->stored;
    const struct demand *d = &s->demand;
    int32_t pair[STORED_SLICE];
    int n = 0, n_done = 0;
    point_given(s);
    for (int i = 0; i < d->n_now; i++) {
        int expert = d->wanted[d->given[i]];
        for (int p = d->first[expert]; p < d->first[expert + 1]; p++) {
            pair[n++] = d->pair[p];
            if (n < STORED_SLICE)
                continue;
            run_pairs(f, call, pair, n, at + n_done);
            n_done += n;
            n = 0;
        }
    }
    if (n)
        run_pairs(f, call, pair, n, at + n_done);
    return n_done + n;
}

/* Every row's choices in their order, as expert_mlp adds them. */
static void add_up(const struct stored *s, const struct op_expert_mlp *call)
{
    int64_t k = call->idx->dim[1], n_value = tensor_n_col(call->y);
    for (int64_t r = 0; r < call->y->dim[0]; r++) {
        float *y = (float *)call->y->data + r * n_value;
        memset(y, 0, (size_t)n_value * sizeof *y);
        for (int64_t i = 0; i < k; i++) {
            const float *part = row_of(&s->out, s->place[r * k + i]);
            for (int64_t c = 0; c < n_value; c++)
                y[c] += part[c];
        }
    }
}

static int run_as_they_come(struct forward *f, const struct op_expert_mlp *call, struct err *e)
{
    struct stored *s = f->stored;
    for (int n_done = 0;;) {
        if (demand_next(&s->demand, e))
            return -1;
        if (!s->demand.n_now || f->be->failure.code)
            break;
        n_done += run_given(f, call, n_done);
    }
    if (!f->be->failure.code)
        add_up(s, call);
    return 0;
}

void stored_run_experts(struct forward *f, int layer, const struct op_expert_mlp *call)
{
    struct stored *s = f->stored;
    struct err e = {0};
    int failed = 0;
    if (!s->has_demand || s->demand.layer != layer)
        return; /* the step failed before */
    s->has_demand = 0;
    if (demand_has_all(&s->demand)) {
        failed = demand_next(&s->demand, &e);
        point_given(s);
        run(f, call);
    } else {
        failed = run_as_they_come(f, call, &e);
    }
    demand_end(&s->demand);
    if (failed)
        fail_step(f, &e);
}
