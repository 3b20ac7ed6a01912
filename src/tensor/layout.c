/* layout.c: see layout.h. */
#include "tensor/layout.h"

#include <stddef.h>

struct tensor layout_place(struct layout *l, enum dtype type, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    struct tensor t = tensor_of(type, l->base ? l->base + l->n_byte : NULL, d0, d1, d2, d3);
    uint64_t n_byte = (uint64_t)tensor_data_bytes(type, t.n_dim, t.dim);
    l->n_byte += (n_byte + 63) & ~(uint64_t)63;
    return t;
}
