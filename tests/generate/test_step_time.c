/* test_step_time.c: means of times by size, and guesses for sizes not seen. */
#include "generate/step_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void add(struct step_time *t, int n, double seconds, int times)
{
    for (int i = 0; i < times; i++)
        step_time_add(t, n, seconds);
}

static void nothing_is_known_at_first(void **state)
{
    struct step_time t = {.seconds = {0}};
    (void)state;
    for (int n = 1; n <= STEP_TIME_MAX; n++)
        assert_true(step_time_of(&t, n) == 0);
}

static void unseen_sizes_are_guessed(void **state)
{
    struct step_time t = {.seconds = {0}};
    (void)state;
    add(&t, 1, 2, 1);
    assert_float_equal(step_time_of(&t, 1), 2, 1e-9);
    assert_float_equal(step_time_of(&t, 6), 2 * (1 + 5 * 0.6), 1e-9);
    add(&t, 9, 10, 1);
    assert_float_equal(step_time_of(&t, 5), 6, 1e-9); /* half way */
    assert_true(step_time_of(&t, 17) > 10);
    struct step_time late = {.seconds = {0}};
    add(&late, 6, 8, 1);
    assert_float_equal(step_time_of(&late, 1), 2, 1e-9);
}

static void cold_starts_and_outliers_count_little(void **state)
{
    struct step_time t = {.seconds = {0}};
    (void)state;
    add(&t, 1, 30, 1);
    add(&t, 1, 1, 1);
    assert_float_equal(step_time_of(&t, 1), 1, 1e-9);
    add(&t, 1, 1, 10);
    add(&t, 1, 1000, 1);
    assert_true(step_time_of(&t, 1) < 1.2);
}

static void means_follow_the_machine(void **state)
{
    struct step_time t = {.seconds = {0}};
    (void)state;
    add(&t, 1, 1, 20);
    add(&t, 4, 2, 20);
    add(&t, 1, 2, 40);
    assert_float_equal(step_time_of(&t, 1), 2, 0.1);
    assert_in_range((int)(1000 * step_time_of(&t, 4)), 2100, 2600); /* a quarter as far */
    add(&t, 4, 4, 40);
    assert_float_equal(step_time_of(&t, 4), 4, 0.2);
}

static void sizes_not_seen_for_long_are_forgotten(void **state)
{
    struct step_time t = {.seconds = {0}};
    (void)state;
    add(&t, 1, 1, 20);
    add(&t, 2, 50, 1);
    assert_float_equal(step_time_of(&t, 2), 50, 1e-9);
    add(&t, 1, 1, 600);
    assert_float_equal(step_time_of(&t, 2), 1.6, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(unseen_sizes_are_guessed),
        cmocka_unit_test(cold_starts_and_outliers_count_little),
        cmocka_unit_test(means_follow_the_machine),
        cmocka_unit_test(sizes_not_seen_for_long_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
