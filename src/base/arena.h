/* arena.h: the only place that asks the C library for memory.
 *
 * Lifetimes, not frees: an arena belongs to an engine, a session or a request and is released whole. Things that grow
 * while being read (text buffers) use mem_resize. mem_n_calls counts both, so that a test can prove that a decode step
 * allocates nothing.
 */
#ifndef HADAL_BASE_ARENA_H
#define HADAL_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t used_bytes;          /* handed out so far, padding included */
};

/* `arena` starts as all zeros. Memory is zeroed and aligned to 64 bytes; NULL when there is none. */
void *arena_alloc(struct arena *a, size_t bytes);
/* A copy of `bytes` bytes with a terminating zero byte after them. */
char *arena_copy(struct arena *a, const void *data, size_t bytes);
char *arena_print(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *a);

/* n elements of a type; NULL as well when n * sizeof(type) does not fit in a size_t. */
#define ARENA_NEW(a, type, n) ((type *)arena_alloc_n((a), (n), sizeof(type)))
void *arena_alloc_n(struct arena *a, size_t n, size_t element_bytes);

/* realloc and free that count; mem_resize(NULL, n) allocates. NULL when there is no memory (the old block stays). */
void *mem_resize(void *block, size_t bytes);
void mem_free(void *block);
uint64_t mem_n_calls(void);

#endif
