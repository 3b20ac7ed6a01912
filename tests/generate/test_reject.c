/* test_reject.c: the classic rule gives the target's distribution: chi-square over a million tokens. */
#include "generate/reject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { N_VOCAB = 12, N_DRAW = 1000000 };

/* Of a chi-square variable with N_VOCAB - 1 degrees of freedom one in a thousand is larger. */
static const double limit = 31.26;

static const float target[N_VOCAB] = {2, 1.5f, 1, 0.5f, 0, 0, -0.5f, -1, -1.5f, -2, 1, 0.3f};
static const float drafter[N_VOCAB] = {0, 2.5f, 1, 0.5f, 1, 0, -1, -1, -2, 0, 0.2f, 1};

enum rule { CLASSIC, ALWAYS_KEEPS };

/* One token: a draft from q (or the certain one), kept or replaced. */
static int32_t emit(const float *p, const float *q, int pos, int certain, enum rule rule)
{
    float rest[N_VOCAB];
    int32_t draft = certain;
    if (certain < 0)
        draft = reject_draw(q, N_VOCAB, reject_random(1, pos, REJECT_DRAW));
    const float *from = certain < 0 ? q : NULL;
    if (rule == ALWAYS_KEEPS || reject_keeps(p, from, draft, reject_random(1, pos, REJECT_KEEP)))
        return draft;
    memcpy(rest, p, sizeof rest);
    return reject_replace(rest, from, N_VOCAB, draft, reject_random(1, pos, REJECT_REPLACE));
}

/* How far the counts of N_DRAW tokens are from what p says. */
static double distance(const int64_t count[N_VOCAB], const float *p)
{
    double sum = 0;
    for (int v = 0; v < N_VOCAB; v++) {
        double expected = (double)p[v] * N_DRAW, off = (double)count[v] - expected;
        assert_true(expected > 0 || !count[v]);
        sum += expected > 0 ? off * off / expected : 0;
    }
    return sum;
}

static double chi_square(const struct hadal_sampling *s, int certain, enum rule rule)
{
    int64_t count[N_VOCAB] = {0};
    float p[N_VOCAB], q[N_VOCAB];
    sample_probabilities(s, target, N_VOCAB, NULL, 0, p);
    sample_probabilities(s, drafter, N_VOCAB, NULL, 0, q);
    for (int i = 0; i < N_DRAW; i++)
        count[emit(p, q, i, certain, rule)]++;
    return distance(count, p);
}

static const struct hadal_sampling samplings[] = {{.temperature = 1, .top_p = 1, .seed = 1},
    {.temperature = 0.6f, .top_p = 1, .seed = 2},
    {.temperature = 1, .top_p = 0.8f, .seed = 3},
    {.temperature = 1, .top_p = 1, .top_k = 5, .min_p = 0.1f, .seed = 4}};

static void drafts_keep_the_distribution(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samplings / sizeof *samplings; i++) {
        double found = chi_square(samplings + i, -1, CLASSIC);
        print_message("temperature %.1f: chi-square %.1f, limit %.1f\n",
            (double)samplings[i].temperature, found, limit);
        assert_true(found < limit);
    }
}

static void copies_keep_the_distribution(void **state)
{
    (void)state;
    for (int32_t certain = 0; certain < N_VOCAB; certain += 5)
        assert_true(chi_square(samplings, certain, CLASSIC) < limit);
}

/* The same test finds fault with a rule that is wrong. */
static void the_test_can_fail(void **state)
{
    (void)state;
    assert_true(chi_square(samplings, -1, ALWAYS_KEEPS) > 100 * limit);
}

/* The distribution is the one that hadal_sample draws from. */
static void probabilities_are_the_samplers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samplings / sizeof *samplings; i++) {
        int64_t count[N_VOCAB] = {0};
        float p[N_VOCAB];
        sample_probabilities(samplings + i, target, N_VOCAB, NULL, 0, p);
        for (int pos = 0; pos < N_DRAW / 20; pos++)
            count[hadal_sample(samplings + i, target, N_VOCAB, NULL, 0, pos)] += 20;
        assert_true(distance(count, p) < 20 * limit);
    }
}

static void greedy_is_certain(void **state)
{
    struct hadal_sampling greedy = {.temperature = 0};
    float p[N_VOCAB];
    (void)state;
    sample_probabilities(&greedy, target, N_VOCAB, NULL, 0, p);
    for (int v = 0; v < N_VOCAB; v++)
        assert_true(p[v] == (float)(v == 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drafts_keep_the_distribution),
        cmocka_unit_test(copies_keep_the_distribution),
        cmocka_unit_test(the_test_can_fail),
        cmocka_unit_test(probabilities_are_the_samplers),
        cmocka_unit_test(greedy_is_certain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
