/* story.c: see story.h. */
#include "engine/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

int story_random(uint64_t *state, int n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

static const char *backend;

void story_use_backend(const char *name)
{
    backend = name;
}

const char *story_backend(void)
{
    return backend;
}

hadal_engine *story_engine(const struct story *s, struct hadal_engine_options o)
{
    hadal_engine *engine = NULL;
    struct err e = {0};
    o.model = s->options.model;
    if (!o.backend)
        o.backend = backend;
    if (!o.n_context)
        o.n_context = STORY_CONTEXT;
    if (!o.n_thread)
        o.n_thread = 1;
    if (hadal_engine_open(&engine, &o, &e) && e.code != ERR_UNSUPPORTED)
        fail_msg("%s", e.text);
    return engine;
}

hadal_session *story_session(hadal_engine *engine)
{
    hadal_session *session = NULL;
    struct err e = {0};
    assert_non_null(engine);
    if (hadal_session_open(&session, engine, &e))
        fail_msg("%s", e.text);
    return session;
}

static void write_prompt(struct story *s)
{
    uint64_t state = s->options.seed + 1;
    int period = s->options.period;
    for (int i = 0; i < s->options.n_prompt; i++)
        s->ids[i] = period && i >= period ? s->ids[i - period] : story_random(&state, s->n_vocab);
}

static void tell(struct story *s, hadal_session *session)
{
    struct err e = {0};
    for (int i = 0; i < s->n; i++) {
        if (i >= s->options.n_prompt)
            s->ids[i] = hadal_sample(
                &s->options.sampling, hadal_session_logits(session), s->n_vocab, s->ids, i, i);
        if (hadal_session_append(session, s->ids + i, 1, NULL, &e))
            fail_msg("%s", e.text);
        memcpy(s->logits + (int64_t)i * s->n_vocab, hadal_session_logits(session),
            (size_t)s->n_vocab * sizeof *s->logits);
    }
}

struct story *story_new(const struct story_options *o)
{
    struct arena arena = {0};
    struct story *s = ARENA_NEW(&arena, struct story, 1);
    struct hadal_engine_info info;
    s->options = *o;
    hadal_engine *engine =
        story_engine(s, (struct hadal_engine_options){.level = "portable", .has_no_drafts = 1});
    hadal_session *session = story_session(engine);
    hadal_engine_info(engine, &info);
    s->n = o->n;
    s->n_vocab = info.n_vocab;
    s->ids = ARENA_NEW(&arena, int32_t, (size_t)s->n);
    s->logits = ARENA_NEW(&arena, float, (size_t)s->n *(size_t)s->n_vocab);
    s->arena = arena;
    write_prompt(s);
    tell(s, session);
    hadal_session_close(session);
    hadal_engine_close(engine);
    return s;
}

void story_free(struct story *s)
{
    struct arena arena = s->arena; /* the story itself lives in it */
    arena_free(&arena);
}

static void compare(const struct story *s, int pos, const float *logits, const char *what)
{
    const float *want = s->logits + (int64_t)pos * s->n_vocab;
    assert_non_null(logits);
    for (int i = 0; i < s->n_vocab; i++)
        if (memcmp(logits + i, want + i, sizeof *want))
            fail_msg("%s, %s: position %d logit %d is %.9g, one row at a time it is %.9g",
                s->options.model, what, pos, i, (double)logits[i], (double)want[i]);
}

void story_check(const struct story *s, const hadal_session *session, const char *what)
{
    int n;
    const int32_t *ids = hadal_session_ids(session, &n);
    assert_in_range(n, 1, s->n);
    for (int i = 0; i < n; i++)
        if (ids[i] != s->ids[i])
            fail_msg("%s, %s: token %d is %d, one row at a time it is %d", s->options.model, what,
                i, (int)ids[i], (int)s->ids[i]);
    compare(s, n - 1, hadal_session_logits(session), what);
}

void story_append(const struct story *s, hadal_session *session, int n, int has_all)
{
    struct arena arena = {0};
    struct err e = {0};
    int first;
    hadal_session_ids(session, &first);
    assert_true(first + n <= s->n);
    float *all = has_all ? ARENA_NEW(&arena, float, (size_t)n *(size_t)s->n_vocab) : NULL;
    if (hadal_session_append(session, s->ids + first, n, all, &e))
        fail_msg("%s", e.text);
    for (int r = 0; all && r < n; r++)
        compare(s, first + r, all + (int64_t)r * s->n_vocab, "append");
    story_check(s, session, "append");
    arena_free(&arena);
}
