/* test_draft_policy.c: how many drafts are checked, and when drafting rests, for made-up machines
 * and confidences. */
#include "generate/draft_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { N_PLACE = DRAFT_MAX_ROWS - 1, LONGEST_PAUSE = 1024 };

/* A machine on which a check of T rows takes base + T * row seconds, seen so often that the means
 * have settled. */
static struct draft_policy machine(double base, double row, double draft_seconds)
{
    struct draft_policy p = {.draft_seconds = draft_seconds};
    for (int n_row = 1; n_row <= DRAFT_MAX_ROWS; n_row++)
        draft_policy_checked(&p, n_row, base + n_row * row);
    return p;
}

static double rate(const struct draft_policy *p, const float *probability, int n)
{
    double tokens = 1, survival = 1;
    for (int j = 0; j < n; j++)
        tokens += survival *= (double)probability[j];
    return tokens / (p->check_seconds[n + 1] + p->draft_seconds);
}

static void longest_when_rows_are_free(void **state)
{
    float sure[N_PLACE];
    struct draft_policy p = machine(1, 0, 0.1);
    (void)state;
    for (int i = 0; i < N_PLACE; i++)
        sure[i] = 0.9f;
    for (int n = 0; n <= N_PLACE; n++)
        assert_int_equal(draft_policy_length(&p, sure, n, 1), n);
}

static void none_when_rows_cost_a_step(void **state)
{
    static const float unsure[] = {0.5f, 0.9f, 0.9f, 0.9f, 0.9f};
    struct draft_policy p = machine(0, 1, 0);
    (void)state;
    assert_int_equal(draft_policy_length(&p, unsure, 5, 1), 0);
}

/* A pass that is paid for makes checking its drafts more worth while; copies come without one. */
static void copies_have_no_pass_to_earn(void **state)
{
    static const float probability[] = {0.6f};
    struct draft_policy p = machine(0, 1, 10);
    (void)state;
    assert_int_equal(draft_policy_length(&p, probability, 1, 1), 1);
    assert_int_equal(draft_policy_length(&p, probability, 1, 0), 0);
}

/* A good stretch behind a doubtful place is worth it only if enough survives to it. */
static void chooses_the_best_rate_of_all(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 5000; round++) {
        float probability[N_PLACE];
        struct draft_policy p = machine(0.1 + round % 7, 0.05 * (round % 11), 0.1 * (round % 5));
        for (int i = 0; i < N_PLACE; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            probability[i] = (float)(random >> 40) * 0x1p-24f;
        }
        int n = round % (N_PLACE + 1), best = draft_policy_length(&p, probability, n, 1);
        assert_in_range(best, 0, n);
        for (int other = 0; other <= n; other++)
            assert_true(rate(&p, probability, best) >= rate(&p, probability, other) * (1 - 1e-12));
    }
}

static void fresh_policies_draft(void **state)
{
    static const float sure[] = {1, 1, 1, 1, 1}, hopeless[] = {0, 0, 0, 0, 0};
    struct draft_policy p = {0};
    (void)state;
    assert_true(draft_policy_wants(&p));
    assert_int_equal(draft_policy_length(&p, sure, 5, 1), 5);
    assert_int_equal(draft_policy_length(&p, hopeless, 5, 1), 0);
}

static void rows_beyond_the_table_are_ignored(void **state)
{
    float sure[40];
    struct draft_policy p = machine(1, 0, 0), before = p;
    (void)state;
    for (int i = 0; i < 40; i++)
        sure[i] = 1;
    draft_policy_checked(&p, DRAFT_MAX_ROWS + 1, 100);
    draft_policy_checked(&p, 0, 100);
    assert_memory_equal(&p, &before, sizeof p);
    assert_int_equal(draft_policy_length(&p, sure, 40, 1), N_PLACE);
}

/* Cycles of n_token tokens in `seconds` until drafting rests; returns how many plain tokens it
 * rests for, 0 if never. */
static int rest_after(struct draft_policy *p, int n_token, double seconds)
{
    for (int i = 0; i < 100; i++) {
        int n_plain = 0;
        draft_policy_cycled(p, n_token, seconds, 0.1);
        while (!draft_policy_wants(p))
            n_plain++;
        if (n_plain)
            return n_plain;
    }
    return 0;
}

static void rests_ever_longer_while_it_loses(void **state)
{
    struct draft_policy p = machine(1, 0, 0.1); /* a plain token takes 1 s */
    int last = 0;
    (void)state;
    for (int i = 0; i < 12; i++) {
        int n_plain = rest_after(&p, 1, 1.1);
        assert_in_range(n_plain, last ? last : 1, LONGEST_PAUSE);
        assert_true(n_plain == 2 * last || !last || n_plain == LONGEST_PAUSE);
        last = n_plain;
    }
    assert_int_equal(last, LONGEST_PAUSE);
}

static void gains_end_the_back_off(void **state)
{
    struct draft_policy p = machine(1, 0, 0.1);
    (void)state;
    int first = rest_after(&p, 1, 1.1);
    assert_true(rest_after(&p, 1, 1.1) > first);
    assert_int_equal(rest_after(&p, 2, 1.5), 0); /* 100 cycles that pay */
    assert_int_equal(rest_after(&p, 1, 1.1), first);
}

/* A machine that changes: the means follow. */
static void times_are_forgotten(void **state)
{
    static const float probability[] = {0.9f, 0.9f, 0.9f};
    struct draft_policy p = machine(0, 1, 0);
    (void)state;
    assert_int_equal(draft_policy_length(&p, probability, 3, 1), 0);
    for (int i = 0; i < 200; i++)
        for (int n_row = 1; n_row <= 4; n_row++)
            draft_policy_checked(&p, n_row, 1);
    assert_int_equal(draft_policy_length(&p, probability, 3, 1), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_when_rows_are_free),
        cmocka_unit_test(none_when_rows_cost_a_step),
        cmocka_unit_test(copies_have_no_pass_to_earn),
        cmocka_unit_test(chooses_the_best_rate_of_all),
        cmocka_unit_test(fresh_policies_draft),
        cmocka_unit_test(rows_beyond_the_table_are_ignored),
        cmocka_unit_test(rests_ever_longer_while_it_loses),
        cmocka_unit_test(gains_end_the_back_off),
        cmocka_unit_test(times_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
