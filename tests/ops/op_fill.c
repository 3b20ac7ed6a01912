/* op_fill.c: see op_fill.h. Indices are chosen by field name; within each tensor the first entries
 * are edge cases. */
#include "ops/op_fill.h"

#include "tensor/round.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *row_of(const struct case_tensor *ct, int64_t r)
{
    return ct->image + ct->data_at + r * ct->t.row_bytes;
}

static int int_argument(const struct op_case *c, const char *name)
{
    const struct op_info *info = op_info(c->op);
    int value = 0;
    for (int f = 0; f < info->n_field; f++)
        if (info->field[f].kind == OP_INT && !strcmp(info->field[f].name, name))
            memcpy(&value, c->args + info->field[f].offset, sizeof value);
    return value;
}

static int is_given(const struct op_case *c, const char *name)
{
    const struct op_info *info = op_info(c->op);
    for (int f = 0; f < info->n_field; f++)
        if (info->field[f].kind == OP_TENSOR && !strcmp(info->field[f].name, name))
            return c->tensor[f].is_used;
    return 0;
}

/* ---- Integers ---- */

/* Edge values first, then uniform in [0, limit]. */
static int64_t up_to(int64_t limit, int64_t i, struct rng *rng)
{
    if (i == 0 || limit <= 0)
        return limit;
    return i == 1 ? limit / 2 : (int64_t)rng_below(rng, (uint64_t)limit + 1);
}

static int64_t min_size(const struct op_case *c, char a, char b)
{
    int64_t x = c->size[(int)a], y = c->size[(int)b];
    return x < 0 ? y : y < 0 ? x : x < y ? x : y;
}

static int64_t vector_entry(const struct op_case *c, const char *name, int64_t i, struct rng *rng)
{
    if (!strcmp(name, "slot"))
        return (int64_t)rng_below(rng, (uint64_t)c->size['S']);
    if (!strcmp(name, "id"))
        return up_to((c->op == OP_gather ? c->size['v'] : c->size['V']) - 1, i, rng);
    if (!strcmp(name, "at"))
        return 3 * c->size['c'] - 2 + i;
    if (!strcmp(name, "visible"))
        return up_to(min_size(c, 'c', 't'), i, rng);
    if (!strcmp(name, "last"))
        return i == 1 ? -1 : i == 2 ? 1 : (int64_t)rng_below(rng, (uint64_t)(3 * c->size['R']));
    if (!strcmp(name, "first"))
        return (int64_t)rng_below(rng, (uint64_t)(2 * c->size['R']));
    if (!strcmp(name, "n_row"))
        return i == 1 ? 0
                      : up_to(is_given(c, "rows") ? min_size(c, 'k', 'c') : c->size['c'], i, rng);
    if (!strcmp(name, "n_block"))
        return up_to(c->size['b'], i, rng);
    if (c->op == OP_pool) {
        int ratio = int_argument(c, "ratio");
        return ratio * (int64_t)(i < 2 ? i : (int64_t)rng_below(rng, 1000)) + ratio - 1;
    }
    return i == 0 ? 1048575 : (int64_t)rng_below(rng, 70000); /* pos */
}

/* n distinct values below limit, ascending. */
static void fill_ascending(uint8_t *row, int64_t n, int64_t limit, struct rng *rng)
{
    int64_t left = n;
    for (int64_t x = 0; x < limit && left; x++) {
        if ((int64_t)rng_below(rng, (uint64_t)(limit - x)) >= left)
            continue;
        int32_t value = (int32_t)x;
        memcpy(row + 4 * (n - left), &value, sizeof value);
        left--;
    }
}

static void fill_index_matrix(
    const struct op_case *c, const struct op_field *f, struct case_tensor *ct, struct rng *rng)
{
    int64_t n_col = tensor_n_col(&ct->t);
    for (int64_t r = 0; r < tensor_n_row(&ct->t); r++) {
        if (!strcmp(f->name, "rows")) {
            fill_ascending(row_of(ct, r), n_col, c->size['c'], rng);
            continue;
        }
        if (!strcmp(f->name, "block")) {
            int64_t n_key = c->size['t'] > 0 ? c->size['t'] : c->size['c'];
            fill_ascending(row_of(ct, r), n_col, n_key / int_argument(c, "block_size") + 1, rng);
            continue;
        }
        for (int64_t i = 0; i < n_col; i++) { /* experts */
            int64_t wide = (int64_t)rng_below(rng, (uint64_t)c->size['E']);
            int32_t narrow = (int32_t)wide;
            if (ct->t.type == DT_I64)
                memcpy(row_of(ct, r) + 8 * i, &wide, sizeof wide);
            else
                memcpy(row_of(ct, r) + 4 * i, &narrow, sizeof narrow);
        }
    }
}

static void fill_index(
    const struct op_case *c, const struct op_field *f, struct case_tensor *ct, struct rng *rng)
{
    if (ct->t.n_dim > 1) {
        fill_index_matrix(c, f, ct, rng);
        return;
    }
    for (int64_t i = 0; i < ct->t.dim[0]; i++) {
        int32_t value = (int32_t)vector_entry(c, f->name, i, rng);
        memcpy(row_of(ct, 0) + 4 * i, &value, sizeof value);
    }
}

/* ---- Floats ---- */

static float random_value(const struct op_case *c, const struct op_field *f, struct rng *rng)
{
    float x = (rng_float(rng) + rng_float(rng) + rng_float(rng) - 1.5f) * 2;
    if (!strcmp(f->name, "s") || c->op == OP_argmax)
        return roundf(x * 16) / 16; /* ties */
    if (!strcmp(f->name, "logits") || !strcmp(f->name, "gate") || !strcmp(f->name, "score"))
        return x * 5;
    return x;
}

static void fill_floats(
    const struct op_case *c, const struct op_field *f, struct case_tensor *ct, struct rng *rng)
{
    int64_t n = tensor_n_col(&ct->t);
    float *values = malloc((size_t)n * sizeof *values);
    for (int64_t r = 0; r < tensor_n_row(&ct->t); r++) {
        for (int64_t i = 0; i < n; i++)
            values[i] = random_value(c, f, rng);
        tensor_encode(ct->t.type, values, n, row_of(ct, r));
    }
    free(values);
}

/* Where a block keeps halves (scales as f16) and a scale byte (E8M0); everything else may be any
 * bits. */
static const struct scales {
    enum dtype type;
    int half[2], n_half, exponent;
} scale_places[] = {
    {DT_Q8_0, {0}, 1, -1},
    {DT_Q2_K, {80, 82}, 2, -1},
    {DT_Q3_K, {108}, 1, -1},
    {DT_Q4_K, {0, 2}, 2, -1},
    {DT_Q5_K, {0, 2}, 2, -1},
    {DT_Q6_K, {208}, 1, -1},
    {DT_IQ2_XXS, {0}, 1, -1},
    {DT_IQ3_XXS, {0}, 1, -1},
    {DT_IQ4_XS, {0}, 1, -1},
    {DT_MXFP4, {0}, 0, 0},
    {DT_FP4_ROW, {0}, 0, -1},
};

static uint8_t random_exponent(struct rng *rng)
{
    return (uint8_t)(120 + rng_below(rng, 10));
}

static void fix_block(uint8_t *block, enum dtype type, struct rng *rng)
{
    for (size_t i = 0; i < sizeof scale_places / sizeof *scale_places; i++) {
        const struct scales *s = &scale_places[i];
        if (s->type != type)
            continue;
        for (int h = 0; h < s->n_half; h++) {
            uint16_t half = float_to_f16((rng_float(rng) - .5f) * .125f);
            memcpy(block + s->half[h], &half, sizeof half);
        }
        if (s->exponent >= 0)
            block[s->exponent] = random_exponent(rng);
    }
}

static void fill_quantised(struct case_tensor *ct, struct rng *rng)
{
    const struct dtype_info *type = dtype_info(ct->t.type);
    int is_fp8 = ct->t.type >= DT_FP8_TILE32 && ct->t.type <= DT_FP8_PACK32;
    int64_t n_col = tensor_n_col(&ct->t);
    for (int64_t r = 0; r < tensor_n_row(&ct->t); r++) {
        uint8_t *row = row_of(ct, r);
        for (int64_t i = 0; i < ct->t.row_bytes; i++) {
            row[i] = (uint8_t)rng_next(rng);
            if (is_fp8 && (row[i] & 127) == 127) /* no NaN: weights have none */
                row[i] &= 0xf0;
            if (ct->t.type == DT_FP8_PACK32 && i >= n_col)
                row[i] = random_exponent(rng);
        }
        for (int64_t b = 0; b < n_col / type->block && !is_fp8; b++)
            fix_block(row + b * type->block_bytes, ct->t.type, rng);
    }
    int64_t n_scale = tensor_scale_bytes(ct->t.type, ct->t.n_dim, ct->t.dim);
    for (int64_t i = 0; i < n_scale; i++)
        ct->image[ct->scale_at + i] = random_exponent(rng);
}

static void fill_poison(struct case_tensor *ct)
{
    uint32_t poison = FILL_POISON;
    for (int64_t r = 0; r < tensor_n_row(&ct->t); r++)
        for (int64_t i = 0; i < tensor_n_col(&ct->t); i++)
            memcpy(row_of(ct, r) + 4 * i, &poison, sizeof poison);
}

void fill_tensor(
    struct op_case *c, const struct op_field *f, struct case_tensor *ct, struct rng *rng)
{
    if (f->role == OP_OUT || f->role == OP_OPT_OUT)
        fill_poison(ct);
    else if (ct->t.type == DT_I32 || ct->t.type == DT_I64)
        fill_index(c, f, ct, rng);
    else if (ct->t.type == DT_F32 || ct->t.type == DT_F16 || ct->t.type == DT_BF16)
        fill_floats(c, f, ct, rng);
    else
        fill_quantised(ct, rng);
}
