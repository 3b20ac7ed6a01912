/* test_forward_toy.c: the whole forward pass against the toy vectors of both specifications (v4
 * appendix F, v41 appendix B), on every backend that runs here, in one chunking; tests/engine has
 * the equality of all others. */
#include "model/harness.h"
#include "support/toy_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { N_FIRST = 4, N_ROW_MAX = 300, N_DRAFT = 5 };

typedef struct toy_model *(*toy_fn)(struct arena *, struct err *);

static struct toy_model *make_toy(toy_fn make, struct arena *arena)
{
    struct err e = {0};
    struct toy_model *toy = make(arena, &e);
    if (!toy)
        fail_msg("%s", e.text);
    return toy;
}

struct golden {
    int pos;
    float first[N_FIRST], sum;
    int argmax;
};

static const struct golden v4_on[] = {
    {0, {-0.066841f, 1.425033f, -1.863569f, -1.500487f}, 5.118806f, 20},
    {3, {-1.101211f, 1.952200f, -0.587819f, 0.369273f}, 20.829659f, 36},
    {66, {-0.331259f, 1.756730f, -2.053979f, 0.132836f}, -4.464961f, 39},
    {67, {-3.041524f, -0.381504f, -0.185889f, -1.237401f}, -0.922286f, 32},
    {127, {-2.472992f, -0.517858f, 1.067831f, -2.452362f}, 3.376602f, 50},
    {128, {0.090308f, -1.482376f, -0.396574f, -1.202485f}, 8.828311f, 9},
    {255, {0.100027f, 1.425786f, -2.215337f, 2.082133f}, -4.551733f, 63},
    {299, {0.502041f, 0.470070f, 0.507329f, -0.969553f}, 3.590715f, 36}, {.pos = -1}};
static const struct golden v4_off[] = {
    {0, {0.123104f, 1.421601f, -1.759524f, -1.482647f}, 5.455848f, 20},
    {3, {-1.085752f, 1.933058f, -0.506462f, 0.363856f}, 20.988509f, 70},
    {66, {-0.371110f, 1.736356f, -2.078841f, 0.199487f}, -4.333032f, 39},
    {67, {-2.960834f, -0.446249f, -0.138807f, -1.276716f}, -0.695152f, 32},
    {127, {-2.468441f, -0.480184f, 1.151215f, -2.220411f}, 2.693291f, 50},
    {128, {0.123327f, -1.519181f, -0.344267f, -1.253125f}, 8.813960f, 9},
    {255, {0.022410f, 1.384516f, -2.187096f, 1.895703f}, -5.268970f, 63},
    {299, {-0.277506f, 0.288115f, 0.523484f, -0.385786f}, 6.249548f, 36}, {.pos = -1}};
static const struct golden v41_on[] = {
    {0, {0.122606f, 1.971325f, 0.459346f, -1.072125f}, 1.626606f, 50},
    {11, {1.843233f, -2.214965f, 1.462087f, -1.936548f}, -0.071742f, 94},
    {12, {1.179016f, 2.759641f, -2.389557f, -0.439033f}, -11.937447f, 61},
    {16, {-2.184830f, -0.517360f, -0.387946f, 0.570207f}, 4.551647f, 117},
    {24, {0.361092f, -1.015252f, 2.084730f, -2.227991f}, 20.130894f, 59},
    {25, {1.192964f, -0.019688f, 0.599116f, -0.467105f}, 2.653039f, 35},
    {100, {-0.245052f, 0.380878f, 2.236608f, 0.522373f}, 17.411963f, 38},
    {199, {1.052352f, -0.154361f, -0.949507f, 1.691735f}, 18.456801f, 38}, {.pos = -1}};
static const struct golden v41_off[] = {
    {0, {-0.084946f, 1.967055f, 0.355707f, -1.204309f}, 3.309439f, 96},
    {11, {1.751360f, -1.976289f, 1.447251f, -2.375921f}, 8.575845f, 94},
    {12, {0.643305f, 1.051119f, 1.833747f, 1.523936f}, -0.946554f, 12},
    {16, {-1.836502f, -0.034385f, -0.554326f, 1.179314f}, -3.647032f, 117},
    {24, {0.331750f, -1.064149f, 1.977544f, -2.121426f}, 21.741030f, 59},
    {25, {1.262970f, -0.681603f, 1.193297f, 0.489390f}, 10.868140f, 58},
    {100, {2.176110f, -1.401832f, 0.765583f, -1.526058f}, 10.490875f, 82},
    {199, {1.579640f, -0.166540f, 0.031754f, 1.994826f}, 9.346967f, 38}, {.pos = -1}};

static const struct vector {
    toy_fn make;
    int skips_kv_rounding;
    const struct golden *golden;
    int modulus, n; /* ids[t] = (t t + 7 t + 3) mod modulus, t < n */
    float tolerance;
} vectors[] = {
    {toy_v4, 0, v4_on, 101, 300, 1e-3f},
    {toy_v4, 1, v4_off, 101, 300, 1e-3f},
    {toy_v41, 0, v41_on, 113, 200, 2e-3f},
    {toy_v41, 1, v41_off, 113, 200, 2e-3f},
};

struct draft_golden {
    int last, anchor;
    int32_t id[N_DRAFT];
    float confidence[N_DRAFT], first[N_DRAFT];
};

static const struct draft_golden drafts[] = {
    {7, 39, {97, 14, 14, 14, 61}, {101.2122f, 430.4273f, 369.6415f, 346.9100f, 370.1608f},
        {-1.234901f, -2.677156f, -2.946489f, -2.695318f, -2.694737f}},
    {199, 38, {96, 62, 62, 62, 42}, {-448.9708f, 192.8083f, 241.8079f, 178.3034f, 28.8215f},
        {1.589936f, -1.904383f, -2.070073f, -1.652122f, -2.626349f}},
};

static const char *const backends[] = {"ref", "cpu"};

static void make_ids(int32_t *ids, int n, int modulus)
{
    for (int t = 0; t < n; t++)
        ids[t] = (t * t + 7 * t + 3) % modulus;
}

static void compare_row(
    const struct vector *v, const struct golden *g, const float *logits, int n_vocab, float *worst)
{
    double sum = 0;
    for (int i = 0; i < n_vocab; i++)
        sum += (double)logits[i];
    for (int i = 0; i < N_FIRST; i++) {
        float off = fabsf(logits[i] - g->first[i]);
        *worst = fmaxf(*worst, off);
        if (!(off <= v->tolerance))
            fail_msg("position %d logit %d is %g, expected %g", g->pos, i, (double)logits[i],
                (double)g->first[i]);
    }
    if (!(fabs(sum - (double)g->sum) <= 20 * (double)v->tolerance)) /* of a hundred values */
        fail_msg("position %d sum of logits is %g, expected %g", g->pos, sum, (double)g->sum);
    assert_int_equal(harness_argmax(logits, n_vocab), g->argmax);
}

static void check_vector(const struct vector *v, const char *backend)
{
    struct arena arena = {0};
    struct toy_model *toy = make_toy(v->make, &arena);
    int n_vocab = toy->config.n_vocab;
    struct harness h;
    struct harness_options o = {.backend = backend, .skips_kv_rounding = v->skips_kv_rounding};
    float *logits = ARENA_NEW(&arena, float, (size_t)v->n *(size_t)n_vocab), worst = 0;
    int32_t ids[N_ROW_MAX];
    make_ids(ids, v->n, v->modulus);
    assert_int_equal(harness_open(&h, &toy->config, &toy->plan, &toy->weights, &o), 0);
    harness_append(&h, 0, ids, v->n, logits);
    for (const struct golden *g = v->golden; g->pos >= 0; g++)
        compare_row(v, g, logits + (int64_t)g->pos * n_vocab, n_vocab, &worst);
    print_message("%s %s, rounding %s: largest difference %.2g\n", backend,
        toy->config.architecture, v->skips_kv_rounding ? "off" : "on", (double)worst);
    harness_close(&h);
    arena_free(&arena);
}

static void logits_are_those_of_the_specification(void **state)
{
    (void)state;
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++)
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
            check_vector(&vectors[i], backends[b]);
}

/* ---- Draft stages ---- */

struct choices {
    int n_vocab;
    float first[HARNESS_MAX_SLOT][N_DRAFT];
};

static int32_t choose_best(void *context, int i, int r, const float *logits)
{
    struct choices *c = context;
    c->first[i][r] = logits[0];
    return harness_argmax(logits, c->n_vocab);
}

static void check_draft(
    const char *backend, const struct toy_model *toy, const struct draft_golden *g)
{
    struct harness h;
    struct harness_options o = {.backend = backend, .keeps_taps = 1};
    int n_vocab = toy->config.n_vocab;
    struct choices choices = {.n_vocab = n_vocab};
    int32_t ids[N_ROW_MAX], slot = 0, last = g->last, anchor = g->anchor, id[N_DRAFT];
    float confidence[N_DRAFT], logits[256];
    struct err e = {0};
    make_ids(ids, g->last + 1, 113);
    assert_true(n_vocab <= 256);
    assert_int_equal(harness_open(&h, &toy->config, &toy->plan, &toy->weights, &o), 0);
    harness_append(&h, 0, ids, g->last + 1, NULL);
    struct draft_request q = {.n_seq = 1,
        .slot = &slot,
        .last = &last,
        .anchor = &anchor,
        .n_draft = N_DRAFT,
        .choose = choose_best,
        .context = &choices,
        .logits = logits,
        .id = id,
        .confidence = confidence};
    for (int round = 0; round < 2; round++) { /* drafting leaves no trace */
        assert_int_equal(draft_run(&h.forward, &q, &e), 0);
        for (int r = 0; r < N_DRAFT; r++) {
            assert_int_equal(id[r], g->id[r]);
            assert_float_equal(choices.first[0][r], g->first[r], 2e-3f);
            assert_float_equal(
                confidence[r], g->confidence[r], 1e-3f * fabsf(g->confidence[r]) + 0.05f);
        }
    }
    harness_close(&h);
}

static void drafts_are_those_of_the_specification(void **state)
{
    struct arena arena = {0};
    struct toy_model *toy = make_toy(toy_v41, &arena);
    (void)state;
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++)
        for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
            check_draft(backends[b], toy, &drafts[i]);
    arena_free(&arena);
}

/* Blocks of several sequences in one pass are those of each sequence alone, to the bit. */
static void drafts_do_not_depend_on_the_batch(void **state)
{
    enum { N_SEQ = 4 };
    struct arena arena = {0};
    struct toy_model *toy = make_toy(toy_v41, &arena);
    struct harness h;
    struct harness_options o = {.backend = "cpu", .keeps_taps = 1, .n_slot = N_SEQ};
    struct choices choices = {.n_vocab = toy->config.n_vocab}, alone = choices;
    static const int length[N_SEQ] = {3, 17, 40, 90};
    int32_t ids[N_ROW_MAX], slot[N_SEQ] = {2, 0, 3, 1}, last[N_SEQ],
                            anchor[N_SEQ] = {5, 60, 119, 0};
    int32_t id[N_SEQ * N_DRAFT], id_alone[N_DRAFT];
    float confidence[N_SEQ * N_DRAFT], confidence_alone[N_DRAFT], logits[256];
    struct err e = {0};
    (void)state;
    assert_int_equal(harness_open(&h, &toy->config, &toy->plan, &toy->weights, &o), 0);
    for (int i = 0; i < N_SEQ; i++) {
        make_ids(ids, length[i], 97 + i);
        harness_append(&h, slot[i], ids, length[i], NULL);
        last[i] = length[i] - 1;
    }
    struct draft_request q = {.n_seq = N_SEQ,
        .slot = slot,
        .last = last,
        .anchor = anchor,
        .n_draft = N_DRAFT,
        .choose = choose_best,
        .context = &choices,
        .logits = logits,
        .id = id,
        .confidence = confidence};
    assert_int_equal(draft_run(&h.forward, &q, &e), 0);
    for (int i = 0; i < N_SEQ; i++) {
        struct draft_request one = {.n_seq = 1,
            .slot = slot + i,
            .last = last + i,
            .anchor = anchor + i,
            .n_draft = N_DRAFT,
            .choose = choose_best,
            .context = &alone,
            .logits = logits,
            .id = id_alone,
            .confidence = confidence_alone};
        assert_int_equal(draft_run(&h.forward, &one, &e), 0);
        assert_memory_equal(id_alone, id + i * N_DRAFT, sizeof id_alone);
        assert_memory_equal(confidence_alone, confidence + i * N_DRAFT, sizeof confidence_alone);
        assert_memory_equal(alone.first[0], choices.first[i], sizeof alone.first[0]);
    }
    harness_close(&h);
    arena_free(&arena);
}

/* The stages' rings may be filled when drafts are asked for, or a part before: the same drafts, to
 * the bit. */
static void drafts_do_not_depend_on_when_rings_were_filled(void **state)
{
    enum { LENGTH = 60 };
    struct arena arena = {0};
    struct toy_model *toy = make_toy(toy_v41, &arena);
    struct harness_options o = {.backend = "cpu", .keeps_taps = 1};
    int32_t ids[N_ROW_MAX], slot = 0, anchor = 7, id[3][N_DRAFT];
    float confidence[3][N_DRAFT], logits[256];
    struct err e = {0};
    (void)state;
    make_ids(ids, LENGTH, 113);
    for (int i = 0; i < 3; i++) { /* at once, in two parts, without the last row */
        struct harness h;
        struct choices choices = {.n_vocab = toy->config.n_vocab};
        int32_t last = 40, filled = 0;
        struct draft_request q = {.n_seq = 1,
            .slot = &slot,
            .last = &last,
            .filled = &filled,
            .anchor = &anchor,
            .n_draft = N_DRAFT,
            .choose = choose_best,
            .context = &choices,
            .logits = logits,
            .id = id[i],
            .confidence = confidence[i]};
        assert_int_equal(harness_open(&h, &toy->config, &toy->plan, &toy->weights, &o), 0);
        harness_append(&h, 0, ids, LENGTH, NULL);
        if (i)
            assert_int_equal(draft_run(&h.forward, &q, &e), 0);
        filled = i == 0 ? 0 : i == 1 ? last + 1 : LENGTH;
        last = LENGTH - 1;
        assert_int_equal(draft_run(&h.forward, &q, &e), 0);
        harness_close(&h);
    }
    assert_memory_equal(id[1], id[0], sizeof *id);
    assert_memory_equal(confidence[1], confidence[0], sizeof *confidence);
    assert_memory_not_equal(confidence[2], confidence[0], sizeof *confidence); /* rows are missed */
    arena_free(&arena);
}

/* Drafts after going back as far as the state allows are those of a sequence that never went
 * further. */
static void drafts_do_not_depend_on_undone_rows(void **state)
{
    enum { LENGTH = 60, FIRST = KV_UNDO_ROWS - 2, BEYOND = 40 };
    struct arena arena = {0};
    struct toy_model *toy = make_toy(toy_v41, &arena);
    struct harness h[2];
    struct harness_options o = {.backend = "cpu", .keeps_taps = 1};
    int32_t ids[N_ROW_MAX], slot = 0, last = LENGTH - 1, anchor = 7, id[2][N_DRAFT], n_free = 0;
    float confidence[2][N_DRAFT], logits[256];
    struct err e = {0};
    (void)state;
    make_ids(ids, LENGTH + BEYOND, 113);
    for (int beyond = FIRST; beyond < BEYOND; beyond++) {
        for (int i = 0; i < 2; i++) {
            struct choices choices = {.n_vocab = toy->config.n_vocab};
            struct draft_request q = {.n_seq = 1,
                .slot = &slot,
                .last = &last,
                .anchor = &anchor,
                .n_draft = N_DRAFT,
                .choose = choose_best,
                .context = &choices,
                .logits = logits,
                .id = id[i],
                .confidence = confidence[i]};
            assert_int_equal(harness_open(&h[i], &toy->config, &toy->plan, &toy->weights, &o), 0);
            harness_append(&h[i], 0, ids, LENGTH + i * beyond, NULL);
            assert_int_equal(draft_run(&h[i].forward, &q, &e), 0);
        }
        int can = kv_can_rewind(&h[1].kv, &toy->config, &toy->plan, LENGTH + beyond, LENGTH);
        n_free += can;
        assert_true(can || beyond > KV_UNDO_ROWS);
        if (can) {
            assert_memory_equal(id[1], id[0], sizeof *id);
            assert_memory_equal(confidence[1], confidence[0], sizeof *confidence);
        }
        harness_close(&h[0]);
        harness_close(&h[1]);
    }
    assert_true(n_free >= KV_UNDO_ROWS + 1 - FIRST);
    arena_free(&arena);
}

/* ---- What is chosen on the way: v41 appendix B, "selected rows for the query t=40" ---- */

enum { N_SELECTED = 12, N_BLOCK = 6, QUERY = 40 };

static const int32_t selected[][N_SELECTED] = {{0, 1, 2, 3, 4, 6, 7, 11, 13, 16, 17, 19},
    {0, 1, 2, 3, 8, 10, 11, 12, 13, 17, 18, 19}, {1, 3, 5, 7, 10, 18, 19, 22, 25, 27, 28, 32},
    {16, 17, 19, 24, 25, 27, 28, 30, 33, 34, 35, 40},
    {0, 1, 2, 25, 26, 27, 30, 31, 33, 34, 35, 40}};
static const int32_t candidates[N_BLOCK] = {0, 4, 6, 7, 8, 10};

static struct {
    op_fn run;
    int n;
    int32_t rows[8][N_SELECTED], block[N_BLOCK];
} seen;

/* Stands in front of the backend's own op; the batch is one row. */
static void note_selection(struct backend *be, const void *args)
{
    const struct op_index_select *a = args;
    seen.run(be, args);
    if (seen.n < 8)
        memcpy(seen.rows[seen.n++], a->rows->data, sizeof *seen.rows);
    if (a->make_block)
        memcpy(seen.block, a->make_block->data, sizeof seen.block);
}

static void selection_is_that_of_the_specification(void **state)
{
    struct arena arena = {0};
    struct toy_model *toy = make_toy(toy_v41, &arena);
    struct harness h;
    struct harness_options o = {.backend = "ref"};
    int32_t ids[QUERY + 1];
    (void)state;
    make_ids(ids, QUERY + 1, 113);
    assert_int_equal(harness_open(&h, &toy->config, &toy->plan, &toy->weights, &o), 0);
    harness_append(&h, 0, ids, QUERY, NULL);
    memset(&seen, 0, sizeof seen);
    seen.run = h.be->op[OP_index_select];
    h.be->op[OP_index_select] = note_selection;
    harness_append(&h, 0, ids + QUERY, 1, NULL);
    assert_int_equal(seen.n, 5);
    for (int i = 0; i < seen.n; i++)
        assert_memory_equal(seen.rows[i], selected[i], sizeof *selected);
    assert_memory_equal(seen.block, candidates, sizeof candidates);
    harness_close(&h);
    arena_free(&arena);
}

static void hash_rows_are_those_of_the_specification(void **state)
{
    static const int32_t first[2][6] = {{4, 64, 134, 230, 303, 370}, {65, 96, 179, 305, 376, 492}};
    static const int32_t tenth[2][6] = {
        {42, 54, 152, 215, 263, 328}, {56, 158, 234, 279, 448, 465}};
    struct arena arena = {0};
    struct toy_model *toy = make_toy(toy_v41, &arena);
    int32_t ids[10], history[3] = {-1, -1, -1}, rows[6];
    (void)state;
    make_ids(ids, 10, 113);
    for (int table = 0; table < 2; table++) {
        struct batch b = {.n = 1, .id = ids, .history = history};
        engram_hash(&toy->config, table, &b, rows);
        assert_memory_equal(rows, first[table], sizeof rows);
        int32_t before[3] = {ids[8], ids[7], ids[6]};
        b = (struct batch){.n = 1, .id = ids + 9, .history = before};
        engram_hash(&toy->config, table, &b, rows);
        assert_memory_equal(rows, tenth[table], sizeof rows);
    }
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_the_specification),
        cmocka_unit_test(drafts_are_those_of_the_specification),
        cmocka_unit_test(drafts_do_not_depend_on_the_batch),
        cmocka_unit_test(drafts_do_not_depend_on_when_rings_were_filled),
        cmocka_unit_test(drafts_do_not_depend_on_undone_rows),
        cmocka_unit_test(selection_is_that_of_the_specification),
        cmocka_unit_test(hash_rows_are_those_of_the_specification),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
