/* kernel_table.h: all kernels of one instruction set as a struct micro. Included last, once per
 * micro_*.c. */
#ifndef HADAL_BACKEND_CPU_KERNEL_TABLE_H
#define HADAL_BACKEND_CPU_KERNEL_TABLE_H

#include "backend/cpu/kernel_codebooks.h"
#include "backend/cpu/kernel_dots.h"
#include "backend/cpu/kernel_rows.h"

/* Formats whose last columns may not fill 32 hand them to the scalar decoder. */
DEFINE_FORMAT(f32, 32, 128, plain_decode_f32)
DEFINE_FORMAT(f16, 32, 64, plain_decode_f16)
DEFINE_FORMAT(bf16, 32, 64, plain_decode_bf16)
DEFINE_FORMAT(q8_0, 32, 34, q8_0_decode)
DEFINE_FORMAT(q2_k, 256, 84, kquants_decode_q2_k)
DEFINE_FORMAT(q3_k, 256, 110, kquants_decode_q3_k)
DEFINE_FORMAT(q4_k, 256, 144, kquants_decode_q4_k)
DEFINE_FORMAT(q5_k, 256, 176, kquants_decode_q5_k)
DEFINE_FORMAT(q6_k, 256, 210, kquants_decode_q6_k)
DEFINE_FORMAT(iq2_xxs, 256, 66, iquants_decode_iq2_xxs)
DEFINE_FORMAT(iq3_xxs, 256, 98, iquants_decode_iq3_xxs)
DEFINE_FORMAT(iq4_xs, 256, 136, iquants_decode_iq4_xs)
DEFINE_FORMAT(mxfp4, 32, 17, fp4_decode_mxfp4)
DEFINE_FORMAT(fp4_row, 32, 16, fp4_decode_row)
DEFINE_FORMAT(fp8, 32, 32, fp8_decode_tile32)
DEFINE_FORMAT(fp8_128, 32, 32, fp8_decode_tile128)

/* Scales of FP8_PACK32 follow the row's codes. */
static void decode_fp8_pack(const struct decode_run *r)
{
    struct decode_run run = *r;
    run.scale = r->row + r->n_col;
    decode_fp8(&run);
}

static void dot4_fp8_pack(const struct micro_rows *w, const float *x, float *y)
{
    struct micro_rows rows = *w;
    for (int m = 0; m < 4; m++)
        rows.scale[m] = w->row[m] + w->n_col;
    dot4_fp8(&rows, x, y);
}

#define FORMAT_TABLE(kernel)                                                                       \
    {                                                                                              \
        [DT_F32] = kernel##_f32, [DT_F16] = kernel##_f16, [DT_BF16] = kernel##_bf16,               \
        [DT_Q8_0] = kernel##_q8_0, [DT_Q2_K] = kernel##_q2_k, [DT_Q3_K] = kernel##_q3_k,           \
        [DT_Q4_K] = kernel##_q4_k, [DT_Q5_K] = kernel##_q5_k, [DT_Q6_K] = kernel##_q6_k,           \
        [DT_IQ2_XXS] = kernel##_iq2_xxs, [DT_IQ3_XXS] = kernel##_iq3_xxs,                          \
        [DT_IQ4_XS] = kernel##_iq4_xs, [DT_MXFP4] = kernel##_mxfp4,                                \
        [DT_FP4_ROW] = kernel##_fp4_row, [DT_FP8_TILE32] = kernel##_fp8,                           \
        [DT_FP8_TILE128] = kernel##_fp8_128, [DT_FP8_ROW32] = kernel##_fp8,                        \
        [DT_FP8_PACK32] = kernel##_fp8_pack,                                                       \
    }

#define MICRO_TABLE(level)                                                                         \
    {                                                                                              \
        .name = level, .decode = FORMAT_TABLE(decode), .dot4 = FORMAT_TABLE(dot4),                 \
        .n_tile_x = VEC_TILE_X, .tile = dots_tile, .fold = dots_fold, .dot = dots_dot,             \
        .dot3 = dots_dot3, .max = rows_max, .exp_sum = rows_exp_sum, .weighted = dots_weighted,    \
        .relu_sum = rows_relu_sum, .scale = rows_scale, .divide = rows_divide, .add = rows_add,    \
        .add_scaled = rows_add_scaled, .swiglu = rows_swiglu, .pool = rows_pool,                   \
        .merge = rows_merge, .collapse = rows_collapse, .butterfly = rows_butterfly,               \
    }

#endif
