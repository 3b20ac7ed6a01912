/* check.c: op_check: is a call sound before it runs?
 *
 * Most of it is generic: the list says which tensors an op needs, their types and their shapes as
 * letters; a letter must mean one size within a call. What letters cannot say is a rule per op, at
 * the end.
 */
#include "ops/ops.h"

#include <string.h>

enum { UNBOUND = -1 };

struct call {
    const struct op_info *info;
    const void *args;
    int64_t size[128]; /* of each shape letter, UNBOUND so far */
    struct err *e;
};

static int refuse(
    struct call *c, const struct op_field *f, const struct tensor *t, const char *expected)
{
    char found[96];
    return err_set(c->e, ERR_SHAPE, "op %s, argument %s%s%s: found %s, expected %s", c->info->name,
        f->name, t && t->name ? " = " : "", t && t->name ? t->name : "",
        t ? tensor_describe(t, found, sizeof found) : "nothing", expected);
}

static int is_type(enum op_type expected, enum dtype type)
{
    switch (expected) {
    case OP_F32:
        return type == DT_F32;
    case OP_I32:
        return type == DT_I32;
    case OP_IDS:
        return type == DT_I32 || type == DT_I64;
    case OP_CACHE:
        return type == DT_F32 || type == DT_BF16;
    case OP_WEIGHT:
        return type != DT_I32 && type != DT_I64;
    }
    return 0;
}

/* One dimension word, a product of letters and digits, against a size. A single unknown letter gets
 * its value. */
static int match_word(struct call *c, const char *word, int n_letter, int64_t size)
{
    int64_t known = 1;
    int unknown = 0;
    for (int i = 0; i < n_letter; i++) {
        int letter = word[i];
        int64_t value = letter >= '0' && letter <= '9' ? letter - '0' : c->size[letter];
        if (value == UNBOUND && unknown)
            return 0;
        if (value == UNBOUND)
            unknown = letter;
        else
            known *= value;
    }
    if (!unknown)
        return known == size;
    if (known == 0 || size % known)
        return 0;
    c->size[unknown] = size / known;
    return 1;
}

static int match_shape(struct call *c, const struct op_field *f, const struct tensor *t)
{
    const char *word = f->shape;
    for (int d = 0; *word; d++) {
        int n_letter = (int)strcspn(word, " ");
        int64_t size = d < t->n_dim ? t->dim[d] : UNBOUND;
        if (*word == '*') {
            size = tensor_n_row(t);
            d = t->n_dim - 2;
        }
        if (size < 0 || !match_word(c, word, n_letter, size))
            return 0;
        word += n_letter;
        word += *word == ' ';
        if (!*word && d + 1 != t->n_dim)
            return 0;
    }
    return 1;
}

static int check_tensor(struct call *c, const struct op_field *f)
{
    const struct tensor *t = op_tensor(c->args, f);
    if (!t)
        return f->role == OP_OPT || f->role == OP_OPT_OUT ? 0 : refuse(c, f, t, f->shape);
    static const char *const type_names[] = {
        "F32", "I32", "a weight format", "F32 or BF16", "I32 or I64"};
    if (!is_type(f->type, t->type))
        return refuse(c, f, t, type_names[f->type]);
    if (!match_shape(c, f, t))
        return refuse(c, f, t, f->shape);
    const struct dtype_info *type = dtype_info(t->type);
    if (tensor_n_col(t) % type->block)
        return refuse(c, f, t, "whole blocks");
    if (tensor_n_row(t) > 1 && t->row_bytes < tensor_n_col(t) / type->block * type->block_bytes &&
        !t->part)
        return refuse(c, f, t, "rows that do not overlap");
    if (tensor_n_value(t) && !t->data && !t->part)
        return refuse(c, f, t, "data");
    if (type->scale_rows && !t->scale && !t->scale_part)
        return refuse(c, f, t, "scales");
    return 0;
}

static void bind_letter(struct call *c, const struct op_field *f)
{
    if (f->kind == OP_INT && *f->shape) {
        int value;
        memcpy(&value, (const char *)c->args + f->offset, sizeof value);
        c->size[(int)*f->shape] = value;
    }
}

/* ---- What letters cannot say: NULL when sound, else what was expected ---- */

static int is_joined(const struct tensor *t)
{
    return tensor_n_row(t) < 2 || t->row_bytes == tensor_n_col(t) * 4;
}

static const char *rule_rope_tail(const void *args)
{
    const struct op_rope_tail *a = args;
    return 2 * a->cs->dim[1] <= a->x->dim[2] ? NULL : "2P <= d";
}

static const char *rule_hadamard(const void *args)
{
    const struct op_hadamard *a = args;
    int64_t d = tensor_n_col(a->x);
    return d > 0 && !(d & (d - 1)) ? NULL : "d a power of two";
}

static const char *check_blocks(const struct tensor *x, int block, int n_col)
{
    int64_t n = n_col ? n_col : tensor_n_col(x);
    if (block <= 0 || n_col < 0 || n > tensor_n_col(x))
        return "block > 0 and 0 <= n_col <= d";
    return n % block ? "whole groups of block values" : NULL;
}

static const char *rule_round_fp8(const void *args)
{
    const struct op_round_fp8 *a = args;
    return check_blocks(a->x, a->block, a->n_col);
}

static const char *rule_round_fp4(const void *args)
{
    const struct op_round_fp4 *a = args;
    return check_blocks(a->x, a->block, a->n_col);
}

static const char *rule_round_fp4_e4m3(const void *args)
{
    const struct op_round_fp4_e4m3 *a = args;
    return check_blocks(a->x, a->block, a->n_col);
}

/* What ops that rotate, mix and round rows need. */
static const char *check_chain(const struct tensor *x, const struct tensor *cs, int has_hadamard)
{
    int64_t d = tensor_n_col(x);
    if (2 * cs->dim[1] > d)
        return "2P <= d";
    return has_hadamard && (d <= 0 || d & (d - 1)) ? "d a power of two" : NULL;
}

static const char *check_rounding(const struct tensor *x, int rounding, int block, int n_col)
{
    if (rounding < ROUND_NONE || rounding > ROUND_FP4_E4M3)
        return "a rounding";
    return rounding == ROUND_NONE ? NULL : check_blocks(x, block, n_col);
}

static const char *rule_norm_rope(const void *args)
{
    const struct op_norm_rope *a = args;
    return check_chain(a->x, a->cs, 0);
}

static const char *rule_rotate_round(const void *args)
{
    const struct op_rotate_round *a = args;
    const char *expected = check_chain(a->x, a->cs, a->has_hadamard);
    return expected ? expected : check_rounding(a->x, a->rounding, a->block, a->n_col);
}

static const char *rule_keep_row(const void *args)
{
    const struct op_keep_row *a = args;
    const char *expected = check_chain(a->x, a->cs, a->has_hadamard);
    return expected ? expected : check_rounding(a->x, a->rounding, a->block, a->n_col);
}

static const char *rule_pool(const void *args)
{
    const struct op_pool *a = args;
    int64_t n_group = 1 + a->overlap;
    if (a->ratio < 1 || a->overlap < 0 || a->overlap > 1 || a->kv->dim[1] < a->ratio * n_group)
        return "overlap 0 or 1 and R >= ratio (1 + overlap)";
    return a->kv->dim[2] == a->y->dim[1] * n_group ? NULL : "w = d (1 + overlap)";
}

static const char *rule_topk(const void *args)
{
    const struct op_topk *a = args;
    if (!a->block != !a->n_block)
        return "block and n_block together";
    return a->block && a->block_size < 1 ? "block_size > 0" : NULL;
}

static const char *rule_candidate_blocks(const void *args)
{
    const struct op_candidate_blocks *a = args;
    return a->block_size > 0 && a->block->dim[1] > 0 ? NULL : "block_size > 0 and b > 0";
}

static const char *rule_index_select(const void *args)
{
    const struct op_index_select *a = args;
    if (!a->block != !a->n_block || !a->make_block != !a->n_make_block)
        return "blocks and their counts together";
    return (a->block || a->make_block) && a->block_size < 1 ? "block_size > 0" : NULL;
}

static const char *rule_attend(const void *args)
{
    const struct op_attend *a = args;
    if (a->window < 0 || a->ring->dim[1] < a->window)
        return "0 <= window <= R";
    return (a->comp && !a->n_row) || (a->rows && !a->comp) ? "comp with n_row, rows with comp"
                                                           : NULL;
}

static const char *rule_router(const void *args)
{
    const struct op_router *a = args;
    return a->idx->dim[1] <= a->logits->dim[1] ? NULL : "k <= E";
}

static const char *rule_mhc_mix(const void *args)
{
    const struct op_mhc_mix *a = args;
    int64_t s = a->x->dim[1];
    return is_joined(a->x) && a->base->dim[0] == (2 + s) * s ? NULL : "M = (2+S) S, contiguous x";
}

static const char *rule_mhc_open(const void *args)
{
    const struct op_mhc_open *a = args;
    int64_t s = a->x->dim[1];
    return is_joined(a->x) && a->base->dim[0] == (2 + s) * s ? NULL : "M = (2+S) S, contiguous x";
}

static const char *rule_mhc_head(const void *args)
{
    const struct op_mhc_head *a = args;
    return is_joined(a->x) ? NULL : "contiguous x";
}

static const char *rule_engram_gate(const void *args)
{
    const struct op_engram_gate *a = args;
    return a->kv->dim[1] == (a->x->dim[1] + 1) * a->x->dim[2] ? NULL : "K = (S+1) D";
}

static const char *(*const rules[N_OP])(const void *args) = {
    [OP_rope_tail] = rule_rope_tail,
    [OP_hadamard] = rule_hadamard,
    [OP_round_fp8] = rule_round_fp8,
    [OP_round_fp4] = rule_round_fp4,
    [OP_round_fp4_e4m3] = rule_round_fp4_e4m3,
    [OP_norm_rope] = rule_norm_rope,
    [OP_rotate_round] = rule_rotate_round,
    [OP_keep_row] = rule_keep_row,
    [OP_pool] = rule_pool,
    [OP_topk] = rule_topk,
    [OP_candidate_blocks] = rule_candidate_blocks,
    [OP_index_select] = rule_index_select,
    [OP_attend] = rule_attend,
    [OP_router] = rule_router,
    [OP_mhc_mix] = rule_mhc_mix,
    [OP_mhc_head] = rule_mhc_head,
    [OP_mhc_open] = rule_mhc_open,
    [OP_engram_gate] = rule_engram_gate,
};

int op_check(enum op op, const void *args, struct err *e)
{
    struct call c = {.info = op_info(op), .args = args, .e = e};
    memset(c.size, UNBOUND, sizeof c.size);
    for (int i = 0; i < c.info->n_field; i++)
        bind_letter(&c, &c.info->field[i]);
    for (int i = 0; i < c.info->n_field; i++)
        if (c.info->field[i].kind == OP_TENSOR && check_tensor(&c, &c.info->field[i]))
            return -1;
    const char *expected = rules[op] ? rules[op](args) : NULL;
    return expected ? err_set(e, ERR_SHAPE, "op %s: expected %s", c.info->name, expected) : 0;
}
