/* op_compare.c: see op_compare.h. */
#include "ops/op_compare.h"

#include "ops/op_fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Who may differ from the reference, and by how much: relative to the largest value of the tensor.
 * Everything that is not listed returns the reference's bits. */
static const struct {
    const char *backend;
    double bound;
} inexact_backends[] = {{"cuda", 2e-5}, {"metal", 2e-5}};
static const enum op inexact_ops[] = {
    OP_matmul, OP_matmul_grouped, OP_matmul_each, OP_gated_mlp, OP_expert_mlp, OP_index_score, OP_index_select,
    OP_attend, OP_mhc_mix, OP_mhc_head, OP_mhc_open};

static double bound_of(const char *backend, enum op op)
{
    double bound = 0;
    for (size_t i = 0; i < sizeof inexact_backends / sizeof *inexact_backends; i++)
        if (!strcmp(inexact_backends[i].backend, backend))
            bound = inexact_backends[i].bound;
    for (size_t i = 0; i < sizeof inexact_ops / sizeof *inexact_ops; i++)
        if (inexact_ops[i] == op)
            return bound;
    return 0;
}

const char *compare_places(const struct op_case *c, int f, const struct case_result *r)
{
    const struct case_tensor *ct = &c->tensor[f];
    const struct op_field *field = &op_info(c->op)->field[f];
    int64_t n_used =
        tensor_n_col(&ct->t) / dtype_info(ct->t.type)->block * dtype_info(ct->t.type)->block_bytes;
    int must_write = field->role == OP_OUT || field->role == OP_OPT_OUT;
    for (int64_t i = 0; i < ct->n_byte; i++) {
        int64_t at = i - ct->data_at;
        int is_value =
            ct->is_output && at >= 0 && at < ct->data_bytes && at % ct->t.row_bytes < n_used;
        uint32_t word;
        if (!is_value && r->image[f][i] != ct->image[i])
            return "bytes outside of the output values";
        if (!is_value || !must_write || at % ct->t.row_bytes % 4)
            continue;
        memcpy(&word, r->image[f] + i, sizeof word);
        if (word == FILL_POISON)
            return "an output value that was not written";
    }
    return NULL;
}

static int has_same_bytes(
    const struct op_case *c, int f, const struct case_result *a, const struct case_result *b)
{
    return !c->tensor[f].is_used ||
           !memcmp(a->image[f], b->image[f], (size_t)c->tensor[f].n_byte);
}

static double largest_difference(const struct case_tensor *ct, const uint8_t *a, const uint8_t *b)
{
    double largest = 0, difference = 0;
    for (int64_t i = 0; i + 4 <= ct->data_bytes; i += 4) {
        float x, y;
        memcpy(&x, a + ct->data_at + i, sizeof x);
        memcpy(&y, b + ct->data_at + i, sizeof y);
        if (!(fabs((double)x) < 1e30))
            continue;
        largest = fmax(largest, fabs((double)x));
        difference =
            fabs((double)x - y) > difference || isnan(y) ? fabs((double)x - y) : difference;
    }
    return largest > 0 ? difference / largest : difference;
}

/* ---- Selections ---- */

/* The reference's scores of one row's keys, and of the blocks when size is not 1. */
struct scores {
    const float *score;
    int64_t n_key;
    int size;
    double bound;
};

/* The best score of block b; -infinity for what is no block. */
static double block_score(const struct scores *s, int64_t b)
{
    double best = -INFINITY;
    for (int64_t i = b * s->size; b >= 0 && i < (b + 1) * s->size && i < s->n_key; i++)
        best = fmax(best, (double)s->score[i]);
    return best;
}

static int has(const int32_t *list, int64_t n, int32_t x)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] == x)
            return 1;
    return 0;
}

/* Entries that only one list has must score alike; both are ascending and equally long. */
static int is_close_choice(
    const struct scores *s, const int32_t *expected, const int32_t *chosen, int64_t n)
{
    double worst = -INFINITY, best = INFINITY; /* of what is chosen too much, and too little */
    for (int64_t i = 0; i < n; i++) {
        if ((i && chosen[i] <= chosen[i - 1] && chosen[i] >= 0) || chosen[i] < -1)
            return 0;
        if ((chosen[i] < 0) != (expected[i] < 0))
            return 0;
        if (!has(chosen, n, expected[i]))
            worst = fmax(worst, block_score(s, expected[i]));
        if (!has(expected, n, chosen[i]))
            best = fmin(best, block_score(s, chosen[i]));
    }
    return worst == -INFINITY || worst - best <= s->bound;
}

/* Both choices of every row, against scores that the reference computes on the case's inputs. */
static const char *compare_selection(const struct comparison *k, double bound)
{
    uint8_t *image[OP_MAX_FIELD], *of_result[OP_MAX_FIELD];
    struct tensor t[OP_MAX_FIELD], chosen[OP_MAX_FIELD];
    _Alignas(16) unsigned char args[OP_MAX_ARGS], result_args[OP_MAX_ARGS];
    const struct op_index_select *a = (const void *)args, *b = (const void *)result_args;
    memcpy(image, k->expected->image, sizeof image);
    memcpy(of_result, k->result->image, sizeof of_result);
    case_args(k->c, image, t, args);
    case_args(k->c, of_result, chosen, result_args);
    int64_t n = a->q->dim[0], n_key = a->keys->dim[1];
    float *values = calloc((size_t)(n * n_key), sizeof *values);
    struct tensor s = tensor_of(DT_F32, values, n, n_key, 0, 0);
    k->ref->kind->begin(k->ref, 0);
    RUN(k->ref, index_score, .s = &s, .q = a->q, .w = a->w, .keys = a->keys, .slot = a->slot,
        .visible = a->visible, .scale = a->scale);
    int is_close = !backend_end(k->ref, NULL);
    double largest = 0;
    for (int64_t i = 0; i < n * n_key; i++)
        largest = fmax(largest, fabs((double)values[i]));
    for (int64_t r = 0; r < n && is_close; r++) {
        int64_t n_visible = ((const int32_t *)a->visible->data)[r];
        struct scores row = {values + r * n_key, n_visible, 1, 2 * bound * largest};
#define ROW(x) ((const int32_t *)(const void *)((const char *)(x)->data + r * (x)->row_bytes))
        is_close = is_close_choice(&row, ROW(a->rows), ROW(b->rows), a->rows->dim[1]);
        row.size = a->block_size;
        if (a->make_block && is_close)
            is_close = is_close_choice(
                &row, ROW(a->make_block), ROW(b->make_block), a->make_block->dim[1]);
    }
    free(values);
    return is_close ? NULL : "chooses what the reference scores clearly lower";
}

const char *compare_results(const struct comparison *k)
{
    const struct op_case *c = k->c;
    double bound = bound_of(k->backend, c->op);
    int is_other = 0;
    for (int f = 0; f < OP_MAX_FIELD; f++) {
        const struct case_tensor *ct = &c->tensor[f];
        if (bound > 0 && k->in_one_call->image[f] &&
            !has_same_bytes(c, f, k->in_one_call, k->result))
            return "a row's bits depend on the rows beside it";
        if (has_same_bytes(c, f, k->expected, k->result))
            continue;
        is_other = 1;
        if (bound == 0)
            return "differs from the reference";
        if (compare_places(c, f, k->result))
            return compare_places(c, f, k->result);
        if (ct->t.type != DT_F32 && (c->op != OP_index_select || ct->t.n_dim < 2))
            return "integers differ from the reference";
        if (ct->t.type == DT_F32 && !(largest_difference(ct, k->expected->image[f],
                                          k->result->image[f]) <= bound))
            return "differs from the reference by more than the bound";
    }
    return is_other && c->op == OP_index_select ? compare_selection(k, bound) : NULL;
}
