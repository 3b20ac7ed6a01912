/* harness.c: see harness.h. */
#include "model/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int at_least(int value, int least)
{
    return value > least ? value : least;
}

static void place_all(struct harness *h, struct layout *kv, struct layout *scratch)
{
    kv_place(&h->kv, kv, h->forward.config, h->forward.plan);
    scratch_place(&h->forward.scratch, scratch, h->forward.config, h->forward.plan);
}

static void place(struct harness *h)
{
    struct layout kv = {0}, scratch = {0};
    struct err e = {0};
    place_all(h, &kv, &scratch);
    assert_int_equal(h->be->kind->buffer_new(h->be, &h->kv_memory, kv.n_byte + 64, &e), 0);
    assert_int_equal(
        h->be->kind->buffer_new(h->be, &h->scratch_memory, scratch.n_byte + 64, &e), 0);
    kv = (struct layout){.base = h->kv_memory.data};
    scratch = (struct layout){.base = h->scratch_memory.data};
    place_all(h, &kv, &scratch);
}

static void write_frequencies(struct harness *h)
{
    struct tensor *freq = h->forward.scratch.freq;
    int n = h->forward.config->rope_dim / 2;
    float *values = ARENA_NEW(&h->arena, float, (size_t)n);
    struct err e = {0};
    for (int i = 0; i < N_ROPE; i++) {
        plan_rope_frequencies(h->forward.config, (enum plan_rope)i, values);
        assert_int_equal(
            h->be->kind->write(h->be, freq[i].data, values, (uint64_t)n * sizeof *values, &e), 0);
    }
}

int harness_open(struct harness *h, const struct model_config *c, const struct plan *p,
    const struct model_weights *w, const struct harness_options *o)
{
    struct backend_options options = {
        .n_thread = at_least(o->n_thread, 1), .level = o->level, .checks_shapes = 1};
    struct err e = {0};
    *h = (struct harness){.n_chunk = at_least(o->n_chunk, FORWARD_MAX_OUT),
        .n_context = o->n_context ? o->n_context : 512};
    if (backend_open(&h->be, o->backend, &options, &e)) {
        assert_int_equal(e.code, ERR_UNSUPPORTED);
        return -1;
    }
    h->kv = (struct kv_state){.n_slot = at_least(o->n_slot, 1),
        .n_context = h->n_context,
        .slack = at_least(h->n_chunk, KV_UNDO_ROWS),
        .keeps_taps = o->keeps_taps};
    h->forward = (struct forward){.be = h->be,
        .config = c,
        .plan = p,
        .weights = w,
        .kv = &h->kv,
        .skips_kv_rounding = o->skips_kv_rounding,
        .scratch = {.n_row = h->n_chunk, .n_slot = h->kv.n_slot}};
    place(h);
    write_frequencies(h);
    struct scratch *s = &h->forward.scratch;
    s->host = ARENA_NEW(&h->arena, int32_t, (size_t)scratch_host_values(s, c));
    for (int i = 0; i < h->kv.n_slot; i++)
        h->ids[i] = ARENA_NEW(&h->arena, int32_t, (size_t)h->n_context);
    return 0;
}

void harness_close(struct harness *h)
{
    h->be->kind->buffer_free(h->be, &h->kv_memory);
    h->be->kind->buffer_free(h->be, &h->scratch_memory);
    backend_close(h->be);
    arena_free(&h->arena);
}

struct rows {
    int32_t *id, *slot, *pos, *history, *out_row;
};

static struct rows new_rows(struct arena *a, int n)
{
    size_t count = (size_t)n;
    return (struct rows){ARENA_NEW(a, int32_t, count), ARENA_NEW(a, int32_t, count),
        ARENA_NEW(a, int32_t, count), ARENA_NEW(a, int32_t, count * CONFIG_MAX_NGRAM),
        ARENA_NEW(a, int32_t, count)};
}

static void fill_row(struct harness *h, struct rows *b, int r, const struct harness_row *row)
{
    const struct model_config *c = h->forward.config;
    int n_history = c->n_engram ? c->engram_max_ngram - 1 : 0, pos = h->n[row->slot]++;
    assert_true(pos < h->n_context);
    h->ids[row->slot][pos] = row->id;
    b->id[r] = row->id;
    b->slot[r] = row->slot;
    b->pos[r] = pos;
    b->out_row[r] = r;
    for (int i = 0; i < n_history; i++)
        b->history[r * n_history + i] = pos - 1 - i >= 0 ? h->ids[row->slot][pos - 1 - i] : -1;
}

void harness_run(struct harness *h, const struct harness_row *rows, int n, float *logits)
{
    const struct model_config *c = h->forward.config;
    struct arena arena = {0};
    struct rows b = new_rows(&arena, n);
    struct err e = {0};
    assert_true(n <= h->n_chunk && (!logits || n <= FORWARD_MAX_OUT));
    for (int r = 0; r < n; r++)
        fill_row(h, &b, r, &rows[r]);
    struct batch batch = {.n = n,
        .id = b.id,
        .slot = b.slot,
        .pos = b.pos,
        .history = b.history,
        .n_out = logits ? n : 0,
        .out_row = b.out_row};
    h->be->kind->begin(h->be, 0);
    forward_write_batch(&h->forward, &batch);
    forward_run(&h->forward, &batch);
    if (backend_end(h->be, &e))
        fail_msg("%s", e.text);
    const struct tensor *t = &h->forward.scratch.logits;
    if (logits)
        assert_int_equal(h->be->kind->read(h->be, logits, t->data,
                             (uint64_t)n * (uint64_t)c->n_vocab * sizeof *logits, &e),
            0);
    arena_free(&arena);
}

void harness_append(struct harness *h, int slot, const int32_t *ids, int n, float *logits)
{
    int limit = logits && h->n_chunk > FORWARD_MAX_OUT ? FORWARD_MAX_OUT : h->n_chunk;
    struct arena arena = {0};
    struct harness_row *rows = ARENA_NEW(&arena, struct harness_row, (size_t)limit);
    for (int first = 0; first < n; first += limit) {
        int count = n - first < limit ? n - first : limit;
        for (int r = 0; r < count; r++)
            rows[r] = (struct harness_row){slot, ids[first + r]};
        harness_run(
            h, rows, count, logits ? logits + (int64_t)first * h->forward.config->n_vocab : NULL);
    }
    arena_free(&arena);
}

int32_t harness_argmax(const float *logits, int n_vocab)
{
    int32_t best = 0;
    for (int i = 1; i < n_vocab; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}
