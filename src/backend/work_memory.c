/* work_memory.c: see work_memory.h. */
#include "backend/work_memory.h"

#include "backend/backend.h"

enum { ALIGN = 64, FIRST_BYTES = 1 << 20 };

static int add_block(struct backend *be, uint64_t n_byte, struct err *e)
{
    struct work_memory *w = &be->work;
    uint64_t size = w->n_block ? 2 * w->block[w->n_block - 1].n_byte : FIRST_BYTES;
    if (w->n_block == WORK_MEMORY_MAX_BLOCK)
        return err_set(
            e, ERR_MEMORY, "op scratch: all %d blocks are in use", WORK_MEMORY_MAX_BLOCK);
    return be->kind->buffer_new(be, &w->block[w->n_block], size > n_byte ? size : n_byte, e)
               ? -1
               : (w->n_block++, 0);
}

void *work_memory_take(struct backend *be, size_t n_byte, struct err *e)
{
    struct work_memory *w = &be->work;
    if (n_byte > SIZE_MAX / 4)
        return err_set(e, ERR_MEMORY, "op scratch of %zu bytes", n_byte), NULL;
    uint64_t need = (n_byte + ALIGN - 1) / ALIGN * ALIGN;
    while (w->at < w->n_block && w->block[w->at].n_byte - w->used < need) {
        w->at++;
        w->used = 0;
    }
    if (w->at == w->n_block && add_block(be, need, e))
        return NULL;
    void *p = (char *)w->block[w->at].data + w->used;
    w->used += need;
    return p;
}

struct work_mark work_memory_mark(const struct backend *be)
{
    return (struct work_mark){be->work.at, be->work.used};
}

void work_memory_release(struct backend *be, struct work_mark mark)
{
    be->work.at = mark.at;
    be->work.used = mark.used;
}

void work_memory_free(struct backend *be)
{
    struct work_memory *w = &be->work;
    for (int i = 0; i < w->n_block; i++)
        be->kind->buffer_free(be, &w->block[i]);
    *w = (struct work_memory){.n_block = 0};
}
