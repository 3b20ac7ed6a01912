/* fused.c: see fused.h. Scores of index keys are made one batch row at a time, so that only one row
 * of them is ever kept. */
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

void fused_gated_mlp(struct backend *be, const void *args)
{
    const struct op_gated_mlp *a = args;
    int64_t n = a->x->dim[0], f = a->gate->dim[0];
    float *memory = n ? backend_scratch(be, (size_t)(2 * n * f) * sizeof *memory) : NULL;
    if (!memory)
        return;
    struct tensor gate = tensor_of(DT_F32, memory, n, f, 0, 0);
    struct tensor up = tensor_of(DT_F32, memory + n * f, n, f, 0, 0);
    RUN(be, matmul, .y = &gate, .x = a->x, .w = a->gate);
    RUN(be, matmul, .y = &up, .x = a->x, .w = a->up);
    RUN(be, swiglu, .y = &gate, .gate = &gate, .up = &up, .limit = a->limit);
    RUN(be, matmul, .y = a->y, .x = &gate, .w = a->down);
}

static void run_rounding(
    struct backend *be, const struct tensor *x, enum op_rounding rounding, int block, int n_col)
{
    switch (rounding) {
    case ROUND_NONE:
        break;
    case ROUND_FP8:
        RUN(be, round_fp8, .x = x, .block = block, .n_col = n_col);
        break;
    case ROUND_FP4:
        RUN(be, round_fp4, .x = x, .block = block, .n_col = n_col);
        break;
    case ROUND_FP4_E4M3:
        RUN(be, round_fp4_e4m3, .x = x, .block = block, .n_col = n_col);
        break;
    }
}

void fused_norm_rope(struct backend *be, const void *args)
{
    const struct op_norm_rope *a = args;
    RUN(be, rms_norm, .y = a->x, .x = a->x, .w = a->w, .eps = a->eps);
    RUN(be, rope_tail, .x = a->x, .cs = a->cs);
}

void fused_rotate_round(struct backend *be, const void *args)
{
    const struct op_rotate_round *a = args;
    RUN(be, rope_tail, .x = a->x, .cs = a->cs);
    if (a->has_hadamard)
        RUN(be, hadamard, .x = a->x);
    run_rounding(be, a->x, (enum op_rounding)a->rounding, a->block, a->n_col);
}

void fused_keep_row(struct backend *be, const void *args)
{
    const struct op_keep_row *a = args;
    struct tensor head = *a->x;
    head.n_dim = 3;
    head.dim[1] = 1;
    head.dim[2] = a->x->dim[1];
    if (a->w)
        RUN(be, rms_norm, .y = a->x, .x = a->x, .w = a->w, .eps = a->eps);
    RUN(be, rope_tail, .x = &head, .cs = a->cs);
    if (a->has_hadamard)
        RUN(be, hadamard, .x = a->x);
    run_rounding(be, a->x, (enum op_rounding)a->rounding, a->block, a->n_col);
    RUN(be, append, .y = a->y, .x = a->x, .slot = a->slot, .at = a->at);
}

void fused_append_group(struct backend *be, const void *args)
{
    const struct op_append_group *a = args;
    if (a->table)
        RUN(be, add_by_pos, .x = a->score, .table = a->table, .pos = a->at);
    RUN(be, append, .y = a->to_kv, .x = a->kv, .slot = a->slot, .at = a->at);
    RUN(be, append, .y = a->to_score, .x = a->score, .slot = a->slot, .at = a->at);
}

void fused_mhc_open(struct backend *be, const void *args)
{
    const struct op_mhc_open *a = args;
    RUN(be, mhc_mix, .pre = a->pre, .post = a->post, .comb = a->comb, .x = a->x, .fn = a->fn,
        .scale = a->scale, .base = a->base, .n_iter = a->n_iter, .eps = a->eps,
        .norm_eps = a->norm_eps);
    RUN(be, mhc_collapse, .y = a->y, .pre = a->before ? a->before : a->pre, .x = a->x);
    RUN(be, rms_norm, .y = a->y, .x = a->y, .w = a->norm, .eps = a->norm_eps);
}

void fused_mhc_merge_sum(struct backend *be, const void *args)
{
    const struct op_mhc_merge_sum *a = args;
    RUN(be, add, .y = a->y, .x = a->more);
    RUN(be, mhc_merge, .x = a->x, .y = a->y, .post = a->post, .comb = a->comb);
}
