/* buf.c: see buf.h. */
#include "base/buf.h"

#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int reserve(struct buf *b, size_t more)
{
    if (b->is_broken || more > SIZE_MAX / 2 - b->n_byte - 1) {
        b->is_broken = 1;
        return -1;
    }
    size_t need = b->n_byte + more + 1;
    if (need <= b->capacity)
        return 0;
    size_t capacity = b->capacity ? b->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    char *data = mem_resize(b->data, capacity);
    if (!data) {
        b->is_broken = 1;
        return -1;
    }
    b->data = data;
    b->capacity = capacity;
    return 0;
}

void buf_append(struct buf *b, const void *data, size_t n_byte)
{
    if (reserve(b, n_byte))
        return;
    if (n_byte)
        memcpy(b->data + b->n_byte, data, n_byte);
    b->n_byte += n_byte;
    b->data[b->n_byte] = 0;
}

void buf_text(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

void buf_print(struct buf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n >= 0 && !reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->n_byte, (size_t)n + 1, format, again);
        b->n_byte += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void buf_clear(struct buf *b)
{
    b->n_byte = 0;
    if (b->data)
        b->data[0] = 0;
}

void buf_free(struct buf *b)
{
    mem_free(b->data);
    *b = (struct buf){0};
}
