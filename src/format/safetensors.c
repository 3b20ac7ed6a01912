/* safetensors.c: see safetensors.h. */
#include "format/safetensors.h"

#include "base/file.h"
#include "format/json_file.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 4096, MAX_PATH = 4096 };

static const struct type_info {
    const char *name;
    int n_byte;
} types[N_SAFETENSORS_TYPE] = {
    [ST_F64] = {"F64", 8},
    [ST_F32] = {"F32", 4},
    [ST_F16] = {"F16", 2},
    [ST_BF16] = {"BF16", 2},
    [ST_I64] = {"I64", 8},
    [ST_I32] = {"I32", 4},
    [ST_I16] = {"I16", 2},
    [ST_I8] = {"I8", 1},
    [ST_U8] = {"U8", 1},
    [ST_BOOL] = {"BOOL", 1},
    [ST_F8_E4M3] = {"F8_E4M3", 1},
    [ST_F8_E8M0] = {"F8_E8M0", 1},
};

struct shard {
    const char *path;
    struct file_map map; /* of a file that was opened here */
    const uint8_t *bytes;
    uint64_t n_byte;
};

struct safetensors {
    struct arena arena;
    struct shard *shards;
    int n_shard;
    struct safetensors_entry *entries; /* by name once everything is read */
    uint64_t n_entry, capacity;
};

const char *safetensors_type_name(enum safetensors_type type)
{
    return types[type].name;
}

/* ---- One file ---- */

static struct safetensors_entry *new_entry(struct safetensors *st)
{
    if (st->n_entry == st->capacity) {
        uint64_t capacity = st->capacity ? 2 * st->capacity : 256;
        struct safetensors_entry *more = mem_resize(st->entries, capacity * sizeof *more);
        if (!more)
            return NULL;
        st->entries = more;
        st->capacity = capacity;
    }
    struct safetensors_entry *entry = &st->entries[st->n_entry++];
    *entry = (struct safetensors_entry){0};
    return entry;
}

static int read_type(
    struct json_object *value, enum safetensors_type *type, const char *name, struct err *e)
{
    const char *text =
        json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "missing";
    for (int i = 0; i < N_SAFETENSORS_TYPE; i++)
        if (!strcmp(text, types[i].name)) {
            *type = (enum safetensors_type)i;
            return 0;
        }
    return err_set(e, ERR_UNSUPPORTED, "tensor %.80s: dtype is %.20s", name, text);
}

/* A non-negative integer that fits in an int64_t; -1 for anything else. */
static int64_t whole_number(struct json_object *value)
{
    if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) == INT64_MAX)
        return -1;
    return json_object_get_int64(value);
}

/* Shape, and the bytes that it takes. */
static int read_shape(
    struct json_object *value, struct safetensors_entry *entry, uint64_t *n_byte, struct err *e)
{
    size_t n =
        json_object_is_type(value, json_type_array) ? json_object_array_length(value) : SIZE_MAX;
    if (n > SAFETENSORS_MAX_DIM)
        return err_set(e, ERR_FORMAT, "tensor %.80s: shape is no list of at most %d numbers",
            entry->name, SAFETENSORS_MAX_DIM);
    *n_byte = (uint64_t)types[entry->type].n_byte;
    for (size_t i = 0; i < n; i++) {
        int64_t d = whole_number(json_object_array_get_idx(value, i));
        if (d < 0 || (d && *n_byte > INT64_MAX / (uint64_t)d))
            return err_set(e, ERR_FORMAT, "tensor %.80s: dimension %zu is negative or too large",
                entry->name, i);
        entry->dim[i] = d;
        *n_byte *= (uint64_t)d;
    }
    entry->n_dim = (int)n;
    return 0;
}

struct data_part {
    const uint8_t *bytes;
    uint64_t n_byte;
    int file;
};

static int read_entry(struct safetensors *st, const char *name, struct json_object *value,
    const struct data_part *data, struct err *e)
{
    struct safetensors_entry *entry = new_entry(st);
    uint64_t n_byte = 0;
    if (!entry || !(entry->name = arena_copy(&st->arena, name, strlen(name))))
        return err_set(e, ERR_MEMORY, "no memory for the list of tensors");
    entry->file = data->file;
    struct json_object *offsets = json_file_get(value, "data_offsets");
    if (read_type(json_file_get(value, "dtype"), &entry->type, name, e) ||
        read_shape(json_file_get(value, "shape"), entry, &n_byte, e))
        return -1;
    if (!json_object_is_type(offsets, json_type_array) || json_object_array_length(offsets) != 2)
        return err_set(e, ERR_FORMAT, "tensor %.80s: data_offsets are not two numbers", name);
    int64_t begin = whole_number(json_object_array_get_idx(offsets, 0));
    int64_t end = whole_number(json_object_array_get_idx(offsets, 1));
    if (begin < 0 || end < begin || (uint64_t)end > data->n_byte)
        return err_set(e, ERR_FORMAT, "tensor %.80s: data at bytes %lld to %lld of %llu", name,
            (long long)begin, (long long)end, (unsigned long long)data->n_byte);
    if ((uint64_t)(end - begin) != n_byte)
        return err_set(e, ERR_FORMAT, "tensor %.80s: %lld bytes of data, its shape takes %llu",
            name, (long long)(end - begin), (unsigned long long)n_byte);
    entry->data = data->bytes + begin;
    entry->n_byte = n_byte;
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const struct safetensors_entry *x = a, *y = b;
    return x->data != y->data ? (x->data < y->data ? -1 : 1)
                              : (x->n_byte > y->n_byte) - (x->n_byte < y->n_byte);
}

static int check_overlaps(struct safetensors_entry *entries, uint64_t n, struct err *e)
{
    if (n)
        qsort(entries, n, sizeof *entries, by_address);
    for (uint64_t i = 1; i < n; i++)
        if (entries[i].data < entries[i - 1].data + entries[i - 1].n_byte)
            return err_set(e, ERR_FORMAT, "tensors %.80s and %.80s share bytes",
                entries[i - 1].name, entries[i].name);
    return 0;
}

static int read_header(struct safetensors *st, int file, struct json_object **header,
    struct data_part *data, struct err *e)
{
    const struct shard *s = &st->shards[file];
    uint64_t n = 0;
    if (s->n_byte < 8)
        return err_set(
            e, ERR_FORMAT, "file of %llu bytes is too short", (unsigned long long)s->n_byte);
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)s->bytes[i] << 8 * i;
    if (n > s->n_byte - 8)
        return err_set(e, ERR_FORMAT, "header of %llu bytes in a file of %llu",
            (unsigned long long)n, (unsigned long long)s->n_byte);
    *data = (struct data_part){s->bytes + 8 + n, s->n_byte - 8 - n, file};
    return json_file_parse(header, s->bytes + 8, (size_t)n, "header", e);
}

static int read_shard(struct safetensors *st, int file, struct err *e)
{
    struct json_object *header = NULL;
    struct data_part data = {0};
    uint64_t first = st->n_entry;
    int failed = read_header(st, file, &header, &data, e);
    if (!failed) {
        json_object_object_foreach(header, name, value)
        {
            if (!failed && strcmp(name, "__metadata__"))
                failed = read_entry(st, name, value, &data, e);
        }
    }
    json_object_put(header);
    if (!failed && st->n_entry > first)
        failed = check_overlaps(st->entries + first, st->n_entry - first, e);
    return failed ? err_wrap(e, "%s", st->shards[file].path) : 0;
}

/* ---- The whole checkpoint ---- */

static int by_name(const void *a, const void *b)
{
    const struct safetensors_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int sort_entries(struct safetensors *st, struct err *e)
{
    if (st->n_entry)
        qsort(st->entries, st->n_entry, sizeof *st->entries, by_name);
    for (uint64_t i = 1; i < st->n_entry; i++)
        if (!strcmp(st->entries[i].name, st->entries[i - 1].name))
            return err_set(e, ERR_FORMAT, "tensor %.80s is in %.120s and in %.120s",
                st->entries[i].name, safetensors_file(st, st->entries[i - 1].file),
                safetensors_file(st, st->entries[i].file));
    return 0;
}

static int add_shard(struct safetensors *st, const char *path, struct err *e)
{
    struct shard *s = &st->shards[st->n_shard];
    if (!(s->path = arena_copy(&st->arena, path, strlen(path))))
        return err_set(e, ERR_MEMORY, "no memory for a path");
    if (file_map_open(&s->map, path, e))
        return -1;
    s->bytes = s->map.data;
    s->n_byte = s->map.n_byte;
    st->n_shard++;
    return read_shard(st, st->n_shard - 1, e);
}

/* A shard's name from the index: a plain file name, so that an index cannot point outside its
 * folder. */
static int is_plain_name(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/');
}

static int has_shard(const struct safetensors *st, const char *path)
{
    for (int i = 0; i < st->n_shard; i++)
        if (!strcmp(st->shards[i].path, path))
            return 1;
    return 0;
}

static int open_indexed(
    struct safetensors *st, const char *folder, struct json_object *map, struct err *e)
{
    json_object_object_foreach(map, name, value)
    {
        char path[MAX_PATH];
        const char *file =
            json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
        if (!is_plain_name(file))
            return err_set(e, ERR_FORMAT, "tensor %.80s is said to be in file '%.80s'", name, file);
        if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
            return err_set(e, ERR_ARGUMENT, "path %.200s... is too long", folder);
        if (has_shard(st, path))
            continue;
        if (st->n_shard == MAX_FILE)
            return err_set(e, ERR_FORMAT, "more than %d files", MAX_FILE);
        if (add_shard(st, path, e))
            return -1;
    }
    return 0;
}

static int check_index(const struct safetensors *st, struct json_object *map, struct err *e)
{
    json_object_object_foreach(map, name, value)
    {
        const struct safetensors_entry *entry = safetensors_find(st, name);
        if (!entry)
            return err_set(
                e, ERR_FORMAT, "tensor %.80s is not in %.80s", name, json_object_get_string(value));
    }
    return 0;
}

static int open_folder(struct safetensors *st, const char *folder, struct err *e)
{
    char path[MAX_PATH];
    if (snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder) >= (int)sizeof path)
        return err_set(e, ERR_ARGUMENT, "path %.200s... is too long", folder);
    if (!file_exists(path)) {
        snprintf(path, sizeof path, "%s/model.safetensors", folder);
        return add_shard(st, path, e) || sort_entries(st, e);
    }
    struct json_object *index = NULL;
    if (json_file_read(&index, path, e))
        return -1;
    struct json_object *map = json_file_get(index, "weight_map");
    int failed = json_object_is_type(map, json_type_object)
                     ? open_indexed(st, folder, map, e)
                     : err_set(e, ERR_FORMAT, "no weight_map");
    if (!failed)
        failed = sort_entries(st, e) || check_index(st, map, e);
    json_object_put(index);
    return failed ? err_wrap(e, "%s", path) : 0;
}

static struct safetensors *new_checkpoint(int max_shard)
{
    struct safetensors *st = mem_resize(NULL, sizeof *st);
    if (!st)
        return NULL;
    *st = (struct safetensors){0};
    st->shards = ARENA_NEW(&st->arena, struct shard, (size_t)max_shard);
    if (!st->shards) {
        mem_free(st);
        return NULL;
    }
    return st;
}

static int finish(struct safetensors **out, struct safetensors *st, int failed)
{
    if (failed)
        safetensors_close(st);
    *out = failed ? NULL : st;
    return failed ? -1 : 0;
}

int safetensors_open(struct safetensors **out, const char *path, struct err *e)
{
    *out = NULL;
    struct safetensors *st = new_checkpoint(MAX_FILE);
    if (!st)
        return err_set(e, ERR_MEMORY, "%s: no memory to open it", path);
    int failed = file_is_directory(path) ? open_folder(st, path, e)
                                         : add_shard(st, path, e) || sort_entries(st, e);
    return finish(out, st, failed);
}

int safetensors_open_bytes(
    struct safetensors **out, const void *bytes, uint64_t n_byte, struct err *e)
{
    *out = NULL;
    struct safetensors *st = new_checkpoint(1);
    if (!st)
        return err_set(e, ERR_MEMORY, "no memory to open a checkpoint");
    st->n_shard = 1;
    st->shards[0] =
        (struct shard){.path = "checkpoint in memory", .bytes = bytes, .n_byte = n_byte};
    return finish(out, st, read_shard(st, 0, e) || sort_entries(st, e));
}

void safetensors_close(struct safetensors *st)
{
    if (!st)
        return;
    for (int i = 0; i < st->n_shard; i++)
        file_map_close(&st->shards[i].map);
    mem_free(st->entries);
    arena_free(&st->arena);
    mem_free(st);
}

int safetensors_part(const struct safetensors *st, int i, struct file_part *part)
{
    if (i >= st->n_shard || !st->shards[i].map.data)
        return 0;
    *part = (struct file_part){st->shards[i].path, st->shards[i].bytes, st->shards[i].n_byte};
    return 1;
}

static int compare_name(const void *key, const void *entry)
{
    return strcmp(key, ((const struct safetensors_entry *)entry)->name);
}

const struct safetensors_entry *safetensors_find(const struct safetensors *st, const char *name)
{
    return st->n_entry ? bsearch(name, st->entries, st->n_entry, sizeof *st->entries, compare_name)
                       : NULL;
}

const struct safetensors_entry *safetensors_entries(const struct safetensors *st, uint64_t *n)
{
    *n = st->n_entry;
    return st->entries;
}

const char *safetensors_file(const struct safetensors *st, int file)
{
    return st->shards[file].path;
}
