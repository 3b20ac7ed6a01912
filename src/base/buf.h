/* buf.h: a growable run of bytes, for text under construction and for files being written. */
#ifndef HADAL_BASE_BUF_H
#define HADAL_BASE_BUF_H

#include <stddef.h>

struct buf {
    char *data;      /* NULL while empty; otherwise data[n_byte] is a zero byte */
    size_t n_byte;
    size_t capacity;
    int is_broken;   /* an append ran out of memory; later appends do nothing */
};

void buf_append(struct buf *b, const void *data, size_t n_byte);
void buf_text(struct buf *b, const char *text);
void buf_print(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_clear(struct buf *b); /* keeps the memory */
void buf_free(struct buf *b);

#endif
