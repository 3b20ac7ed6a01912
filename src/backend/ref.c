/* ref.c: the reference as a backend: one thread, host memory, ops/ref. */
#include "backend/host.h"
#include "base/arena.h"
#include "ops/ref/ref.h"

static int open_ref(struct backend **be, const struct backend_options *options, struct err *e)
{
    (void)options;
    *be = mem_resize(NULL, sizeof **be);
    if (!*be)
        return err_set(e, ERR_MEMORY, "no memory for a backend");
    **be = (struct backend){.level = "scalar", .n_thread = 1};
    return 0;
}

static void close_ref(struct backend *be)
{
    mem_free(be);
}

const struct backend_kind backend_ref = {
    .name = "ref",
    .open = open_ref,
    .close = close_ref,
    .buffer_new = host_buffer_new,
    .buffer_wrap = host_buffer_wrap,
    .buffer_free = host_buffer_free,
    .write = host_copy,
    .read = host_copy,
    .begin = host_begin,
    .end = host_end,
    .fill = ref_fill,
};
