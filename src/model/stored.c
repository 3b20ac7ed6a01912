/* stored.c: finding, placing and loading. See stored.h; stored_run.c is the part in a forward pass. */
#include "model/stored_inside.h"

#include "model/weights_table.h"

#include <string.h>

enum { N_READ_THREAD = 16, MAX_FILE = 2048 };

/* ---- Where things are ---- */

struct place {
    const struct disk_file *file;
    uint64_t at;
};

/* The file position that an address is mapped from; 0: it is in no file. */
static int find_place(const struct stored *s, const void *address, uint64_t n_byte, struct place *p)
{
    const uint8_t *a = address;
    for (int i = 0; a && i < s->n_file; i++) {
        const struct file_part *part = &s->part[i];
        if (a < part->data || a >= part->data + part->n_byte ||
            n_byte > (uint64_t)(part->data + part->n_byte - a))
            continue;
        *p = (struct place){&s->file[i], (uint64_t)(a - part->data)};
        return 1;
    }
    return 0;
}

static int open_files(struct stored *s, const struct model_file *file, struct err *e)
{
    s->part = ARENA_NEW(&s->arena, struct file_part, MAX_FILE);
    s->file = ARENA_NEW(&s->arena, struct disk_file, MAX_FILE);
    if (!s->part || !s->file)
        return err_set(e, ERR_MEMORY, "no memory for a list of files");
    for (; s->n_file < MAX_FILE && model_file_part(file, s->n_file, &s->part[s->n_file]); s->n_file++) {
        const struct file_part *part = &s->part[s->n_file];
        struct disk_file *f = &s->file[s->n_file];
        if (disk_open(f, part->path, &s->calls, e))
            return -1;
        if (f->n_byte == part->n_byte)
            continue;
        s->n_file++; /* is open */
        return err_set(e, ERR_IO, "%s: has %llu bytes now, had %llu a moment ago", part->path,
            (unsigned long long)f->n_byte, (unsigned long long)part->n_byte);
    }
    return 0;
}

/* ---- Experts ---- */

/* Parts of an expert: data, and scales where the format has them, of gate, up and down. */
static int list_parts(const struct tensor *const m[3], struct expert_layer *l)
{
    l->n_part = 0;
    for (int i = 0; i < 3; i++) {
        l->n_byte[l->n_part++] = (uint64_t)tensor_data_bytes(m[i]->type, 2, m[i]->dim + 1);
        if (dtype_info(m[i]->type)->scale_rows)
            l->n_byte[l->n_part++] = (uint64_t)tensor_scale_bytes(m[i]->type, 2, m[i]->dim + 1);
    }
    return l->n_part;
}

/* Finds a matrix of an expert and its scales, parts `part` and, if there are scales, part + 1. */
static int place_matrix(
    struct stored *s, struct expert_layer *l, int64_t expert, const struct tensor *one, int part)
{
    int has_scale = dtype_info(one->type)->scale_rows != 0;
    for (int k = 0; k <= has_scale; k++) {
        struct place at;
        if (!find_place(s, k ? one->scale : one->data, l->n_byte[part + k], &at))
            return -1;
        l->file[expert * l->n_part + part + k] = at.file;
        l->at[expert * l->n_part + part + k] = at.at;
    }
    return part + 1 + has_scale;
}

/* 0 when something is not in a file. */
static int place_experts(struct stored *s, const struct tensor *const m[3], struct expert_layer *l)
{
    for (int64_t e = 0; e < l->n_expert; e++)
        for (int i = 0, part = 0; i < 3; i++) {
            struct tensor one = tensor_matrix(m[i], e);
            part = place_matrix(s, l, e, &one, part);
            if (part < 0)
                return 0;
        }
    return 1;
}

static int add_experts(struct stored *s, int layer, int n_used, struct err *e)
{
    struct layer_weights *w = &s->weights->layer[layer];
    struct tensor *m[3] = {&w->ffn_gate_exps, &w->ffn_up_exps, &w->ffn_down_exps};
    const struct tensor *const matrices[3] = {m[0], m[1], m[2]};
    struct expert_layer *l = &s->layer[layer];
    *l = (struct expert_layer){.n_expert = (int)m[0]->dim[0], .n_used = n_used};
    size_t n = (size_t)l->n_expert * (size_t)list_parts(matrices, l);
    l->file = ARENA_NEW(&s->arena, const struct disk_file *, n);
    l->at = ARENA_NEW(&s->arena, uint64_t, n);
    if (!l->file || !l->at)
        return err_set(e, ERR_MEMORY, "no memory for a list of experts");
    if (!place_experts(s, matrices, l)) {
        l->n_expert = 0; /* stays where it is */
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        m[i]->data = NULL;
        m[i]->scale = NULL;
        m[i]->part = m[i]->scale_part = NULL;
    }
    s->max_expert = l->n_expert > s->max_expert ? l->n_expert : s->max_expert;
    s->max_used = n_used > s->max_used ? n_used : s->max_used;
    return 0;
}

/* ---- Tables ---- */

static void add_table(struct stored *s, int number, struct tensor *t)
{
    const struct dtype_info *info = dtype_info(t->type);
    struct rows_table *table = &s->table[s->n_table];
    struct place data, scale = {0};
    int64_t row[2] = {1, tensor_n_col(t)};
    if (info->scale_rows > 1 || t->part || !find_place(s, t->data, (uint64_t)t->row_bytes, &data))
        return;
    *table = (struct rows_table){.n_row = tensor_n_row(t),
        .row_bytes = (uint64_t)t->row_bytes,
        .at = data.at,
        .file = data.file,
        .scale_bytes = (uint64_t)tensor_scale_bytes(t->type, 2, row)};
    if (table->scale_bytes && !find_place(s, t->scale, table->scale_bytes, &scale))
        return;
    table->scale_at = scale.at;
    table->scale_file = scale.file;
    s->table_of[number] = s->n_table++;
    s->table_type[number] = t->type;
    s->disk_bytes += (table->row_bytes + table->scale_bytes) * (uint64_t)table->n_row;
    t->data = NULL;
    t->scale = NULL;
}

/* ---- What is always in memory ---- */

/* pointer: of a tensor, set when its bytes were read. */
static void add_span(struct stored *s, const void *address, uint64_t n_byte, void *pointer)
{
    struct place at;
    if (!n_byte || !find_place(s, address, n_byte, &at))
        return;
    s->span[s->n_span++] =
        (struct resident_span){.file = at.file, .at = at.at, .n_byte = n_byte, .owner = pointer};
}

struct search {
    struct stored *s;
    struct err *e;
    int n_slot;
};

static int count_slot(void *context, const struct weight_slot *slot)
{
    (void)slot;
    ((struct search *)context)->n_slot++;
    return 0;
}

/* Experts of a layer are found together, at the last of the three. */
static int look_at(void *context, const struct weight_slot *slot)
{
    struct search *search = context;
    struct stored *s = search->s;
    struct tensor *t = weight_slot_tensor(s->weights, slot);
    const struct plan *plan = s->model.plan;
    const struct model_config *c = s->model.config;
    if (slot->klass == CLASS_ENGRAM_TABLE)
        add_table(s, plan->row[slot->layer].engram, t);
    if (slot->klass == CLASS_EXPERTS || slot->klass == CLASS_DRAFT_EXPERTS) {
        int n_used = slot->stage < 0 ? c->n_expert_used : c->draft_n_expert_used;
        int is_last = t == &s->weights->layer[slot->layer].ffn_down_exps;
        return is_last ? add_experts(s, slot->layer, n_used, search->e) : 0;
    }
    if (!t->data)
        return 0;
    add_span(s, t->data, (uint64_t)tensor_data_bytes(t->type, t->n_dim, t->dim), &t->data);
    add_span(s, t->scale, (uint64_t)tensor_scale_bytes(t->type, t->n_dim, t->dim), &t->scale);
    return 0;
}

static int find_all(struct stored *s, struct err *e)
{
    struct search search = {s, e, 0};
    weights_each_slot(s->model.config, s->model.plan, count_slot, &search);
    s->span = ARENA_NEW(&s->arena, struct resident_span, 2 * (size_t)search.n_slot);
    s->weights = ARENA_NEW(&s->arena, struct model_weights, 1);
    if (!s->span || !s->weights)
        return err_set(e, ERR_MEMORY, "no memory for a list of weights");
    *s->weights = *s->model.weights;
    return weights_each_slot(s->model.config, s->model.plan, look_at, &search);
}

/* ---- Sizes ---- */

/* What a kept row takes, its lists included. */
static uint64_t kept_row_bytes(const struct stored *s)
{
    return rows_slot_bytes(s->table, s->n_table) + 48;
}

static int n_column(const struct stored *s)
{
    return (s->model.config->engram_max_ngram - 1) * s->model.config->engram_n_head;
}

static void measure(struct stored *s)
{
    uint64_t most_rows = 0;
    struct experts_need *need = &s->experts_need;
    experts_measure(s->layer, STORED_MAX_LAYER, need);
    s->resident_bytes = resident_plan(s->span, s->n_span);
    s->disk_bytes += need->disk_bytes;
    s->max_pair = (int64_t)s->n_row * s->max_used;
    s->max_id = s->n_table ? s->n_row * n_column(s) : 0;
    for (int i = 0; i < s->n_table; i++) {
        uint64_t n = (uint64_t)s->table[i].n_row, batch = (uint64_t)s->max_id;
        most_rows += n;
        s->least_rows += (int)(n < batch ? n : batch);
    }
    s->most_rows = (int)(most_rows < STORED_MAX_KEPT ? most_rows : STORED_MAX_KEPT);
    s->most_rows = s->most_rows < s->least_rows ? s->least_rows : s->most_rows;
}

/* Buffers of stored_run.c. */
static uint64_t buffer_bytes(const struct stored *s)
{
    uint64_t hidden = (uint64_t)s->model.config->hidden, n_slice = STORED_SLICE;
    uint64_t n_value = (uint64_t)s->max_pair * hidden + n_slice * (hidden + 2);
    return s->max_pair ? n_value * sizeof(float) + 4 * 64 : 0;
}

struct stored_need stored_need(const struct stored *s)
{
    uint64_t row = kept_row_bytes(s), id_bytes = sizeof(int32_t) + 2 * sizeof(struct read);
    return (struct stored_need){.resident_bytes = s->resident_bytes,
        .disk_bytes = s->disk_bytes,
        .work_bytes = buffer_bytes(s) + s->arena.used_bytes +
                      (uint64_t)s->n_table * (uint64_t)s->max_id * id_bytes +
                      N_READ_THREAD * reader_thread_bytes(),
        .least_bytes = s->experts_need.least_bytes + row * (uint64_t)s->least_rows,
        .whole_bytes = s->experts_need.whole_bytes + row * (uint64_t)s->most_rows};
}

/* ---- Opening ---- */

int stored_open(struct stored **out, const struct stored_options *o, struct err *e)
{
    struct arena arena = {0};
    struct stored *s = ARENA_NEW(&arena, struct stored, 1);
    *out = NULL;
    if (!s)
        return err_set(e, ERR_MEMORY, "no memory to plan weights on disk");
    *s = (struct stored){.arena = arena, .be = o->be, .calls = *o->calls, .n_row = o->n_row};
    for (int i = 0; i < CONFIG_MAX_ENGRAM; i++)
        s->table_of[i] = -1;
    model_file_info(o->file, &s->model);
    if (open_files(s, o->file, e) || find_all(s, e)) {
        stored_close(s);
        return -1;
    }
    measure(s);
    *out = s;
    return 0;
}

static int open_experts(struct stored *s, uint64_t n_byte, struct err *e)
{
    if (!s->max_expert)
        return 0;
    struct experts_options o = {s->reader, s->layer, STORED_MAX_LAYER, n_byte, s->pool_memory.data};
    size_t n = (size_t)s->max_expert;
    for (int i = 0; i < 3; i++) {
        s->data[i] = ARENA_NEW(&s->arena, const void *, n);
        s->scale[i] = ARENA_NEW(&s->arena, const void *, n);
        if (!s->data[i] || !s->scale[i])
            return err_set(e, ERR_MEMORY, "no memory for lists of experts");
    }
    s->place = ARENA_NEW(&s->arena, int32_t, (size_t)s->max_pair);
    if (!s->place || experts_open(&s->experts, &o, e) ||
        demand_place(&s->demand, &s->arena, s->experts, s->max_expert, s->max_pair))
        return err_set(e, ERR_MEMORY, "no memory for lists of experts");
    return 0;
}

static int open_rows(struct stored *s, int n_row, void *memory, struct err *e)
{
    struct rows_options o = {.reader = s->reader,
        .table = s->table,
        .n_table = s->n_table,
        .max_id = s->max_id,
        .n_slot = n_row,
        .memory = memory};
    return s->n_table ? rows_open(&s->rows, &o, e) : 0;
}

/* Beyond the least, experts and rows get the same share of what they could use. */
static int open_caches(struct stored *s, uint64_t cache_bytes, struct err *e)
{
    struct stored_need need = stored_need(s);
    uint64_t could_use = need.whole_bytes - need.least_bytes, spare = cache_bytes - need.least_bytes;
    double share = spare < could_use ? (double)spare / (double)could_use : 1.0;
    const struct experts_need *x = &s->experts_need;
    uint64_t slot_bytes = s->n_table ? rows_slot_bytes(s->table, s->n_table) : 0;
    uint64_t expert_bytes =
        x->least_bytes + (uint64_t)(share * (double)(x->whole_bytes - x->least_bytes));
    int n_row = s->least_rows + (int)(share * (double)(s->most_rows - s->least_rows));
    uint64_t row_bytes = slot_bytes * (uint64_t)n_row, begin = disk_above(expert_bytes);
    s->cache_bytes = expert_bytes + row_bytes;
    if (s->be->kind->buffer_new(s->be, &s->pool_memory, begin + row_bytes, e))
        return -1;
    return open_experts(s, expert_bytes, e) ||
           open_rows(s, n_row, (char *)s->pool_memory.data + begin, e);
}

/* Cuts the buffers of stored_run.c, 64 bytes apart. */
static int open_buffers(struct stored *s, struct err *e)
{
    uint64_t hidden = (uint64_t)s->model.config->hidden;
    uint64_t n_byte = buffer_bytes(s);
    if (!n_byte)
        return 0;
    if (s->be->kind->buffer_new(s->be, &s->buffers, n_byte, e))
        return -1;
    struct layout l = {.base = s->buffers.data};
    s->out = layout_place(&l, DT_F32, s->max_pair, (int64_t)hidden, 0, 0);
    s->x = layout_place(&l, DT_F32, STORED_SLICE, (int64_t)hidden, 0, 0);
    s->weight = layout_place(&l, DT_F32, STORED_SLICE, 1, 0, 0);
    s->idx = layout_place(&l, DT_I32, STORED_SLICE, 1, 0, 0);
    return 0;
}

static int read_residents(struct stored *s, const struct resident_progress *progress, struct err *e)
{
    if (!s->n_span)
        return 0;
    if (s->be->kind->buffer_new(s->be, &s->residents, s->resident_bytes, e) ||
        resident_read(s->reader, s->span, s->n_span, s->residents.data, progress, e))
        return -1;
    for (int i = 0; i < s->n_span; i++) {
        void *address = (char *)s->residents.data + s->span[i].place;
        memcpy(s->span[i].owner, &address, sizeof address);
    }
    return 0;
}

int stored_load(struct stored *s, uint64_t cache_bytes, const struct resident_progress *progress,
    struct err *e)
{
    return reader_open(&s->reader, N_READ_THREAD, e) || open_caches(s, cache_bytes, e) ||
                   open_buffers(s, e) || read_residents(s, progress, e)
               ? -1
               : 0;
}

void stored_close(struct stored *s)
{
    if (!s)
        return;
    reader_close(s->reader); /* writes to all of the memory below */
    experts_close(s->experts);
    rows_close(s->rows);
    s->be->kind->buffer_free(s->be, &s->pool_memory);
    s->be->kind->buffer_free(s->be, &s->residents);
    s->be->kind->buffer_free(s->be, &s->buffers);
    for (int i = 0; i < s->n_file; i++)
        disk_close(&s->file[i]);
    struct arena arena = s->arena; /* it lives there itself */
    arena_free(&arena);
}

const struct model_weights *stored_weights(const struct stored *s)
{
    return s->weights;
}

uint64_t stored_cache_bytes(const struct stored *s)
{
    return s->cache_bytes;
}

struct stored_stats stored_stats(const struct stored *s)
{
    struct stored_stats stats = {.reads = reader_stats(s->reader), .experts = s->demand.stats};
    if (s->rows)
        stats.rows = rows_stats(s->rows);
    return stats;
}
