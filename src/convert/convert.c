/* convert.c: the conversion from end to end. See convert.h. */
#include "convert/convert.h"

#include "base/threads.h"
#include "convert/items.h"
#include "convert/metadata.h"
#include "convert/output.h"
#include "convert/verify.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

enum { CHUNK_BYTES = 8 << 20 };

struct conversion {
    const struct convert_options *options;
    struct convert_report *report;
    struct arena arena;
    struct model_file *model;
    struct items items;
    struct output output;
    struct workers *workers;
    uint8_t *chunk; /* at least one row of the widest item */
    float *scratch; /* n_scratch floats per worker */
    int64_t n_chunk_byte, n_scratch;
    uint64_t n_done, n_total; /* bytes of data */
};

static int tell(struct conversion *c, const char *what, const char *name, struct err *e)
{
    const struct convert_options *o = c->options;
    if (o->progress)
        o->progress(o->progress_context, what, name, c->n_done, c->n_total);
    return o->is_cancelled && *o->is_cancelled
               ? err_set(e, ERR_CANCELLED, "stopped; the next run goes on from here")
               : 0;
}

/* A hash of 0 would mean "not finished". */
static uint64_t nonzero(uint64_t sum)
{
    return sum ? sum : 1;
}

/* ---- One tensor ---- */

struct chunk_job {
    struct conversion *c;
    const struct item *item;
    int64_t first;        /* row of the chunk's start */
    atomic_llong bad_row; /* lowest row with something that is no number, or INT64_MAX */
};

static void make_rows(void *context, int64_t first, int64_t end, int worker)
{
    struct chunk_job *job = context;
    const struct item *item = job->item;
    for (int64_t r = first; r < end; r++) {
        uint8_t *out = job->c->chunk + r * item->row_bytes;
        if (!item->row(item, job->first + r, out, job->c->scratch + worker * job->c->n_scratch))
            continue;
        long long row = job->first + r, lowest = atomic_load(&job->bad_row);
        while (row < lowest && !atomic_compare_exchange_weak(&job->bad_row, &lowest, row))
            ;
    }
}

static int write_chunk(
    struct conversion *c, const struct item *item, int64_t first, int64_t n, struct err *e)
{
    struct chunk_job job = {.c = c, .item = item, .first = first, .bad_row = INT64_MAX};
    workers_run(c->workers, n, n > 64 ? 16 : 1, make_rows, &job);
    if (job.bad_row != INT64_MAX)
        return err_set(e, ERR_FORMAT,
            "tensor %s: row %lld holds a value or a scale that is not a number", item->name,
            (long long)job.bad_row);
    uint64_t n_byte = (uint64_t)(n * item->row_bytes);
    c->n_done += n_byte;
    return output_write(
        &c->output, item->offset + (uint64_t)(first * item->row_bytes), c->chunk, n_byte, e);
}

static int write_item(struct conversion *c, int i, struct err *e)
{
    const struct item *item = &c->items.item[i];
    XXH64_state_t hash;
    XXH64_reset(&hash, 0);
    int64_t n_per_chunk = c->n_chunk_byte / item->row_bytes;
    for (int64_t first = 0; first < item->n_row; first += n_per_chunk) {
        int64_t left = item->n_row - first, n = left < n_per_chunk ? left : n_per_chunk;
        if (tell(c, "write", item->name, e) || write_chunk(c, item, first, n, e))
            return -1;
        XXH64_update(&hash, c->chunk, (size_t)(n * item->row_bytes));
    }
    return output_finish_tensor(&c->output, i, nonzero(XXH64_digest(&hash)), e);
}

/* 1 when an earlier run wrote exactly this tensor. */
static int is_finished(struct conversion *c, int i, struct err *e)
{
    const struct item *item = &c->items.item[i];
    if (!c->output.sums[i])
        return 0;
    XXH64_state_t hash;
    XXH64_reset(&hash, 0);
    uint64_t n = items_n_byte(item), n_chunk = (uint64_t)c->n_chunk_byte;
    for (uint64_t at = 0; at < n; at += n_chunk) {
        uint64_t n_now = n - at < n_chunk ? n - at : n_chunk;
        if (tell(c, "check", item->name, e) ||
            output_read(&c->output, item->offset + at, c->chunk, n_now, e))
            return -1;
        XXH64_update(&hash, c->chunk, (size_t)n_now);
    }
    if (nonzero(XXH64_digest(&hash)) != c->output.sums[i])
        return 0;
    c->n_done += n;
    c->report->n_kept += !item->is_scale;
    return 1;
}

static int write_items(struct conversion *c, struct err *e)
{
    for (int i = 0; i < c->items.n; i++) {
        int finished = is_finished(c, i, e);
        if (finished < 0 || (!finished && write_item(c, i, e)))
            return -1;
        c->report->n_tensor += !c->items.item[i].is_scale;
    }
    return output_commit(&c->output, e);
}

/* ---- Setting up ---- */

static int choose(struct item_choice *choice, const struct convert_options *o, struct err *e)
{
    if (o->n_type < 0 || o->n_type > CONVERT_MAX_TYPE)
        return err_set(
            e, ERR_ARGUMENT, "%d types, expected at most %d", o->n_type, CONVERT_MAX_TYPE);
    items_default_choice(choice);
    for (int i = 0; i < o->n_type; i++)
        if (items_choose(choice, o->types[i], e))
            return -1;
    return 0;
}

static void put_tensors(struct gguf_header *h, struct items *items)
{
    for (int i = 0; i < items->n; i++) {
        struct item *item = &items->item[i];
        struct gguf_tensor t = {.name = item->name,
            .ggml_type = (uint32_t)item->ggml_type,
            .n_dim = item->n_dim,
            .n_byte = items_n_byte(item)};
        memcpy(t.dim, item->dim, sizeof t.dim);
        item->offset = gguf_put_tensor(h, &t);
    }
}

static int build_header(
    struct conversion *c, struct buf *bytes, struct output_plan *plan, struct err *e)
{
    struct model_file_info info;
    model_file_info(c->model, &info);
    struct model_config *config = ARENA_NEW(&c->arena, struct model_config, 1);
    uint64_t *zeros = ARENA_NEW(&c->arena, uint64_t, (size_t)c->items.n);
    if (!config || !zeros)
        return err_set(e, ERR_MEMORY, "no memory for the header");
    *config = *info.config;
    if (c->options->name)
        snprintf(config->name, sizeof config->name, "%s", c->options->name);
    struct gguf_header h = {0};
    int failed = metadata_put(&h, config, info.tokenizer, e);
    uint64_t sums_at =
                 gguf_put_numbers(&h, "hadal.tensor_xxh64", GGUF_U64, zeros, (uint64_t)c->items.n),
             keys_at = 0;
    put_tensors(&h, &c->items);
    failed = failed || gguf_header_bytes(&h, bytes, &keys_at, e);
    c->n_total = h.n_data_byte;
    *plan = (struct output_plan){.path = c->options->output,
        .header = bytes,
        .sums_at = keys_at + sums_at,
        .n_byte = bytes->n_byte + h.n_data_byte,
        .n_sum = c->items.n};
    gguf_header_free(&h);
    return failed ? -1 : 0;
}

static int get_memory(struct conversion *c, struct err *e)
{
    if (workers_open(&c->workers, c->options->n_thread, e))
        return -1;
    c->n_chunk_byte = CHUNK_BYTES;
    for (int i = 0; i < c->items.n; i++) {
        const struct item *item = &c->items.item[i];
        c->n_chunk_byte = item->row_bytes > c->n_chunk_byte ? item->row_bytes : c->n_chunk_byte;
        c->n_scratch = item->n_scratch > c->n_scratch ? item->n_scratch : c->n_scratch;
    }
    c->chunk = arena_alloc(&c->arena, (size_t)c->n_chunk_byte);
    c->scratch = ARENA_NEW(&c->arena, float, (size_t)c->n_scratch *(size_t)workers_n(c->workers));
    return c->chunk && c->scratch
               ? 0
               : err_set(e, ERR_MEMORY, "no memory to convert rows of %lld bytes",
                     (long long)c->n_chunk_byte);
}

static int write_output(struct conversion *c, struct err *e)
{
    struct item_choice choice;
    struct model_file_info info;
    struct output_plan plan;
    struct buf header = {0};
    model_file_info(c->model, &info);
    if (choose(&choice, c->options, e) || items_plan(&c->items, &info, &choice, &c->arena, e) ||
        get_memory(c, e))
        return -1;
    int failed = build_header(c, &header, &plan, e) ||
                 output_open(&c->output, &plan, &c->arena, e) || write_items(c, e);
    c->report->n_byte = failed ? 0 : plan.n_byte;
    output_close(&c->output);
    buf_free(&header);
    return failed ? -1 : 0;
}

int convert_run(const struct convert_options *o, struct convert_report *report, struct err *e)
{
    struct conversion c = {.options = o, .report = report, .output = {.fd = -1}};
    *report = (struct convert_report){0};
    int failed = tell(&c, "read", o->input, e) || model_file_open(&c.model, o->input, NULL, 0, e);
    if (!failed && !o->verifies_only)
        failed = write_output(&c, e);
    if (!failed && (o->verifies || o->verifies_only))
        failed = verify_run(o, c.model, report, e);
    workers_close(c.workers);
    model_file_close(c.model);
    arena_free(&c.arena);
    return failed ? -1 : 0;
}
