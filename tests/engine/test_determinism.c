/* test_determinism.c: a row's logits are the same bits for every way of computing it: instruction
 * set, threads, chunks, company in the batch, who had the slot before. Compared with one row at a
 * time, one thread, portable C (story.h).
 *
 * Lengths cross every ring, group and selection limit of the toys: v4 window 128, groups of 4 and
 * 128, selection from 68 tokens, rings of 160 rows and more; v41 window 16, groups of 2, selection
 * from 13, candidates from 25, rings of 48.
 */
#include "engine/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { N_STORY = 2, LENGTH_V4 = 270, LENGTH_V41 = 110 };

static struct story *stories[N_STORY];

static int tell_stories(void **state)
{
    (void)state;
    stories[0] = story_new(
        &(struct story_options){.model = "toy:v4", .n_prompt = LENGTH_V4, .n = LENGTH_V4});
    stories[1] = story_new(
        &(struct story_options){.model = "toy:v41", .n_prompt = LENGTH_V41, .n = LENGTH_V41});
    return 0;
}

static int forget_stories(void **state)
{
    (void)state;
    for (int i = 0; i < N_STORY; i++)
        story_free(stories[i]);
    return 0;
}

/* The whole story in pieces of n_piece; 0 when this machine has no such level. */
static int retell(const struct story *s, struct hadal_engine_options o, int n_piece, int has_all)
{
    hadal_engine *engine = story_engine(s, o);
    if (!engine)
        return 0;
    hadal_session *session = story_session(engine);
    for (int first = 0; first < s->n; first += n_piece)
        story_append(s, session, s->n - first < n_piece ? s->n - first : n_piece, has_all);
    hadal_session_close(session);
    hadal_engine_close(engine);
    return 1;
}

static void levels_give_the_same_bits(void **state)
{
    static const char *const levels[] = {"portable", "avx2", "avx512", "neon"};
    (void)state;
    for (int i = 0; i < N_STORY; i++) {
        for (size_t l = 0; l < sizeof levels / sizeof *levels; l++)
            if (!retell(stories[i], (struct hadal_engine_options){.level = levels[l]}, 97, 1) && !i)
                print_message("level %s does not run here\n", levels[l]);
    }
}

static void reference_gives_the_same_bits(void **state)
{
    (void)state;
    if (story_backend())
        skip(); /* a device's bits are its own */
    for (int i = 0; i < N_STORY; i++)
        assert_true(retell(stories[i], (struct hadal_engine_options){.backend = "ref"}, 97, 1));
}

static void threads_give_the_same_bits(void **state)
{
    static const int n_thread[] = {2, 4};
    (void)state;
    for (int i = 0; i < N_STORY; i++)
        for (size_t t = 0; t < sizeof n_thread / sizeof *n_thread; t++)
            assert_true(
                retell(stories[i], (struct hadal_engine_options){.n_thread = n_thread[t]}, 111, 1));
}

static void chunks_give_the_same_bits(void **state)
{
    static const int n_chunk[] = {64, 127, 128, 129}, n_piece[] = {3, 33};
    (void)state;
    for (int i = 0; i < N_STORY; i++) {
        for (size_t c = 0; c < sizeof n_chunk / sizeof *n_chunk; c++)
            assert_true(retell(stories[i], (struct hadal_engine_options){.n_chunk = n_chunk[c]},
                stories[i]->n, 0));
        for (size_t p = 0; p < sizeof n_piece / sizeof *n_piece; p++)
            assert_true(
                retell(stories[i], (struct hadal_engine_options){.n_chunk = 32}, n_piece[p], 0));
        assert_true(
            retell(stories[i], (struct hadal_engine_options){.n_chunk = 512}, stories[i]->n, 1));
    }
}

static void drafts_on_or_off_give_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < N_STORY; i++)
        assert_true(retell(stories[i], (struct hadal_engine_options){.has_no_drafts = 1}, 61, 1));
}

/* ---- Several sequences ---- */

enum { N_SEQ = 5, N_STEP = 30 };

/* Sequences of other tokens and other lengths, so that they cross the limits at other steps. */
static void tell_several(const char *model, struct story **s, int first)
{
    for (int i = 0; i < N_SEQ; i++) {
        int n = N_STEP + i * first;
        s[i] = story_new(&(struct story_options){
            .model = model, .n_prompt = n, .n = n, .seed = (uint32_t)i + 7});
    }
}

static void step_together(const char *model, int first, int n_thread)
{
    struct story *s[N_SEQ];
    hadal_session *session[N_SEQ], *order[N_SEQ];
    int32_t ids[N_SEQ];
    struct err e = {0};
    tell_several(model, s, first);
    hadal_engine *engine =
        story_engine(s[0], (struct hadal_engine_options){.n_session = N_SEQ, .n_thread = n_thread});
    for (int i = 0; i < N_SEQ; i++) {
        session[i] = story_session(engine);
        if (i)
            story_append(s[i], session[i], i * first, 0);
    }
    for (int step = 0; step < N_STEP; step++) {
        int n = 1 + step % N_SEQ; /* changing company */
        for (int r = 0; r < n; r++) {
            int i = (r + step) % N_SEQ, length;
            hadal_session_ids(session[i], &length);
            order[r] = session[i];
            ids[r] = s[i]->ids[length];
        }
        if (hadal_engine_step(engine, order, ids, n, &e))
            fail_msg("%s", e.text);
        for (int r = 0; r < n; r++)
            story_check(s[(r + step) % N_SEQ], order[r], "step");
    }
    for (int i = 0; i < N_SEQ; i++) {
        hadal_session_close(session[i]);
        story_free(s[i]);
    }
    hadal_engine_close(engine);
}

static void company_gives_the_same_bits(void **state)
{
    (void)state;
    step_together("toy:v4", 27, 1);
    step_together("toy:v41", 9, 2);
}

/* ---- Sessions ---- */

static void a_used_slot_gives_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < N_STORY; i++) {
        hadal_engine *engine =
            story_engine(stories[i], (struct hadal_engine_options){.n_chunk = 32});
        hadal_session *session = story_session(engine);
        story_append(stories[i], session, 90, 0);
        struct err e = {0};
        hadal_session *other = NULL;
        assert_int_equal(hadal_session_open(&other, engine, &e), -1);
        assert_int_equal(e.code, ERR_ARGUMENT);
        hadal_session_close(session);
        session = story_session(engine);
        assert_null(hadal_session_logits(session));
        for (int first = 0; first < 42; first += 7)
            story_append(stories[i], session, 7, 1);
        hadal_session_close(session);
        hadal_engine_close(engine);
    }
}

static void sync_keeps_the_common_prefix(void **state)
{
    const struct story *s = stories[1];
    hadal_engine *engine = story_engine(s, (struct hadal_engine_options){.n_chunk = 32});
    hadal_session *session = story_session(engine);
    struct hadal_sync_result result;
    struct err e = {0};
    int32_t other[110];
    (void)state;
    assert_int_equal(hadal_session_sync(session, s->ids, 100, &result, &e), 0);
    assert_int_equal(result.n_kept, 0);
    assert_int_equal(result.n_computed, 100);
    story_check(s, session, "first sync");
    assert_int_equal(hadal_session_sync(session, s->ids, 100, &result, &e), 0);
    assert_int_equal(result.n_kept, 99); /* the last row is run for its logits */
    story_check(s, session, "same sync");
    memcpy(other, s->ids, sizeof other);
    other[90] = (other[90] + 1) % s->n_vocab;
    assert_int_equal(hadal_session_sync(session, other, 110, &result, &e), 0);
    assert_int_equal(result.n_kept, 90);
    assert_int_equal(hadal_session_sync(session, s->ids, 110, &result, &e), 0);
    assert_int_equal(result.n_kept, 90);
    story_check(s, session, "edited within the slack");
    assert_int_equal(
        hadal_session_sync(session, s->ids, 40, &result, &e), 0); /* too far back for the rings */
    assert_int_equal(result.n_kept, 0);
    story_check(s, session, "edited beyond the slack");
    hadal_session_close(session);
    hadal_engine_close(engine);
}

static void wrong_arguments_change_nothing(void **state)
{
    const struct story *s = stories[1];
    hadal_engine *engine = story_engine(s, (struct hadal_engine_options){.n_context = 64});
    hadal_session *session = story_session(engine);
    int32_t bad[2] = {1, s->n_vocab}, id[HADAL_NEXT_MAX];
    struct hadal_sampling greedy = {0};
    struct err e = {0};
    int n;
    (void)state;
    assert_int_equal(hadal_session_next(session, &greedy, 0, id, &n, &e), -1);
    story_append(s, session, 60, 0);
    assert_int_equal(hadal_session_append(session, bad, 2, NULL, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    assert_int_equal(hadal_session_append(session, s->ids, 5, NULL, &e), -1);
    assert_int_equal(hadal_session_rewind(session, 61, &e), -1);
    assert_int_equal(hadal_session_rewind(session, -1, &e), -1);
    assert_int_equal(hadal_session_sync(session, s->ids, 0, NULL, &e), -1);
    assert_int_equal(hadal_session_sync(session, s->ids, 65, NULL, &e), -1);
    hadal_session *twice[2] = {session, session};
    assert_int_equal(hadal_engine_step(engine, twice, s->ids, 2, &e), -1);
    story_check(s, session, "after refusals");
    story_append(s, session, 4, 1);
    assert_int_equal(hadal_session_next(session, &greedy, 0, id, &n, &e), -1); /* full */
    hadal_session_close(session);
    hadal_engine_close(engine);
}

int main(int argc, char **argv)
{
    story_use_backend(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_give_the_same_bits),
        cmocka_unit_test(reference_gives_the_same_bits),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(chunks_give_the_same_bits),
        cmocka_unit_test(drafts_on_or_off_give_the_same_bits),
        cmocka_unit_test(company_gives_the_same_bits),
        cmocka_unit_test(a_used_slot_gives_the_same_bits),
        cmocka_unit_test(sync_keeps_the_common_prefix),
        cmocka_unit_test(wrong_arguments_change_nothing),
    };
    return cmocka_run_group_tests(tests, tell_stories, forget_stories);
}
