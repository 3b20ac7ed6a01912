/* bind.c: see bind.h.
 *
 * The formats whose elements are bytes (FP8, FP4) are told apart by shapes alone: of the data
 * against the shape that the model demands, and of the scales against the data. Where two tile
 * sizes fit the same scales they also mean the same.
 */
#include "model/bind.h"

#include <stdio.h>
#include <string.h>

struct binding {
    struct model_weights *weights;
    const struct tensor_source *source;
    struct arena *arena;
    uint64_t n_byte;
    struct err *e;
};

/* ---- Shapes ---- */

struct shape {
    int n_dim;
    const int64_t *dim;
};

/* Equal but for leading dimensions of size 1, which files keep or drop as they like. */
static int same_shape(struct shape a, struct shape b)
{
    while (a.n_dim > 1 && a.dim[0] == 1) {
        a.n_dim--;
        a.dim++;
    }
    while (b.n_dim > 1 && b.dim[0] == 1) {
        b.n_dim--;
        b.dim++;
    }
    if (a.n_dim != b.n_dim)
        return 0;
    for (int i = 0; i < a.n_dim; i++)
        if (a.dim[i] != b.dim[i])
            return 0;
    return 1;
}

/* `wanted` with another inner dimension. */
static int same_but_inner(struct shape found, struct shape wanted, int64_t inner)
{
    int64_t dim[TENSOR_MAX_DIM];
    for (int i = 0; i < wanted.n_dim; i++)
        dim[i] = wanted.dim[i];
    dim[wanted.n_dim - 1] = inner;
    return same_shape(found, (struct shape){wanted.n_dim, dim});
}

static int scales_fit(enum dtype type, const struct stored_tensor *scale, struct shape wanted)
{
    const struct dtype_info *info = dtype_info(type);
    int64_t dim[TENSOR_MAX_DIM];
    for (int i = 0; i < wanted.n_dim; i++) {
        int tile = i == wanted.n_dim - 1   ? info->scale_cols
                   : i == wanted.n_dim - 2 ? info->scale_rows
                                           : 1;
        dim[i] = (wanted.dim[i] + tile - 1) / tile;
    }
    return same_shape((struct shape){scale->n_dim, scale->dim}, (struct shape){wanted.n_dim, dim});
}

/* The format of byte elements, or -1. */
static int byte_format(
    const struct stored_tensor *t, const struct stored_tensor *scale, struct shape wanted)
{
    static const enum dtype with_scales[] = {DT_FP8_TILE32, DT_FP8_TILE128, DT_FP8_ROW32};
    struct shape found = {t->n_dim, t->dim};
    int64_t inner = wanted.dim[wanted.n_dim - 1];
    if (!scale)
        return inner % 32 == 0 && same_but_inner(found, wanted, inner / 32 * 33) ? DT_FP8_PACK32
                                                                                 : -1;
    if (inner % 32 == 0 && same_but_inner(found, wanted, inner / 2))
        return scales_fit(DT_FP4_ROW, scale, wanted) ? DT_FP4_ROW : -1;
    if (!same_shape(found, wanted))
        return -1;
    for (size_t i = 0; i < sizeof with_scales / sizeof *with_scales; i++)
        if (scales_fit(with_scales[i], scale, wanted))
            return (int)with_scales[i];
    return -1;
}

/* ---- One tensor ---- */

static const char *describe(const char *type, struct shape s, char text[128])
{
    int n = snprintf(text, 128, "%.20s [", type);
    for (int i = 0; i < s.n_dim; i++)
        n += snprintf(text + n, 128 - (size_t)n, i ? ", %lld" : "%lld", (long long)s.dim[i]);
    snprintf(text + n, 128 - (size_t)n, "]");
    return text;
}

static int refuse(const struct binding *b, const char *name, const struct stored_tensor *t,
    const struct stored_tensor *scale, struct shape wanted)
{
    char found[128], expected[128], scales[140] = "";
    if (scale)
        describe(" with scales", (struct shape){scale->n_dim, scale->dim}, scales);
    return err_set(b->e, ERR_SHAPE, "%s: tensor %s: found %s%s, expected%s", b->source->path, name,
        describe(t->type_name, (struct shape){t->n_dim, t->dim}, found), scales,
        describe("", wanted, expected));
}

/* "X.scale" for "X.weight". */
static void scale_name(const char *name, char text[WEIGHT_MAX_NAME])
{
    size_t n = strlen(name), tail = strlen(".weight");
    if (n > tail && !strcmp(name + n - tail, ".weight"))
        n -= tail;
    snprintf(text, WEIGHT_MAX_NAME, "%.*s.scale", (int)n, name);
}

static int find_scale(const struct binding *b, const char *name, struct stored_tensor *scale)
{
    char text[WEIGHT_MAX_NAME];
    scale_name(name, text);
    return b->source->find(b->source->context, text, scale) && scale->type == DT_I8;
}

/* Data that kernels may read as numbers of its size: files can put it at any byte. */
static const void *aligned(
    const struct binding *b, enum dtype type, const void *data, int64_t n_byte)
{
    const struct dtype_info *info = dtype_info(type);
    int is_number = info->block == 1 && info->block_bytes > 1;
    if (!is_number || (uintptr_t)data % (uintptr_t)info->block_bytes == 0)
        return data;
    return arena_copy(b->arena, data, (size_t)n_byte);
}

/* Turns what was found into a tensor of the shape that is wanted. */
static int resolve(const struct binding *b, const char *name, const struct stored_tensor *t,
    struct shape wanted, struct tensor *out)
{
    struct stored_tensor scale;
    int has_scale = t->type == DT_I8 && find_scale(b, name, &scale);
    const struct stored_tensor *scales = has_scale ? &scale : NULL;
    int type = t->type == DT_I8 ? byte_format(t, scales, wanted) : t->type;
    int64_t n_byte = type < 0 ? -1 : tensor_data_bytes((enum dtype)type, wanted.n_dim, wanted.dim);
    if (t->type < 0)
        return err_set(b->e, ERR_UNSUPPORTED, "%s: tensor %s: format %s is not supported",
            b->source->path, name, t->type_name);
    if (n_byte < 0 || (t->type != DT_I8 && !same_shape((struct shape){t->n_dim, t->dim}, wanted)))
        return refuse(b, name, t, scales, wanted);
    const int64_t *d = wanted.dim;
    *out = tensor_of(
        (enum dtype)type, NULL, d[0], wanted.n_dim > 1 ? d[1] : 0, wanted.n_dim > 2 ? d[2] : 0, 0);
    out->data = (void *)(uintptr_t)aligned(b, out->type, t->data, n_byte);
    out->scale = dtype_info(out->type)->scale_rows ? scale.data : NULL;
    return out->data ? 0
                     : err_set(b->e, ERR_MEMORY, "%s: tensor %s: no memory for a copy",
                           b->source->path, name);
}

/* ---- A field ---- */

static int is_integer(enum dtype type)
{
    return type == DT_I32 || type == DT_I64 || type == DT_I8;
}

static int finish(
    struct binding *b, const struct weight_slot *slot, struct tensor *t, const char *name)
{
    if (is_integer(t->type) != (slot->klass == CLASS_IDS))
        return err_set(b->e, ERR_SHAPE, "%s: tensor %s: found %s, expected %s", b->source->path,
            name, dtype_info(t->type)->name,
            slot->klass == CLASS_IDS ? "I32 or I64" : "a floating-point format");
    char own[WEIGHT_MAX_NAME];
    weight_slot_gguf_name(slot, 0, own);
    t->name = arena_copy(b->arena, own, strlen(own));
    b->n_byte += (uint64_t)(tensor_data_bytes(t->type, t->n_dim, t->dim) +
                            tensor_scale_bytes(t->type, t->n_dim, t->dim));
    *weight_slot_tensor(b->weights, slot) = *t;
    return t->name ? 0 : err_set(b->e, ERR_MEMORY, "%s: no memory for names", b->source->path);
}

/* Finds the tensor under the first of its names that the file has; expert -1: GGUF names. */
static int find_named(const struct binding *b, const struct weight_slot *slot, int expert,
    char name[WEIGHT_MAX_NAME], struct stored_tensor *t)
{
    char first[WEIGHT_MAX_NAME];
    for (int alias = 0; alias < WEIGHT_MAX_ALIAS; alias++) {
        if (b->source->has_expert_parts)
            weight_slot_checkpoint_name(slot, alias, expert, name);
        else
            weight_slot_gguf_name(slot, alias, name);
        if (!alias)
            memcpy(first, name, sizeof first);
        if (*name && b->source->find(b->source->context, name, t))
            return 0;
    }
    return err_set(b->e, ERR_FORMAT, "%s: tensor %s is missing", b->source->path, first);
}

/* Experts of a checkpoint: one address per expert, all in one format. */
static int bind_parts(struct binding *b, const struct weight_slot *slot)
{
    char name[WEIGHT_MAX_NAME];
    size_t n = (size_t)slot->dim[0];
    const void **part = ARENA_NEW(b->arena, const void *, n),
               **scale = ARENA_NEW(b->arena, const void *, n);
    if (!part || !scale)
        return err_set(b->e, ERR_MEMORY, "%s: no memory for a list of experts", b->source->path);
    struct tensor whole = {0};
    for (size_t i = 0; i < n; i++) {
        struct stored_tensor t;
        struct tensor one;
        if (find_named(b, slot, (int)i, name, &t) ||
            resolve(b, name, &t, (struct shape){2, slot->dim + 1}, &one))
            return -1;
        if (!i)
            whole = tensor_of(one.type, NULL, slot->dim[0], slot->dim[1], slot->dim[2], 0);
        if (one.type != whole.type)
            return err_set(b->e, ERR_SHAPE,
                "%s: tensor %s: found %s, expected %s as for the other experts", b->source->path,
                name, dtype_info(one.type)->name, dtype_info(whole.type)->name);
        part[i] = one.data;
        scale[i] = one.scale;
    }
    whole.part = part;
    whole.scale_part = dtype_info(whole.type)->scale_rows ? scale : NULL;
    return finish(b, slot, &whole, name);
}

static int bind_slot(void *context, const struct weight_slot *slot)
{
    struct binding *b = context;
    if (b->source->has_expert_parts && weight_slot_is_stacked(slot))
        return bind_parts(b, slot);
    char name[WEIGHT_MAX_NAME];
    struct stored_tensor t;
    struct tensor bound;
    if (find_named(b, slot, 0, name, &t) ||
        resolve(b, name, &t, (struct shape){slot->n_dim, slot->dim}, &bound))
        return -1;
    return finish(b, slot, &bound, name);
}

/* Experts named by a token table must exist: the router reads their rows without another look. */
static int check_expert_ids(const struct tensor *t, int n_expert, const char *path, struct err *e)
{
    float row[64];
    for (int64_t r = 0; r < tensor_n_row(t); r++) {
        tensor_decode(t, r, 0, tensor_n_col(t), row);
        for (int64_t k = 0; k < tensor_n_col(t); k++)
            if (!(row[k] >= 0 && row[k] < (float)n_expert))
                return err_set(e, ERR_FORMAT,
                    "%s: tensor %s: token %lld is sent to expert %g of %d", path, t->name,
                    (long long)r, (double)row[k], n_expert);
    }
    return 0;
}

static int bind_stage_slot(void *context, const struct weight_slot *slot)
{
    return slot->stage < 0 ? 0 : bind_slot(context, slot);
}

int bind_draft_weights(struct bind_target *target, const struct tensor_source *source, struct err *e)
{
    struct binding b = {target->weights, source, target->arena, 0, e};
    int failed = weights_each_slot(target->config, target->plan, bind_stage_slot, &b);
    target->n_byte = b.n_byte;
    return failed;
}

int bind_weights(struct bind_target *target, const struct tensor_source *source, struct err *e)
{
    struct binding b = {target->weights, source, target->arena, 0, e};
    const struct model_config *c = target->config;
    *target->weights = (struct model_weights){0};
    if (weights_each_slot(c, target->plan, bind_slot, &b))
        return -1;
    for (int layer = 0; layer < c->n_layer; layer++) {
        const struct tensor *t = &target->weights->layer[layer].ffn_gate_tid2eid;
        if (t->n_dim && check_expert_ids(t, c->n_expert, source->path, e))
            return -1;
    }
    target->n_byte = b.n_byte;
    return 0;
}
