/* draft.c: see draft.h. */
#include "model/draft.h"

#include <string.h>

static void write_values(struct forward *f, const struct tensor *t, const int32_t *values, int n)
{
    struct err e;
    if (f->be->kind->write(f->be, t->data, values, (uint64_t)n * sizeof *values, &e))
        backend_fail(f->be, e.code, "%s", e.text);
}

void draft_keep_taps(struct forward *f)
{
    struct scratch *s = &f->scratch;
    struct tensor taps = scratch_cut(&s->taps, s->n), slot = scratch_cut(&s->slot, s->n),
                  pos = scratch_cut(&s->pos, s->n);
    RUN(f->be, append, .y = &f->kv->taps, .x = &taps, .slot = &slot, .at = &pos);
}

/* ---- The stages' own rings ---- */

/* Rows of every stage from scratch.taps [n], at scratch.slot and scratch.pos. */
static void append_context(struct forward *f)
{
    const struct model_config *c = f->config;
    const struct draft_weights *w = &f->weights->draft;
    struct scratch *s = &f->scratch;
    struct tensor taps = scratch_cut(&s->taps, s->n), x = scratch_cut(&s->norm, s->n),
                  kv = scratch_cut(&s->kv, s->n);
    struct tensor cs = scratch_cut(&s->cs[ROPE_PLAIN], s->n);
    struct tensor slot = scratch_cut(&s->slot, s->n), pos = scratch_cut(&s->pos, s->n);
    RUN(f->be, rope_angles, .cs = &cs, .pos = &pos, .freq = &s->freq[ROPE_PLAIN]);
    RUN(f->be, matmul, .y = &x, .x = &taps, .w = &w->main_proj);
    RUN(f->be, rms_norm, .y = &x, .x = &x, .w = &w->main_norm, .eps = c->norm_eps);
    for (int stage = c->n_layer; stage < c->n_layer + c->n_stage; stage++) {
        const struct layer_weights *l = &f->weights->layer[stage];
        RUN(f->be, matmul, .y = &kv, .x = &x, .w = &l->attn_kv);
        struct op_keep_row args = {.x = &kv,
            .w = &l->attn_kv_a_norm,
            .cs = &cs,
            .y = &f->kv->layer[stage].ring,
            .slot = &slot,
            .at = &pos,
            .eps = c->norm_eps};
        forward_keep_row(f, args, c->window_rounding);
    }
}

/* The n rows of sequence `slot` from position `first` on: at most as many as a batch has. */
static int fill_rows(struct forward *f, int slot, int first, int n, struct err *e)
{
    struct scratch *s = &f->scratch;
    const struct tensor *ring = &f->kv->taps;
    int32_t *slots = s->host, *pos = slots + n, *at = pos + n;
    struct tensor flat =
        tensor_of(DT_F32, ring->data, ring->dim[0] * ring->dim[1], ring->dim[2], 0, 0);
    for (int r = 0; r < n; r++) {
        slots[r] = slot;
        pos[r] = first + r;
        at[r] = (int32_t)(slot * ring->dim[1] + pos[r] % ring->dim[1]);
    }
    s->n = n;
    struct tensor taps = scratch_cut(&s->taps, n), id = scratch_cut(&s->id, n);
    f->be->kind->begin(f->be, 0);
    write_values(f, &s->slot, slots, n);
    write_values(f, &s->pos, pos, n);
    write_values(f, &s->id, at, n);
    RUN(f->be, gather, .y = &taps, .w = &flat, .id = &id);
    append_context(f);
    return backend_end(f->be, e);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* What the window of every sequence's block needs and the stages' rings do not hold yet. */
static int fill_rings(struct forward *f, const struct draft_request *q, struct err *e)
{
    for (int i = 0; i < q->n_seq; i++) {
        int end = q->last[i] + 1, first = larger(end - f->config->window, 0);
        if (f->kv->keeps_streams)
            first = larger(first, q->first[i]);
        if (q->filled)
            first = larger(first, q->filled[i]);
        for (int n; first < end; first += n) {
            n = end - first < f->scratch.n_row ? end - first : f->scratch.n_row;
            if (fill_rows(f, q->slot[i], first, n, e))
                return -1;
        }
    }
    return 0;
}

/* ---- The block ---- */

/* Rows of all blocks: the anchor and noise tokens at the positions that follow it. */
static void write_block(struct forward *f, const struct draft_request *q, struct draft_rows *rows)
{
    struct scratch *s = &f->scratch;
    int n_block = f->config->draft_block, n = q->n_seq * n_block;
    int32_t id[FORWARD_MAX_OUT], slot[FORWARD_MAX_OUT], pos[FORWARD_MAX_OUT],
        out_row[FORWARD_MAX_OUT];
    int32_t first[FORWARD_MAX_OUT], last[FORWARD_MAX_OUT], at[FORWARD_MAX_OUT], n_row[FORWARD_MAX_OUT];
    int32_t history[FORWARD_MAX_OUT * CONFIG_MAX_NGRAM];
    for (int r = 0; r < n; r++) {
        int i = r / n_block;
        at[r] = r % n_block;
        id[r] = at[r] ? f->config->draft_noise_id : q->anchor[i];
        slot[r] = q->slot[i];
        last[r] = q->last[i];
        first[r] = q->first ? q->first[i] : 0;
        pos[r] = last[r] + 1 + at[r];
        n_row[r] = n_block;
        out_row[r] = r;
    }
    memset(history, 0xff, sizeof history); /* stages have no n-gram tables */
    struct batch b = {.n = n,
        .id = id,
        .slot = slot,
        .pos = pos,
        .history = history,
        .n_out = n,
        .out_row = out_row,
        .first = first};
    forward_write_batch(f, &b);
    write_values(f, &s->draft_last, last, n);
    write_values(f, &s->draft_at, at, n);
    write_values(f, &s->draft_n_row, n_row, n);
    rows->last = scratch_cut(&s->draft_last, n);
    rows->at = scratch_cut(&s->draft_at, n);
    rows->n_row = scratch_cut(&s->draft_n_row, n);
}

/* scratch.x = collapsed streams of every row, scratch.head_x = the same normalised. */
static void collapse_block(struct forward *f)
{
    const struct model_config *c = f->config;
    const struct draft_weights *w = &f->weights->draft;
    struct scratch *s = &f->scratch;
    struct tensor h = scratch_cut(&s->h, s->n), mix = scratch_cut(&s->mix[s->mix_now], s->n);
    struct tensor x = scratch_cut(&s->x, s->n), y = scratch_cut(&s->head_x, s->n);
    if (!c->has_lagged_mix)
        RUN(f->be, mhc_head, .pre = &mix, .x = &h, .fn = &w->hc_head_fn, .scale = &w->hc_head_scale,
            .base = &w->hc_head_base, .eps = c->hc_eps, .norm_eps = c->norm_eps);
    RUN(f->be, mhc_collapse, .y = &x, .pre = &mix, .x = &h);
    RUN(f->be, rms_norm, .y = &y, .x = &x, .w = &w->norm, .eps = c->norm_eps);
}

/* The share of all rows in their draft logits that does not depend on the tokens chosen. */
static void run_block_head(struct forward *f)
{
    struct scratch *s = &f->scratch;
    struct tensor y = scratch_cut(&s->head_x, s->n), logits = scratch_cut(&s->logits, s->n);
    RUN(f->be, matmul, .y = &logits, .x = &y, .w = &f->weights->output);
}

/* Confidence of place r of every block, from its row and the token before it. */
static void run_confidence(
    struct forward *f, const struct draft_request *q, int r, const int32_t *prev)
{
    const struct model_config *c = f->config;
    const struct draft_weights *w = &f->weights->draft;
    struct scratch *s = &f->scratch;
    int32_t row[FORWARD_MAX_OUT];
    for (int i = 0; i < q->n_seq; i++)
        row[i] = i * c->draft_block + r;
    write_values(f, &s->draft_prev, prev, q->n_seq);
    write_values(f, &s->draft_row, row, q->n_seq);
    struct tensor id = scratch_cut(&s->draft_prev, q->n_seq),
                  at = scratch_cut(&s->draft_row, q->n_seq);
    struct tensor in = scratch_cut(&s->confidence_in, q->n_seq);
    struct tensor x = scratch_cut(&s->x, s->n), out = scratch_cut(&s->confidence, q->n_seq);
    struct tensor left = in, right = in;

    left.dim[1] = c->hidden;
    right.dim[1] = c->markov_rank;
    right.data = (float *)right.data + c->hidden;
    RUN(f->be, gather, .y = &left, .w = &x, .id = &at);
    RUN(f->be, gather, .y = &right, .w = &w->markov_embed, .id = &id);

    RUN(f->be, matmul, .y = &out, .x = &in, .w = &w->confidence);
}

/* Adds to the logits of place r of every block the Markov bias of the token before it, which
 * run_confidence has looked up. */
static void run_bias(struct forward *f, int n_seq, int r)
{
    const struct model_config *c = f->config;
    struct scratch *s = &f->scratch;
    struct tensor bias = scratch_cut(&s->bias, n_seq),
                  right = scratch_cut(&s->confidence_in, n_seq);
    struct tensor logits = scratch_cut(&s->logits, n_seq);
    right.dim[1] = c->markov_rank;
    right.data = (float *)right.data + c->hidden;
    logits.data = (uint8_t *)logits.data + r * logits.row_bytes;
    logits.row_bytes *= c->draft_block;
    RUN(f->be, matmul, .y = &bias, .x = &right, .w = &f->weights->draft.markov_head);
    RUN(f->be, add, .y = &logits, .x = &bias);
}

/* Chooses place r of every block from the finished logits; the choices are the next place's
 * previous tokens. */
static int choose(
    struct forward *f, const struct draft_request *q, int r, int32_t *prev, struct err *e)
{
    const struct scratch *s = &f->scratch;
    float confidence[FORWARD_MAX_OUT];
    if (f->be->kind->read(
            f->be, confidence, s->confidence.data, (uint64_t)q->n_seq * sizeof *confidence, e))
        return -1;
    for (int i = 0; i < q->n_seq; i++) {
        const uint8_t *row = (const uint8_t *)s->logits.data +
                             (int64_t)(i * f->config->draft_block + r) * s->logits.row_bytes;
        if (f->be->kind->read(
                f->be, q->logits, row, (uint64_t)f->config->n_vocab * sizeof *q->logits, e))
            return -1;
        prev[i] = q->choose(q->context, i, r, q->logits);
        q->id[i * q->n_draft + r] = prev[i];
        q->confidence[i * q->n_draft + r] = confidence[i];
    }
    return 0;
}

/* Ends the batch at hand, and if the first confidences are worth it begins another for the
 * vocabulary. Returns 1, 0 or -1. */
static int ask_worth(struct forward *f, const struct draft_request *q, struct err *e)
{
    float confidence[FORWARD_MAX_OUT];
    if (!q->is_worth)
        return 1;
    if (backend_end(f->be, e) || f->be->kind->read(f->be, confidence, f->scratch.confidence.data,
                                     (uint64_t)q->n_seq * sizeof *confidence, e))
        return -1;
    if (!q->is_worth(q->context, confidence))
        return 0;
    f->be->kind->begin(f->be, 0);
    return 1;
}

static void run_block(struct forward *f, const struct draft_request *q)
{
    const struct model_config *c = f->config;
    struct draft_rows rows;
    f->be->kind->begin(f->be, 0);
    write_block(f, q, &rows);
    forward_make_angles(f);
    f->draft = &rows;
    forward_run_embedding(f);
    for (int stage = c->n_layer; stage < c->n_layer + c->n_stage; stage++)
        forward_run_layer(f, stage);
    f->draft = NULL;
    collapse_block(f);
}

int draft_run(struct forward *f, const struct draft_request *q, struct err *e)
{
    const struct model_config *c = f->config;
    int32_t prev[FORWARD_MAX_OUT];
    if (!f->kv->keeps_taps || q->n_seq < 1 || q->n_seq * c->draft_block > FORWARD_MAX_OUT ||
        q->n_draft > c->draft_block)
        return err_set(e, ERR_ARGUMENT,
            "%d drafts for %d sequences: this model drafts blocks of %d", q->n_draft, q->n_seq,
            c->draft_block);
    if (fill_rings(f, q, e))
        return -1;
    run_block(f, q);
    memcpy(prev, q->anchor, (size_t)q->n_seq * sizeof *prev);
    run_confidence(f, q, 0, prev);
    int goes_on = ask_worth(f, q, e);
    if (q->n_filled)
        *q->n_filled = goes_on > 0 ? q->n_draft : 0;
    if (goes_on <= 0)
        return goes_on;
    run_block_head(f);
    for (int r = 0; r < q->n_draft; r++) {
        if (r) {
            f->be->kind->begin(f->be, 0);
            run_confidence(f, q, r, prev);
        }
        run_bias(f, q->n_seq, r);
        if (backend_end(f->be, e) || choose(f, q, r, prev, e))
            return -1;
    }
    return 0;
}
