/* compress.c: closing groups of tokens into compressed rows and index keys. v4 spec 4, v41 spec 7.1.
 *
 * A group's projections wait in a ring until its last token is seen; the row then made is visible to that very token.
 * Index keys either have a pooling of their own, rotated by Hadamard, or are projected from the un-rotated latent.
 */
#include "model/forward.h"

#include <math.h>

void forward_keep_row(struct forward *f, struct op_keep_row args, enum kv_rounding rounding)
{
    args.rounding = ROUND_NONE;
    if (!f->skips_kv_rounding)
        switch (rounding) {
        case KV_ROUND_FP8_HEAD:
            args.rounding = ROUND_FP8;
            args.block = 64;
            args.n_col = f->config->head_dim - f->config->rope_dim;
            break;
        case KV_ROUND_FP8_ALL:
            args.rounding = ROUND_FP8;
            args.block = 32;
            break;
        case KV_ROUND_FP4_E4M3:
            args.rounding = ROUND_FP4_E4M3;
            args.block = 16;
            break;
        }
    op_run(f->be, OP_keep_row, &args);
}

/* Of index queries and keys. */
enum { INDEX_BLOCK = 32 };
static enum op_rounding index_rounding(const struct forward *f)
{
    return f->skips_kv_rounding ? ROUND_NONE : ROUND_FP4;
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

/* out [closing rows, width] = pool of the groups that this batch closes */
static void run_pooling(struct forward *f, const struct layer_plan *plan, const struct pooling *p)
{
    struct scratch *s = &f->scratch;
    const struct closing *g = scratch_closing(s, plan->ratio);
    struct tensor kv = group_of(f, plan, p, p->group_kv), score = group_of(f, plan, p, p->group_score);
    struct tensor slot = scratch_cut(&s->slot, s->n), pos = scratch_cut(&s->pos, s->n), out = scratch_cut(p->out, g->n);
    if (!plan->has_gate)
        return;
    RUN(f->be, append_group, .kv = &kv, .score = &score, .table = p->ape->n_dim ? p->ape : NULL, .to_kv = p->ring_kv,
        .to_score = p->ring_score, .slot = &slot, .at = &pos);
    struct tensor close_slot = scratch_cut(&g->slot, g->n), close_pos = scratch_cut(&g->pos, g->n);
    if (g->n)
        RUN(f->be, pool, .y = &out, .kv = p->ring_kv, .score = p->ring_score, .slot = &close_slot, .pos = &close_pos,
            .ratio = plan->ratio, .overlap = plan->overlap);
}

/* latent: normed, unless keys have a pooling of their own. */
static void make_keys(struct forward *f, int layer, const struct tensor *latent)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    const struct layer_plan *plan = &f->plan->row[layer];
    const struct closing *g = scratch_closing(&f->scratch, plan->ratio);
    struct tensor key = scratch_cut(&f->scratch.key, g->n), cs = scratch_cut(&g->cs, g->n);
    struct tensor slot = scratch_cut(&g->slot, g->n), at = scratch_cut(&g->at, g->n);
    struct pooling p = key_pooling(f, layer);
    int has_pooling = f->config->has_index_hadamard;
    if (has_pooling)
        run_pooling(f, plan, &p);
    if (!g->n)
        return;
    if (!has_pooling)
        RUN(f->be, matmul, .y = &key, .x = latent, .w = &w->indexer_attn_k);
    RUN(f->be, keep_row, .x = &key, .w = has_pooling ? p.norm : &w->indexer_k_norm, .cs = &cs,
        .y = &f->kv->layer[layer].keys, .slot = &slot, .at = &at, .has_hadamard = has_pooling,
        .rounding = index_rounding(f), .block = INDEX_BLOCK, .eps = f->config->norm_eps);
}

void compress_run(struct forward *f, int layer)
{
    const struct layer_plan *plan = &f->plan->row[layer];
    const struct closing *g = scratch_closing(&f->scratch, plan->ratio);
    struct tensor latent = scratch_cut(&f->scratch.latent, g->n), cs = scratch_cut(&g->cs, g->n);
    struct tensor slot = scratch_cut(&g->slot, g->n), at = scratch_cut(&g->at, g->n);
    struct pooling p = latent_pooling(f, layer);
    int makes_keys = plan->topk_owner >= 0, feeds_keys = makes_keys && !f->config->has_index_hadamard;
    run_pooling(f, plan, &p);
    if (feeds_keys && g->n)
        RUN(f->be, rms_norm, .y = &latent, .x = &latent, .w = p.norm, .eps = f->config->norm_eps);
    if (makes_keys)
        make_keys(f, layer, &latent);
    if (!g->n)
        return;
    struct op_keep_row args = {.x = &latent, .w = feeds_keys ? NULL : p.norm, .cs = &cs,
        .y = &f->kv->layer[layer].rows, .slot = &slot, .at = &at, .eps = f->config->norm_eps};
    forward_keep_row(f, args, f->config->compressed_rounding);
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
    RUN(f->be, rotate_round, .x = &q, .cs = &cs, .has_hadamard = c->has_index_hadamard, .rounding = index_rounding(f),
        .block = INDEX_BLOCK);
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
