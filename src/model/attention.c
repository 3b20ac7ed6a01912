/* attention.c: one attention sub-layer. v4 spec 3, v41 spec 6. */
#include "model/forward.h"

#include <assert.h>
#include <math.h>

void projections_add(struct projections *p, const struct tensor *y, const struct tensor *w)
{
    assert(p->n < MATMUL_EACH_MAX);
    p->y[p->n] = *y;
    p->w[p->n++] = w;
}

void projections_run(const struct projections *p, struct backend *be, const struct tensor *x)
{
    const struct tensor *y[MATMUL_EACH_MAX] = {NULL};
    for (int i = 0; i < p->n; i++)
        y[i] = &p->y[i];
    RUN(be, matmul_each, .x = x, .y0 = y[0], .w0 = p->w[0], .y1 = y[1], .w1 = p->w[1], .y2 = y[2], .w2 = p->w[2],
        .y3 = y[3], .w3 = p->w[3], .y4 = y[4], .w4 = p->w[4], .y5 = y[5], .w5 = p->w[5], .y6 = y[6], .w6 = p->w[6]);
}

/* All that reads the layer's input. */
static void project(struct forward *f, int layer, const struct tensor *x)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    const struct layer_plan *plan = &f->plan->row[layer];
    struct projections p = {0};
    struct tensor qr = scratch_cut(&f->scratch.qr, f->scratch.n), kv = scratch_cut(&f->scratch.kv, f->scratch.n);
    projections_add(&p, &qr, &w->attn_q_a);
    projections_add(&p, &kv, &w->attn_kv);
    if (plan->ratio && plan->kv_owner == layer)
        compress_project(f, layer, &p);
    if (plan->ratio && plan->topk_owner == layer)
        index_project(f, layer, &p);
    projections_run(&p, f->be, x);
}

/* Query rows [n, n_head, head_dim], rotated; scratch.qr stays for the indexer. */
static void run_query(struct forward *f, int layer, const struct tensor *qr, const struct tensor *q)
{
    const struct model_config *c = f->config;
    const struct layer_weights *w = &f->weights->layer[layer];
    struct tensor flat = tensor_of(DT_F32, q->data, qr->dim[0], (int64_t)c->n_head * c->head_dim, 0, 0);
    RUN(f->be, rms_norm, .y = qr, .x = qr, .w = &w->attn_q_a_norm, .eps = c->norm_eps);
    RUN(f->be, matmul, .y = &flat, .x = qr, .w = &w->attn_q_b);
    struct tensor cs = scratch_cut(&f->scratch.cs[f->plan->row[layer].rope], qr->dim[0]);
    if (c->has_q_head_norm)
        RUN(f->be, norm_rope, .x = q, .cs = &cs, .eps = c->norm_eps);
    else
        RUN(f->be, rope_tail, .x = q, .cs = &cs);
}

/* The window row of every token: one vector that is key and value of all heads. Rows of a draft block stay apart. */
static void append_window(struct forward *f, int layer)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    struct scratch *s = &f->scratch;
    struct tensor kv = scratch_cut(&s->kv, s->n), slot = scratch_cut(&s->slot, s->n), pos = scratch_cut(&s->pos, s->n);
    struct tensor cs = scratch_cut(&s->cs[f->plan->row[layer].rope], s->n);
    struct op_keep_row args = {.x = &kv, .w = &w->attn_kv_a_norm, .cs = &cs, .slot = &slot, .eps = f->config->norm_eps};
    args.y = f->draft ? &s->block_kv : &f->kv->layer[layer].ring;
    args.at = f->draft ? &f->draft->at : &pos;
    forward_keep_row(f, args, f->config->window_rounding);
}

static void attend(struct forward *f, int layer, const struct tensor *q, const struct tensor *o)
{
    const struct layer_plan *plan = &f->plan->row[layer];
    struct scratch *s = &f->scratch;
    struct tensor slot = scratch_cut(&s->slot, s->n), last = scratch_cut(&s->pos, s->n), rows, n_row;
    struct op_attend args = {.o = o, .q = q, .ring = &f->kv->layer[layer].ring, .slot = &slot, .last = &last,
        .sink = &f->weights->layer[layer].attn_sinks, .window = f->config->window,
        .scale = 1 / sqrtf((float)f->config->head_dim)};
    struct tensor first;
    if (f->kv->keeps_streams && layer >= f->plan->decoder) {
        first = scratch_cut(&s->first, s->n);
        args.first = &first;
    }
    if (f->draft) {
        args.last = &f->draft->last;
        args.comp = &s->block_kv;
        args.n_row = &f->draft->n_row;
    } else if (plan->ratio) {
        args.comp = &f->kv->layer[plan->kv_owner].rows;
        args.n_row = &n_row;
        if (plan->topk_owner >= 0) {
            rows = scratch_cut(&s->rows, s->n);
            n_row = scratch_cut(&s->n_chosen, s->n);
            args.rows = &rows;
        } else {
            n_row = scratch_cut(&scratch_closing(s, plan->ratio)->visible, s->n);
        }
    }
    op_run(f->be, OP_attend, &args);
}

static void run_output(struct forward *f, int layer, const struct tensor *o)
{
    const struct model_config *c = f->config;
    const struct layer_weights *w = &f->weights->layer[layer];
    struct scratch *s = &f->scratch;
    struct tensor flat = tensor_of(DT_F32, o->data, s->n, (int64_t)c->n_head * c->head_dim, 0, 0);
    struct tensor cs = scratch_cut(&s->cs[f->plan->row[layer].rope], s->n), low = scratch_cut(&s->low, s->n);
    struct tensor out = scratch_cut(&s->out, s->n);
    RUN(f->be, rope_tail, .x = o, .cs = &cs, .is_inverse = 1);
    RUN(f->be, matmul_grouped, .y = &low, .x = &flat, .w = &w->attn_output_a, .n_group = c->o_groups);
    RUN(f->be, matmul, .y = &out, .x = &low, .w = &w->attn_output_b);
}

void attention_run(struct forward *f, int layer, const struct tensor *x)
{
    const struct layer_plan *plan = &f->plan->row[layer];
    struct scratch *s = &f->scratch;
    struct tensor q = scratch_cut(&s->q, s->n), o = scratch_cut(&s->o, s->n), qr = scratch_cut(&s->qr, s->n);
    project(f, layer, x);
    run_query(f, layer, &qr, &q);
    append_window(f, layer);
    if (plan->ratio && plan->kv_owner == layer)
        compress_run(f, layer);
    if (plan->ratio && plan->topk_owner == layer)
        index_run(f, layer, &qr);
    attend(f, layer, &q, &o);
    run_output(f, layer, &o);
}
