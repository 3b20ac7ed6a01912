/* layout.h: placing many tensors in one buffer.
 *
 * The same placing function runs twice: with base NULL it only measures, with the buffer's address it also points every
 * tensor into it. So the size that is planned, printed and refused is the size that is used.
 */
#ifndef HADAL_TENSOR_LAYOUT_H
#define HADAL_TENSOR_LAYOUT_H

#include "tensor/tensor.h"

struct layout {
    uint8_t *base; /* NULL while measuring */
    uint64_t n_byte;
};

/* A contiguous tensor behind the last one, aligned to 64 bytes; shape as for tensor_of. */
struct tensor layout_place(struct layout *l, enum dtype type, int64_t d0, int64_t d1, int64_t d2, int64_t d3);

#endif
