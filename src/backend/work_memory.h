/* work_memory.h: a stack of memory for use inside ops, in blocks of the backend's own kind.
 *
 * Taken in order, given back to a mark. Blocks stay for the next op, each at least twice as large
 * as the one before, so that after the first steps nothing is asked of the system any more.
 */
#ifndef HADAL_BACKEND_WORK_MEMORY_H
#define HADAL_BACKEND_WORK_MEMORY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Memory that belongs to a backend. host is non-NULL where the host may touch it directly. */
struct backend_buffer {
    void *data; /* as kernels see it */
    void *host;
    uint64_t n_byte;
    int is_wrapped;
};

enum { WORK_MEMORY_MAX_BLOCK = 40 };
struct work_memory {
    struct backend_buffer block[WORK_MEMORY_MAX_BLOCK];
    int n_block;
    int at;        /* block that is being used up */
    uint64_t used; /* bytes of it */
};
struct work_mark {
    int at;
    uint64_t used;
};

struct backend;
/* Aligned to 64 bytes, not cleared; NULL when there is no memory. */
void *work_memory_take(struct backend *be, size_t n_byte, struct err *e);
struct work_mark work_memory_mark(const struct backend *be);
void work_memory_release(struct backend *be, struct work_mark mark);
void work_memory_free(struct backend *be);

#endif
