/* host.c: see host.h. */
#include "backend/host.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int host_buffer_new(struct backend *be, struct backend_buffer *b, uint64_t n_byte, struct err *e)
{
    (void)be;
    *b = (struct backend_buffer){.n_byte = n_byte};
    if (!n_byte)
        return 0;
    void *p = n_byte > SIZE_MAX ? MAP_FAILED
                                : mmap(NULL, (size_t)n_byte, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return err_set(e, ERR_MEMORY, "no %llu bytes of memory: %s", (unsigned long long)n_byte,
            strerror(errno));
    b->data = b->host = p;
    return 0;
}

int host_buffer_wrap(
    struct backend *be, struct backend_buffer *b, const void *host, uint64_t n_byte, struct err *e)
{
    (void)be;
    (void)e;
    void *data = (void *)(uintptr_t)host; /* kernels do not write to wrapped memory */
    *b = (struct backend_buffer){.data = data, .host = data, .n_byte = n_byte, .is_wrapped = 1};
    return 0;
}

void host_buffer_free(struct backend *be, struct backend_buffer *b)
{
    (void)be;
    if (b->data && !b->is_wrapped)
        munmap(b->data, (size_t)b->n_byte);
    *b = (struct backend_buffer){.data = NULL};
}

int host_copy(struct backend *be, void *to, const void *from, uint64_t n_byte, struct err *e)
{
    (void)be;
    (void)e;
    if (n_byte)
        memmove(to, from, (size_t)n_byte);
    return 0;
}

void host_begin(struct backend *be, uint64_t graph_key)
{
    (void)be;
    (void)graph_key;
}

int host_end(struct backend *be, struct err *e)
{
    (void)be;
    (void)e;
    return 0;
}
