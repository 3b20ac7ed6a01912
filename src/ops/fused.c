/* fused.c: see fused.h. One batch row at a time, so that only one row of intermediate values is
 * ever kept. */
#include "ops/fused.h"

/* Row r of a tensor whose outermost dimension is the batch; absent stays absent. */
static const struct tensor *row_of(const struct tensor *t, int64_t r, struct tensor *view)
{
    if (!t)
        return NULL;
    *view = tensor_slice(t, r, 1);
    return view;
}

void fused_index_select(struct backend *be, const void *args)
{
    const struct op_index_select *a = args;
    int64_t n_key = a->keys->dim[1];
    float *scores = backend_scratch(be, (size_t)n_key * sizeof *scores);
    if (!scores)
        return;
    struct tensor s = tensor_of(DT_F32, scores, 1, n_key, 0, 0);
    for (int64_t r = 0; r < a->q->dim[0]; r++) {
        struct tensor q, w, slot, visible, rows, n_row, block, n_block;
        row_of(a->visible, r, &visible);
        RUN(be, index_score, .s = &s, .q = row_of(a->q, r, &q), .w = row_of(a->w, r, &w),
            .keys = a->keys, .slot = row_of(a->slot, r, &slot), .visible = &visible,
            .scale = a->scale);
        RUN(be, topk, .rows = row_of(a->rows, r, &rows), .n_row = row_of(a->n_row, r, &n_row),
            .s = &s, .visible = &visible, .block = row_of(a->block, r, &block),
            .n_block = row_of(a->n_block, r, &n_block), .block_size = a->block_size);
        if (a->make_block)
            RUN(be, candidate_blocks, .block = row_of(a->make_block, r, &block),
                .n_block = row_of(a->n_make_block, r, &n_block), .s = &s, .visible = &visible,
                .block_size = a->block_size);
    }
}

int matmul_each_list(const struct op_matmul_each *a, const struct tensor *y[MATMUL_EACH_MAX],
    const struct tensor *w[MATMUL_EACH_MAX])
{
    const struct tensor *const all_y[] = {a->y0, a->y1, a->y2, a->y3, a->y4, a->y5, a->y6};
    const struct tensor *const all_w[] = {a->w0, a->w1, a->w2, a->w3, a->w4, a->w5, a->w6};
    int n = 0;
    for (int i = 0; i < MATMUL_EACH_MAX; i++) {
        if (!all_y[i] || !all_w[i])
            continue;
        y[n] = all_y[i];
        w[n++] = all_w[i];
    }
    return n;
}

void fused_matmul_each(struct backend *be, const void *args)
{
    const struct op_matmul_each *a = args;
    const struct tensor *y[MATMUL_EACH_MAX], *w[MATMUL_EACH_MAX];
    int n = matmul_each_list(a, y, w);
    for (int i = 0; i < n; i++)
        RUN(be, matmul, .y = y[i], .x = a->x, .w = w[i]);
}
