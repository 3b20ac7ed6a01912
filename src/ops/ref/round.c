/* round.c: the roundings the models were trained with. v4 spec 4.6, v41 spec 3.3 */
#include "tensor/round.h"

#include "ops/ref/ref.h"

static float largest_magnitude(const float *x, int n)
{
    float largest = 0;
    for (int i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    return largest;
}

static float at_least(float x, float least)
{
    return x > least ? x : least;
}

static float to_e2m1(float x)
{
    float bounded = x > 6.0f ? 6.0f : x < -6.0f ? -6.0f : x;
    return e2m1_to_float(float_to_e2m1(bounded));
}

void ref_round_fp8_block(float *x, int block)
{
    float scale = pow2_ceil(at_least(largest_magnitude(x, block), 1e-4f) / 448.0f);
    for (int i = 0; i < block; i++)
        x[i] = e4m3_to_float(float_to_e4m3(x[i] / scale)) * scale;
}

void ref_round_fp4_block(float *x, int block)
{
    float scale = pow2_ceil(at_least(largest_magnitude(x, block), 6 * 0x1p-126f) / 6.0f);
    for (int i = 0; i < block; i++)
        x[i] = to_e2m1(x[i] / scale) * scale;
}

void ref_round_fp4_e4m3_block(float *x, int block)
{
    float scale =
        e4m3_to_float(float_to_e4m3(at_least(largest_magnitude(x, block), 6 * 0x1p-9f) / 6.0f));
    for (int i = 0; i < block; i++)
        x[i] = to_e2m1(x[i] / scale) * scale;
}

static void each_block(const struct tensor *x, int block, int n_col, void (*round)(float *, int))
{
    int64_t n = n_col ? n_col : tensor_n_col(x);
    for (int64_t r = 0; r < tensor_n_row(x); r++)
        for (int64_t i = 0; i < n; i += block)
            round(ref_row(x, r) + i, block);
}

void ref_round_fp8(struct backend *be, const void *args)
{
    (void)be;
    const struct op_round_fp8 *a = args;
    each_block(a->x, a->block, a->n_col, ref_round_fp8_block);
}

void ref_round_fp4(struct backend *be, const void *args)
{
    (void)be;
    const struct op_round_fp4 *a = args;
    each_block(a->x, a->block, a->n_col, ref_round_fp4_block);
}

void ref_round_fp4_e4m3(struct backend *be, const void *args)
{
    (void)be;
    const struct op_round_fp4_e4m3 *a = args;
    each_block(a->x, a->block, a->n_col, ref_round_fp4_e4m3_block);
}
