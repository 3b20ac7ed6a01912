/* cpu.c: placeholder until the threaded kernels land: the reference under the name "cpu". */
#include "backend/host.h"
#include "base/arena.h"
#include "ops/ref/ref.h"

static int open_cpu(struct backend **be, const struct backend_options *options, struct err *e)
{
    (void)options;
    *be = mem_resize(NULL, sizeof **be);
    if (!*be)
        return err_set(e, ERR_MEMORY, "no memory for a backend");
    **be = (struct backend){.level = "portable", .n_thread = 1};
    return 0;
}

static void close_cpu(struct backend *be)
{
    mem_free(be);
}

const struct backend_kind backend_cpu = {
    .name = "cpu",
    .open = open_cpu,
    .close = close_cpu,
    .buffer_new = host_buffer_new,
    .buffer_wrap = host_buffer_wrap,
    .buffer_free = host_buffer_free,
    .write = host_copy,
    .read = host_copy,
    .begin = host_begin,
    .end = host_end,
    .fill = ref_fill,
};
