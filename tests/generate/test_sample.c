/* test_sample.c: hadal_sample against a plain model of the same chain that sorts, and against statistics. */
#include "generate/sample_noise.h"
#include "hadal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VOCAB = 20000 };

static const struct hadal_sampling plain = {.temperature = 1.0f, .top_p = 1.0f, .repetition_penalty = 1.0f, .seed = 1};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Logits with many ties when steps > 0. */
static void fill_logits(float *logits, int n, uint64_t *state, int steps)
{
    for (int i = 0; i < n; i++) {
        double x = (double)next_random(state) / 0x1p31 * 12.0 - 6.0;
        logits[i] = steps ? (float)((int)(x * steps) / (double)steps) : (float)x;
    }
}

/* ---- The chain again, with sorting and libm ---- */

struct entry {
    float l;
    int32_t id;
    double p;
};

static int by_logit(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->l != y->l)
        return x->l > y->l ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static float penalised(const struct hadal_sampling *s, float l, int count)
{
    if (!count)
        return l;
    l = l > 0 ? l / s->repetition_penalty : l * s->repetition_penalty;
    return l - (float)count * s->frequency_penalty - s->presence_penalty;
}

/* The kept tokens, best first; returns how many. *margin: how far the top-p decision is from going the other way. */
static int model_keep(const struct hadal_sampling *s, struct entry *e, int n, double *margin)
{
    qsort(e, (size_t)n, sizeof *e, by_logit);
    int kept = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    double total = 0, sum = 0;
    for (int i = 0; i < kept; i++)
        total += e[i].p = exp(((double)e[i].l - e[0].l) / s->temperature);
    *margin = 1;
    for (int i = 0; s->top_p < 1 && i < kept; i++) {
        sum += e[i].p / total;
        double distance = fabs(sum - s->top_p);
        *margin = distance < *margin ? distance : *margin;
        if (sum >= s->top_p)
            kept = i + 1;
    }
    for (int i = 0; s->min_p > 0 && i < kept; i++) {
        double distance = fabs(e[i].p - s->min_p);
        *margin = distance < *margin ? distance : *margin;
        if (e[i].p < s->min_p)
            kept = i;
    }
    return kept;
}

static int32_t model_sample(const struct hadal_sampling *s, struct entry *e, int n_kept, int pos)
{
    double best = -INFINITY;
    int32_t id = -1;
    uint64_t stream = sample_noise_stream(s->seed, pos);
    for (int i = 0; i < n_kept; i++) {
        double x = (double)e[i].l / s->temperature + sample_noise_gumbel(sample_noise_bits(stream, e[i].id));
        if (x > best) {
            best = x;
            id = e[i].id;
        }
    }
    return id;
}

static void check_against_model(const struct hadal_sampling *s, int n, int steps, uint64_t *state)
{
    static float logits[MAX_VOCAB];
    static struct entry entries[MAX_VOCAB];
    int32_t history[50];
    fill_logits(logits, n, state, steps);
    for (int i = 0; i < 50; i++)
        history[i] = (int32_t)(next_random(state) % (uint64_t)(n < 40 ? n : 40));
    for (int i = 0; i < n; i++) {
        int count = 0;
        for (int k = 0; k < 50; k++)
            count += history[k] == i;
        entries[i] = (struct entry){penalised(s, logits[i], count), i, 0};
    }
    double margin;
    int kept = model_keep(s, entries, n, &margin);
    if (margin < 1e-7)
        return; /* too close to call with rounded sums */
    for (int pos = 0; pos < 40; pos++)
        assert_int_equal(hadal_sample(s, logits, n, history, 50, pos), model_sample(s, entries, kept, pos));
}

static void test_chain_equals_the_sorting_model(void **unused)
{
    (void)unused;
    static const int sizes[] = {1, 2, 7, 100, 1000, MAX_VOCAB};
    static const float top_ps[] = {1.0f, 0.95f, 0.5f, 0.01f}, min_ps[] = {0.0f, 0.05f, 0.7f};
    static const int top_ks[] = {0, 1, 5, 40};
    uint64_t state = 7;
    for (int i = 0; i < 6 * 4 * 3 * 4; i++) {
        struct hadal_sampling s = {.temperature = i % 5 ? 1.0f : 0.6f, .top_k = top_ks[i % 4],
            .top_p = top_ps[i / 4 % 4], .min_p = min_ps[i / 16 % 3], .seed = (uint64_t)i,
            .presence_penalty = i % 3 ? 0.0f : 0.5f, .frequency_penalty = i % 7 ? 0.0f : 0.25f,
            .repetition_penalty = i % 2 ? 1.0f : 1.3f};
        check_against_model(&s, sizes[i / 48], i % 11 ? 0 : 4, &state);
    }
}

static void test_greedy_is_the_lowest_of_the_largest(void **unused)
{
    (void)unused;
    struct hadal_sampling s = plain;
    s.temperature = 0.0f;
    const float logits[] = {1.0f, 3.0f, -2.0f, 3.0f};
    assert_int_equal(hadal_sample(&s, logits, 4, NULL, 0, 0), 1);
    s.presence_penalty = 0.5f;
    const int32_t history[] = {1};
    assert_int_equal(hadal_sample(&s, logits, 4, history, 1, 0), 3);
}

static void test_same_arguments_same_token(void **unused)
{
    (void)unused;
    float logits[500], copy[500];
    uint64_t state = 3;
    fill_logits(logits, 500, &state, 0);
    memcpy(copy, logits, sizeof copy);
    struct hadal_sampling s = plain;
    int differs_by_pos = 0, differs_by_seed = 0;
    for (int pos = 0; pos < 100; pos++) {
        int32_t id = hadal_sample(&s, logits, 500, NULL, 0, pos);
        assert_int_equal(hadal_sample(&s, logits, 500, NULL, 0, pos), id);
        differs_by_pos += hadal_sample(&s, logits, 500, NULL, 0, pos + 1) != id;
        s.seed = 2;
        differs_by_seed += hadal_sample(&s, logits, 500, NULL, 0, pos) != id;
        s.seed = 1;
    }
    assert_memory_equal(copy, logits, sizeof copy);
    assert_true(differs_by_pos > 80 && differs_by_seed > 80);
}

/* Pinned: a change of these numbers changes everybody's texts. */
static void test_noise_is_pinned(void **unused)
{
    (void)unused;
    uint64_t stream = sample_noise_stream(42, 7);
    assert_true(stream == UINT64_C(0xbc16a3d4cc48678e));
    assert_true(sample_noise_bits(stream, 3) == UINT64_C(0xad7bf3ec796db8cd));
    int32_t chosen[8];
    float logits[64];
    for (int i = 0; i < 64; i++)
        logits[i] = (float)(i % 13) * 0.25f;
    struct hadal_sampling s = plain;
    s.top_p = 0.9f;
    for (int pos = 0; pos < 8; pos++)
        chosen[pos] = hadal_sample(&s, logits, 64, NULL, 0, pos);
    static const int32_t expected[] = {45, 49, 25, 49, 11, 61, 50, 12};
    assert_memory_equal(chosen, expected, sizeof chosen);
}

static void test_noise_is_gumbel(void **unused)
{
    (void)unused;
    enum { N = 200000 };
    double sum = 0, square = 0;
    for (int i = 0; i < N; i++) {
        uint64_t bits = sample_noise_bits(sample_noise_stream(5, i / 1000), i % 1000);
        double g = sample_noise_gumbel(bits);
        assert_true(g < sample_noise_bound(bits));
        sum += g;
        square += g * g;
    }
    double mean = sum / N, variance = square / N - mean * mean;
    assert_true(fabs(mean - 0.5772156649) < 0.012); /* 4 standard errors */
    assert_true(fabs(variance - 1.6449340668) < 0.035);
    assert_true(isfinite(sample_noise_gumbel(0)) && isfinite(sample_noise_gumbel(UINT64_MAX)));
    assert_true(sample_noise_gumbel(0) <= sample_noise_bound(0));
}

static void test_logarithm(void **unused)
{
    (void)unused;
    uint64_t state = 11;
    for (int i = 0; i < 100000; i++) {
        double x = ldexp((double)next_random(&state) + 1.0, (int)(next_random(&state) % 100) - 60);
        assert_true(fabs(sample_noise_log(x) - log(x)) <= 0x1p-50 * fmax(1.0, fabs(log(x))));
    }
    assert_true(sample_noise_log(1.0) == 0.0);
    double near = 1.0 - 0x1p-53;
    assert_true(fabs(sample_noise_log(near) / log(near) - 1.0) < 1e-12);
}

/* Chi-square of n_draw draws against softmax(logits / T) over the first n_kept tokens (logits descend). */
static double chi_square(const struct hadal_sampling *s, const float *logits, int n, int n_kept, int n_draw)
{
    int counts[64] = {0};
    double total = 0, chi = 0;
    for (int i = 0; i < n_kept; i++)
        total += exp((double)logits[i] / s->temperature);
    for (int pos = 0; pos < n_draw; pos++)
        counts[hadal_sample(s, logits, n, NULL, 0, pos)]++;
    for (int i = 0; i < n; i++) {
        double expected = i < n_kept ? n_draw * exp((double)logits[i] / s->temperature) / total : 0;
        if (i >= n_kept)
            assert_int_equal(counts[i], 0);
        else
            chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return chi;
}

static void test_distribution(void **unused)
{
    (void)unused;
    float logits[20];
    for (int i = 0; i < 20; i++)
        logits[i] = -0.2f * (float)i;
    struct hadal_sampling s = plain;
    assert_true(chi_square(&s, logits, 20, 20, 40000) < 43.8); /* 19 degrees, p = 0.001 */
    s.temperature = 0.5f;
    assert_true(chi_square(&s, logits, 20, 20, 40000) < 43.8);
    s.temperature = 1.0f;
    s.top_k = 8;
    assert_true(chi_square(&s, logits, 20, 8, 40000) < 24.4); /* 7 degrees */
    s.top_k = 0;
    s.seed = 99;
    assert_true(chi_square(&s, logits, 20, 20, 40000) < 43.8);
}

static void test_limits(void **unused)
{
    (void)unused;
    float logits[5] = {0.5f, NAN, 2.0f, -INFINITY, 2.0f};
    struct hadal_sampling s = plain;
    int seen[5] = {0};
    for (int pos = 0; pos < 500; pos++)
        seen[hadal_sample(&s, logits, 5, NULL, 0, pos)]++;
    assert_true(seen[0] && seen[2] && seen[4] && !seen[1] && !seen[3]);
    s.top_p = 0.0f; /* at least one token stays */
    assert_int_equal(hadal_sample(&s, logits, 5, NULL, 0, 0), 2);
    s = plain;
    s.min_p = 2.0f; /* more than the largest: the largest ones stay */
    for (int pos = 0; pos < 100; pos++)
        assert_true(hadal_sample(&s, logits, 5, NULL, 0, pos) % 2 == 0);
    s = plain;
    s.temperature = 1e-30f;
    assert_int_equal(hadal_sample(&s, logits, 5, NULL, 0, 0) & ~6, 0);
    s.temperature = 1e30f;
    s.top_k = 1000000;
    assert_in_range(hadal_sample(&s, logits, 5, NULL, 0, 0), 0, 4);
    float hopeless[3] = {-INFINITY, NAN, -INFINITY};
    assert_int_equal(hadal_sample(&plain, hopeless, 3, NULL, 0, 0), 0);
    float certain[3] = {1.0f, INFINITY, INFINITY};
    assert_int_equal(hadal_sample(&plain, certain, 3, NULL, 0, 0), 1);
    assert_int_equal(hadal_sample(&plain, logits, 1, NULL, 0, 0), 0);
}

static void test_ids_outside_the_vocabulary_are_no_history(void **unused)
{
    (void)unused;
    const float logits[] = {1.0f, 0.9f};
    const int32_t history[] = {-1, 7, INT32_MAX, INT32_MIN, 0};
    struct hadal_sampling s = plain;
    s.temperature = 0.0f;
    s.frequency_penalty = 0.2f;
    assert_int_equal(hadal_sample(&s, logits, 2, history, 5, 0), 1);
    assert_int_equal(hadal_sample(&s, logits, 2, history, 4, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_equals_the_sorting_model),
        cmocka_unit_test(test_greedy_is_the_lowest_of_the_largest),
        cmocka_unit_test(test_same_arguments_same_token),
        cmocka_unit_test(test_noise_is_pinned),
        cmocka_unit_test(test_noise_is_gumbel),
        cmocka_unit_test(test_logarithm),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ids_outside_the_vocabulary_are_no_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
