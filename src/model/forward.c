/* forward.c: the whole model, top to bottom. v4 spec appendix B, v41 spec 4.
 *
 * The stream of a row is S vectors. A sub-layer reads a mix of them and writes back into all (mHC). Models differ in whose
 * pre-mix a sub-layer reads with: its own, or that of the sub-layer before it (lagged); scratch.mix holds both.
 */
#include "model/forward.h"

#include "model/draft.h"
#include "model/stored.h"

#include <string.h>

static struct tensor cut(const struct forward *f, const struct tensor *t)
{
    return scratch_cut(t, f->scratch.n);
}

/* Gives scratch.norm = norm(collapse(h)) and leaves post, comb for close_site. */
static void open_site(struct forward *f, const struct tensor *fn, const struct tensor *scale, const struct tensor *base,
    const struct tensor *norm)
{
    struct scratch *s = &f->scratch;
    const struct model_config *c = f->config;
    struct tensor h = cut(f, &s->h), own = cut(f, &s->mix[!s->mix_now]), before = cut(f, &s->mix[s->mix_now]);
    struct tensor post = cut(f, &s->post), comb = cut(f, &s->comb), y = cut(f, &s->norm);
    RUN(f->be, mhc_open, .y = &y, .pre = &own, .post = &post, .comb = &comb, .x = &h,
        .before = c->has_lagged_mix ? &before : NULL, .fn = fn, .scale = scale, .base = base, .norm = norm,
        .n_iter = c->hc_iters, .eps = c->hc_eps, .norm_eps = c->norm_eps);
    s->mix_now = !s->mix_now;
}

/* more: a second part of the sub-layer's result, or NULL. */
static void close_site(struct forward *f, const struct tensor *more)
{
    struct scratch *s = &f->scratch;
    struct tensor h = cut(f, &s->h), out = cut(f, &s->out), post = cut(f, &s->post), comb = cut(f, &s->comb);
    if (more)
        RUN(f->be, mhc_merge_sum, .x = &h, .y = &out, .more = more, .post = &post, .comb = &comb);
    else
        RUN(f->be, mhc_merge, .x = &h, .y = &out, .post = &post, .comb = &comb);
}

static void take_tap(struct forward *f, int slot)
{
    if (slot < 0 || !f->kv->keeps_taps)
        return;
    struct tensor h = cut(f, &f->scratch.h), tap = cut(f, &f->scratch.taps);
    tap.data = (float *)tap.data + (int64_t)slot * f->config->hidden;
    tap.dim[1] = f->config->hidden;
    RUN(f->be, stream_mean, .y = &tap, .x = &h);
}

void forward_run_layer(struct forward *f, int layer)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    const struct layer_plan *plan = &f->plan->row[layer];
    if (plan->engram >= 0)
        engram_run(f, layer);
    if (f->config->taps_inputs)
        take_tap(f, plan->tap);
    struct tensor x = cut(f, &f->scratch.norm), shared = cut(f, &f->scratch.shared);
    open_site(f, &w->hc_attn_fn, &w->hc_attn_scale, &w->hc_attn_base, &w->attn_norm);
    attention_run(f, layer, &x);
    close_site(f, NULL);
    open_site(f, &w->hc_ffn_fn, &w->hc_ffn_scale, &w->hc_ffn_base, &w->ffn_norm);
    experts_run(f, layer, &x);
    close_site(f, &shared);
    if (!f->config->taps_inputs)
        take_tap(f, plan->tap);
}

/* The streams start as copies of the embedding; the first lagged mix reads stream 0 alone. */
void forward_run_embedding(struct forward *f)
{
    struct scratch *s = &f->scratch;
    struct tensor id = cut(f, &s->id), x = cut(f, &s->x), h = cut(f, &s->h);
    RUN(f->be, gather, .y = &x, .w = &f->weights->token_embd, .id = &id);
    RUN(f->be, repeat_streams, .y = &h, .x = &x);
    s->mix_now = 0;
}

static void run_head(struct forward *f, int n_out)
{
    struct scratch *s = &f->scratch;
    const struct model_config *c = f->config;
    const struct model_weights *w = f->weights;
    struct tensor h = cut(f, &s->h), mix = cut(f, &s->mix[s->mix_now]), x = cut(f, &s->x);
    if (!c->has_lagged_mix)
        RUN(f->be, mhc_head, .pre = &mix, .x = &h, .fn = &w->output_hc_fn, .scale = &w->output_hc_scale,
            .base = &w->output_hc_base, .eps = c->hc_eps, .norm_eps = c->norm_eps);
    RUN(f->be, mhc_collapse, .y = &x, .pre = &mix, .x = &h);
    struct tensor out_row = scratch_cut(&s->out_row, n_out), y = scratch_cut(&s->head_x, n_out);
    struct tensor logits = scratch_cut(&s->logits, n_out);
    RUN(f->be, gather, .y = &y, .w = &x, .id = &out_row);
    RUN(f->be, rms_norm, .y = &y, .x = &y, .w = &w->output_norm, .eps = c->norm_eps);
    RUN(f->be, matmul, .y = &logits, .x = &y, .w = &w->output);
}

/* What enters the decoder, kept for a replay. */
static void keep_streams(struct forward *f)
{
    struct scratch *s = &f->scratch;
    struct tensor slot = cut(f, &s->slot), pos = cut(f, &s->pos), mix = cut(f, &s->mix[s->mix_now]);
    struct tensor h = tensor_of(DT_F32, s->h.data, s->n, tensor_n_col(&f->kv->streams), 0, 0);
    RUN(f->be, append, .y = &f->kv->streams, .x = &h, .slot = &slot, .at = &pos);
    RUN(f->be, append, .y = &f->kv->mix, .x = &mix, .slot = &slot, .at = &pos);
}

static void take_streams(struct forward *f)
{
    struct scratch *s = &f->scratch;
    const struct tensor *kept = &f->kv->streams, *kept_mix = &f->kv->mix;
    int64_t n = kept->dim[0] * kept->dim[1];
    struct tensor all = tensor_of(DT_F32, kept->data, n, kept->dim[2], 0, 0);
    struct tensor all_mix = tensor_of(DT_F32, kept_mix->data, n, kept_mix->dim[2], 0, 0);
    struct tensor h = tensor_of(DT_F32, s->h.data, s->n, kept->dim[2], 0, 0);
    struct tensor row = cut(f, &s->stream_row), mix;
    s->mix_now = 0;
    mix = cut(f, &s->mix[0]);
    RUN(f->be, gather, .y = &h, .w = &all, .id = &row);
    RUN(f->be, gather, .y = &mix, .w = &all_mix, .id = &row);
}

/* All that a token of the prompt leaves behind in the decoder's far memory. */
static void make_decoder_rows(struct forward *f)
{
    const struct layer_weights *w = &f->weights->layer[f->plan->decoder];
    struct tensor x = cut(f, &f->scratch.norm);
    struct projections p = {0};
    if (f->plan->row[f->plan->decoder].engram >= 0)
        engram_run(f, f->plan->decoder);
    open_site(f, &w->hc_attn_fn, &w->hc_attn_scale, &w->hc_attn_base, &w->attn_norm);
    compress_project(f, f->plan->decoder, &p);
    projections_run(&p, f->be, &x);
    compress_run(f, f->plan->decoder);
}

void forward_run(struct forward *f, const struct batch *b)
{
    int layer = b->part == BATCH_REPLAY ? f->plan->decoder : 0;
    if (f->stored)
        stored_want_rows(f, layer);
    forward_make_angles(f);
    if (b->part == BATCH_REPLAY)
        take_streams(f);
    else
        forward_run_embedding(f);
    for (; layer < f->config->n_layer; layer++) {
        if (f->kv->keeps_streams && layer == f->plan->decoder && b->part != BATCH_REPLAY)
            keep_streams(f);
        if (b->part == BATCH_ENCODE && layer == f->plan->decoder) {
            make_decoder_rows(f);
            return;
        }
        forward_run_layer(f, layer);
    }
    if (f->kv->keeps_taps)
        draft_keep_taps(f);
    if (b->n_out)
        run_head(f, b->n_out);
}
