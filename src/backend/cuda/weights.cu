/* weights.cu: weights in device memory, as their files hold them.
 *
 * A file is mapped; its tensors are copied one by one through pinned memory. Experts that a
 * checkpoint folder keeps apart come to stand one behind the other.
 */
#include "backend/cuda/device.cuh"

extern "C" {
#include "base/arena.h"
}

enum { SLACK = 16 }; /* kernels copy 16 bytes at a time */

struct cuda_weight {
    struct cuda_weight *next;
    struct backend_buffer memory;
};

void cuda_weights_free(struct cuda_backend *c)
{
    while (c->weights) {
        struct cuda_weight *w = c->weights;
        c->weights = w->next;
        c->base.kind->buffer_free(&c->base, &w->memory);
        mem_free(w);
    }
}

static void *take_memory(struct backend *be, uint64_t n_byte, struct err *e)
{
    struct cuda_backend *c = cuda_of(be);
    struct cuda_weight *w = (struct cuda_weight *)mem_resize(NULL, sizeof *w);
    if (!w)
        return err_set(e, ERR_MEMORY, "no memory for a list of weights"), (void *)NULL;
    *w = (struct cuda_weight){};
    if (be->kind->buffer_new(be, &w->memory, n_byte, e)) {
        mem_free(w);
        return NULL;
    }
    w->next = c->weights;
    c->weights = w;
    return w->memory.data;
}

/* n_byte bytes per slice: from the slices' own places, or from one array. */
static void *copy(struct backend *be, const void *whole, const void *const *part, int64_t n_part,
    uint64_t n_byte, struct err *e)
{
    char *to = (char *)take_memory(be, n_byte * (uint64_t)n_part, e);
    for (int64_t i = 0; to && i < n_part; i++) {
        uint64_t at = (uint64_t)i * n_byte;
        const void *from = part ? part[i] : (const char *)whole + at;
        if (be->kind->write(be, to + at, from, n_byte, e))
            return NULL;
    }
    return to;
}

int cuda_take_weight(struct backend *be, struct tensor *t, struct err *e)
{
    int64_t n_part = t->part ? t->dim[0] : 1;
    uint64_t n_byte = (uint64_t)(tensor_n_row(t) * t->row_bytes) / (uint64_t)n_part;
    uint64_t scale_bytes =
        (uint64_t)tensor_scale_bytes(t->type, t->n_dim, t->dim) / (uint64_t)n_part;
    void *data = copy(be, t->data, t->part, n_part, n_byte, e);
    void *scale =
        data && scale_bytes ? copy(be, t->scale, t->scale_part, n_part, scale_bytes, e) : NULL;
    if (!data || (scale_bytes && !scale))
        return err_wrap(e, "weight %s", t->name ? t->name : "without name");
    t->data = data;
    t->scale = scale;
    t->part = t->scale_part = NULL;
    return 0;
}
