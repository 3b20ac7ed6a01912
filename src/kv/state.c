/* state.c: see state.h. */
#include "kv/state.h"

static void place_owner(struct kv_layer *l, struct layout *at, const struct kv_state *kv, const struct model_config *c,
    const struct layer_plan *p)
{
    int64_t cap = (kv->n_context + p->ratio - 1) / p->ratio;
    int64_t group = (int64_t)p->ratio * (1 + p->overlap) + kv->slack, width = 1 + p->overlap;
    l->rows = layout_place(at, DT_F32, kv->n_slot, cap, c->head_dim, 0);
    if (p->has_gate) {
        l->group_kv = layout_place(at, DT_F32, kv->n_slot, group, width * c->head_dim, 0);
        l->group_score = layout_place(at, DT_F32, kv->n_slot, group, width * c->head_dim, 0);
    }
    if (p->topk_owner < 0)
        return;
    l->keys = layout_place(at, DT_F32, kv->n_slot, cap, c->index_head_dim, 0);
    if (c->has_index_hadamard) {
        l->index_group_kv = layout_place(at, DT_F32, kv->n_slot, group, width * c->index_head_dim, 0);
        l->index_group_score = layout_place(at, DT_F32, kv->n_slot, group, width * c->index_head_dim, 0);
    }
}

void kv_place(struct kv_state *kv, struct layout *l, const struct model_config *c, const struct plan *p)
{
    int64_t ring_rows = c->window + kv->slack;
    if (kv->keeps_taps)
        kv->taps = layout_place(l, DT_F32, kv->n_slot, ring_rows, (int64_t)c->n_tap * c->hidden, 0);
    for (int i = 0; i < p->n_layer + (kv->keeps_taps ? p->n_stage : 0); i++) {
        kv->layer[i] = (struct kv_layer){0};
        kv->layer[i].ring = layout_place(l, DT_F32, kv->n_slot, ring_rows, c->head_dim, 0);
        if (p->row[i].ratio && p->row[i].kv_owner == i)
            place_owner(&kv->layer[i], l, kv, c, &p->row[i]);
    }
    if (!kv->keeps_streams)
        return;
    kv->streams = layout_place(l, DT_F32, kv->n_slot, c->window + kv->slack, (int64_t)c->hc_mult * c->hidden, 0);
    kv->mix = layout_place(l, DT_F32, kv->n_slot, c->window + kv->slack, c->hc_mult, 0);
}

/* Of a ring of `rows`, positions high - rows .. high - 1 are intact; the oldest that length n still needs is `oldest`. */
static int is_intact(int high, int rows, int oldest)
{
    return high - rows <= (oldest > 0 ? oldest : 0);
}

int kv_can_rewind(const struct kv_state *kv, const struct model_config *c, const struct plan *p, int high, int n)
{
    /* the next token needs window - 1 rows before it, a draft block the window of token n - 1 */
    if (!is_intact(high, c->window + kv->slack, n - c->window))
        return 0;
    for (int i = 0; i < p->n_layer; i++) {
        const struct layer_plan *row = &p->row[i];
        if (!row->has_gate || row->kv_owner != i)
            continue;
        int reach = row->ratio * (1 + row->overlap);
        if (!is_intact(high, reach + kv->slack, n / row->ratio * row->ratio - row->overlap * row->ratio))
            return 0;
    }
    return 1;
}
