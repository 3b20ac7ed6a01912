/* matmul.c: activation rows times weights. A weight row is decoded to floats once and used for all
 * rows. */
#include "ops/ref/ref.h"

void ref_matmul(struct backend *be, const void *args)
{
    const struct op_matmul *a = args;
    int64_t n = a->x->dim[0], n_out = a->w->dim[0], n_in = a->w->dim[1];
    float *w = backend_scratch(be, (size_t)n_in * sizeof *w);
    for (int64_t o = 0; w && o < n_out; o++) {
        tensor_decode(a->w, o, 0, n_in, w);
        for (int64_t r = 0; r < n; r++)
            ref_row(a->y, r)[o] = ref_dot(w, ref_row(a->x, r), n_in);
    }
}

void ref_matmul_grouped(struct backend *be, const void *args)
{
    const struct op_matmul_grouped *a = args;
    int64_t n = a->x->dim[0], n_out = a->w->dim[0], n_in = a->w->dim[1];
    int64_t n_out_each = n_out / a->n_group;
    float *w = backend_scratch(be, (size_t)n_in * sizeof *w);
    for (int64_t o = 0; w && o < n_out; o++) {
        tensor_decode(a->w, o, 0, n_in, w);
        for (int64_t r = 0; r < n; r++)
            ref_row(a->y, r)[o] = ref_dot(w, ref_row(a->x, r) + o / n_out_each * n_in, n_in);
    }
}
