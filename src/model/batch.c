/* batch.c: the host's part of a step: index tensors of a batch, written before the first op. See forward.h.
 *
 * What changes every token (ids, positions, what a row may see, which rows close a group) is a tensor, so that a captured
 * graph can be replayed.
 */
#include "model/forward.h"

#include <string.h>

static void write_index(struct forward *f, const struct tensor *t, const int32_t *values, int n)
{
    struct err e;
    if (n && f->be->kind->write(f->be, t->data, values, (uint64_t)n * sizeof *values, &e))
        backend_fail(f->be, e.code, "%s", e.text);
}

/* Rows ending a group of g->ratio tokens, in batch order; columns slot, last position, row number, first position. */
static void write_closing(struct forward *f, struct closing *g, const struct batch *b)
{
    int32_t *visible = f->scratch.host, *slot = visible + b->n, *pos = slot + b->n, *at = pos + b->n, *first = at + b->n;
    g->n = 0;
    for (int r = 0; r < b->n; r++) {
        visible[r] = (b->pos[r] + 1) / g->ratio;
        if ((b->pos[r] + 1) % g->ratio)
            continue;
        slot[g->n] = b->slot[r];
        pos[g->n] = b->pos[r];
        at[g->n] = b->pos[r] / g->ratio;
        first[g->n] = b->pos[r] - g->ratio + 1;
        g->n++;
    }
    write_index(f, &g->visible, visible, b->n);
    write_index(f, &g->slot, slot, g->n);
    write_index(f, &g->pos, pos, g->n);
    write_index(f, &g->at, at, g->n);
    write_index(f, &g->first, first, g->n);
}

/* First pre-mix: stream 0 alone. */
static void write_first_mix(struct forward *f, int n)
{
    struct scratch *s = &f->scratch;
    float *one_hot = (float *)s->host;
    int n_stream = f->config->hc_mult;
    struct err e;
    memset(one_hot, 0, (size_t)n * (size_t)n_stream * sizeof *one_hot);
    for (int r = 0; r < n; r++)
        one_hot[r * n_stream] = 1;
    if (f->be->kind->write(f->be, s->mix[0].data, one_hot, (uint64_t)n * (uint64_t)n_stream * sizeof *one_hot, &e))
        backend_fail(f->be, e.code, "%s", e.text);
}

void forward_write_batch(struct forward *f, const struct batch *b)
{
    struct scratch *s = &f->scratch;
    s->n = b->n;
    write_index(f, &s->id, b->id, b->n);
    write_index(f, &s->slot, b->slot, b->n);
    write_index(f, &s->pos, b->pos, b->n);
    write_index(f, &s->out_row, b->out_row, b->n_out);
    write_first_mix(f, b->n);
    if (f->kv->keeps_streams) {
        int ring = (int)f->kv->streams.dim[1];
        write_index(f, &s->first, b->first, b->n);
        for (int r = 0; r < b->n; r++)
            s->host[r] = b->slot[r] * ring + b->pos[r] % ring;
        write_index(f, &s->stream_row, s->host, b->n);
    }
    for (int i = 0; i < s->n_closing; i++)
        write_closing(f, &s->closing[i], b);
    for (int i = 0; i < f->config->n_engram; i++) {
        engram_hash(f->config, i, b, s->host);
        write_index(f, &s->engram_id[i], s->host, b->n * (int)tensor_n_col(&s->engram_id[i]));
    }
}

uint64_t forward_key(const struct forward *f, const struct batch *b)
{
    uint64_t key = (uint64_t)b->n * 4 + (uint64_t)b->part;
    key = key * 1024 + (uint64_t)b->n_out;
    for (int i = 0; i < f->scratch.n_closing; i++)
        key = key * 64 + (uint64_t)f->scratch.closing[i].n;
    return key;
}

void forward_make_angles(struct forward *f)
{
    struct scratch *s = &f->scratch;
    for (int i = 0; i < N_ROPE; i++) {
        struct tensor cs = scratch_cut(&s->cs[i], s->n), pos = scratch_cut(&s->pos, s->n);
        RUN(f->be, rope_angles, .cs = &cs, .pos = &pos, .freq = &s->freq[i]);
    }
    for (int i = 0; i < s->n_closing; i++) {
        const struct closing *g = &s->closing[i];
        struct tensor cs = scratch_cut(&g->cs, g->n), first = scratch_cut(&g->first, g->n);
        if (g->n)
            RUN(f->be, rope_angles, .cs = &cs, .pos = &first, .freq = &s->freq[ROPE_COMPRESSED]);
    }
}
