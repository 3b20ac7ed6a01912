/* session.c: sequences of tokens and what of them is already computed. See hadal.h.
 *
 * A sequence is extended in chunks; its rows have the same bits for every way of cutting it. Going back within the
 * slack of the rings is setting a length; going back further makes the next extension start over.
 */
#include "engine/engine.h"

#include "base/clock.h"

#include <string.h>

int hadal_session_open(hadal_session **session, hadal_engine *engine, struct err *e)
{
    int slot = 0;
    *session = NULL;
    while (slot < engine->options.n_session && engine->slot[slot])
        slot++;
    if (slot == engine->options.n_session)
        return err_set(e, ERR_ARGUMENT, "all %d sessions of this engine are open", slot);
    struct arena arena = {0};
    hadal_session *s = ARENA_NEW(&arena, hadal_session, 1);
    int32_t *ids = s ? ARENA_NEW(&arena, int32_t, (size_t)engine->options.n_context) : NULL;
    size_t n_vocab = (size_t)engine->model.config->n_vocab;
    int rejects = engine->options.draft_rule == HADAL_DRAFT_REJECTION;
    size_t n_row = 2 + (rejects ? 1 + (size_t)engine->model.config->draft_block : 0);
    float *logits = ids ? ARENA_NEW(&arena, float, n_row *n_vocab) : NULL;
    struct copies copies = {.is_stale = 0};
    if (!logits || (!engine->options.has_no_copies && copies_open(&copies, &arena, engine->options.n_context))) {
        arena_free(&arena);
        return err_set(e, ERR_MEMORY, "no memory for a session of %d tokens", engine->options.n_context);
    }
    *s = (hadal_session){.engine = engine, .arena = arena, .slot = slot, .ids = ids, .logits = logits,
        .next_logits = logits + n_vocab, .replacement = -1, .check_p = rejects ? logits + 2 * n_vocab : NULL,
        .draft_p = rejects ? logits + 3 * n_vocab : NULL, .copies = copies, .policy = draft_policy_start(), .expected_share = 0.9f};
    engine->slot[slot] = s;
    *session = s;
    return 0;
}

void hadal_session_close(hadal_session *session)
{
    if (!session)
        return;
    session->engine->slot[session->slot] = NULL;
    struct arena arena = session->arena; /* the session itself lives in it */
    arena_free(&arena);
}

const int32_t *hadal_session_ids(const hadal_session *session, int *n)
{
    *n = session->n;
    return session->ids;
}

const float *hadal_session_logits(const hadal_session *session)
{
    return session->has_logits ? session->logits : NULL;
}

static int check_ids(const hadal_session *s, const int32_t *ids, int n, int total, struct err *e)
{
    int n_vocab = s->engine->model.config->n_vocab, n_context = s->engine->options.n_context;
    if (n < 0 || total > n_context)
        return err_set(e, ERR_ARGUMENT, "%d tokens do not fit in a context of %d", total, n_context);
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            return err_set(e, ERR_ARGUMENT, "token %d has id %d, outside the vocabulary of %d", i, (int)ids[i], n_vocab);
    return 0;
}

void session_note_rows(hadal_session *s, int end)
{
    if (s->high < end)
        s->high = end;
}

/* Rows [first, first + n) of a sequence; the logits of the last n_out of them are wanted. */
struct span {
    int first, n, n_out;
    enum batch_part part;
};

static int run_rows(hadal_session *s, struct span at, float *logits, struct err *e)
{
    hadal_engine *g = s->engine;
    int n_vocab = g->model.config->n_vocab;
    session_note_rows(s, at.first + at.n);
    for (int r = 0; r < at.n; r++)
        engine_add_row(g, r, s, at.first + r);
    for (int i = 0; i < at.n_out; i++)
        g->batch.out_row[i] = at.n - at.n_out + i;
    if (engine_run(g, at.n, at.n_out, at.part, e))
        return -1;
    for (int i = 0; i < at.n_out; i++)
        if (engine_read_logits(g, i, logits + (int64_t)i * n_vocab, e))
            return -1;
    return 0;
}

static void tell_progress(const hadal_session *s, int first, int end)
{
    const struct hadal_engine_options *o = &s->engine->options;
    if (o->progress && end - first > o->n_chunk)
        o->progress(o->progress_context, "prefill", (uint64_t)(s->n_valid - first), (uint64_t)(end - first));
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Rows up to `end`, of which the last one's logits may be wanted. */
static int read_exactly(hadal_session *s, int end, float *last, struct err *e)
{
    int first = s->n_valid;
    while (s->n_valid < end) {
        int n = smaller(end - s->n_valid, s->engine->options.n_chunk);
        int n_out = last && s->n_valid + n == end;
        if (run_rows(s, (struct span){s->n_valid, n, n_out, BATCH_WHOLE}, last, e))
            return -1;
        s->n_valid += n;
        tell_progress(s, first, end);
    }
    return 0;
}

/* The same by bounded replay. The decoder's windows are always made anew, so that what an earlier turn left in them does
 * not matter. */
static int read_by_replay(hadal_session *s, int end, float *last, struct err *e)
{
    int n_chunk = s->engine->options.n_chunk, window = s->engine->model.config->window, first = s->n_valid;
    while (s->n_valid < end) {
        int n = smaller(end - s->n_valid, n_chunk);
        if (run_rows(s, (struct span){s->n_valid, n, 0, BATCH_ENCODE}, NULL, e))
            return -1;
        s->n_valid += n;
        tell_progress(s, first, end);
    }
    s->is_cut = 1; /* until the windows are complete */
    s->n_staged = 0;
    s->first = end > window ? end - window : 0;
    for (int at = s->first; at < end;) {
        int n = smaller(end - at, n_chunk);
        if (run_rows(s, (struct span){at, n, last && at + n == end, BATCH_REPLAY}, last, e))
            return -1;
        at += n;
    }
    s->is_cut = 0;
    return 0;
}

static int is_behind(const hadal_session *s, int end)
{
    return s->n_valid < end || s->is_cut;
}

static int read_prompt(hadal_session *s, int end, float *last, struct err *e)
{
    if (!is_behind(s, end))
        return 0;
    return s->engine->options.has_bounded_replay ? read_by_replay(s, end, last, e) : read_exactly(s, end, last, e);
}

/* Computes what is missing. Of the last n_out rows the logits go to `all` if given, the last row's always to s->logits. */
static int catch_up(hadal_session *s, int n_out, float *all, struct err *e)
{
    int n_vocab = s->engine->model.config->n_vocab, first_out = all ? s->n - n_out : s->n;
    if (read_prompt(s, first_out, first_out == s->n ? s->logits : NULL, e))
        return -1;
    while (s->n_valid < s->n) {
        int n = smaller(smaller(s->n - s->n_valid, s->engine->options.n_chunk), FORWARD_MAX_OUT);
        float *to = all + (int64_t)(s->n_valid - first_out) * n_vocab;
        if (run_rows(s, (struct span){s->n_valid, n, n, BATCH_WHOLE}, to, e))
            return -1;
        s->n_valid += n;
        tell_progress(s, first_out, s->n);
    }
    if (all && n_out)
        memcpy(s->logits, all + (int64_t)(n_out - 1) * n_vocab, (size_t)n_vocab * sizeof *all);
    s->has_logits = 1;
    return 0;
}

int hadal_session_rewind(hadal_session *s, int length, struct err *e)
{
    hadal_engine *g = s->engine;
    if (length < 0 || length > s->n)
        return err_set(e, ERR_ARGUMENT, "cannot rewind a sequence of %d tokens to %d", s->n, length);
    if (length == s->n)
        return 0;
    s->n = length;
    s->has_logits = 0;
    s->replacement = -1;
    s->is_cut = g->options.has_bounded_replay;
    copies_cut(&s->copies, length);
    if (length < s->n_staged)
        s->n_staged = 0;
    if (s->n_valid <= length)
        return 0;
    if (kv_can_rewind(&g->kv, g->model.config, g->model.plan, s->high, length)) {
        s->n_valid = length;
    } else {
        s->n_valid = s->high = 0;
    }
    return 0;
}

static int append(hadal_session *s, const int32_t *ids, int n, float *logits_all, struct err *e)
{
    if (check_ids(s, ids, n, s->n + n, e))
        return -1;
    if (!n)
        return 0;
    memcpy(s->ids + s->n, ids, (size_t)n * sizeof *ids);
    s->n += n;
    s->has_logits = 0;
    s->replacement = -1;
    if (!catch_up(s, n, logits_all, e))
        return 0;
    s->n = s->n_valid; /* what was computed stays; the rest is forgotten */
    copies_cut(&s->copies, s->n);
    return -1;
}

int hadal_session_append(hadal_session *s, const int32_t *ids, int n, float *logits_all, struct err *e)
{
    engine_start(s->engine);
    return append(s, ids, n, logits_all, e);
}

int hadal_session_sync(hadal_session *s, const int32_t *ids, int n, struct hadal_sync_result *result, struct err *e)
{
    double start = clock_seconds();
    engine_start(s->engine);
    if (n < 1)
        return err_set(e, ERR_ARGUMENT, "a sequence needs at least one token");
    if (check_ids(s, ids, n, n, e))
        return -1;
    int n_common = 0;
    while (n_common < s->n && n_common < n - 1 && s->ids[n_common] == ids[n_common])
        n_common++;
    if (hadal_session_rewind(s, n_common, e))
        return -1;
    int n_kept = s->n_valid;
    if (append(s, ids + n_common, n - n_common, NULL, e))
        return -1;
    if (result)
        *result = (struct hadal_sync_result){n_kept, n - n_kept, clock_seconds() - start};
    return 0;
}

static int check_step(hadal_engine *g, hadal_session *const *sessions, const int32_t *ids, int n, struct err *e)
{
    if (n < 1 || n > g->options.n_session || n > FORWARD_MAX_OUT)
        return err_set(e, ERR_ARGUMENT, "a step of %d sequences: from 1 to %d are possible", n, g->options.n_session);
    for (int i = 0; i < n; i++) {
        if (sessions[i]->engine != g)
            return err_set(e, ERR_ARGUMENT, "sequence %d belongs to another engine", i);
        if (check_ids(sessions[i], &ids[i], 1, sessions[i]->n + 1, e))
            return err_wrap(e, "sequence %d", i);
        for (int j = 0; j < i; j++)
            if (sessions[j] == sessions[i])
                return err_set(e, ERR_ARGUMENT, "sequence %d appears twice in one step", i);
        if (is_behind(sessions[i], sessions[i]->n) && catch_up(sessions[i], 0, NULL, e))
            return -1;
    }
    return 0;
}

int hadal_engine_step(hadal_engine *g, hadal_session *const *sessions, const int32_t *ids, int n, struct err *e)
{
    engine_start(g);
    if (check_step(g, sessions, ids, n, e))
        return -1;
    for (int i = 0; i < n; i++) {
        hadal_session *s = sessions[i];
        s->ids[s->n] = ids[i];
        engine_add_row(g, i, s, s->n);
        g->batch.out_row[i] = i;
        session_note_rows(s, s->n + 1);
    }
    if (engine_run(g, n, n, BATCH_WHOLE, e))
        return -1;
    for (int i = 0; i < n; i++) {
        if (engine_read_logits(g, i, sessions[i]->logits, e))
            return -1;
        sessions[i]->n_valid = ++sessions[i]->n;
        sessions[i]->replacement = -1;
        sessions[i]->has_logits = 1;
    }
    return 0;
}
