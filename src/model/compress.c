/* compress.c: closing groups of tokens into compressed rows and index keys. v4 spec 4, v41 spec 7.1.
 *
 * A group's projections wait in a ring until its last token is seen; the row then made is visible to that very token.
 * Index keys either have a pooling of their own, rotated by Hadamard, or are projected from the un-rotated latent.
 */
#include "model/forward.h"

#include <math.h>

void forward_round_kv(struct forward *f, const struct tensor *x, enum kv_rounding rounding)
{
    int n_nope = f->config->head_dim - f->config->rope_dim;
    if (f->skips_kv_rounding)
        return;
    switch (rounding) {
    case KV_ROUND_FP8_HEAD:
        RUN(f->be, round_fp8, .x = x, .block = 64, .n_col = n_nope);
        break;
    case KV_ROUND_FP8_ALL:
        RUN(f->be, round_fp8, .x = x, .block = 32);
        break;
    case KV_ROUND_FP4_E4M3:
        RUN(f->be, round_fp4_e4m3, .x = x, .block = 16);
        break;
    }
}

void forward_round_index(struct forward *f, const struct tensor *x)
{
    if (f->config->has_index_hadamard)
        RUN(f->be, hadamard, .x = x);
    if (!f->skips_kv_rounding)
        RUN(f->be, round_fp4, .x = x, .block = 32);
}

/* One compressor: its weights, the rings of its open groups, this batch's projections, the width of what it makes. */
struct pooling {
    const struct tensor *kv, *gate, *ape, *norm;
    const struct tensor *ring_kv, *ring_score;
    const struct tensor *group_kv, *group_score, *out;
    int width;
};

static struct pooling latent_pooling(const struct forward *f, int layer)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    const struct kv_layer *kv = &f->kv->layer[layer];
    const struct scratch *s = &f->scratch;
    return (struct pooling){&w->attn_compressor_kv, &w->attn_compressor_gate, &w->attn_compressor_ape,
        &w->attn_compressor_norm, &kv->group_kv, &kv->group_score, &s->group_kv, &s->group_score, &s->latent,
        f->config->head_dim};
}

static struct pooling key_pooling(const struct forward *f, int layer)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    const struct kv_layer *kv = &f->kv->layer[layer];
    const struct scratch *s = &f->scratch;
    return (struct pooling){&w->indexer_compressor_kv, &w->indexer_compressor_gate, &w->indexer_compressor_ape,
        &w->indexer_compressor_norm, &kv->index_group_kv, &kv->index_group_score, &s->index_group_kv,
        &s->index_group_score, &s->key, f->config->index_head_dim};
}

static struct tensor group_of(const struct forward *f, const struct layer_plan *plan, const struct pooling *p,
    const struct tensor *memory)
{
    return tensor_of(DT_F32, memory->data, f->scratch.n, (int64_t)p->width * (1 + plan->overlap), 0, 0);
}

/* Without a gate every token is a group of its own, and its row comes straight from the projection. */
static void project(const struct forward *f, const struct layer_plan *plan, const struct pooling *p,
    struct projections *to)
{
    struct tensor kv = group_of(f, plan, p, p->group_kv), score = group_of(f, plan, p, p->group_score);
    struct tensor out = scratch_cut(p->out, f->scratch.n);
    projections_add(to, plan->has_gate ? &kv : &out, p->kv);
    if (plan->has_gate)
        projections_add(to, &score, p->gate);
}

void compress_project(const struct forward *f, int layer, struct projections *to)
{
    const struct layer_plan *plan = &f->plan->row[layer];
    struct pooling latent = latent_pooling(f, layer), key = key_pooling(f, layer);
    project(f, plan, &latent, to);
    if (plan->topk_owner >= 0 && f->config->has_index_hadamard)
        project(f, plan, &key, to);
}

/* out [closing rows, width] = norm(pool of the groups that this batch closes) */
static void run_pooling(struct forward *f, const struct layer_plan *plan, const struct pooling *p)
{
    struct scratch *s = &f->scratch;
    const struct closing *g = scratch_closing(s, plan->ratio);
    struct tensor kv = group_of(f, plan, p, p->group_kv), score = group_of(f, plan, p, p->group_score);
    struct tensor slot = scratch_cut(&s->slot, s->n), pos = scratch_cut(&s->pos, s->n), out = scratch_cut(p->out, g->n);
    if (plan->has_gate) {
        if (p->ape->n_dim)
            RUN(f->be, add_by_pos, .x = &score, .table = p->ape, .pos = &pos);
        RUN(f->be, append, .y = p->ring_kv, .x = &kv, .slot = &slot, .at = &pos);
        RUN(f->be, append, .y = p->ring_score, .x = &score, .slot = &slot, .at = &pos);
    }
    if (!g->n)
        return;
    struct tensor close_slot = scratch_cut(&g->slot, g->n), close_pos = scratch_cut(&g->pos, g->n);
    if (plan->has_gate)
        RUN(f->be, pool, .y = &out, .kv = p->ring_kv, .score = p->ring_score, .slot = &close_slot, .pos = &close_pos,
            .ratio = plan->ratio, .overlap = plan->overlap);
    RUN(f->be, rms_norm, .y = &out, .x = &out, .w = p->norm, .eps = f->config->norm_eps);
}

static void rotate(struct forward *f, const struct closing *g, const struct tensor *x)
{
    struct tensor head = tensor_of(DT_F32, x->data, g->n, 1, tensor_n_col(x), 0), cs = scratch_cut(&g->cs, g->n);
    RUN(f->be, rope_tail, .x = &head, .cs = &cs);
}

static void append_rows(struct forward *f, const struct closing *g, const struct tensor *x, const struct tensor *to)
{
    struct tensor slot = scratch_cut(&g->slot, g->n), at = scratch_cut(&g->at, g->n);
    RUN(f->be, append, .y = to, .x = x, .slot = &slot, .at = &at);
}

static void make_keys(struct forward *f, int layer, const struct tensor *latent)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    const struct layer_plan *plan = &f->plan->row[layer];
    const struct closing *g = scratch_closing(&f->scratch, plan->ratio);
    struct tensor key = scratch_cut(&f->scratch.key, g->n);
    struct pooling p = key_pooling(f, layer);
    if (f->config->has_index_hadamard) {
        run_pooling(f, plan, &p);
    } else if (g->n) {
        RUN(f->be, matmul, .y = &key, .x = latent, .w = &w->indexer_attn_k);
        RUN(f->be, rms_norm, .y = &key, .x = &key, .w = &w->indexer_k_norm, .eps = f->config->norm_eps);
    }
    if (!g->n)
        return;
    rotate(f, g, &key);
    forward_round_index(f, &key);
    append_rows(f, g, &key, &f->kv->layer[layer].keys);
}

void compress_run(struct forward *f, int layer)
{
    const struct layer_plan *plan = &f->plan->row[layer];
    const struct closing *g = scratch_closing(&f->scratch, plan->ratio);
    struct tensor latent = scratch_cut(&f->scratch.latent, g->n);
    struct pooling p = latent_pooling(f, layer);
    run_pooling(f, plan, &p);
    if (plan->topk_owner >= 0)
        make_keys(f, layer, &latent);
    if (!g->n)
        return;
    rotate(f, g, &latent);
    forward_round_kv(f, &latent, f->config->compressed_rounding);
    append_rows(f, g, &latent, &f->kv->layer[layer].rows);
}

void index_project(const struct forward *f, int layer, struct projections *p)
{
    struct tensor weight = scratch_cut(&f->scratch.index_w, f->scratch.n);
    projections_add(p, &weight, &f->weights->layer[layer].indexer_proj);
}

void index_run(struct forward *f, int layer, const struct tensor *qr)
{
    const struct model_config *c = f->config;
    const struct layer_weights *w = &f->weights->layer[layer];
    const struct layer_plan *plan = &f->plan->row[layer];
    struct scratch *s = &f->scratch;
    struct tensor q = scratch_cut(&s->index_q, s->n), weight = scratch_cut(&s->index_w, s->n);
    struct tensor flat = tensor_of(DT_F32, q.data, s->n, (int64_t)c->index_n_head * c->index_head_dim, 0, 0);
    struct tensor cs = scratch_cut(&s->cs[plan->rope], s->n), slot = scratch_cut(&s->slot, s->n);
    struct tensor visible = scratch_cut(&scratch_closing(s, plan->ratio)->visible, s->n);
    struct tensor rows = scratch_cut(&s->rows, s->n), n_chosen = scratch_cut(&s->n_chosen, s->n), block, n_block;
    RUN(f->be, matmul, .y = &flat, .x = qr, .w = &w->indexer_attn_q_b);
    RUN(f->be, rope_tail, .x = &q, .cs = &cs);
    forward_round_index(f, &q);
    struct op_index_select args = {.rows = &rows, .n_row = &n_chosen, .q = &q, .w = &weight,
        .keys = &f->kv->layer[plan->kv_owner].keys, .slot = &slot, .visible = &visible,
        .scale = 1 / sqrtf((float)(c->index_head_dim * c->index_n_head)), .block_size = c->candidate_block_size};
    if (plan->candidates != CANDIDATES_NONE) {
        block = scratch_cut(&s->block, s->n);
        n_block = scratch_cut(&s->n_block, s->n);
        *(plan->candidates == CANDIDATES_MAKE ? &args.make_block : &args.block) = &block;
        *(plan->candidates == CANDIDATES_MAKE ? &args.n_make_block : &args.n_block) = &n_block;
    }
    op_run(f->be, OP_index_select, &args);
}
