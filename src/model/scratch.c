/* scratch.c: see scratch.h. */
#include "model/scratch.h"

#include <stddef.h>

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static void place_streams(struct scratch *s, struct layout *l, const struct model_config *c)
{
    int64_t n = s->n_row, m = c->hc_mult, d = c->hidden;
    s->h = layout_place(l, DT_F32, n, m, d, 0);
    for (int i = 0; i < 2; i++)
        s->mix[i] = layout_place(l, DT_F32, n, m, 0, 0);
    s->post = layout_place(l, DT_F32, n, m, 0, 0);
    s->comb = layout_place(l, DT_F32, n, m, m, 0);
    s->x = layout_place(l, DT_F32, n, d, 0, 0);
    s->norm = layout_place(l, DT_F32, n, d, 0, 0);
    s->out = layout_place(l, DT_F32, n, d, 0, 0);
    s->head_x = layout_place(l, DT_F32, FORWARD_MAX_OUT, d, 0, 0);
    s->logits = layout_place(l, DT_F32, FORWARD_MAX_OUT, c->n_vocab, 0, 0);
}

static void place_attention(struct scratch *s, struct layout *l, const struct model_config *c)
{
    int64_t n = s->n_row, group_width = 2 * c->head_dim;
    s->qr = layout_place(l, DT_F32, n, c->q_lora, 0, 0);
    s->q = layout_place(l, DT_F32, n, c->n_head, c->head_dim, 0);
    s->o = layout_place(l, DT_F32, n, c->n_head, c->head_dim, 0);
    s->low = layout_place(l, DT_F32, n, (int64_t)c->o_groups * c->o_lora, 0, 0);
    s->kv = layout_place(l, DT_F32, n, c->head_dim, 0, 0);
    s->group_kv = layout_place(l, DT_F32, n, group_width, 0, 0);
    s->group_score = layout_place(l, DT_F32, n, group_width, 0, 0);
    s->latent = layout_place(l, DT_F32, n, c->head_dim, 0, 0);
    if (!c->index_topk)
        return;
    s->key = layout_place(l, DT_F32, n, c->index_head_dim, 0, 0);
    s->index_group_kv = layout_place(l, DT_F32, n, 2 * c->index_head_dim, 0, 0);
    s->index_group_score = layout_place(l, DT_F32, n, 2 * c->index_head_dim, 0, 0);
    s->index_q = layout_place(l, DT_F32, n, c->index_n_head, c->index_head_dim, 0);
    s->index_w = layout_place(l, DT_F32, n, c->index_n_head, 0, 0);
    s->rows = layout_place(l, DT_I32, n, c->index_topk, 0, 0);
    s->n_chosen = layout_place(l, DT_I32, n, 0, 0, 0);
    if (c->candidate_source >= 0) {
        s->block = layout_place(l, DT_I32, n, c->candidate_blocks, 0, 0);
        s->n_block = layout_place(l, DT_I32, n, 0, 0, 0);
    }
}

static void place_experts(struct scratch *s, struct layout *l, const struct model_config *c)
{
    int64_t n = s->n_row;
    s->router = layout_place(l, DT_F32, n, max_int(c->n_expert, c->draft_n_expert), 0, 0);
    int n_used = max_int(c->n_expert_used, c->draft_n_expert_used);
    s->expert_idx = layout_place(l, DT_I32, n, n_used, 0, 0);
    s->expert_weight = layout_place(l, DT_F32, n, n_used, 0, 0);
    s->shared = layout_place(l, DT_F32, n, c->hidden, 0, 0);
    if (c->n_engram) {
        int64_t column = (int64_t)(c->engram_max_ngram - 1) * c->engram_n_head;
        for (int i = 0; i < c->n_engram; i++)
            s->engram_id[i] = layout_place(l, DT_I32, n, column, 0, 0);
        s->engram_rows = layout_place(l, DT_F32, n, column * c->engram_head_dim, 0, 0);
        s->engram_kv = layout_place(l, DT_F32, n, (int64_t)(c->hc_mult + 1) * c->hidden, 0, 0);
    }
}

static void place_draft(struct scratch *s, struct layout *l, const struct model_config *c)
{
    struct tensor *index[] = {&s->draft_last, &s->draft_at, &s->draft_n_row, &s->draft_prev, &s->draft_row};
    int64_t n_seq = FORWARD_MAX_OUT / c->draft_block;
    s->taps = layout_place(l, DT_F32, s->n_row, (int64_t)c->n_tap * c->hidden, 0, 0);
    s->block_kv = layout_place(l, DT_F32, s->n_slot, c->draft_block, c->head_dim, 0);
    for (size_t i = 0; i < sizeof index / sizeof *index; i++)
        *index[i] = layout_place(l, DT_I32, FORWARD_MAX_OUT, 0, 0, 0);
    s->markov = layout_place(l, DT_F32, n_seq, c->markov_rank, 0, 0);
    s->bias = layout_place(l, DT_F32, n_seq, c->n_vocab, 0, 0);
    s->confidence_in = layout_place(l, DT_F32, n_seq, c->hidden + c->markov_rank, 0, 0);
    s->confidence = layout_place(l, DT_F32, n_seq, 1, 0, 0);
}

static void place_closing(struct closing *g, struct layout *l, int64_t n_row, int64_t n_pair)
{
    struct tensor *index[] = {&g->visible, &g->slot, &g->pos, &g->at, &g->first};
    for (size_t i = 0; i < sizeof index / sizeof *index; i++)
        *index[i] = layout_place(l, DT_I32, n_row, 0, 0, 0);
    g->cs = layout_place(l, DT_F32, n_row, n_pair, 2, 0);
}

static void place_batch(struct scratch *s, struct layout *l, const struct model_config *c, const struct plan *p)
{
    struct tensor *index[] = {&s->id, &s->slot, &s->pos, &s->out_row};
    for (size_t i = 0; i < sizeof index / sizeof *index; i++)
        *index[i] = layout_place(l, DT_I32, s->n_row, 0, 0, 0);
    if (s->has_replay) {
        s->first = layout_place(l, DT_I32, s->n_row, 0, 0, 0);
        s->stream_row = layout_place(l, DT_I32, s->n_row, 0, 0, 0);
    }
    for (int i = 0; i < N_ROPE; i++) {
        s->cs[i] = layout_place(l, DT_F32, s->n_row, c->rope_dim / 2, 2, 0);
        s->freq[i] = layout_place(l, DT_F32, c->rope_dim / 2, 0, 0, 0);
    }
    s->n_closing = 0;
    for (int i = 0; i < p->n_layer; i++) {
        int ratio = p->row[i].ratio;
        if (!ratio || scratch_closing(s, ratio) || s->n_closing == FORWARD_MAX_RATIO)
            continue;
        struct closing *g = &s->closing[s->n_closing++];
        g->ratio = ratio;
        place_closing(g, l, s->n_row, c->rope_dim / 2);
    }
}

void scratch_place(struct scratch *s, struct layout *l, const struct model_config *c, const struct plan *p)
{
    place_streams(s, l, c);
    place_attention(s, l, c);
    place_experts(s, l, c);
    if (c->n_stage)
        place_draft(s, l, c);
    place_batch(s, l, c, p);
}

int64_t scratch_host_values(const struct scratch *s, const struct model_config *c)
{
    int64_t column = c->n_engram ? (int64_t)(c->engram_max_ngram - 1) * c->engram_n_head : 0;
    int64_t most = max_int(c->hc_mult, 5);
    return (column > most ? column : most) * s->n_row;
}

struct tensor scratch_cut(const struct tensor *t, int64_t n)
{
    return tensor_slice(t, 0, n);
}

const struct closing *scratch_closing(const struct scratch *s, int ratio)
{
    for (int i = 0; i < s->n_closing; i++)
        if (s->closing[i].ratio == ratio)
            return &s->closing[i];
    return NULL;
}
