/* test_draft_policy.c: how many proposals are checked and when a source rests, for made-up machines
 * and texts. */
#include "generate/draft_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { N_PLACE = DRAFT_MAX_ROWS - 1, WINDOW = 256 };

/* A machine on which a step of n rows takes base + n * row seconds. */
static struct step_time machine(double base, double row)
{
    struct step_time t = {.seconds = {0}};
    for (int n = 1; n <= STEP_TIME_MAX; n++)
        step_time_add(&t, n, base + n * row);
    return t;
}

static int choose(const struct step_time *t, const float *p, int n, double paid, double stake)
{
    struct draft_offer offer = {p, n, stake, -1};
    draft_policy_choose(t, &offer, 1, (struct draft_costs){.paid = paid});
    return offer.n_chosen;
}

static void longest_when_rows_are_free(void **state)
{
    float sure[N_PLACE];
    struct step_time t = machine(1, 0);
    (void)state;
    for (int i = 0; i < N_PLACE; i++)
        sure[i] = 0.9f;
    for (int n = 0; n <= N_PLACE; n++)
        assert_int_equal(choose(&t, sure, n, 0.1, 1), n);
}

static void none_when_rows_cost_a_step(void **state)
{
    static const float unsure[] = {0.5f, 0.9f, 0.9f, 0.9f, 0.9f};
    struct step_time t = machine(0, 1);
    (void)state;
    assert_int_equal(choose(&t, unsure, 5, 0, 100), 0);
    assert_int_equal(choose(&t, unsure, 5, 10, 100), 0); /* a pass already made changes nothing */
}

static void none_before_a_step_was_timed(void **state)
{
    static const float sure[] = {1, 1, 1};
    struct step_time t = {.seconds = {0}};
    (void)state;
    assert_int_equal(choose(&t, sure, 3, 0, 100), 0);
}

static void no_more_than_the_stake(void **state)
{
    static const float sure[] = {1, 1, 1, 1, 1, 1};
    struct step_time t = machine(0.5, 0.5);
    (void)state;
    for (int n = 0; n <= 6; n++)
        assert_int_equal(choose(&t, sure, 6, 0, 0.5 * n + 0.1), n);
}

static void what_is_still_to_pay_counts(void **state)
{
    static const float sure[] = {1, 1};
    struct step_time t = machine(1, 0);
    struct draft_offer offer = {sure, 2, 10, -1};
    (void)state;
    draft_policy_choose(&t, &offer, 1, (struct draft_costs){.paid = 0.1, .more = 1.9});
    assert_int_equal(offer.n_chosen, 2);
    draft_policy_choose(&t, &offer, 1, (struct draft_costs){.paid = 0.1, .more = 2.1});
    assert_int_equal(offer.n_chosen, 0);
}

/* Tokens per second when sequence i has n[i] proposals checked. */
static double rate_of(const struct step_time *t, float p[3][4], const int n[3])
{
    double tokens = 3;
    int n_row = 3;
    for (int i = 0; i < 3; i++) {
        double survival = 1;
        for (int j = 0; j < n[i]; j++, n_row++)
            tokens += survival *= (double)p[i][j];
    }
    return tokens / step_time_of(t, n_row);
}

static void make_probabilities(float p[3][4], uint64_t *random)
{
    for (int i = 0; i < 12; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        p[i / 4][i % 4] = (float)(*random >> 40) * 0x1p-24f;
    }
}

/* Of all ways to share the rows among three sequences none promises more. */
static void chooses_the_best_rate_of_all(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        float p[3][4];
        struct step_time t = machine(0.1 + round % 7, 0.05 * (round % 11));
        make_probabilities(p, &random);
        struct draft_offer offer[3] = {{p[0], 4, 1e3, -1}, {p[1], 4, 1e3, -1}, {p[2], 4, 1e3, -1}};
        double best = draft_policy_choose(&t, offer, 3, (struct draft_costs){.paid = 0});
        int chosen[3] = {offer[0].n_chosen, offer[1].n_chosen, offer[2].n_chosen};
        assert_float_equal(rate_of(&t, p, chosen), best, 1e-9 * best);
        for (int code = 0; code < 125; code++)
            assert_true(best >= rate_of(&t, p, (int[3]){code % 5, code / 5 % 5, code / 25}) * (1 - 1e-6));
    }
}

/* On a machine where the third row is dear and those behind it are not. */
static void may_end_at_the_first_drop(void **state)
{
    static const float p[] = {0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f};
    static const double seconds[] = {1, 1.1, 1.9, 1.95, 2, 2.05, 2.1};
    struct step_time t = {.seconds = {0}};
    struct draft_offer offer = {p, 6, 100, -1};
    (void)state;
    for (int n = 1; n <= 7; n++)
        step_time_add(&t, n, seconds[n - 1]);
    draft_policy_choose(&t, &offer, 1, (struct draft_costs){.ends_at_drop = 1});
    assert_int_equal(offer.n_chosen, 1);
    draft_policy_choose(&t, &offer, 1, (struct draft_costs){.ends_at_drop = 0});
    assert_int_equal(offer.n_chosen, 6);
}

/* A source that gives nothing, on every machine: what it can lose in any window. */
static void windows_lose_little(void **state)
{
    static const double costs[] = {0.05, 0.2, 0.7, 1.5};
    (void)state;
    for (int c = 0; c < 4; c++) {
        struct draft_policy policy = draft_policy_start();
        double lost[WINDOW] = {0}, sum = 0, worst = 0;
        int n_tried = 0;
        for (int i = 0; i < 20 * WINDOW; i++) {
            int tries = draft_purse_may_spend(&policy.stages);
            double loss = tries ? costs[c] : 0;
            sum += loss - lost[i % WINDOW];
            lost[i % WINDOW] = loss;
            worst = sum > worst ? sum : worst;
            n_tried += tries;
            draft_purse_settle(&policy.stages, 1, -loss);
        }
        assert_true(worst <= 0.02 * WINDOW);
        assert_true(n_tried > 1); /* it is tried again */
    }
}

static void gains_end_the_rest(void **state)
{
    struct draft_policy policy = draft_policy_start();
    struct draft_purse *p = &policy.stages;
    (void)state;
    while (draft_purse_may_spend(p))
        draft_purse_settle(p, 1, -0.5);
    int first_rest = 0, second_rest = 0;
    for (; !draft_purse_may_spend(p); first_rest++)
        draft_purse_settle(p, 1, 0);
    while (draft_purse_may_spend(p))
        draft_purse_settle(p, 1, -0.5);
    for (; !draft_purse_may_spend(p); second_rest++)
        draft_purse_settle(p, 1, 0);
    assert_true(second_rest > 3 * first_rest / 2);
    for (int i = 0; i < 20; i++)
        draft_purse_settle(p, 2, 0.5);
    assert_true(p->wage == p->full_wage && p->credit == p->most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_when_rows_are_free),
        cmocka_unit_test(none_when_rows_cost_a_step),
        cmocka_unit_test(none_before_a_step_was_timed),
        cmocka_unit_test(no_more_than_the_stake),
        cmocka_unit_test(what_is_still_to_pay_counts),
        cmocka_unit_test(chooses_the_best_rate_of_all),
        cmocka_unit_test(may_end_at_the_first_drop),
        cmocka_unit_test(windows_lose_little),
        cmocka_unit_test(gains_end_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
