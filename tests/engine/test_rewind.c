/* test_rewind.c: going back and going on is the same, to the bit, as never having been there; and a
 * step allocates nothing.
 *
 * Rows that are undone leave their traces in rings, open groups and appended rows. Here every
 * length of detour up to the free limit is taken at lengths that lie on both sides of every
 * boundary, and random walks do what is left.
 */
#include "engine/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { FREE_ROWS = 32, LENGTH_V41 = 180 };

/* Appends n tokens that are not the story's and goes back. */
static void detour(const struct story *s, hadal_session *session, int n, uint64_t *random)
{
    int32_t ids[FREE_ROWS * 2];
    struct err e = {0};
    int length;
    hadal_session_ids(session, &length);
    for (int i = 0; i < n; i++)
        ids[i] = story_random(random, s->n_vocab);
    if (hadal_session_append(session, ids, n, NULL, &e) ||
        hadal_session_rewind(session, length, &e))
        fail_msg("%s", e.text);
    assert_null(hadal_session_logits(session));
}

static struct story *new_story(const char *model, int n)
{
    return story_new(&(struct story_options){.model = model, .n_prompt = n, .n = n, .seed = 3});
}

static void every_detour_at_boundaries(void **state)
{
    /* v4: group of 4, selection from 68, group of 128, ring of 160, twice each */
    static const int v4[] = {
        1, 3, 4, 5, 67, 68, 126, 127, 128, 129, 159, 160, 161, 255, 256, 257, 319, 320, 321};
    /* v41: pairs, window 16, selection 13 and 26, candidates 25, group ring of 34, ring of 48 */
    static const int v41[] = {
        1, 2, 12, 13, 15, 16, 17, 24, 25, 26, 33, 34, 35, 47, 48, 49, 95, 96, 97, 144, 150};
    static const struct {
        const char *model;
        const int *length;
        size_t n;
    } cases[] = {
        {"toy:v4", v4, sizeof v4 / sizeof *v4}, {"toy:v41", v41, sizeof v41 / sizeof *v41}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct story *s = new_story(cases[i].model, cases[i].length[cases[i].n - 1] + 6);
        hadal_engine *engine = story_engine(s, (struct hadal_engine_options){.n_chunk = 32});
        hadal_session *session = story_session(engine);
        uint64_t random = 5;
        int n = 0;
        for (size_t b = 0; b < cases[i].n; b++) {
            story_append(s, session, cases[i].length[b] - n, 0);
            n = cases[i].length[b];
            for (int r = 1 + (int)(b % 7); r <= FREE_ROWS;
                 r += 7) /* every length at every seventh boundary */
                detour(s, session, r, &random);
        }
        story_append(s, session, 6, 1);
        hadal_session_close(session);
        hadal_engine_close(engine);
        story_free(s);
    }
}

/* A detour before every single token: 1, 2, ... 32, 1, 2 ... rows. */
static void a_detour_before_every_token(void **state)
{
    struct story *s = new_story("toy:v41", 70);
    hadal_engine *engine = story_engine(s, (struct hadal_engine_options){.n_chunk = 32});
    hadal_session *session = story_session(engine);
    uint64_t random = 11;
    (void)state;
    story_append(s, session, 1, 1);
    for (int i = 1; i < s->n; i++) {
        detour(s, session, 1 + (i * 7) % FREE_ROWS, &random);
        story_append(s, session, 1, 1);
    }
    hadal_session_close(session);
    hadal_engine_close(engine);
    story_free(s);
}

/* Within 32 rows nothing is computed again; further back everything is, with the same bits. */
static void deep_rewinds_recompute(void **state)
{
    struct story *s = new_story("toy:v41", LENGTH_V41);
    hadal_engine *engine = story_engine(s, (struct hadal_engine_options){.n_chunk = 32});
    hadal_session *session = story_session(engine);
    struct hadal_sync_result result;
    struct err e = {0};
    (void)state;
    for (int back = 1; back <= 80; back += back < 30 ? 6 : back < 36 ? 1 : 20) {
        assert_int_equal(hadal_session_sync(session, s->ids, 150, NULL, &e), 0);
        assert_int_equal(hadal_session_rewind(session, 150 - back, &e), 0);
        assert_int_equal(hadal_session_sync(session, s->ids, LENGTH_V41, &result, &e), 0);
        if (back <= FREE_ROWS)
            assert_int_equal(result.n_kept, 150 - back);
        story_check(s, session, "after a rewind");
        assert_int_equal(hadal_session_rewind(session, 0, &e), 0);
    }
    hadal_session_close(session);
    hadal_engine_close(engine);
    story_free(s);
}

/* ---- Random walks ---- */

struct walk {
    const struct story *s;
    hadal_session *session;
    uint64_t random;
    int n;
};

static void step_on(struct walk *w, int most)
{
    int left = w->s->n - w->n, n = 1 + story_random(&w->random, most);
    story_append(w->s, w->session, n < left ? n : left, story_random(&w->random, 2));
}

static void step_back(struct walk *w, int most)
{
    struct err e = {0};
    int back = 1 + story_random(&w->random, most);
    if (back >= w->n)
        return;
    if (hadal_session_rewind(w->session, w->n - back, &e))
        fail_msg("%s", e.text);
    story_append(w->s, w->session, 1, 1);
}

static void step_next(struct walk *w)
{
    struct err e = {0};
    int32_t ids[HADAL_NEXT_MAX];
    int n, n_draft = story_random(&w->random, HADAL_NEXT_MAX + 1) - 1;
    if (w->n < w->s->options.n_prompt || w->n + HADAL_NEXT_MAX > w->s->n)
        return;
    if (hadal_session_next(w->session, &w->s->options.sampling, n_draft, ids, &n, &e))
        fail_msg("%s", e.text);
    story_check(w->s, w->session, "next");
}

static void walk(struct walk *w, int n_step)
{
    struct err e = {0};
    for (int i = 0; i < n_step; i++) {
        hadal_session_ids(w->session, &w->n);
        switch (story_random(&w->random, 8)) {
        case 0:
            if (w->n + 64 < w->s->n)
                detour(w->s, w->session, 1 + story_random(&w->random, 48), &w->random);
            if (w->n)
                story_append(w->s, w->session, w->n < w->s->n, 1);
            break;
        case 1:
            step_back(w, 40);
            break;
        case 2:
            step_on(w, 70);
            break;
        case 3:
            step_on(w, 5);
            break;
        default:
            step_next(w);
        }
        hadal_session_ids(w->session, &w->n);
        if (w->n == w->s->n &&
            hadal_session_rewind(w->session, story_random(&w->random, w->s->n - 1) + 1, &e))
            fail_msg("%s", e.text);
        if (w->n == w->s->n)
            story_append(w->s, w->session, 1, 1);
    }
}

static void walk_over(const char *model, int n_chunk, int n, int n_step)
{
    static const struct hadal_sampling samplings[] = {
        {0}, {.temperature = 0.8f, .top_p = 0.95f, .repetition_penalty = 1, .seed = 9}};
    for (int i = 0; i < 2; i++) {
        struct story *s = story_new(&(struct story_options){
            .model = model, .n_prompt = 20, .n = n, .sampling = samplings[i]});
        hadal_engine *engine = story_engine(s, (struct hadal_engine_options){.n_chunk = n_chunk});
        struct walk w = {
            .s = s, .session = story_session(engine), .random = (uint64_t)(n_chunk + i)};
        story_append(s, w.session, 20, 0);
        walk(&w, n_step);
        hadal_session_close(w.session);
        hadal_engine_close(engine);
        story_free(s);
    }
}

static void random_walks_give_the_same_bits(void **state)
{
    (void)state;
    walk_over("toy:v41:narrow", 32, 200, 100);
    walk_over("toy:v41:narrow", 100, 200, 30);
    walk_over("toy:v4:narrow", 32, 280, 25);
}

/* ---- Memory ---- */

static void a_step_allocates_nothing(void **state)
{
    static const char *const models[] = {"toy:v4:narrow", "toy:v41:narrow"}, *const backends[] = {
                                                                                 "cpu", "ref"};
    (void)state;
    if (story_backend())
        skip(); /* it compares with what the processor computed */
    for (int i = 0; i < 4; i++) {
        struct story *s = new_story(models[i / 2], 40);
        hadal_engine *engine =
            story_engine(s, (struct hadal_engine_options){
                                .backend = backends[i % 2], .n_chunk = 32, .n_thread = 2});
        hadal_session *session = story_session(engine);
        struct hadal_sampling sampling = {
            .temperature = 1, .top_p = 0.9f, .presence_penalty = 0.1f, .repetition_penalty = 1};
        int32_t ids[HADAL_NEXT_MAX], id = 5;
        struct err e = {0};
        int n;
        story_append(s, session, 40, 0);
        uint64_t before = mem_n_calls();
        for (int step = 0; step < 14; step++) {
            assert_int_equal(hadal_session_next(session, &sampling, step % 7 - 1, ids, &n, &e), 0);
            assert_int_equal(hadal_session_append(session, ids, n, NULL, &e), 0);
            assert_int_equal(hadal_engine_step(engine, &session, &id, 1, &e), 0);
        }
        assert_int_equal(mem_n_calls(), before);
        hadal_session_close(session);
        hadal_engine_close(engine);
        story_free(s);
    }
}

int main(int argc, char **argv)
{
    story_use_backend(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_detour_at_boundaries),
        cmocka_unit_test(a_detour_before_every_token),
        cmocka_unit_test(deep_rewinds_recompute),
        cmocka_unit_test(random_walks_give_the_same_bits),
        cmocka_unit_test(a_step_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
