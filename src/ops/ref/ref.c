/* ref.c: what the reference ops share: lane sums, weights as floats, the table. */
#include "ops/ref/ref.h"

#define ENTRY(op) [OP_##op] = ref_##op,
static const op_fn entries[N_OP] = {OP_LIST_BASE(ENTRY)};

void ref_fill(op_fn table[N_OP])
{
    for (int op = 0; op < N_OP; op++)
        table[op] = entries[op];
}

float ref_dot(const float *a, const float *b, int64_t n)
{
    struct ref_lanes s = {{0}};
    for (int64_t i = 0; i < n; i++)
        s.lane[i % REF_N_LANE] = fmaf(a[i], b[i], s.lane[i % REF_N_LANE]);
    return ref_fold(&s);
}

const float *ref_weight_row(struct backend *be, const struct tensor *t, int64_t row)
{
    int64_t n = tensor_n_col(t);
    if (t->type == DT_F32 && !t->part) {
        const char *p = (const char *)t->data + row * t->row_bytes;
        if ((uintptr_t)p % sizeof(float) == 0)
            return (const float *)(const void *)p;
    }
    float *values = backend_scratch(be, (size_t)n * sizeof *values);
    if (values)
        tensor_decode(t, row, 0, n, values);
    return values;
}

const float *ref_weight_values(struct backend *be, const struct tensor *t)
{
    int64_t n_row = tensor_n_row(t), n_col = tensor_n_col(t);
    float *values = backend_scratch(be, (size_t)(n_row * n_col) * sizeof *values);
    for (int64_t r = 0; values && r < n_row; r++)
        tensor_decode(t, r, 0, n_col, values + r * n_col);
    return values;
}

int ref_refuse_index(struct backend *be, const char *what, int64_t value, int64_t limit)
{
    if (value >= 0 && value < limit)
        return 0;
    backend_fail(be, ERR_ARGUMENT, "%s %lld, expected 0 to %lld", what, (long long)value,
        (long long)limit - 1);
    return -1;
}
