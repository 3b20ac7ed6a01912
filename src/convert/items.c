/* items.c: see items.h.
 *
 *   in the checkpoint            kept means
 *   F32, F16, BF16, block types  the same bytes
 *   FP4, a scale per row and 32  MXFP4, the same values in other places
 *   FP8, a scale per tile        I8 tensor of the E4M3 bytes and I8 tensor NAME.scale of the E8M0
 * bytes FP8, a scale per row and 32  I8 rows of the E4M3 bytes, then the E8M0 bytes I64 expert
 * numbers           I32
 */
#include "convert/items.h"

#include "tensor/encode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Rows ---- */

struct row_bytes {
    const uint8_t *data, *scale;
};

/* Row r of a tensor in memory, and the scales of that row where every row has its own. */
static struct row_bytes find_row(const struct tensor *t, int64_t row)
{
    struct tensor m = *t;
    if (t->n_dim == 3) {
        m = tensor_matrix(t, row / t->dim[1]);
        row %= t->dim[1];
    }
    struct row_bytes r = {(const uint8_t *)m.data + row * m.row_bytes, NULL};
    if (dtype_info(m.type)->scale_rows == 1)
        r.scale =
            (const uint8_t *)m.scale + row * (tensor_n_col(&m) / dtype_info(m.type)->scale_cols);
    return r;
}

static int has_byte(const uint8_t *bytes, int64_t n, uint8_t byte)
{
    return memchr(bytes, byte, (size_t)n) != NULL;
}

/* E4M3 bytes 0x7f and 0xff are no numbers. */
static int has_fp8_nan(const uint8_t *bytes, int64_t n)
{
    return has_byte(bytes, n, 0x7f) || has_byte(bytes, n, 0xff);
}

/* Decodes a row into scratch; -1 when a value is infinite or not a number. */
static int decode_row(const struct item *item, int64_t row, float *scratch)
{
    int64_t n = tensor_n_col(item->source);
    tensor_decode(item->source, row, 0, n, scratch);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(scratch[i]))
            return -1;
    return 0;
}

static int copy_row(const struct item *item, int64_t row, uint8_t *out, float *scratch)
{
    memcpy(out, find_row(item->source, row).data, (size_t)item->row_bytes);
    return decode_row(item, row, scratch);
}

static int copy_fp8_row(const struct item *item, int64_t row, uint8_t *out, float *scratch)
{
    (void)scratch;
    memcpy(out, find_row(item->source, row).data, (size_t)item->row_bytes);
    return has_fp8_nan(out, item->row_bytes) ? -1 : 0;
}

/* Row r of the scale arrays, one array per slice of a 3-d tensor. */
static int copy_scales(const struct item *item, int64_t row, uint8_t *out, float *scratch)
{
    (void)scratch;
    const struct tensor *t = item->source;
    int64_t per_slice = item->dim[item->n_dim - 2];
    struct tensor m = t->n_dim == 3 ? tensor_matrix(t, row / per_slice) : *t;
    memcpy(
        out, (const uint8_t *)m.scale + row % per_slice * item->row_bytes, (size_t)item->row_bytes);
    return has_byte(out, item->row_bytes, 255) ? -1 : 0;
}

static int repack_fp4(const struct item *item, int64_t row, uint8_t *out, float *scratch)
{
    (void)scratch;
    struct row_bytes r = find_row(item->source, row);
    int64_t n_block = tensor_n_col(item->source) / 32;
    fp4_repack_mxfp4(r.data, r.scale, n_block, out);
    return has_byte(r.scale, n_block, 255) ? -1 : 0;
}

static int pack_fp8(const struct item *item, int64_t row, uint8_t *out, float *scratch)
{
    (void)scratch;
    struct row_bytes r = find_row(item->source, row);
    int64_t n = tensor_n_col(item->source);
    memcpy(out, r.data, (size_t)n);
    memcpy(out + n, r.scale, (size_t)n / 32);
    return has_fp8_nan(r.data, n) || has_byte(r.scale, n / 32, 255) ? -1 : 0;
}

static int convert_ids(const struct item *item, int64_t row, uint8_t *out, float *scratch)
{
    int64_t n = tensor_n_col(item->source);
    tensor_decode(item->source, row, 0, n, scratch);
    for (int64_t i = 0; i < n; i++) {
        int32_t id = (int32_t)
            scratch[i]; /* checked against the number of experts when the model was opened */
        memcpy(out + 4 * i, &id, 4);
    }
    return 0;
}

static int encode_row(const struct item *item, int64_t row, uint8_t *out, float *scratch)
{
    if (decode_row(item, row, scratch))
        return -1;
    return tensor_encode(item->target, scratch, tensor_n_col(item->source), out);
}

/* ---- Choices ---- */

void items_default_choice(struct item_choice *choice)
{
    for (int i = 0; i < N_WEIGHT_CLASS; i++)
        choice->type[i] = i == CLASS_NORM ? DT_F32 : ITEMS_KEEP;
}

int items_can_write(enum dtype type)
{
    float zeros[256] = {0};
    uint8_t out[1024];
    return !tensor_encode(type, zeros, 256, out);
}

int items_choose(struct item_choice *choice, const char *text, struct err *e)
{
    char name[32];
    const char *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : sizeof name;
    if (n >= sizeof name)
        return err_set(e, ERR_ARGUMENT, "type '%.40s' is not CLASS=FORMAT", text);
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    int klass = weight_class_by_name(name), is_all = !strcmp(name, "all");
    int type = strcmp(equals + 1, "keep") ? dtype_by_name(equals + 1) : ITEMS_KEEP;
    if ((klass < 0 && !is_all) || klass == CLASS_IDS)
        return err_set(
            e, ERR_ARGUMENT, "type '%.40s': there is no class %s to choose for", text, name);
    if (strcmp(equals + 1, "keep") && (type < 0 || !items_can_write((enum dtype)type)))
        return err_set(
            e, ERR_ARGUMENT, "type '%.40s': format %.20s cannot be written", text, equals + 1);
    for (int i = 0; i < N_WEIGHT_CLASS; i++)
        if (i == klass || (is_all && i != CLASS_NORM && i != CLASS_IDS))
            choice->type[i] = type;
    return 0;
}

/* ---- Planning ---- */

struct planning {
    struct items *items;
    const struct model_weights *weights;
    const struct item_choice *choice;
    struct arena *arena;
    struct err *e;
    int is_table; /* which of the two passes: n-gram tables go last */
};

static struct item *add(struct planning *p, const struct tensor *source, const char *name)
{
    struct items *all = p->items;
    if (all->n == all->capacity) {
        int capacity = all->capacity ? 2 * all->capacity : 1024;
        struct item *more = ARENA_NEW(p->arena, struct item, (size_t)capacity);
        if (!more)
            return NULL;
        if (all->n)
            memcpy(more, all->item, (size_t)all->n * sizeof *more);
        all->item = more;
        all->capacity = capacity;
    }
    struct item *item = &all->item[all->n++];
    *item = (struct item){
        .source = source, .name = name, .n_dim = source->n_dim, .n_row = tensor_n_row(source)};
    memcpy(item->dim, source->dim, sizeof item->dim);
    return item;
}

static void set_format(struct item *item, enum dtype target, item_row_fn row)
{
    const struct dtype_info *info = dtype_info(target);
    int64_t n = tensor_n_col(item->source);
    item->target = target;
    item->row = row;
    item->row_bytes = n / info->block * info->block_bytes;
    item->ggml_type = info->ggml_type >= 0 ? info->ggml_type : dtype_info(DT_I8)->ggml_type;
    if (info->ggml_type < 0)
        item->dim[item->n_dim - 1] = item->row_bytes; /* a row of bytes */
    item->n_scratch = row == encode_row || row == copy_row || row == convert_ids ? n : 0;
}

static int add_scales(struct planning *p, const struct tensor *source, const char *name)
{
    size_t n = strlen(name), tail = strlen(".weight");
    char *own = arena_print(p->arena, "%.*s.scale",
        (int)(n > tail && !strcmp(name + n - tail, ".weight") ? n - tail : n), name);
    struct item *item = own ? add(p, source, own) : NULL;
    if (!item)
        return err_set(p->e, ERR_MEMORY, "no memory for the list of tensors");
    const struct dtype_info *info = dtype_info(source->type);
    int64_t *rows = &item->dim[item->n_dim - 2], *cols = &item->dim[item->n_dim - 1];
    *rows = (*rows + info->scale_rows - 1) / info->scale_rows;
    *cols = (*cols + info->scale_cols - 1) / info->scale_cols;
    item->target = DT_I8;
    item->ggml_type = dtype_info(DT_I8)->ggml_type;
    item->row = copy_scales;
    item->is_scale = 1;
    item->row_bytes = *cols;
    item->n_row = *rows * (item->n_dim == 3 ? item->dim[0] : 1);
    return 0;
}

static int keep(struct planning *p, struct item *item)
{
    const struct tensor *source = item->source;
    switch (source->type) {
    case DT_FP4_ROW:
        set_format(item, DT_MXFP4, repack_fp4);
        return 0;
    case DT_FP8_ROW32:
        set_format(item, DT_FP8_PACK32, pack_fp8);
        return 0;
    case DT_FP8_TILE32:
    case DT_FP8_TILE128:
        set_format(item, source->type, copy_fp8_row);
        return add_scales(p, source, item->name);
    case DT_I64:
        set_format(item, DT_I32, convert_ids);
        return 0;
    default:
        set_format(item, source->type, copy_row);
        return 0;
    }
}

static int plan_slot(void *context, const struct weight_slot *slot)
{
    struct planning *p = context;
    if ((slot->klass == CLASS_ENGRAM_TABLE) != p->is_table)
        return 0;
    const struct tensor *source =
        weight_slot_tensor((struct model_weights *)(uintptr_t)p->weights, slot);
    struct item *item = add(p, source, source->name);
    int target = p->choice->type[slot->klass];
    if (!item)
        return err_set(p->e, ERR_MEMORY, "no memory for the list of tensors");
    if (target == ITEMS_KEEP || target == (int)source->type)
        return keep(p, item);
    if (tensor_n_col(source) % dtype_info((enum dtype)target)->block)
        return err_set(p->e, ERR_ARGUMENT,
            "tensor %s: rows of %lld values, no multiple of the %d of %s; choose another format "
            "for %s",
            source->name, (long long)tensor_n_col(source), dtype_info((enum dtype)target)->block,
            dtype_info((enum dtype)target)->name, weight_class_name(slot->klass));
    set_format(item, (enum dtype)target, encode_row);
    return 0;
}

int items_plan(struct items *items, const struct model_file_info *model,
    const struct item_choice *choice, struct arena *arena, struct err *e)
{
    struct planning p = {items, model->weights, choice, arena, e, 0};
    *items = (struct items){0};
    for (; p.is_table < 2; p.is_table++)
        if (weights_each_slot(model->config, model->plan, plan_slot, &p))
            return -1;
    return 0;
}

uint64_t items_n_byte(const struct item *item)
{
    return (uint64_t)(item->n_row * item->row_bytes);
}
