/* engine.c: opening a model on a backend, planning its memory, running batches. See hadal.h. */
#include "engine/engine.h"

#include "engine/embedded.h"
#include "engine/memory_plan.h"

#include <assert.h>
#include <string.h>

enum { DEFAULT_CONTEXT = 32768, DEFAULT_CHUNK = 256 };

static void measure(struct kv_state *kv, struct scratch *s, const struct model_config *c, const struct plan *p,
    struct engine_plan *out)
{
    struct layout kv_layout = {0}, scratch_layout = {0};
    kv_place(kv, &kv_layout, c, p);
    scratch_place(s, &scratch_layout, c, p);
    out->session_bytes = kv_layout.n_byte / (uint64_t)kv->n_slot;
    out->scratch_bytes = scratch_layout.n_byte;
}

static int slack_rows(int n_chunk)
{
    return n_chunk > KV_UNDO_ROWS ? n_chunk : KV_UNDO_ROWS;
}

void engine_plan(const struct model_config *c, const struct plan *p, int n_context, int n_chunk, struct engine_plan *out)
{
    struct kv_state kv = {.n_slot = 1, .n_context = n_context, .slack = slack_rows(n_chunk),
        .keeps_taps = c->n_stage > 0};
    struct scratch s = {.n_row = n_chunk, .n_slot = 1};
    measure(&kv, &s, c, p, out);
    out->copies_bytes = suffix_bytes(n_context);
}

static int fill_options(hadal_engine *g, struct err *e)
{
    struct hadal_engine_options *o = &g->options;
    int limit = g->model.config->n_context;
    if (o->has_bounded_replay && g->model.plan->decoder < 0)
        return err_set(e, ERR_ARGUMENT, "bounded replay: model %s has no decoder half that could be left out", g->model.config->name);
    if (o->n_context < 0 || o->n_session < 0 || o->n_chunk < 0 || o->n_thread < 0)
        return err_set(e, ERR_ARGUMENT, "context, sessions, chunk and threads must not be negative");
    if (o->n_context > limit)
        return err_set(e, ERR_ARGUMENT, "context of %d tokens: this model reaches %d", o->n_context, limit);
    if (!o->n_context)
        o->n_context = limit < DEFAULT_CONTEXT ? limit : DEFAULT_CONTEXT;
    if (!o->n_session)
        o->n_session = 1;
    if (!o->n_chunk)
        o->n_chunk = DEFAULT_CHUNK;
    if (o->n_chunk < o->n_session)
        o->n_chunk = o->n_session;
    if (o->n_chunk < FORWARD_MAX_OUT)
        o->n_chunk = FORWARD_MAX_OUT; /* room for a draft block; a smaller cut changes no bit */
    return 0;
}

static uint64_t copies_bytes(const hadal_engine *g)
{
    return g->options.has_no_copies ? 0 : suffix_bytes(g->options.n_context);
}

static int allocate(hadal_engine *g, struct err *e)
{
    const struct model_config *c = g->model.config;
    const struct backend_kind *kind = g->be->kind;
    struct scratch *s = &g->forward.scratch;
    struct engine_plan plan;
    struct memory_plan memory;
    g->kv = (struct kv_state){.n_slot = g->options.n_session, .n_context = g->options.n_context,
        .slack = slack_rows(g->options.n_chunk), .keeps_streams = g->options.has_bounded_replay,
        .keeps_taps = c->n_stage > 0 && !g->options.has_no_drafts};
    s->n_row = g->options.n_chunk;
    s->n_slot = g->options.n_session;
    s->has_replay = g->options.has_bounded_replay;
    measure(&g->kv, s, c, g->model.plan, &plan);
    plan.copies_bytes = copies_bytes(g);
    if (memory_plan_make(g, &plan, &memory, e) || memory_plan_load(g, &memory, e))
        return -1;
    if (kind->buffer_new(g->be, &g->kv_memory, plan.session_bytes * (uint64_t)g->kv.n_slot + 64, e) ||
        kind->buffer_new(g->be, &g->scratch_memory, plan.scratch_bytes + 64, e))
        return -1;
    struct layout kv_layout = {.base = g->kv_memory.data}, scratch_layout = {.base = g->scratch_memory.data};
    kv_place(&g->kv, &kv_layout, c, g->model.plan);
    scratch_place(s, &scratch_layout, c, g->model.plan);
    size_t n = (size_t)g->options.n_chunk;
    s->host = ARENA_NEW(&g->arena, int32_t, (size_t)scratch_host_values(s, c));
    g->batch.id = ARENA_NEW(&g->arena, int32_t, n);
    g->batch.slot = ARENA_NEW(&g->arena, int32_t, n);
    g->batch.pos = ARENA_NEW(&g->arena, int32_t, n);
    g->batch.out_row = ARENA_NEW(&g->arena, int32_t, n);
    g->batch.first = ARENA_NEW(&g->arena, int32_t, n);
    g->batch.history = ARENA_NEW(&g->arena, int32_t, n * CONFIG_MAX_NGRAM);
    g->slot = ARENA_NEW(&g->arena, hadal_session *, (size_t)g->options.n_session);
    if (!s->host || !g->batch.id || !g->batch.slot || !g->batch.pos || !g->batch.out_row || !g->batch.first || !g->batch.history ||
        !g->slot)
        return err_set(e, ERR_MEMORY, "no memory for a batch of %d rows", g->options.n_chunk);
    return 0;
}

static int write_frequencies(hadal_engine *g, struct err *e)
{
    int n_pair = g->model.config->rope_dim / 2;
    float *freq = ARENA_NEW(&g->arena, float, (size_t)n_pair);
    if (!freq)
        return err_set(e, ERR_MEMORY, "no memory for rotary frequencies");
    for (int i = 0; i < N_ROPE; i++) {
        plan_rope_frequencies(g->model.config, (enum plan_rope)i, freq);
        if (g->be->kind->write(g->be, g->forward.scratch.freq[i].data, freq, (uint64_t)n_pair * sizeof *freq, e))
            return -1;
    }
    return 0;
}

static int open_file(hadal_engine *g, struct err *e)
{
    size_t n_byte = 0;
    const unsigned char *embedded = g->options.model ? NULL : hadal_embedded_model(&n_byte);
    if (!g->options.model && !embedded)
        return err_set(e, ERR_ARGUMENT, "this build has no embedded model: name one with -m");
    if (model_file_open(&g->file, g->options.model, embedded, n_byte, e))
        return -1;
    if (g->options.draft_file && model_file_add_drafts(g->file, g->options.draft_file, &g->draft_problem))
        g->options.has_no_drafts = 1;
    model_file_info(g->file, &g->model);
    return fill_options(g, e);
}

static int open_backend(hadal_engine *g, struct err *e)
{
    struct backend_options o = {.n_thread = g->options.n_thread, .level = g->options.level};
    assert((o.checks_shapes = 1)); /* builds with assertions check every call's shapes too */
    if (backend_open(&g->be, g->options.backend ? g->options.backend : "cpu", &o, e))
        return -1;
    g->forward = (struct forward){.be = g->be, .config = g->model.config, .plan = g->model.plan,
        .weights = g->model.weights, .kv = &g->kv, .skips_kv_rounding = g->options.skips_kv_rounding};
    return 0;
}

struct placing {
    hadal_engine *engine;
    uint64_t n_byte; /* so far */
};

static int place_weight(void *context, struct tensor *t, struct err *e)
{
    struct placing *p = context;
    const struct hadal_engine_options *o = &p->engine->options;
    if (p->engine->be->kind->take_weight(p->engine->be, t, e))
        return -1;
    p->n_byte += (uint64_t)(tensor_n_row(t) * t->row_bytes);
    if (o->progress)
        o->progress(o->progress_context, "load", p->n_byte, p->engine->model.weight_bytes);
    return 0;
}

/* On a device with memory of its own, weights are copied there. */
static int place_weights(hadal_engine *g, struct err *e)
{
    struct placing placing = {.engine = g};
    return g->be->kind->take_weight ? model_file_move(g->file, place_weight, &placing, e) : 0;
}

int engine_open(hadal_engine **engine, const struct hadal_engine_options *options, const struct disk_calls *disk, struct err *e)
{
    struct arena arena = {0};
    hadal_engine *g = ARENA_NEW(&arena, hadal_engine, 1);
    *engine = NULL;
    if (!g)
        return err_set(e, ERR_MEMORY, "no memory for an engine");
    g->arena = arena;
    g->options = *options;
    g->disk = disk;
    if (open_file(g, e) || open_backend(g, e) || allocate(g, e) || write_frequencies(g, e) || place_weights(g, e)) {
        hadal_engine_close(g);
        return -1;
    }
    if (g->options.progress)
        g->options.progress(g->options.progress_context, "load", 1, 1);
    *engine = g;
    return 0;
}

int hadal_engine_open(hadal_engine **engine, const struct hadal_engine_options *options, struct err *e)
{
    return engine_open(engine, options, NULL, e);
}

void hadal_engine_close(hadal_engine *engine)
{
    if (!engine)
        return;
    if (engine->be) {
        stored_close(engine->stored);
        engine->be->kind->buffer_free(engine->be, &engine->kv_memory);
        engine->be->kind->buffer_free(engine->be, &engine->scratch_memory);
        backend_close(engine->be);
    }
    if (engine->file)
        model_file_close(engine->file);
    struct arena arena = engine->arena; /* the engine itself lives in it */
    arena_free(&arena);
}

void hadal_engine_info(const hadal_engine *engine, struct hadal_engine_info *info)
{
    const struct model_config *c = engine->model.config;
    *info = (struct hadal_engine_info){.model_name = c->name, .architecture = c->architecture, .dialect = c->dialect,
        .backend = engine->be->kind->name, .level = engine->be->level, .n_thread = engine->be->n_thread,
        .n_context = engine->options.n_context, .n_vocab = c->n_vocab, .n_layer = c->n_layer, .bos_id = c->bos_id,
        .eos_id = c->eos_id, .pad_id = c->pad_id, .n_draft = engine->kv.keeps_taps ? c->draft_block : 0,
        .draft_problem = engine->draft_problem.text[0] ? engine->draft_problem.text : NULL,
        .weight_bytes = engine->model.weight_bytes,
        .session_bytes = engine->kv_memory.n_byte / (uint64_t)engine->options.n_session + copies_bytes(engine),
        .scratch_bytes = engine->scratch_memory.n_byte, .temperature = c->temperature, .top_p = c->top_p,
        .min_p = c->min_p, .top_k = c->top_k};
}

void hadal_engine_store_stats(const hadal_engine *engine, struct hadal_store_stats *stats)
{
    *stats = (struct hadal_store_stats){.disk_bytes = 0};
    if (!engine->stored)
        return;
    struct stored_stats s = stored_stats(engine->stored);
    *stats = (struct hadal_store_stats){.disk_bytes = stored_need(engine->stored).disk_bytes,
        .cache_bytes = stored_cache_bytes(engine->stored), .n_expert = s.experts.n_wanted, .n_expert_hit = s.experts.n_there,
        .n_row = s.rows.n_wanted, .n_row_hit = s.rows.n_there, .n_read = s.reads.n_read, .read_bytes = s.reads.read_bytes,
        .wait_seconds = s.reads.wait_seconds};
}

const struct tokenizer *hadal_engine_tokenizer(const hadal_engine *engine)
{
    return engine->model.tokenizer;
}

void hadal_engine_cancel(hadal_engine *engine)
{
    atomic_store(&engine->is_cancelled, 1);
}

void engine_start(hadal_engine *g)
{
    atomic_store(&g->is_cancelled, 0);
}

void engine_add_row(hadal_engine *g, int r, const hadal_session *session, int pos)
{
    int n_history = g->model.config->n_engram ? g->model.config->engram_max_ngram - 1 : 0;
    g->batch.id[r] = session->ids[pos];
    g->batch.slot[r] = session->slot;
    g->batch.pos[r] = pos;
    g->batch.first[r] = session->first;
    for (int i = 0; i < n_history; i++)
        g->batch.history[r * n_history + i] = pos - 1 - i >= 0 ? session->ids[pos - 1 - i] : -1;
}

int engine_run(hadal_engine *g, int n, int n_out, enum batch_part part, struct err *e)
{
    if (atomic_load(&g->is_cancelled))
        return err_set(e, ERR_CANCELLED, "stopped");
    struct batch b = {.n = n, .id = g->batch.id, .slot = g->batch.slot, .pos = g->batch.pos, .history = g->batch.history,
        .n_out = n_out, .out_row = g->batch.out_row, .first = g->batch.first, .part = part};
    forward_write_batch(&g->forward, &b);
    g->be->kind->begin(g->be, n <= FORWARD_MAX_OUT ? forward_key(&g->forward, &b) : 0);
    forward_run(&g->forward, &b);
    return backend_end(g->be, e);
}

int engine_read_logits(hadal_engine *g, int i, float *logits, struct err *e)
{
    const struct tensor *t = &g->forward.scratch.logits;
    const uint8_t *row = (const uint8_t *)t->data + (int64_t)i * t->row_bytes;
    return g->be->kind->read(g->be, logits, row, (uint64_t)tensor_n_col(t) * sizeof *logits, e);
}
