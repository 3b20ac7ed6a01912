/* gguf_write.c: see gguf_write.h. Numbers are little-endian, as on every machine that this program
 * runs on. */
#include "format/gguf_write.h"

#include <string.h>

static void put(struct buf *b, const void *data, size_t n)
{
    buf_append(b, data, n);
}

static void put_u32(struct buf *b, uint32_t x)
{
    put(b, &x, 4);
}

static void put_u64(struct buf *b, uint64_t x)
{
    put(b, &x, 8);
}

static void put_string(struct buf *b, const char *data, uint64_t n)
{
    put_u64(b, n);
    put(b, data, (size_t)n);
}

static void start_key(struct gguf_header *h, const char *name, enum gguf_type type)
{
    put_string(&h->keys, name, strlen(name));
    put_u32(&h->keys, (uint32_t)type);
    h->n_key++;
}

void gguf_put_u32(struct gguf_header *h, const char *name, uint32_t value)
{
    start_key(h, name, GGUF_U32);
    put_u32(&h->keys, value);
}

void gguf_put_i32(struct gguf_header *h, const char *name, int32_t value)
{
    start_key(h, name, GGUF_I32);
    put(&h->keys, &value, 4);
}

void gguf_put_u64(struct gguf_header *h, const char *name, uint64_t value)
{
    start_key(h, name, GGUF_U64);
    put_u64(&h->keys, value);
}

void gguf_put_f32(struct gguf_header *h, const char *name, float value)
{
    start_key(h, name, GGUF_F32);
    put(&h->keys, &value, 4);
}

void gguf_put_bool(struct gguf_header *h, const char *name, int value)
{
    start_key(h, name, GGUF_BOOL);
    put(&h->keys, value ? "\1" : "\0", 1);
}

void gguf_put_text(struct gguf_header *h, const char *name, const char *text)
{
    start_key(h, name, GGUF_STRING);
    put_string(&h->keys, text, strlen(text));
}

uint64_t gguf_put_numbers(
    struct gguf_header *h, const char *name, enum gguf_type type, const void *values, uint64_t n)
{
    static const uint8_t size[N_GGUF_TYPE] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    start_key(h, name, GGUF_ARRAY);
    put_u32(&h->keys, (uint32_t)type);
    put_u64(&h->keys, n);
    uint64_t at = h->keys.n_byte;
    put(&h->keys, values, (size_t)n * size[type]);
    return at;
}

void gguf_put_texts(
    struct gguf_header *h, const char *name, const struct gguf_string *texts, uint64_t n)
{
    start_key(h, name, GGUF_ARRAY);
    put_u32(&h->keys, GGUF_STRING);
    put_u64(&h->keys, n);
    for (uint64_t i = 0; i < n; i++)
        put_string(&h->keys, texts[i].data, texts[i].n_byte);
}

static uint64_t align_up(uint64_t n)
{
    return (n + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
}

uint64_t gguf_put_tensor(struct gguf_header *h, const struct gguf_tensor *t)
{
    uint64_t offset = h->n_data_byte;
    put_string(&h->tensors, t->name, strlen(t->name));
    put_u32(&h->tensors, (uint32_t)t->n_dim);
    for (int i = t->n_dim - 1; i >= 0; i--)
        put_u64(&h->tensors, (uint64_t)t->dim[i]);
    put_u32(&h->tensors, t->ggml_type);
    put_u64(&h->tensors, offset);
    h->n_data_byte = align_up(offset + t->n_byte);
    h->n_tensor++;
    return offset;
}

int gguf_header_bytes(
    const struct gguf_header *h, struct buf *out, uint64_t *keys_at, struct err *e)
{
    static const char zeros[GGUF_ALIGNMENT];
    put(out, "GGUF", 4);
    put_u32(out, 3);
    put_u64(out, h->n_tensor);
    put_u64(out, h->n_key);
    if (keys_at)
        *keys_at = out->n_byte;
    put(out, h->keys.data, h->keys.n_byte);
    put(out, h->tensors.data, h->tensors.n_byte);
    put(out, zeros, (size_t)(align_up(out->n_byte) - out->n_byte));
    if (h->keys.is_broken || h->tensors.is_broken || out->is_broken)
        return err_set(e, ERR_MEMORY, "no memory for the header of a GGUF file");
    return 0;
}

void gguf_header_free(struct gguf_header *h)
{
    buf_free(&h->keys);
    buf_free(&h->tensors);
}
