/* test_cancel.c: a cancellation ends the call under way and no other, and costs no text. */
#include "engine/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

enum { N_PROMPT = 30, LENGTH = 200 };

static struct story *tell(void)
{
    return story_new(&(struct story_options){.model = "toy:v41:narrow",
        .n_prompt = N_PROMPT,
        .n = LENGTH,
        .sampling = {.temperature = 1, .top_p = 0.9f, .repetition_penalty = 1, .seed = 4}});
}

/* With nothing under way a cancellation is forgotten. */
static void nothing_to_cancel(void **state)
{
    struct story *s = tell();
    hadal_engine *engine = story_engine(s, (struct hadal_engine_options){.n_chunk = 32});
    hadal_session *session = story_session(engine);
    int32_t ids[HADAL_NEXT_MAX];
    struct err e = {0};
    int n;
    (void)state;
    hadal_engine_cancel(engine);
    story_append(s, session, N_PROMPT, 0);
    hadal_engine_cancel(engine);
    assert_int_equal(
        hadal_session_next(session, &s->options.sampling, -1, ids, &n, &e), 0);
    story_check(s, session, "after a cancellation of nothing");
    hadal_engine_cancel(engine);
    assert_int_equal(hadal_session_sync(session, s->ids, 60, NULL, &e), 0);
    hadal_engine_cancel(engine);
    assert_int_equal(hadal_engine_step(engine, &session, s->ids + 60, 1, &e), 0);
    story_check(s, session, "after three of them");
    hadal_session_close(session);
    hadal_engine_close(engine);
    story_free(s);
}

struct stopper {
    hadal_engine *engine;
    uint64_t after; /* rows */
};

static void stop_after(void *context, const char *what, uint64_t done, uint64_t total)
{
    struct stopper *s = context;
    (void)what, (void)total;
    if (s->engine && done >= s->after)
        hadal_engine_cancel(s->engine);
}

/* What was computed when a prompt was cancelled stays. */
static void prompts_keep_their_beginning(void **state)
{
    struct story *s = tell();
    struct stopper stopper = {.after = 64};
    hadal_engine *engine = story_engine(s, (struct hadal_engine_options){
        .n_chunk = 32, .progress = stop_after, .progress_context = &stopper});
    hadal_session *session = story_session(engine);
    struct hadal_sync_result result;
    struct err e = {0};
    int n;
    (void)state;
    stopper.engine = engine;
    assert_int_equal(hadal_session_sync(session, s->ids, 150, NULL, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    hadal_session_ids(session, &n);
    assert_int_equal(n, 64);
    assert_null(hadal_session_logits(session));
    stopper.engine = NULL;
    assert_int_equal(hadal_session_sync(session, s->ids, 150, &result, &e), 0);
    assert_int_equal(result.n_kept, 64);
    story_check(s, session, "a prompt in two parts");
    hadal_session_close(session);
    hadal_engine_close(engine);
    story_free(s);
}

struct pest {
    hadal_engine *engine;
    atomic_int is_over;
};

static void *cancel_again_and_again(void *context)
{
    struct pest *p = context;
    while (!atomic_load(&p->is_over))
        hadal_engine_cancel(p->engine);
    return NULL;
}

/* A session whose generation is cancelled all the time still tells its story. */
static void generation_goes_on_with_the_same_text(void **state)
{
    struct story *s = tell();
    hadal_engine *engine = story_engine(s, (struct hadal_engine_options){.n_thread = 1});
    hadal_session *session = story_session(engine);
    struct pest pest = {.engine = engine};
    pthread_t thread;
    int32_t ids[HADAL_NEXT_MAX];
    struct err e = {0};
    int n, length = N_PROMPT, n_cancelled = 0;
    (void)state;
    story_append(s, session, N_PROMPT, 0);
    for (int i = 0; length + HADAL_NEXT_MAX <= LENGTH; i++) {
        atomic_store(&pest.is_over, 0);
        assert_int_equal(pthread_create(&thread, NULL, cancel_again_and_again, &pest), 0);
        int failed = hadal_session_next(session, &s->options.sampling, i % 2 ? 5 : -1, ids, &n, &e);
        atomic_store(&pest.is_over, 1);
        pthread_join(thread, NULL);
        story_check(s, session, "while cancelled");
        if (failed) {
            assert_int_equal(e.code, ERR_CANCELLED);
            n_cancelled++;
            if (hadal_session_next(session, &s->options.sampling, i % 2 ? 5 : -1, ids, &n, &e))
                fail_msg("%s", e.text);
        }
        hadal_session_ids(session, &length);
    }
    assert_true(n_cancelled > 0);
    story_append(s, session, s->n - length, 1);
    hadal_session_close(session);
    hadal_engine_close(engine);
    story_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_to_cancel),
        cmocka_unit_test(prompts_keep_their_beginning),
        cmocka_unit_test(generation_goes_on_with_the_same_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
