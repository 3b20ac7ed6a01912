/* engram.c: n-gram memories added to the streams. v41 spec 9.
 *
 * A row of a table is found by hashing the compressed ids of the last 2, 3, ... tokens; once the start of the sequence is
 * passed, that and every older token is the pad id.
 */
#include "model/forward.h"
#include "model/stored.h"

static void hash_row(const struct model_config *c, int table, const int32_t *id, const int32_t *history, int32_t *out)
{
    const struct engram_config *g = &c->engram[table];
    uint64_t hash = (uint64_t)c->engram_map[*id] * g->multiplier[0];
    int is_past_start = 0, column = 0;
    for (int i = 1; i < c->engram_max_ngram; i++) {
        is_past_start |= history[i - 1] < 0;
        uint64_t token = (uint64_t)(is_past_start ? c->engram_pad : c->engram_map[history[i - 1]]);
        hash ^= token * g->multiplier[i];
        for (int head = 0; head < c->engram_n_head; head++, column++)
            out[column] = (int32_t)((int64_t)(hash % g->prime[column]) + g->offset[column]);
    }
}

void engram_hash(const struct model_config *c, int table, const struct batch *b, int32_t *id)
{
    int n_history = c->engram_max_ngram - 1;
    int64_t n_column = (int64_t)n_history * c->engram_n_head;
    for (int r = 0; r < b->n; r++)
        hash_row(c, table, &b->id[r], b->history + (int64_t)r * n_history, id + r * n_column);
}

void engram_run(struct forward *f, int layer)
{
    const struct model_config *c = f->config;
    const struct layer_weights *w = &f->weights->layer[layer];
    struct scratch *s = &f->scratch;
    int table = f->plan->row[layer].engram;
    int64_t n_column = tensor_n_col(&s->engram_id[table]);
    struct tensor id = tensor_of(DT_I32, s->engram_id[table].data, s->n * n_column, 0, 0, 0);
    struct tensor rows = tensor_of(DT_F32, s->engram_rows.data, s->n * n_column, c->engram_head_dim, 0, 0);
    struct tensor flat = tensor_of(DT_F32, s->engram_rows.data, s->n, n_column * c->engram_head_dim, 0, 0);
    struct tensor kv = scratch_cut(&s->engram_kv, s->n), h = scratch_cut(&s->h, s->n);
    if (f->stored && stored_has_rows(f->stored, table))
        stored_gather(f, table, &flat);
    else
        RUN(f->be, gather, .y = &rows, .w = &w->engram_embd, .id = &id);
    RUN(f->be, matmul, .y = &kv, .x = &flat, .w = &w->engram_kv);
    RUN(f->be, engram_gate, .x = &h, .kv = &kv, .q = &w->engram_q, .k = &w->engram_k, .eps = c->norm_eps);
}
