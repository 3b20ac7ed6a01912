/* arena.c: see arena.h.
 *
 * A chunk is one block from the C library:  | next, size, used | padding to 64 | bytes ... |
 * Requests above half a chunk get a chunk of their own, so that large tensors waste nothing.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, CHUNK_BYTES = 1 << 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t capacity, used; /* bytes after the header */
};

static atomic_uint_fast64_t n_calls;

static size_t align_up(size_t n)
{
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static struct arena_chunk *new_chunk(size_t capacity)
{
    size_t header = align_up(sizeof(struct arena_chunk));
    if (capacity > SIZE_MAX - header - ALIGN)
        return NULL;
    atomic_fetch_add(&n_calls, 1);
    struct arena_chunk *c = aligned_alloc(ALIGN, align_up(header + capacity));
    if (c)
        *c = (struct arena_chunk){.capacity = capacity};
    return c;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX - 2 * ALIGN)
        return NULL;
    size_t need = align_up(bytes ? bytes : 1);
    struct arena_chunk *c = a->chunks;
    if (!c || c->capacity - c->used < need) {
        c = new_chunk(need > CHUNK_BYTES / 2 ? need : CHUNK_BYTES);
        if (!c)
            return NULL;
        if (a->chunks && c->capacity == need) { /* keep filling the open chunk */
            c->next = a->chunks->next;
            a->chunks->next = c;
        } else {
            c->next = a->chunks;
            a->chunks = c;
        }
    }
    void *p = (char *)c + align_up(sizeof *c) + c->used;
    c->used += need;
    a->used_bytes += need;
    return memset(p, 0, need);
}

void *arena_alloc_n(struct arena *a, size_t n, size_t element_bytes)
{
    if (element_bytes && n > SIZE_MAX / element_bytes)
        return NULL;
    return arena_alloc(a, n * element_bytes);
}

char *arena_copy(struct arena *a, const void *data, size_t bytes)
{
    if (bytes == SIZE_MAX)
        return NULL;
    char *p = arena_alloc(a, bytes + 1);
    if (p && bytes)
        memcpy(p, data, bytes);
    return p;
}

char *arena_print(struct arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return p;
}

void arena_free(struct arena *a)
{
    for (struct arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *a = (struct arena){0};
}

void *mem_resize(void *block, size_t bytes)
{
    atomic_fetch_add(&n_calls, 1);
    return realloc(block, bytes ? bytes : 1);
}

void mem_free(void *block)
{
    free(block);
}

uint64_t mem_n_calls(void)
{
    return atomic_load(&n_calls);
}
