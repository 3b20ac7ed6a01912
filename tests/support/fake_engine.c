/* fake_engine.c: hadal.h without a model. See fake_engine.h. */
#include "support/fake_engine.h"

#include "text/control_tokens.h"

#include <string.h>
#include <time.h>

struct hadal_engine {
    struct arena arena;
    struct fake_script script;
    struct tokenizer *tokenizer;
    struct hadal_engine_options options;
    int n_context, n_vocab;
    int n_open;
    volatile int is_cancelled;
};

struct hadal_session {
    struct arena arena;
    hadal_engine *engine;
    int32_t *ids; /* n of n_context */
    int n;
    float *logits;           /* n_vocab */
    struct token_list reply; /* what the script says after ids[0..n_prompt) */
    int n_prompt;
    const struct fake_rule *rule;
    struct hadal_draft_stats stats;
};

/* ---- Engine ---- */

int hadal_engine_open(hadal_engine **engine, const struct hadal_engine_options *options, struct err *e)
{
    struct arena arena = {0};
    hadal_engine *g = ARENA_NEW(&arena, hadal_engine, 1);
    *engine = NULL;
    if (!g)
        return err_set(e, ERR_MEMORY, "no memory for an engine");
    g->options = *options;
    if (fake_script_read(&g->script, options->model, &arena, e) || fake_tokenizer_open(&g->tokenizer, e)) {
        arena_free(&arena);
        return -1;
    }
    g->arena = arena;
    g->n_vocab = (int)tokenizer_n_token(g->tokenizer);
    g->n_context = options->n_context ? options->n_context : g->script.n_context;
    if (options->progress)
        options->progress(options->progress_context, "load", 1, 1);
    *engine = g;
    return 0;
}

void hadal_engine_close(hadal_engine *engine)
{
    if (!engine)
        return;
    tokenizer_close(engine->tokenizer);
    struct arena arena = engine->arena;
    arena_free(&arena);
}

void hadal_engine_info(const hadal_engine *engine, struct hadal_engine_info *info)
{
    *info = (struct hadal_engine_info){.model_name = "scripted", .architecture = "fake", .dialect = "v41",
        .backend = engine->options.backend ? engine->options.backend : "cpu", .level = "none", .n_thread = 1,
        .n_context = engine->n_context, .n_vocab = engine->n_vocab, .bos_id = 256, .eos_id = 257, .pad_id = 258,
        .temperature = 1.0f, .top_p = 0.95f};
}

void hadal_engine_store_stats(const hadal_engine *engine, struct hadal_store_stats *stats)
{
    (void)engine;
    *stats = (struct hadal_store_stats){.disk_bytes = 0};
}

const struct tokenizer *hadal_engine_tokenizer(const hadal_engine *engine)
{
    return engine->tokenizer;
}

void hadal_engine_cancel(hadal_engine *engine)
{
    engine->is_cancelled = 1;
}

int hadal_model_describe(const char *model, int n_context, hadal_line_fn fn, void *fn_context, struct err *e)
{
    (void)n_context;
    if (model && !strcmp(model, "missing.gguf"))
        return err_set(e, ERR_IO, "missing.gguf: cannot open: No such file or directory");
    fn(fn_context, "model       scripted");
    return 0;
}

/* Waits in slices of 5 ms. */
static int wait_ms(hadal_engine *g, int ms, struct err *e)
{
    for (; ms > 0 && !g->is_cancelled; ms -= 5) {
        struct timespec t = {.tv_nsec = (ms < 5 ? ms : 5) * 1000000L};
        nanosleep(&t, NULL);
    }
    if (!g->is_cancelled)
        return 0;
    g->is_cancelled = 0;
    return err_set(e, ERR_CANCELLED, "cancelled");
}

/* ---- Script ---- */

/* The text after the last user token, up to the token that follows it. */
static int last_question(const hadal_session *s, struct buf *out, struct err *e)
{
    const struct tokenizer *t = s->engine->tokenizer;
    int32_t user = tokenizer_special(t, text_of(CONTROL_USER)), assistant = tokenizer_special(t, text_of(CONTROL_ASSISTANT));
    int begin = s->n, end;
    while (begin > 0 && s->ids[begin - 1] != user)
        begin--;
    for (end = begin; end < s->n && s->ids[end] != assistant; end++)
        ;
    return tokenizer_decode(t, s->ids + begin, (size_t)(end - begin), out, e);
}

static int plan_reply(hadal_session *s, struct err *e)
{
    const struct fake_script *script = &s->engine->script;
    struct buf question = {0}, answer = {0};
    s->n_prompt = s->n;
    s->reply.n = 0;
    s->rule = NULL;
    if (last_question(s, &question, e))
        return -1;
    const char *asked = question.data ? question.data : "";
    for (int i = 0; i < script->n_rule && !s->rule; i++)
        if (strstr(asked, script->rules[i].when))
            s->rule = &script->rules[i];
    if (!s->rule)
        buf_print(&answer, "You said: %s", asked);
    else if (s->rule->kind == FAKE_SAY)
        buf_text(&answer, s->rule->text);
    int failed = tokenizer_encode(s->engine->tokenizer, (struct text){answer.data, answer.n_byte}, TOKENIZER_SPECIALS,
        &s->reply, e);
    buf_free(&question);
    buf_free(&answer);
    return failed;
}

static uint32_t hash(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* The same numbers for the same sequence, however it came about. */
static void fill_logits(hadal_session *s)
{
    uint32_t state = 1;
    int at = s->n - s->n_prompt, is_babble = s->rule && s->rule->kind == FAKE_BABBLE;
    for (int i = s->n > 8 ? s->n - 8 : 0; i < s->n; i++)
        state = hash(state + (uint32_t)s->ids[i]);
    for (int i = 0; i < s->engine->n_vocab; i++)
        s->logits[i] = (float)(hash(state + (uint32_t)i) % 1000) * 0.001f;
    if (at < 0)
        return; /* going over an old sequence */
    if (is_babble && at < s->rule->n)
        for (int i = 'a'; i <= 'z'; i++)
            s->logits[i] += 20.0f;
    else
        s->logits[!is_babble && at < (int)s->reply.n ? s->reply.ids[at] : 257] += 20.0f;
}

/* ---- Sessions ---- */

int hadal_session_open(hadal_session **session, hadal_engine *engine, struct err *e)
{
    struct arena arena = {0};
    hadal_session *s = ARENA_NEW(&arena, hadal_session, 1);
    int32_t *ids = s ? ARENA_NEW(&arena, int32_t, (size_t)engine->n_context) : NULL;
    float *logits = ids ? ARENA_NEW(&arena, float, (size_t)engine->n_vocab) : NULL;
    int limit = engine->options.n_session ? engine->options.n_session : 1;
    *session = NULL;
    if (!logits || engine->n_open == limit) {
        arena_free(&arena);
        return logits ? err_set(e, ERR_ARGUMENT, "all %d sessions of this engine are open", limit)
                      : err_set(e, ERR_MEMORY, "no memory for a session");
    }
    *s = (hadal_session){.arena = arena, .engine = engine, .ids = ids, .logits = logits};
    engine->n_open++;
    *session = s;
    return 0;
}

void hadal_session_close(hadal_session *session)
{
    if (!session)
        return;
    session->engine->n_open--;
    token_list_free(&session->reply);
    struct arena arena = session->arena;
    arena_free(&arena);
}

static int extend(hadal_session *s, const int32_t *ids, int n, float *logits_all, struct err *e)
{
    hadal_engine *g = s->engine;
    if (s->n + n > g->n_context)
        return err_set(e, ERR_ARGUMENT, "%d tokens do not fit in a context of %d", s->n + n, g->n_context);
    for (int i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= g->n_vocab)
            return err_set(e, ERR_ARGUMENT, "token %d has id %d, outside the vocabulary of %d", i, (int)ids[i], g->n_vocab);
        s->ids[s->n++] = ids[i];
        fill_logits(s);
        if (logits_all)
            memcpy(logits_all + (size_t)i * (size_t)g->n_vocab, s->logits, (size_t)g->n_vocab * sizeof *s->logits);
    }
    return 0;
}

int hadal_session_append(hadal_session *session, const int32_t *ids, int n, float *logits_all, struct err *e)
{
    return extend(session, ids, n, logits_all, e);
}

int hadal_session_sync(
    hadal_session *session, const int32_t *ids, int n, struct hadal_sync_result *result, struct err *e)
{
    hadal_engine *g = session->engine;
    int n_kept = 0;
    g->is_cancelled = 0;
    if (n < 1 || n > g->n_context)
        return err_set(e, ERR_ARGUMENT, "%d tokens do not fit in a context of %d", n, g->n_context);
    while (n_kept < session->n && n_kept < n - 1 && session->ids[n_kept] == ids[n_kept])
        n_kept++;
    session->n = n_kept;
    for (int i = n_kept; i < n; i++) {
        if (wait_ms(g, g->script.prefill_ms, e))
            return -1;
        if (extend(session, ids + i, 1, NULL, e))
            return -1;
        if (g->options.progress)
            g->options.progress(g->options.progress_context, "prefill", (uint64_t)(i - n_kept + 1), (uint64_t)(n - n_kept));
    }
    if (plan_reply(session, e))
        return -1;
    fill_logits(session);
    if (result)
        *result = (struct hadal_sync_result){.n_kept = n_kept, .n_computed = n - n_kept};
    return 0;
}

int hadal_session_rewind(hadal_session *session, int length, struct err *e)
{
    if (length < 0 || length > session->n)
        return err_set(e, ERR_ARGUMENT, "cannot go back to %d of %d tokens", length, session->n);
    session->n = length;
    return 0;
}

const int32_t *hadal_session_ids(const hadal_session *session, int *n)
{
    *n = session->n;
    return session->ids;
}

const float *hadal_session_logits(const hadal_session *session)
{
    return session->n ? session->logits : NULL;
}

int hadal_engine_step(hadal_engine *engine, hadal_session *const *sessions, const int32_t *ids, int n, struct err *e)
{
    if (wait_ms(engine, engine->script.delay_ms, e))
        return -1;
    for (int i = 0; i < n; i++)
        if (extend(sessions[i], ids + i, 1, NULL, e))
            return -1;
    return 0;
}

int hadal_session_next(hadal_session *session, const struct hadal_sampling *sampling, int n_draft, int32_t *ids, int *n,
    struct err *e)
{
    hadal_engine *g = session->engine;
    int n_step = n_draft == 0 ? 1 : g->script.n_step;
    g->is_cancelled = 0;
    if (session->rule && session->rule->kind == FAKE_FAIL)
        return err_set(e, ERR_IO, "%s", session->rule->text);
    *n = 0;
    while (*n < n_step && session->n < g->n_context) {
        int32_t id = hadal_sample(sampling, session->logits, g->n_vocab, session->ids, session->n, session->n);
        if (wait_ms(g, g->script.delay_ms, e) || extend(session, &id, 1, NULL, e))
            return -1;
        ids[(*n)++] = id;
        if (id == 257)
            break;
    }
    session->stats.n_cycle++;
    session->stats.n_token += (uint64_t)*n;
    session->stats.n_row += (uint64_t)n_step;
    return *n ? 0 : err_set(e, ERR_ARGUMENT, "%d tokens do not fit in a context of %d", session->n + 1, g->n_context);
}

int hadal_engine_next(hadal_engine *engine, struct hadal_turn *turns, int n, struct err *e)
{
    (void)engine;
    for (int i = 0; i < n; i++) {
        struct hadal_turn *t = turns + i;
        if (hadal_session_next(t->session, t->sampling, t->n_draft, t->ids, &t->n, e))
            return -1;
    }
    return 0;
}

void hadal_session_draft_stats(const hadal_session *session, struct hadal_draft_stats *stats)
{
    *stats = session->stats;
}
