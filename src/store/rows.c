/* rows.c: see rows.h. */
#include "store/rows.h"

enum { SLOT_ALIGN = 64 };

/* A batch's part of a table. */
struct wanted {
    int32_t *slot; /* [n] each pinned once; the last n_new of them are being read */
    int n, n_new;
    struct read *read; /* [2 max_id] */
    struct read_group group;
};

struct rows {
    struct arena arena;
    struct reader *reader;
    const struct rows_table *table;
    int n_table, max_id;
    struct pool pool;
    struct wanted *wanted; /* [n_table] */
    int32_t *fresh;        /* [max_id] slots of the table at hand that a read was started for */
    struct rows_stats stats;
};

uint64_t rows_slot_bytes(const struct rows_table *table, int n_table)
{
    uint64_t most = 0;
    for (int i = 0; i < n_table; i++) {
        uint64_t n = table[i].row_bytes + table[i].scale_bytes;
        most = n > most ? n : most;
    }
    return (most + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
}

uint64_t rows_list_bytes(int n_table, int max_id, int n_slot)
{
    uint64_t per_id = sizeof(int32_t) + 2 * sizeof(struct read);
    return (uint64_t)n_table * ((uint64_t)max_id * per_id + sizeof(struct wanted)) +
           pool_list_bytes(n_slot);
}

static int place(struct rows *rows, const struct rows_options *o)
{
    uint64_t slot_bytes = rows_slot_bytes(o->table, o->n_table);
    size_t n = (size_t)o->max_id;
    rows->wanted = ARENA_NEW(&rows->arena, struct wanted, (size_t)o->n_table);
    rows->fresh = ARENA_NEW(&rows->arena, int32_t, n);
    if (!rows->wanted || !rows->fresh ||
        pool_place(&rows->pool, &rows->arena, o->n_slot, slot_bytes, o->memory))
        return -1;
    for (int i = 0; i < o->n_table; i++) {
        rows->wanted[i].slot = ARENA_NEW(&rows->arena, int32_t, n);
        rows->wanted[i].read = ARENA_NEW(&rows->arena, struct read, 2 * n);
        if (!rows->wanted[i].slot || !rows->wanted[i].read)
            return -1;
    }
    return 0;
}

int rows_open(struct rows **out, const struct rows_options *o, struct err *e)
{
    struct arena arena = {0};
    struct rows *rows = ARENA_NEW(&arena, struct rows, 1);
    struct rows_table *table = ARENA_NEW(&arena, struct rows_table, (size_t)o->n_table);
    *out = NULL;
    for (int i = 0; table && i < o->n_table; i++)
        table[i] = o->table[i];
    if (rows)
        *rows = (struct rows){.arena = arena,
            .reader = o->reader,
            .table = table,
            .n_table = o->n_table,
            .max_id = o->max_id};
    if (!rows || !table || place(rows, o)) {
        arena = rows ? rows->arena : arena;
        arena_free(&arena);
        return err_set(e, ERR_MEMORY, "no memory for lists of %d rows", o->n_slot);
    }
    *out = rows;
    return 0;
}

void rows_close(struct rows *rows)
{
    if (!rows)
        return;
    struct arena arena = rows->arena; /* it lives there itself */
    arena_free(&arena);
}

/* ---- A batch ---- */

static uint64_t key_of(int table, int32_t id)
{
    return (uint64_t)table << 32 | (uint32_t)id;
}

/* Rows that could not be read are forgotten. */
static void let_go(struct rows *rows, struct wanted *w)
{
    struct err failure = {0};
    reader_wait(rows->reader, &w->group, &failure);
    for (int i = 0; i < w->n; i++) {
        pool_unpin(&rows->pool, w->slot[i], 0);
        if (failure.code && i >= w->n - w->n_new)
            pool_drop(&rows->pool, w->slot[i]);
    }
    w->n = w->n_new = 0;
}

void rows_begin(struct rows *rows)
{
    for (int i = 0; i < rows->n_table; i++)
        let_go(rows, &rows->wanted[i]);
}

static int add_reads(const struct rows *rows, int table, int32_t id, int slot, struct read *read)
{
    const struct rows_table *t = &rows->table[table];
    uint8_t *to = pool_memory(&rows->pool, slot);
    read[0] = (struct read){.file = t->file,
        .at = t->at + (uint64_t)id * t->row_bytes,
        .n_byte = t->row_bytes,
        .to = to};
    if (!t->scale_bytes)
        return 1;
    read[1] = (struct read){.file = t->scale_file,
        .at = t->scale_at + (uint64_t)id * t->scale_bytes,
        .n_byte = t->scale_bytes,
        .to = to + t->row_bytes};
    return 2;
}

static int check_ids(const struct rows *rows, int table, const int32_t *id, int n, struct err *e)
{
    if (n > rows->max_id)
        return err_set(e, ERR_ARGUMENT, "%d rows of a batch, at most %d", n, rows->max_id);
    for (int i = 0; i < n; i++)
        if (id[i] < 0 || id[i] >= rows->table[table].n_row)
            return err_set(e, ERR_ARGUMENT, "row %d of a table of %lld", (int)id[i],
                (long long)rows->table[table].n_row);
    return 0;
}

/* A row's slot, held; *is_new: nothing was read to it yet. -1: no room. */
static int hold(struct rows *rows, int table, int32_t id, int *is_new)
{
    uint64_t key = key_of(table, id);
    int slot = pool_find(&rows->pool, key);
    *is_new = slot < 0;
    if (slot < 0)
        return pool_take(&rows->pool, key);
    pool_pin(&rows->pool, slot);
    return slot;
}

int rows_want(struct rows *rows, int table, const int32_t *id, int n, struct err *e)
{
    struct wanted *w = &rows->wanted[table];
    int n_read = 0, n_fresh = 0, failed = 0;
    if (check_ids(rows, table, id, n, e))
        return -1;
    let_go(rows, w);
    for (int i = 0; i < n && !failed; i++) {
        int is_new, slot = pool_find(&rows->pool, key_of(table, id[i]));
        if (slot >= 0 && pool_n_pin(&rows->pool, slot))
            continue; /* named before */
        slot = hold(rows, table, id[i], &is_new);
        failed = slot < 0;
        if (is_new && !failed) {
            n_read += add_reads(rows, table, id[i], slot, w->read + n_read);
            rows->fresh[n_fresh++] = slot;
        } else if (!failed) {
            w->slot[w->n++] = slot;
        }
    }
    rows->stats.n_wanted += (uint64_t)(w->n + n_fresh);
    rows->stats.n_there += (uint64_t)w->n;
    for (int i = 0; i < n_fresh; i++)
        w->slot[w->n++] = rows->fresh[i];
    w->n_new = n_fresh;
    reader_start(rows->reader, &w->group, w->read, n_read);
    return failed ? err_set(e, ERR_MEMORY, "no room for %d rows", n) : 0;
}

int rows_wait(struct rows *rows, int table, struct err *e)
{
    return reader_wait(rows->reader, &rows->wanted[table].group, e);
}

const uint8_t *rows_find(const struct rows *rows, int table, int32_t id)
{
    return pool_memory(&rows->pool, pool_find(&rows->pool, key_of(table, id)));
}

struct rows_stats rows_stats(const struct rows *rows)
{
    return rows->stats;
}
