/* gguf.c: see gguf.h.
 *
 * The header is walked twice: first to check and count, then to fill arrays of exactly that size.
 */
#include "format/gguf.h"

#include "base/file.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PART = 1000, MAX_NAME = 512, MAX_PATH = 4096, MAX_ALIGNMENT = 1 << 20 };

struct part {
    struct file_map map; /* of a file that was opened here */
    const uint8_t *bytes;
    uint64_t n_byte;
    const char *path;
};

struct gguf {
    struct arena arena;
    struct part *parts;
    int n_part;
    struct gguf_key *keys; /* of the first part */
    uint64_t n_key;
    struct gguf_tensor *tensors;
    uint64_t n_tensor;
    const struct gguf_key **key_by_name;
    const struct gguf_tensor **tensor_by_name;
};

static const uint8_t value_bytes[N_GGUF_TYPE] = {
    [GGUF_U8] = 1,
    [GGUF_I8] = 1,
    [GGUF_U16] = 2,
    [GGUF_I16] = 2,
    [GGUF_U32] = 4,
    [GGUF_I32] = 4,
    [GGUF_F32] = 4,
    [GGUF_BOOL] = 1,
    [GGUF_U64] = 8,
    [GGUF_I64] = 8,
    [GGUF_F64] = 8,
};

/* ---- Cursor: bytes that are left of a part. Errors stick, reads behind one give 0. ---- */

struct cursor {
    const uint8_t *p, *end;
    int is_short; /* a read passed the end */
};

static const uint8_t *take(struct cursor *c, uint64_t n)
{
    if (c->is_short || n > (uint64_t)(c->end - c->p)) {
        c->is_short = 1;
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    return p;
}

static uint64_t load(const uint8_t *p, int n)
{
    uint64_t x = 0;
    for (int i = 0; i < n; i++)
        x |= (uint64_t)p[i] << 8 * i;
    return x;
}

static uint64_t take_number(struct cursor *c, int n)
{
    const uint8_t *p = take(c, (uint64_t)n);
    return p ? load(p, n) : 0;
}

static struct gguf_string take_string(struct cursor *c)
{
    uint64_t n = take_number(c, 8);
    const uint8_t *p = take(c, n);
    return (struct gguf_string){(const char *)p, p ? n : 0};
}

/* ---- Entries of the header ---- */

static int take_key(struct cursor *c, struct gguf_key *key, struct err *e)
{
    *key = (struct gguf_key){.name = take_string(c), .n = 1};
    uint64_t type = take_number(c, 4);
    if (type == GGUF_ARRAY) {
        key->is_array = 1;
        type = take_number(c, 4);
        key->n = take_number(c, 8);
    }
    if (!c->is_short && (type >= N_GGUF_TYPE || type == GGUF_ARRAY))
        return err_set(e, ERR_FORMAT, "key %.*s: value type %llu%s",
            (int)(key->name.n_byte % MAX_NAME), key->name.data, (unsigned long long)type,
            key->is_array ? " in an array" : "");
    key->type = (enum gguf_type)type;
    key->payload = c->p;
    if (key->type != GGUF_STRING) {
        uint64_t size = c->is_short ? 1 : value_bytes[key->type];
        take(c, key->n > UINT64_MAX / size ? UINT64_MAX : key->n * size);
        return 0;
    }
    for (uint64_t i = 0; i < key->n && !c->is_short; i++)
        take_string(c);
    return 0;
}

/* A tensor's entry; data holds its offset until the data section is known. */
struct raw_tensor {
    struct gguf_string name;
    uint32_t type;
    uint64_t n_dim, dim[GGUF_MAX_DIM], offset;
};

static int take_tensor(struct cursor *c, struct raw_tensor *t, struct err *e)
{
    *t = (struct raw_tensor){.name = take_string(c)};
    t->n_dim = take_number(c, 4);
    if (!c->is_short && (t->name.n_byte < 1 || t->name.n_byte >= MAX_NAME ||
                            memchr(t->name.data, 0, t->name.n_byte)))
        return err_set(e, ERR_FORMAT,
            "a tensor's name has %llu bytes, expected 1 to %d, none of them 0",
            (unsigned long long)t->name.n_byte, MAX_NAME - 1);
    if (!c->is_short && (t->n_dim < 1 || t->n_dim > GGUF_MAX_DIM))
        return err_set(e, ERR_FORMAT, "tensor %.*s has %llu dimensions, expected 1 to %d",
            (int)t->name.n_byte, t->name.data, (unsigned long long)t->n_dim, GGUF_MAX_DIM);
    for (uint64_t i = 0; i < t->n_dim && !c->is_short; i++)
        t->dim[i] = take_number(c, 8);
    t->type = (uint32_t)take_number(c, 4);
    t->offset = take_number(c, 8);
    return 0;
}

/* What a walk over one part's header finds. */
struct header {
    uint64_t n_key, n_tensor;
    const uint8_t *keys, *tensors, *data; /* where each section starts */
    uint64_t n_data_byte;
};

static int walk_preamble(struct cursor *c, struct header *h, struct err *e)
{
    const uint8_t *magic = take(c, 4);
    uint64_t version = take_number(c, 4);
    if (!magic || memcmp(magic, "GGUF", 4))
        return err_set(e, ERR_FORMAT, "does not start with GGUF");
    if (version != 2 && version != 3)
        return err_set(e, ERR_UNSUPPORTED,
            version == 0x03000000 ? "big-endian file" : "GGUF version %llu, expected 2 or 3",
            (unsigned long long)version);
    h->n_tensor = take_number(c, 8);
    h->n_key = take_number(c, 8);
    h->keys = c->p;
    return 0;
}

static int cut_short(const struct cursor *c, const char *where, struct err *e)
{
    return c->is_short ? err_set(e, ERR_FORMAT, "file ends inside its %s", where) : 0;
}

static int read_alignment(const struct gguf_key *key, uint64_t *alignment, struct err *e)
{
    struct gguf_number n;
    if (key->is_array || gguf_number(key, 0, &n) || n.i < 8 || n.i > MAX_ALIGNMENT ||
        (n.i & (n.i - 1)))
        return err_set(
            e, ERR_FORMAT, "general.alignment is no power of two from 8 to %d", MAX_ALIGNMENT);
    *alignment = (uint64_t)n.i;
    return 0;
}

static int is_named(struct gguf_string s, const char *name)
{
    return s.n_byte == strlen(name) && !memcmp(s.data, name, s.n_byte);
}

static int walk_header(
    const struct part *part, struct header *h, uint64_t *alignment, struct err *e)
{
    struct cursor c = {part->bytes, part->bytes + part->n_byte, 0};
    struct gguf_key key;
    struct raw_tensor tensor;
    *alignment = 32;
    if (walk_preamble(&c, h, e))
        return -1;
    for (uint64_t i = 0; i < h->n_key && !c.is_short; i++) {
        if (take_key(&c, &key, e))
            return -1;
        if (!c.is_short && is_named(key.name, "general.alignment") &&
            read_alignment(&key, alignment, e))
            return -1;
    }
    if (cut_short(&c, "metadata", e))
        return -1;
    h->tensors = c.p;
    for (uint64_t i = 0; i < h->n_tensor && !c.is_short; i++)
        if (take_tensor(&c, &tensor, e))
            return -1;
    if (cut_short(&c, "list of tensors", e))
        return -1;
    uint64_t used = (uint64_t)(c.p - part->bytes),
             start = (used + *alignment - 1) / *alignment * *alignment;
    if (start > part->n_byte) {
        if (h->n_tensor)
            return err_set(e, ERR_FORMAT, "file ends before its data");
        start = part->n_byte;
    }
    h->data = part->bytes + start;
    h->n_data_byte = part->n_byte - start;
    return 0;
}

/* ---- Filling the tables ---- */

static int place_tensor(struct gguf_tensor *t, const struct raw_tensor *raw, const struct header *h,
    uint64_t alignment, struct err *e)
{
    t->ggml_type = raw->type;
    t->type = dtype_by_ggml(raw->type);
    t->n_dim = (int)raw->n_dim;
    for (int i = 0; i < t->n_dim; i++) {
        uint64_t d = raw->dim[t->n_dim - 1 - i];
        if (d < 1 || d > INT64_MAX)
            return err_set(
                e, ERR_FORMAT, "tensor %s: a dimension is %llu", t->name, (unsigned long long)d);
        t->dim[i] = (int64_t)d;
    }
    if (raw->offset % alignment || raw->offset > h->n_data_byte)
        return err_set(e, ERR_FORMAT,
            "tensor %s: offset %llu, expected a multiple of %llu up to %llu", t->name,
            (unsigned long long)raw->offset, (unsigned long long)alignment,
            (unsigned long long)h->n_data_byte);
    t->data = h->data + raw->offset;
    if (t->type < 0)
        return 0;
    int64_t n_byte = tensor_data_bytes((enum dtype)t->type, t->n_dim, t->dim);
    if (n_byte < 0)
        return err_set(e, ERR_FORMAT, "tensor %s: its shape does not fit the blocks of %s", t->name,
            dtype_info((enum dtype)t->type)->name);
    if ((uint64_t)n_byte > h->n_data_byte - raw->offset)
        return err_set(e, ERR_FORMAT, "tensor %s: %lld bytes at offset %llu of %llu", t->name,
            (long long)n_byte, (unsigned long long)raw->offset, (unsigned long long)h->n_data_byte);
    t->n_byte = (uint64_t)n_byte;
    return 0;
}

static int fill_tensors(struct gguf *file, const struct header *h, uint64_t alignment,
    const struct part *part, struct err *e)
{
    struct cursor c = {h->tensors, part->bytes + part->n_byte, 0};
    struct gguf_tensor *grown =
        ARENA_NEW(&file->arena, struct gguf_tensor, file->n_tensor + h->n_tensor);
    if (!grown)
        return err_set(
            e, ERR_MEMORY, "no memory for %llu tensors", (unsigned long long)h->n_tensor);
    if (file->n_tensor)
        memcpy(grown, file->tensors, file->n_tensor * sizeof *grown);
    file->tensors = grown;
    for (uint64_t i = 0; i < h->n_tensor; i++) {
        struct raw_tensor raw;
        if (take_tensor(&c, &raw, e))
            return -1;
        struct gguf_tensor *t = &file->tensors[file->n_tensor++];
        t->name = arena_copy(&file->arena, raw.name.data, raw.name.n_byte);
        if (!t->name)
            return err_set(e, ERR_MEMORY, "no memory for names");
        if (place_tensor(t, &raw, h, alignment, e))
            return -1;
    }
    return 0;
}

static int fill_keys(
    struct gguf *file, const struct header *h, const struct part *part, struct err *e)
{
    struct cursor c = {h->keys, part->bytes + part->n_byte, 0};
    file->keys = ARENA_NEW(&file->arena, struct gguf_key, h->n_key);
    if (!file->keys)
        return err_set(e, ERR_MEMORY, "no memory for %llu keys", (unsigned long long)h->n_key);
    for (file->n_key = 0; file->n_key < h->n_key; file->n_key++)
        if (take_key(&c, &file->keys[file->n_key], e))
            return -1;
    return 0;
}

/* ---- Looking up, and what must be unique ---- */

static int compare_strings(struct gguf_string a, struct gguf_string b)
{
    int order = memcmp(a.data, b.data, a.n_byte < b.n_byte ? a.n_byte : b.n_byte);
    return order ? order : (a.n_byte > b.n_byte) - (a.n_byte < b.n_byte);
}

static int by_key(const void *a, const void *b)
{
    const struct gguf_key *const *x = a, *const *y = b;
    return compare_strings((*x)->name, (*y)->name);
}

static int by_name(const void *a, const void *b)
{
    const struct gguf_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int by_address(const void *a, const void *b)
{
    const struct gguf_tensor *const *x = a, *const *y = b;
    if ((*x)->data != (*y)->data)
        return (uintptr_t)(*x)->data < (uintptr_t)(*y)->data ? -1 : 1;
    return ((*x)->n_byte > (*y)->n_byte) - ((*x)->n_byte < (*y)->n_byte);
}

static int index_keys(struct gguf *file, struct err *e)
{
    file->key_by_name = ARENA_NEW(&file->arena, const struct gguf_key *, file->n_key);
    if (!file->key_by_name)
        return err_set(e, ERR_MEMORY, "no memory for an index");
    for (uint64_t i = 0; i < file->n_key; i++)
        file->key_by_name[i] = &file->keys[i];
    qsort(file->key_by_name, file->n_key, sizeof *file->key_by_name, by_key);
    for (uint64_t i = 1; i < file->n_key; i++)
        if (!by_key(&file->key_by_name[i - 1], &file->key_by_name[i]))
            return err_set(e, ERR_FORMAT, "key %.*s stands there twice",
                (int)(file->key_by_name[i]->name.n_byte % MAX_NAME),
                file->key_by_name[i]->name.data);
    return 0;
}

static int index_tensors(struct gguf *file, struct err *e)
{
    uint64_t n = file->n_tensor;
    const struct gguf_tensor **index = ARENA_NEW(&file->arena, const struct gguf_tensor *, n);
    if (!index)
        return err_set(e, ERR_MEMORY, "no memory for an index");
    for (uint64_t i = 0; i < n; i++)
        index[i] = &file->tensors[i];
    qsort(index, n, sizeof *index, by_address);
    for (uint64_t i = 1; i < n; i++)
        if ((uintptr_t)index[i]->data < (uintptr_t)index[i - 1]->data + index[i - 1]->n_byte)
            return err_set(
                e, ERR_FORMAT, "tensors %s and %s share bytes", index[i - 1]->name, index[i]->name);
    qsort(index, n, sizeof *index, by_name);
    for (uint64_t i = 1; i < n; i++)
        if (!strcmp(index[i]->name, index[i - 1]->name))
            return err_set(e, ERR_FORMAT, "tensor %s stands there twice", index[i]->name);
    file->tensor_by_name = index;
    return 0;
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *file, const char *name)
{
    uint64_t low = 0, high = file->n_tensor;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = strcmp(name, file->tensor_by_name[middle]->name);
        if (!order)
            return file->tensor_by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct gguf_key *gguf_find_key(const struct gguf *file, const char *name)
{
    struct gguf_string wanted = {name, strlen(name)};
    uint64_t low = 0, high = file->n_key;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = compare_strings(wanted, file->key_by_name[middle]->name);
        if (!order)
            return file->key_by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- Parts ---- */

static int add_part(struct gguf *file, struct err *e)
{
    struct part *part = &file->parts[file->n_part++];
    struct header h = {0};
    uint64_t alignment;
    if (walk_header(part, &h, &alignment, e) || fill_tensors(file, &h, alignment, part, e))
        return -1;
    if (file->n_part > 1)
        return 0;
    return fill_keys(file, &h, part, e) || index_keys(file, e) ? -1 : 0;
}

static int map_part(struct gguf *file, const char *path, struct err *e)
{
    struct part *part = &file->parts[file->n_part];
    if (!(part->path = arena_copy(&file->arena, path, strlen(path))))
        return err_set(e, ERR_MEMORY, "no memory for a path");
    if (file_map_open(&part->map, path, e))
        return -1;
    part->bytes = part->map.data;
    part->n_byte = part->map.n_byte;
    if (!add_part(file, e))
        return 0;
    return err_wrap(e, "%s", path);
}

static int64_t number_or(const struct gguf *file, const char *name, int64_t fallback)
{
    const struct gguf_key *key = gguf_find_key(file, name);
    struct gguf_number n;
    return key && !key->is_array && !gguf_number(key, 0, &n) && n.is_integer ? n.i : fallback;
}

/* "NAME-00001-of-00003.gguf": the path of part i, counted from 1. */
static int part_path(const char *first, int64_t i, int64_t n, char path[MAX_PATH], struct err *e)
{
    char tail[32];
    snprintf(tail, sizeof tail, "-00001-of-%05lld.gguf", (long long)n);
    size_t n_first = strlen(first), n_tail = strlen(tail);
    if (n_first < n_tail || n_first >= MAX_PATH || strcmp(first + n_first - n_tail, tail))
        return err_set(e, ERR_FORMAT, "%s: part 1 of %lld, but its name does not end in %s", first,
            (long long)n, tail);
    snprintf(path, MAX_PATH, "%.*s-%05lld-of-%05lld.gguf", (int)(n_first - n_tail), first,
        (long long)i, (long long)n);
    return 0;
}

static int map_other_parts(struct gguf *file, const char *path, struct err *e)
{
    int64_t n = number_or(file, "split.count", 1), no = number_or(file, "split.no", 0);
    char other[MAX_PATH];
    if (no != 0)
        return err_set(
            e, ERR_ARGUMENT, "%s: this is part %lld; open part 1", path, (long long)no + 1);
    if (n < 0 || n > MAX_PART)
        return err_set(e, ERR_FORMAT, "%s: split into %lld parts, expected at most %d", path,
            (long long)n, MAX_PART);
    for (int64_t i = 2; i <= n; i++)
        if (part_path(path, i, n, other, e) || map_part(file, other, e))
            return -1;
    return 0;
}

static struct gguf *new_file(int max_part)
{
    struct gguf *file = mem_resize(NULL, sizeof *file);
    if (!file)
        return NULL;
    *file = (struct gguf){0};
    file->parts = ARENA_NEW(&file->arena, struct part, (size_t)max_part);
    if (file->parts)
        return file;
    mem_free(file);
    return NULL;
}

static int finish(struct gguf **out, struct gguf *file, int failed)
{
    if (failed)
        gguf_close(file);
    *out = failed ? NULL : file;
    return failed ? -1 : 0;
}

int gguf_open(struct gguf **out, const char *path, struct err *e)
{
    *out = NULL;
    struct gguf *file = new_file(MAX_PART);
    if (!file)
        return err_set(e, ERR_MEMORY, "%s: no memory to open it", path);
    int failed = map_part(file, path, e) || map_other_parts(file, path, e);
    if (!failed && index_tensors(file, e))
        failed = err_wrap(e, "%s", path);
    return finish(out, file, failed);
}

int gguf_open_bytes(struct gguf **out, const void *bytes, uint64_t n_byte, struct err *e)
{
    *out = NULL;
    struct gguf *file = new_file(1);
    if (!file)
        return err_set(e, ERR_MEMORY, "no memory to open a model");
    file->parts[0] = (struct part){.bytes = bytes, .n_byte = n_byte, .path = "model in memory"};
    int failed = add_part(file, e) || index_tensors(file, e);
    if (!failed && number_or(file, "split.count", 1) > 1)
        failed = err_set(e, ERR_FORMAT, "part of a split model");
    return finish(out, file, failed);
}

void gguf_close(struct gguf *file)
{
    if (!file)
        return;
    for (int i = 0; i < file->n_part; i++)
        file_map_close(&file->parts[i].map);
    arena_free(&file->arena);
    mem_free(file);
}

int gguf_part(const struct gguf *file, int i, struct file_part *part)
{
    if (i >= file->n_part || !file->parts[i].map.data)
        return 0;
    *part = (struct file_part){file->parts[i].path, file->parts[i].bytes, file->parts[i].n_byte};
    return 1;
}

const struct gguf_tensor *gguf_tensors(const struct gguf *file, uint64_t *n)
{
    *n = file->n_tensor;
    return file->tensors;
}

const struct gguf_key *gguf_keys(const struct gguf *file, uint64_t *n)
{
    *n = file->n_key;
    return file->keys;
}

/* ---- Values ---- */

static int64_t sign_extend(uint64_t x, int n_byte)
{
    int unused = 64 - 8 * n_byte;
    return (int64_t)(x << unused) >> unused;
}

int gguf_number(const struct gguf_key *key, uint64_t i, struct gguf_number *out)
{
    if (i >= key->n || key->type == GGUF_STRING)
        return -1;
    int n_byte = value_bytes[key->type];
    uint64_t x = load(key->payload + i * (uint64_t)n_byte, n_byte);
    *out = (struct gguf_number){.is_integer = 1, .i = (int64_t)x, .f = (double)x};
    switch (key->type) {
    case GGUF_F32: {
        float f;
        uint32_t bits = (uint32_t)x;
        memcpy(&f, &bits, 4);
        *out = (struct gguf_number){.f = (double)f};
        return 0;
    }
    case GGUF_F64:
        *out = (struct gguf_number){0};
        memcpy(&out->f, &x, 8);
        return 0;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
        out->i = sign_extend(x, n_byte);
        out->f = (double)out->i;
        return 0;
    default:
        return 0;
    }
}

struct gguf_string gguf_next_string(const uint8_t **next)
{
    struct gguf_string s = {(const char *)*next + 8, load(*next, 8)};
    *next += 8 + s.n_byte;
    return s;
}

struct gguf_string gguf_text(const struct gguf_key *key)
{
    if (!key || key->is_array || key->type != GGUF_STRING)
        return (struct gguf_string){0};
    const uint8_t *next = key->payload;
    return gguf_next_string(&next);
}

const char *gguf_type_name(uint32_t ggml_type, char text[24])
{
    static const struct {
        uint32_t number;
        const char *name;
    } others[] = {{2, "Q4_0"}, {3, "Q4_1"}, {6, "Q5_0"}, {7, "Q5_1"}, {9, "Q8_1"}, {15, "Q8_K"},
        {17, "IQ2_XS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {25, "I16"},
        {28, "F64"}, {29, "IQ1_M"}, {34, "TQ1_0"}, {35, "TQ2_0"}, {40, "NVFP4"}};
    int type = dtype_by_ggml(ggml_type);
    if (type >= 0)
        return dtype_info((enum dtype)type)->name;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].number == ggml_type)
            return others[i].name;
    snprintf(text, 24, "type %u", ggml_type);
    return text;
}
