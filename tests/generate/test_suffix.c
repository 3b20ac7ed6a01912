/* test_suffix.c: the suffix automaton against a search of the whole sequence. */
#include "generate/suffix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { N_MAX = 400 };

static int random_below(uint64_t *state, int n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

/* How many tokens before `a` and before `b` agree. */
static int common_end(const int32_t *ids, int a, int b)
{
    int n = 0;
    while (n < a && n < b && ids[a - 1 - n] == ids[b - 1 - n])
        n++;
    return n;
}

static int longest_match(const int32_t *ids, int n)
{
    int best = 0;
    for (int end = 1; end < n; end++) {
        int len = common_end(ids, end, n);
        best = len > best ? len : best;
    }
    return best;
}

static void push_and_compare(struct suffix *x, const int32_t *ids, int n)
{
    int end;
    suffix_push(x, ids[n - 1]);
    assert_int_equal(x->n, n);
    int len = suffix_match(x, &end);
    assert_int_equal(len, longest_match(ids, n));
    if (len) {
        assert_in_range(end, len, n - 1);
        assert_true(common_end(ids, end, n) >= len);
    }
    assert_in_range(x->n_state, 1, 2 * n + 1);
    assert_in_range(x->n_edge, 1, 3 * n);
}

/* Random over n_vocab tokens, now and then a stretch from before. */
static void write_sequence(int32_t *ids, int n, int n_vocab, uint64_t *random)
{
    int from = 0, n_copy = 0;
    for (int i = 0; i < n; i++) {
        if (!n_copy && i && !random_below(random, 12)) {
            from = random_below(random, i);
            n_copy = random_below(random, 30);
        }
        ids[i] = n_copy ? ids[from++] : random_below(random, n_vocab);
        n_copy -= n_copy > 0;
    }
}

static void finds_the_longest_match(void **state)
{
    static const int vocabularies[] = {1, 2, 3, 10, 130000};
    struct arena arena = {0};
    struct suffix x;
    int32_t ids[N_MAX];
    uint64_t random = 1;
    (void)state;
    assert_int_equal(suffix_open(&x, &arena, N_MAX), 0);
    for (int round = 0; round < 60; round++) {
        write_sequence(ids, N_MAX, vocabularies[round % 5], &random);
        for (int n = 1; n <= N_MAX; n++)
            push_and_compare(&x, ids, n);
        suffix_clear(&x);
    }
    arena_free(&arena);
}

static void empty_and_new_sequences_match_nothing(void **state)
{
    struct arena arena = {0};
    struct suffix x;
    int end;
    (void)state;
    assert_int_equal(suffix_open(&x, &arena, 3), 0);
    assert_int_equal(suffix_match(&x, &end), 0);
    for (int32_t i = 0; i < 3; i++) {
        suffix_push(&x, i);
        assert_int_equal(suffix_match(&x, &end), 0);
    }
    arena_free(&arena);
}

/* Of two occurrences of the same match the latest is told: what followed it is the better guess. */
static void prefers_the_latest(void **state)
{
    static const int32_t ids[] = {7, 8, 1, 5, 7, 8, 2, 6, 7, 8};
    struct arena arena = {0};
    struct suffix x;
    int end, n = sizeof ids / sizeof *ids;
    (void)state;
    assert_int_equal(suffix_open(&x, &arena, n), 0);
    for (int i = 0; i < n; i++)
        suffix_push(&x, ids[i]);
    assert_int_equal(suffix_match(&x, &end), 2);
    assert_int_equal(end, 6);
    arena_free(&arena);
}

static void pushing_allocates_nothing(void **state)
{
    struct arena arena = {0};
    struct suffix x;
    (void)state;
    assert_int_equal(suffix_open(&x, &arena, 100000), 0);
    uint64_t n_before = mem_n_calls();
    for (int round = 0; round < 2; round++) {
        for (int32_t i = 0; i < 100000; i++)
            suffix_push(&x, i % 77 * (i % 1013));
        suffix_clear(&x);
    }
    assert_int_equal(mem_n_calls(), n_before);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_longest_match),
        cmocka_unit_test(empty_and_new_sequences_match_nothing),
        cmocka_unit_test(prefers_the_latest),
        cmocka_unit_test(pushing_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
