/* compare_models.c: see compare_models.h. */
#include "compare_models.h"

#include "model/config_read.h"
#include "model/weights_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* ---- Configurations ---- */

enum { MAX_NUMBER = 128 };
struct numbers {
    int n;
    const char *key[MAX_NUMBER];
    double value[MAX_NUMBER];
};

static void collect(void *context, const char *key, const struct config_value *v)
{
    struct numbers *all = context;
    assert_true(all->n < MAX_NUMBER);
    all->key[all->n] = key;
    all->value[all->n++] = v->f;
}

static void compare_numbers(const struct model_config *a, const struct model_config *b)
{
    struct numbers x = {0}, y = {0};
    config_each_number(a, collect, &x);
    config_each_number(b, collect, &y);
    for (int i = 0; i < x.n && i < y.n; i++)
        if (strcmp(x.key[i], y.key[i]) || x.value[i] != y.value[i])
            fail_msg("%s is %g, expected %s of %g", x.key[i], x.value[i], y.key[i], y.value[i]);
    assert_int_equal(x.n, y.n);
}

static void compare_ints(const char *name, const int *a, const int *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            fail_msg("%s[%d] is %d, expected %d", name, i, a[i], b[i]);
}

#define SAME_INT(field)     compare_ints(#field, (const int *)&a->field, (const int *)&b->field, 1)
#define SAME_INTS(field, n) compare_ints(#field, a->field, b->field, n)
#define SAME_FLOAT(field)   assert_true(a->field == b->field)

static void compare_engram(const struct model_config *a, const struct model_config *b)
{
    SAME_INT(n_engram);
    if (!b->n_engram)
        return;
    SAME_INT(engram_pad);
    SAME_INTS(engram_map, b->n_vocab);
    for (int i = 0; i < b->n_engram; i++) {
        const struct engram_config *s = &a->engram[i], *t = &b->engram[i];
        int n_column = (b->engram_max_ngram - 1) * b->engram_n_head;
        assert_int_equal(s->layer, t->layer);
        assert_int_equal(s->n_row, t->n_row);
        assert_memory_equal(s->multiplier, t->multiplier, (size_t)b->engram_max_ngram * 8);
        assert_memory_equal(s->prime, t->prime, (size_t)n_column * 8);
        assert_memory_equal(s->offset, t->offset, (size_t)n_column * 8);
    }
}

static void compare_traits(const struct model_config *a, const struct model_config *b)
{
    SAME_INT(has_q_head_norm);
    SAME_INT(window_rounding);
    SAME_INT(compressed_rounding);
    SAME_INT(has_shared_sources);
    SAME_INT(has_index_hadamard);
    SAME_INT(has_lagged_mix);
    SAME_INT(taps_inputs);
}

void compare_configs(const struct model_config *a, const struct model_config *b)
{
    assert_string_equal(a->architecture, b->architecture);
    assert_string_equal(a->dialect, b->dialect);
    compare_numbers(a, b);
    compare_traits(a, b);
    SAME_INTS(compress_ratio, b->n_layer);
    SAME_INTS(is_kv_source, b->n_layer);
    SAME_INTS(is_index_source, b->n_layer);
    SAME_INT(candidate_source);
    SAME_FLOAT(swiglu_limit);
    SAME_INT(bos_id);
    SAME_INT(eos_id);
    SAME_INT(pad_id);
    SAME_INT(n_stage);
    SAME_INTS(tap_layer, b->n_tap);
    for (int i = 0; i < 16; i++)
        SAME_FLOAT(draft_temperature[i]);
    SAME_FLOAT(temperature);
    SAME_FLOAT(top_p);
    SAME_FLOAT(min_p);
    SAME_INT(top_k);
    compare_engram(a, b);
}

/* ---- Weights ---- */

struct comparison {
    const struct model_weights *found, *expected;
    double relative;
    int n;
};

static void compare_row(const struct tensor *a, const struct tensor *b, int64_t row, double sums[2])
{
    static float x[1 << 16], y[1 << 16];
    int64_t n = tensor_n_col(b);
    assert_true(n <= 1 << 16);
    tensor_decode(a, row, 0, n, x);
    tensor_decode(b, row, 0, n, y);
    for (int64_t i = 0; i < n; i++) {
        double error = (double)x[i] - (double)y[i];
        sums[0] += error * error;
        sums[1] += (double)y[i] * (double)y[i];
    }
}

static int compare_slot(void *context, const struct weight_slot *slot)
{
    struct comparison *c = context;
    const struct tensor *a = weight_slot_tensor((struct model_weights *)(uintptr_t)c->found, slot);
    const struct tensor *b =
        weight_slot_tensor((struct model_weights *)(uintptr_t)c->expected, slot);
    double sums[2] = {0, 0};
    assert_int_equal(a->n_dim, b->n_dim);
    assert_memory_equal(a->dim, b->dim, sizeof a->dim);
    for (int64_t r = 0; r < tensor_n_row(b); r++)
        compare_row(a, b, r, sums);
    if (sqrt(sums[0]) > c->relative * sqrt(sums[1]))
        fail_msg(
            "%s: relative error %g, allowed %g", a->name, sqrt(sums[0] / sums[1]), c->relative);
    c->n++;
    return 0;
}

void compare_weights(
    const struct model_file_info *found, const struct model_weights *expected, double relative)
{
    struct comparison c = {found->weights, expected, relative, 0};
    assert_int_equal(weights_each_slot(found->config, found->plan, compare_slot, &c), 0);
    assert_true(c.n > 100);
}
