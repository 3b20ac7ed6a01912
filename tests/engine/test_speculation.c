/* test_speculation.c: proposals change neither a token nor a bit, whatever is proposed and however
 * tokens are chosen. */
#include "engine/story.h"
#include "generate/reject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N_PROMPT = 30, LENGTH = 110 };

static const struct hadal_sampling samplings[] = {
    {.temperature = 0},
    {.temperature = 0, .repetition_penalty = 1.3f},
    {.temperature = 0.6f, .top_p = 0.95f, .repetition_penalty = 1, .seed = 1},
    {.temperature = 1, .top_p = 1, .min_p = 0.05f, .repetition_penalty = 1, .seed = 2},
    {.temperature = 1,
        .top_k = 5,
        .top_p = 0.9f,
        .min_p = 0.02f,
        .presence_penalty = 0.5f,
        .frequency_penalty = 0.2f,
        .repetition_penalty = 1.1f,
        .seed = 3},
};

static void generate(const struct story *s, hadal_session *session, int n_draft)
{
    struct err e = {0};
    int32_t ids[HADAL_NEXT_MAX];
    char what[32];
    int length = N_PROMPT, n;
    snprintf(what, sizeof what, "at most %d drafts", n_draft);
    while (length + HADAL_NEXT_MAX <= s->n) {
        uint64_t n_calls = mem_n_calls();
        if (hadal_session_next(session, &s->options.sampling, n_draft, ids, &n, &e))
            fail_msg("%s", e.text);
        assert_int_equal(mem_n_calls(), n_calls); /* a step allocates nothing */
        assert_in_range(n, 1, n_draft < 0 ? HADAL_NEXT_MAX : n_draft + 1);
        assert_memory_equal(ids, s->ids + length, (size_t)n * sizeof *ids);
        for (int i = 0; i + 1 < n; i++)
            assert_int_not_equal(ids[i], 1); /* nothing follows an end token */
        length += n;
        story_check(s, session, what);
    }
}

static uint64_t sum(const uint64_t *values)
{
    uint64_t total = 0;
    for (int i = 0; i < HADAL_DRAFT_PLACES; i++)
        total += values[i];
    return total;
}

/* Tells the story's end with at most n_draft proposals and checks the counts. */
static struct hadal_draft_stats tell(
    const struct story *s, struct hadal_engine_options o, int n_draft)
{
    o.n_chunk = 32;
    hadal_engine *engine = story_engine(s, o);
    hadal_session *session = story_session(engine);
    struct hadal_draft_stats stats;
    story_append(s, session, N_PROMPT, 0);
    generate(s, session, n_draft);
    hadal_session_draft_stats(session, &stats);
    int length;
    hadal_session_ids(session, &length);
    assert_int_equal(stats.n_token, length - N_PROMPT);
    assert_int_equal(stats.n_row, stats.n_cycle + sum(stats.n_proposed));
    assert_int_equal(stats.n_token, stats.n_cycle + sum(stats.n_accepted));
    assert_in_range(stats.n_copied_accepted, 0, stats.n_copied);
    assert_in_range(stats.n_copied, 0, o.has_no_copies ? 0 : sum(stats.n_proposed));
    assert_true(stats.seconds > 0);
    story_append(s, session, s->n - length, 1); /* and the state is the same */
    hadal_session_close(session);
    hadal_engine_close(engine);
    return stats;
}

/* Samplings first, first + step, ...; drafts from -1 to most. */
static void check_model(const char *model, size_t first, size_t step, int most)
{
    for (size_t i = first; i < sizeof samplings / sizeof *samplings; i += step) {
        struct story *s = story_new(&(struct story_options){
            .model = model, .n_prompt = N_PROMPT, .n = LENGTH, .sampling = samplings[i]});
        uint64_t n_accepted = 0;
        for (int n_draft = -1; n_draft <= most; n_draft++)
            n_accepted +=
                sum(tell(s, (struct hadal_engine_options){.has_no_copies = n_draft % 2}, n_draft)
                        .n_accepted);
        print_message("%s, temperature %.1f: %d drafts accepted\n", model,
            (double)samplings[i].temperature, (int)n_accepted);
        if (most && strstr(model, "narrow"))
            assert_true(n_accepted > 10);
        story_free(s);
    }
}

static void drafts_change_nothing(void **state)
{
    (void)state;
    check_model("toy:v41:narrow", 0, 1, 5);
}

static void drafts_that_fail_change_nothing(void **state)
{
    (void)state;
    check_model("toy:v41", 0, 3, 2);
}

static void models_without_drafts_generate_too(void **state)
{
    (void)state;
    check_model("toy:v4:narrow", 0, 4, 0);
}

/* A prompt that repeats itself: matches are found all the time, right and wrong ones. */
static void copies_change_nothing(void **state)
{
    static const char *const models[] = {"toy:v41:narrow", "toy:v4:narrow"};
    static const int limits[] = {-1, 2, 16};
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct story *s = story_new(&(struct story_options){.model = models[i % 2],
            .n_prompt = N_PROMPT,
            .n = LENGTH,
            .period = 3 + 4 * (i / 2),
            .sampling = samplings[i / 2]});
        uint64_t n_copied = 0, n_accepted = 0;
        for (int k = 0; k < 6; k++) {
            struct hadal_draft_stats stats =
                tell(s, (struct hadal_engine_options){.has_no_drafts = k / 3}, limits[k % 3]);
            n_copied += stats.n_copied;
            n_accepted += stats.n_copied_accepted;
        }
        print_message("%s, period %d: %d of %d copies accepted\n", models[i % 2], s->options.period,
            (int)n_accepted, (int)n_copied);
        assert_true(n_copied > 20);
        story_free(s);
    }
}

/* Greedy drafts give the same text at any temperature, the rejection rule where nothing is left to
 * chance. */
static void rules_change_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samplings / sizeof *samplings; i++) {
        struct story *s = story_new(&(struct story_options){
            .model = "toy:v41:narrow", .n_prompt = N_PROMPT, .n = LENGTH, .sampling = samplings[i]});
        tell(s, (struct hadal_engine_options){.draft_rule = HADAL_DRAFT_GREEDY}, 5);
        if (samplings[i].temperature <= 0)
            tell(s, (struct hadal_engine_options){.draft_rule = HADAL_DRAFT_REJECTION}, 5);
        story_free(s);
    }
}

/* The token behind the next one, over many seeds: its distance from the model's own distribution,
 * in standard deviations of that distance (chi-square's cube root is nearly normal). */
static double second_token_distance(struct story *s, hadal_session *session, int n_seed)
{
    struct hadal_sampling sampling = {.temperature = 0.25f, .top_p = 1, .repetition_penalty = 1};
    struct err e = {0};
    int32_t ids[HADAL_NEXT_MAX], first = s->ids[N_PROMPT];
    double count[256] = {0}, sum = 0, rest = 0, rest_count = 0;
    float p[256];
    int n, n_bin = 0, n_seen = 0;
    assert_in_range(s->n_vocab, 1, 256);
    sample_probabilities(&sampling, s->logits + (int64_t)N_PROMPT * s->n_vocab, s->n_vocab, NULL, 0, p);
    for (int i = 0; i < n_seed; i++) {
        sampling.seed = (uint64_t)i;
        assert_int_equal(hadal_session_sync(session, s->ids, N_PROMPT, NULL, &e), 0);
        assert_int_equal(hadal_session_next(session, &sampling, 2, ids, &n, &e), 0);
        if (ids[0] != first)
            continue;
        if (n == 1)
            assert_int_equal(hadal_session_next(session, &sampling, 0, ids + 1, &n, &e), 0);
        count[ids[1]]++;
        n_seen++;
    }
    assert_true(n_seen > 100);
    for (int v = 0; v < s->n_vocab; v++) {
        double expected = (double)p[v] * n_seen, off = count[v] - expected;
        int is_common = expected >= 5;
        n_bin += is_common;
        sum += is_common ? off * off / expected : 0;
        rest += is_common ? 0 : expected;
        rest_count += is_common ? 0 : count[v];
    }
    if (rest > 1) {
        sum += (rest_count - rest) * (rest_count - rest) / rest;
        n_bin++;
    }
    double free = n_bin - 1, spread = 2 / (9 * free);
    assert_true(free >= 1);
    return (cbrt(sum / free) - (1 - spread)) / sqrt(spread);
}

static void rejection_keeps_the_distribution(void **state)
{
    struct story *s = story_new(&(struct story_options){.model = "toy:v41:narrow",
        .n_prompt = N_PROMPT,
        .n = N_PROMPT + 1}); /* the likeliest token first */
    hadal_engine *engine = story_engine(s,
        (struct hadal_engine_options){.draft_rule = HADAL_DRAFT_REJECTION, .has_no_copies = 1});
    hadal_session *session = story_session(engine);
    struct hadal_draft_stats stats;
    (void)state;
    double found = second_token_distance(s, session, 4000);
    hadal_session_draft_stats(session, &stats);
    print_message("%.2f deviations, %d of %d drafts kept\n", found, (int)stats.n_accepted[0],
        (int)stats.n_proposed[0]);
    assert_true(found < 3.1);
    assert_true(stats.n_accepted[0] > 0 && stats.n_accepted[0] < stats.n_proposed[0]);
    hadal_session_close(session);
    hadal_engine_close(engine);
    story_free(s);
}

/* To the last token of the context, whatever is proposed. */
static void drafts_end_with_the_context(void **state)
{
    enum { CONTEXT = 60 };
    struct story *s = story_new(
        &(struct story_options){.model = "toy:v41:narrow", .n_prompt = N_PROMPT, .n = CONTEXT});
    (void)state;
    for (int n_draft = -1; n_draft <= 5; n_draft += 2) {
        hadal_engine *engine = story_engine(s, (struct hadal_engine_options){.n_context = CONTEXT});
        hadal_session *session = story_session(engine);
        struct err e = {0};
        int32_t ids[HADAL_NEXT_MAX];
        int length = N_PROMPT, n;
        story_append(s, session, N_PROMPT, 0);
        while (length < CONTEXT) {
            if (hadal_session_next(session, &s->options.sampling, n_draft, ids, &n, &e))
                fail_msg("%s", e.text);
            length += n;
            assert_true(length <= CONTEXT);
            story_check(s, session, "near the end");
        }
        assert_int_equal(
            hadal_session_next(session, &s->options.sampling, n_draft, ids, &n, &e), -1);
        hadal_session_close(session);
        hadal_engine_close(engine);
    }
    story_free(s);
}

/* Drafting after a rewind, and by several sessions in turn, which share the scratch. */
static void sessions_draft_in_turn(void **state)
{
    enum { N_SEQ = 3 };
    struct story *s[N_SEQ];
    hadal_session *session[N_SEQ];
    int32_t ids[HADAL_NEXT_MAX];
    struct err e = {0};
    int n, length;
    (void)state;
    for (int i = 0; i < N_SEQ; i++)
        s[i] = story_new(&(struct story_options){.model = "toy:v41:narrow",
            .n_prompt = 10 + 7 * i,
            .n = 120,
            .seed = (uint32_t)i,
            .sampling = samplings[i * 2]});
    hadal_engine *engine =
        story_engine(s[0], (struct hadal_engine_options){.n_session = N_SEQ, .n_thread = 2});
    for (int i = 0; i < N_SEQ; i++) {
        session[i] = story_session(engine);
        story_append(s[i], session[i], s[i]->options.n_prompt, 0);
    }
    for (int round = 0; round < 16; round++) {
        for (int i = 0; i < N_SEQ; i++) {
            hadal_session_ids(session[i], &length);
            if (length + HADAL_NEXT_MAX > s[i]->n)
                continue;
            if (round % 8 == 7) { /* the user edits */
                assert_int_equal(hadal_session_rewind(session[i], length - 3 - i, &e), 0);
                story_append(s[i], session[i], 2 + i, 1);
            }
            assert_int_equal(hadal_session_next(session[i], &s[i]->options.sampling,
                                 1 + (round + i) % 5, ids, &n, &e),
                0);
            story_check(s[i], session[i], "in turn");
        }
    }
    for (int i = 0; i < N_SEQ; i++) {
        hadal_session_close(session[i]);
        story_free(s[i]);
    }
    hadal_engine_close(engine);
}

/* Turns of several sessions in one batch, some drafting, some not, some that expect what comes (or
 * think so): each gets its own story. */
static void sessions_draft_together(void **state)
{
    enum { N_SEQ = 7, N_ROUND = 40 };
    static const int limits[N_SEQ] = {-1, 3, 0, -1, 16, 5, -1};
    struct story *s[N_SEQ];
    struct hadal_turn turn[N_SEQ];
    struct err e = {0};
    uint64_t random = 1;
    int n_several = 0;
    (void)state;
    for (int i = 0; i < N_SEQ; i++)
        s[i] = story_new(&(struct story_options){.model = "toy:v41:narrow",
            .n_prompt = 10 + 7 * i,
            .n = 150,
            .period = i % 3 ? 0 : 5,
            .seed = (uint32_t)i,
            .sampling = samplings[i % 5]});
    hadal_engine *engine =
        story_engine(s[0], (struct hadal_engine_options){.n_session = N_SEQ, .n_thread = 2});
    for (int i = 0; i < N_SEQ; i++) {
        turn[i] = (struct hadal_turn){.session = story_session(engine),
            .sampling = &s[i]->options.sampling,
            .n_draft = limits[i]};
        story_append(s[i], turn[i].session, s[i]->options.n_prompt, 0);
    }
    for (int round = 0; round < N_ROUND; round++) {
        int first = story_random(&random, N_SEQ), n = 1 + story_random(&random, N_SEQ - first);
        for (int i = 0; i < N_SEQ; i++) {
            int length, n_wrong = story_random(&random, 4);
            hadal_session_ids(turn[i].session, &length);
            if (length + HADAL_NEXT_MAX > s[i]->n)
                assert_int_equal(hadal_session_rewind(turn[i].session, length - 1, &e), 0);
            hadal_session_ids(turn[i].session, &length);
            if (!hadal_session_logits(turn[i].session)) {
                assert_int_equal(hadal_session_rewind(turn[i].session, length - 20, &e), 0);
                story_append(s[i], turn[i].session, 1, 0);
                hadal_session_ids(turn[i].session, &length);
            }
            turn[i].expected = s[i]->ids + length + n_wrong / 3;
            turn[i].n_expected = i % 2 ? 8 : 0;
        }
        if (hadal_engine_next(engine, turn + first, n, &e))
            fail_msg("%s", e.text);
        for (int i = first; i < first + n; i++) {
            assert_in_range(turn[i].n, 1, limits[i] < 0 ? HADAL_NEXT_MAX : limits[i] + 1);
            n_several += turn[i].n > 1;
            story_check(s[i], turn[i].session, "together");
        }
    }
    assert_true(n_several > 20);
    struct hadal_draft_stats stats;
    hadal_session_draft_stats(turn[1].session, &stats);
    assert_true(stats.n_expected_accepted > 0 && stats.n_expected_accepted < stats.n_expected);
    struct hadal_turn twice[2] = {turn[0], turn[0]}; /* refused, and nothing changes */
    assert_int_equal(hadal_engine_next(engine, twice, 2, &e), -1);
    story_check(s[0], turn[0].session, "refused");
    for (int i = 0; i < N_SEQ; i++) {
        hadal_session_close(turn[i].session);
        story_free(s[i]);
    }
    hadal_engine_close(engine);
}

int main(int argc, char **argv)
{
    story_use_backend(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drafts_change_nothing),
        cmocka_unit_test(drafts_that_fail_change_nothing),
        cmocka_unit_test(models_without_drafts_generate_too),
        cmocka_unit_test(copies_change_nothing),
        cmocka_unit_test(rules_change_nothing),
        cmocka_unit_test(rejection_keeps_the_distribution),
        cmocka_unit_test(drafts_end_with_the_context),
        cmocka_unit_test(sessions_draft_in_turn),
        cmocka_unit_test(sessions_draft_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
