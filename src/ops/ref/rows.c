/* rows.c: ops that move or combine whole rows. */
#include "ops/ref/ref.h"
#include "tensor/round.h"

#include <string.h>

void ref_gather(struct backend *be, const void *args)
{
    const struct op_gather *a = args;
    int64_t n = a->y->dim[0], d = a->y->dim[1];
    const int32_t *id = ref_ints(a->id, 0);
    for (int64_t r = 0; r < n; r++) {
        if (ref_refuse_index(be, "gather: row", id[r], a->w->dim[0]))
            return;
        tensor_decode(a->w, id[r], 0, d, ref_row(a->y, r));
    }
}

void ref_repeat_streams(struct backend *be, const void *args)
{
    (void)be;
    const struct op_repeat_streams *a = args;
    int64_t n_stream = a->y->dim[1], d = a->y->dim[2];
    for (int64_t r = 0; r < a->y->dim[0] * n_stream; r++)
        memcpy(ref_row(a->y, r), ref_row(a->x, r / n_stream), (size_t)d * sizeof(float));
}

void ref_add(struct backend *be, const void *args)
{
    (void)be;
    const struct op_add *a = args;
    for (int64_t r = 0; r < tensor_n_row(a->y); r++) {
        float *y = ref_row(a->y, r);
        const float *x = ref_row(a->x, r);
        for (int64_t i = 0; i < tensor_n_col(a->y); i++)
            y[i] += x[i];
    }
}

static void store_row(const struct tensor *y, int64_t row, const float *x)
{
    int64_t d = tensor_n_col(y);
    char *to = (char *)y->data + row * y->row_bytes;
    if (y->type == DT_F32) {
        memcpy(to, x, (size_t)d * sizeof *x);
        return;
    }
    for (int64_t i = 0; i < d; i++) {
        uint16_t h = float_to_bf16(x[i]);
        memcpy(to + 2 * i, &h, sizeof h);
    }
}

void ref_append(struct backend *be, const void *args)
{
    const struct op_append *a = args;
    const int32_t *slot = ref_ints(a->slot, 0), *at = ref_ints(a->at, 0);
    int64_t n_slot = a->y->dim[0], capacity = a->y->dim[1];
    for (int64_t r = 0; r < a->x->dim[0]; r++) {
        if (ref_refuse_index(be, "append: slot", slot[r], n_slot) ||
            ref_refuse_index(be, "append: position", at[r], INT32_MAX))
            return;
        store_row(a->y, slot[r] * capacity + at[r] % capacity, ref_row(a->x, r));
    }
}

void ref_add_by_pos(struct backend *be, const void *args)
{
    const struct op_add_by_pos *a = args;
    const int32_t *pos = ref_ints(a->pos, 0);
    const float *table = ref_weight_values(be, a->table);
    int64_t width = a->x->dim[1], n_table = a->table->dim[0];
    for (int64_t r = 0; table && r < a->x->dim[0]; r++) {
        if (ref_refuse_index(be, "add_by_pos: position", pos[r], INT32_MAX))
            return;
        float *x = ref_row(a->x, r);
        for (int64_t i = 0; i < width; i++)
            x[i] += table[pos[r] % n_table * width + i];
    }
}

void ref_stream_mean(struct backend *be, const void *args)
{
    (void)be;
    const struct op_stream_mean *a = args;
    int64_t n_stream = a->x->dim[1], d = a->x->dim[2];
    for (int64_t r = 0; r < a->y->dim[0]; r++) {
        float *y = ref_row(a->y, r);
        for (int64_t i = 0; i < d; i++) {
            float sum = 0;
            for (int64_t s = 0; s < n_stream; s++)
                sum += ref_row(a->x, r * n_stream + s)[i];
            y[i] = sum / (float)n_stream;
        }
    }
}

void ref_argmax(struct backend *be, const void *args)
{
    (void)be;
    const struct op_argmax *a = args;
    int32_t *id = ref_ints(a->id, 0);
    for (int64_t r = 0; r < a->x->dim[0]; r++) {
        const float *x = ref_row(a->x, r);
        id[r] = 0;
        for (int64_t i = 1; i < a->x->dim[1]; i++)
            if (x[i] > x[id[r]])
                id[r] = (int32_t)i;
    }
}
