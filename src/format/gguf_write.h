/* gguf_write.h: building the header of a GGUF version 3 file.
 *
 * The header fixes where every tensor's data will lie, so whoever writes the data can do it in any
 * order and at any time. Functions without a result stick to the first failure (no memory);
 * gguf_header_bytes reports it.
 */
#ifndef HADAL_FORMAT_GGUF_WRITE_H
#define HADAL_FORMAT_GGUF_WRITE_H

#include "base/buf.h"
#include "base/err.h"
#include "format/gguf.h"

enum { GGUF_ALIGNMENT = 32 };

struct gguf_header { /* starts as all zeros */
    struct buf keys, tensors;
    uint64_t n_key, n_tensor;
    uint64_t n_data_byte; /* of all tensors so far, padding included */
};

void gguf_put_u32(struct gguf_header *h, const char *name, uint32_t value);
void gguf_put_i32(struct gguf_header *h, const char *name, int32_t value);
void gguf_put_u64(struct gguf_header *h, const char *name, uint64_t value);
void gguf_put_f32(struct gguf_header *h, const char *name, float value);
void gguf_put_bool(struct gguf_header *h, const char *name, int value);
void gguf_put_text(struct gguf_header *h, const char *name, const char *text);
/* n numbers of a type that C and the file lay out alike on a little-endian machine. Returns where
 * in `keys` they start. */
uint64_t gguf_put_numbers(
    struct gguf_header *h, const char *name, enum gguf_type type, const void *values, uint64_t n);
void gguf_put_texts(
    struct gguf_header *h, const char *name, const struct gguf_string *texts, uint64_t n);

/* dim: outermost first. Returns the offset of its data behind the header. */
uint64_t gguf_put_tensor(struct gguf_header *h, const struct gguf_tensor *t);

/* The whole header, padded: the data follows. keys_at, if given, receives where h->keys starts in
 * it. */
int gguf_header_bytes(
    const struct gguf_header *h, struct buf *out, uint64_t *keys_at, struct err *e);
void gguf_header_free(struct gguf_header *h);

#endif
