/* test_replay.c: bounded replay (v41 spec 14.3): what it may depend on, and what not. */
#include "engine/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { WINDOW = 16, N_PROMPT = 150, N_FOLLOW = 40 };

static struct story *new_story(int n)
{
    return story_new(&(struct story_options){.model = "toy:v41", .n_prompt = N_PROMPT, .n = n, .seed = 4});
}

static hadal_engine *new_engine(const struct story *s, struct hadal_engine_options o)
{
    o.has_bounded_replay = 1;
    return story_engine(s, o);
}

static void sync(hadal_session *session, const int32_t *ids, int n)
{
    struct err e = {0};
    if (hadal_session_sync(session, ids, n, NULL, &e))
        fail_msg("%s", e.text);
}

/* Every logit of the steps that follow the prompt enters a sum whose every bit counts. */
static uint64_t follow(const struct story *s, hadal_engine *engine, hadal_session *session)
{
    struct err e = {0};
    uint64_t sum = 0;
    for (int i = 0; i <= N_FOLLOW; i++) {
        const uint32_t *bits = (const void *)hadal_session_logits(session);
        for (int v = 0; v < s->n_vocab; v++)
            sum = (sum ^ bits[v]) * 1099511628211u;
        if (hadal_engine_step(engine, &session, s->ids + N_PROMPT + i, 1, &e))
            fail_msg("%s", e.text);
    }
    return sum;
}

/* The whole prompt lies in the window: nothing is left out. */
static void short_prompts_are_exact(void **state)
{
    struct story *s = new_story(N_PROMPT);
    hadal_engine *engine = new_engine(s, (struct hadal_engine_options){.n_chunk = 32});
    (void)state;
    for (int n = 1; n <= WINDOW; n++) {
        hadal_session *session = story_session(engine);
        sync(session, s->ids, n);
        story_check(s, session, "a prompt within the window");
        hadal_session_close(session);
    }
    hadal_engine_close(engine);
    story_free(s);
}

static void chunks_and_threads_do_not_matter(void **state)
{
    static const struct hadal_engine_options options[] = {{.n_chunk = 32}, {.n_chunk = 33, .n_thread = 2}, {.n_chunk = 64},
        {.n_chunk = 256, .n_thread = 4}, {.n_chunk = 64, .backend = "ref"}};
    struct story *s = new_story(N_PROMPT + N_FOLLOW + 1);
    uint64_t first = 0;
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        hadal_engine *engine = new_engine(s, options[i]);
        hadal_session *session = story_session(engine);
        sync(session, s->ids, N_PROMPT);
        assert_memory_not_equal(hadal_session_logits(session), s->logits + (size_t)(N_PROMPT - 1) * (size_t)s->n_vocab,
            (size_t)s->n_vocab * sizeof(float)); /* it does leave something out */
        uint64_t sum = follow(s, engine, session);
        first = i ? first : sum;
        assert_int_equal(sum, first);
        hadal_session_close(session);
        hadal_engine_close(engine);
    }
    story_free(s);
}

/* What the session held before, and how far it went back, leaves no trace. */
static void earlier_turns_do_not_matter(void **state)
{
    struct story *s = new_story(N_PROMPT + N_FOLLOW + 1);
    hadal_engine *engine = new_engine(s, (struct hadal_engine_options){.n_chunk = 32, .n_session = 2});
    hadal_session *fresh = story_session(engine), *session = story_session(engine);
    (void)state;
    sync(fresh, s->ids, N_PROMPT);
    uint64_t sum = follow(s, engine, fresh);
    for (int n = 20; n <= N_PROMPT; n += 13) {
        int32_t other[N_PROMPT];
        memcpy(other, s->ids, (size_t)n * sizeof *other);
        for (int i = n - 7; i < n; i++)
            other[i] = (other[i] + 1) % s->n_vocab;
        sync(session, other, n);
        follow(s, engine, session);
        sync(session, s->ids, N_PROMPT);
        assert_int_equal(follow(s, engine, session), sum);
    }
    hadal_session_close(fresh);
    hadal_session_close(session);
    hadal_engine_close(engine);
    story_free(s);
}

/* Going back to the end of a shorter prompt, even by one token, is having read that prompt. */
static void rewinding_is_reading_less(void **state)
{
    struct story *s = new_story(N_PROMPT + N_FOLLOW + 1);
    hadal_engine *engine = new_engine(s, (struct hadal_engine_options){.n_chunk = 32});
    hadal_session *session = story_session(engine);
    struct err e = {0};
    (void)state;
    sync(session, s->ids, N_PROMPT);
    uint64_t sum = follow(s, engine, session);
    for (int back = 1; back <= 40; back += 3) {
        sync(session, s->ids, N_PROMPT + back);
        assert_int_equal(hadal_session_rewind(session, N_PROMPT, &e), 0);
        assert_int_equal(hadal_engine_step(engine, &session, s->ids + N_PROMPT, 1, &e), 0);
        sync(session, s->ids, N_PROMPT);
        assert_int_equal(follow(s, engine, session), sum);
    }
    hadal_session_close(session);
    hadal_engine_close(engine);
    story_free(s);
}

static void generate(const struct story *s, const struct hadal_sampling *sampling, int n_draft, int32_t *ids)
{
    hadal_engine *engine = new_engine(s, (struct hadal_engine_options){.n_chunk = 32});
    hadal_session *session = story_session(engine);
    struct err e = {0};
    sync(session, s->ids, N_PROMPT);
    for (int n = 0, n_now; n < N_FOLLOW; n += n_now)
        if (hadal_session_next(session, sampling, n_draft, ids + n, &n_now, &e))
            fail_msg("%s", e.text);
    hadal_session_close(session);
    hadal_engine_close(engine);
}

static void drafts_do_not_matter(void **state)
{
    static const struct hadal_sampling sampling[] = {{.top_p = 1, .repetition_penalty = 1},
        {.temperature = 1, .top_p = .9f, .repetition_penalty = 1, .seed = 3}};
    struct story *s = new_story(N_PROMPT);
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int32_t plain[N_FOLLOW + HADAL_NEXT_MAX], drafted[N_FOLLOW + HADAL_NEXT_MAX];
        generate(s, &sampling[i], 0, plain);
        generate(s, &sampling[i], 5, drafted);
        assert_memory_equal(plain, drafted, N_FOLLOW * sizeof *plain);
    }
    story_free(s);
}

static void models_without_a_decoder_are_refused(void **state)
{
    hadal_engine *engine;
    struct err e = {0};
    (void)state;
    assert_int_equal(hadal_engine_open(&engine, &(struct hadal_engine_options){.model = "toy:v4", .has_bounded_replay = 1}, &e), -1);
    assert_non_null(strstr(e.text, "no decoder half"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_prompts_are_exact),
        cmocka_unit_test(chunks_and_threads_do_not_matter),
        cmocka_unit_test(earlier_turns_do_not_matter),
        cmocka_unit_test(rewinding_is_reading_less),
        cmocka_unit_test(drafts_do_not_matter),
        cmocka_unit_test(models_without_a_decoder_are_refused),
    };
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
