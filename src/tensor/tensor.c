/* tensor.c: views, sizes and the dispatch of decoders and encoders. See tensor.h. */
#include "tensor/tensor.h"

#include "tensor/decode.h"
#include "tensor/encode.h"

#include <assert.h>
#include <stdio.h>

static void (*const decoder[N_DTYPE])(const struct decode_run *) = {
    [DT_F32] = plain_decode_f32,
    [DT_F16] = plain_decode_f16,
    [DT_BF16] = plain_decode_bf16,
    [DT_I32] = plain_decode_i32,
    [DT_I64] = plain_decode_i64,
    [DT_I8] = plain_decode_i8,
    [DT_Q8_0] = q8_0_decode,
    [DT_Q2_K] = kquants_decode_q2_k,
    [DT_Q3_K] = kquants_decode_q3_k,
    [DT_Q4_K] = kquants_decode_q4_k,
    [DT_Q5_K] = kquants_decode_q5_k,
    [DT_Q6_K] = kquants_decode_q6_k,
    [DT_IQ2_XXS] = iquants_decode_iq2_xxs,
    [DT_IQ3_XXS] = iquants_decode_iq3_xxs,
    [DT_IQ4_XS] = iquants_decode_iq4_xs,
    [DT_MXFP4] = fp4_decode_mxfp4,
    [DT_FP4_ROW] = fp4_decode_row,
    [DT_FP8_TILE32] = fp8_decode_tile32,
    [DT_FP8_TILE128] = fp8_decode_tile128,
    [DT_FP8_ROW32] = fp8_decode_row32,
    [DT_FP8_PACK32] = fp8_decode_pack32,
};

static void (*const encoder[N_DTYPE])(const float *, int64_t, uint8_t *) = {
    [DT_F32] = plain_encode_f32,
    [DT_F16] = plain_encode_f16,
    [DT_BF16] = plain_encode_bf16,
    [DT_Q8_0] = q8_0_encode,
    [DT_Q2_K] = kquants_encode_q2_k,
    [DT_Q4_K] = kquants_encode_q4_k,
    [DT_MXFP4] = fp4_encode_mxfp4,
};

static int64_t row_bytes(enum dtype type, int64_t n_col)
{
    const struct dtype_info *info = dtype_info(type);
    return n_col / info->block * info->block_bytes;
}

struct tensor tensor_of(enum dtype type, void *data, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    struct tensor t = {.type = type, .data = data, .dim = {d0, d1, d2, d3}};
    while (t.n_dim < TENSOR_MAX_DIM && t.dim[t.n_dim])
        t.n_dim++;
    for (int i = t.n_dim; i < TENSOR_MAX_DIM; i++)
        t.dim[i] = 1;
    t.row_bytes = row_bytes(type, tensor_n_col(&t));
    return t;
}

int64_t tensor_n_row(const struct tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < t->n_dim; i++)
        n *= t->dim[i];
    return n;
}

int64_t tensor_n_col(const struct tensor *t)
{
    return t->n_dim ? t->dim[t->n_dim - 1] : 0;
}

int64_t tensor_n_value(const struct tensor *t)
{
    return tensor_n_row(t) * tensor_n_col(t);
}

/* a * b for non-negative numbers, -1 on overflow or when one is negative. */
static int64_t product(int64_t a, int64_t b)
{
    if (a < 0 || b < 0 || (b && a > INT64_MAX / b))
        return -1;
    return a * b;
}

int64_t tensor_data_bytes(enum dtype type, int n_dim, const int64_t *dim)
{
    const struct dtype_info *info = dtype_info(type);
    if (n_dim < 1 || n_dim > TENSOR_MAX_DIM || dim[n_dim - 1] % info->block)
        return -1;
    int64_t n = product(dim[n_dim - 1] / info->block, info->block_bytes);
    for (int i = 0; i + 1 < n_dim; i++)
        n = product(n, dim[i]);
    return n;
}

/* ceil(n / tile) without overflow; 0 stays 0. */
static int64_t n_tile(int64_t n, int tile)
{
    return n / tile + (n % tile != 0);
}

int64_t tensor_scale_bytes(enum dtype type, int n_dim, const int64_t *dim)
{
    const struct dtype_info *info = dtype_info(type);
    if (!info->scale_rows)
        return 0;
    if (n_dim < 1 || n_dim > TENSOR_MAX_DIM || dim[n_dim - 1] < 0)
        return -1;
    int64_t n = n_tile(dim[n_dim - 1], info->scale_cols);
    if (n_dim >= 2)
        n = product(n, dim[n_dim - 2] < 0 ? -1 : n_tile(dim[n_dim - 2], info->scale_rows));
    for (int i = 0; i + 2 < n_dim; i++)
        n = product(n, dim[i]);
    return n;
}

static const void *advance(const void *p, int64_t n_byte)
{
    return p ? (const uint8_t *)p + n_byte : NULL;
}

struct tensor tensor_slice(const struct tensor *t, int64_t first, int64_t n)
{
    struct tensor s = *t;
    s.dim[0] = n;
    if (t->part) {
        s.part = t->part + first;
        s.scale_part = t->scale_part ? t->scale_part + first : NULL;
        return s;
    }
    const struct dtype_info *info = dtype_info(t->type);
    if (t->n_dim == 1) {
        assert(!info->scale_rows && first % info->block == 0);
        s.data = (void *)(uintptr_t)advance(t->data, row_bytes(t->type, first));
        s.row_bytes = row_bytes(t->type, n);
        return s;
    }
    s.data = (void *)(uintptr_t)advance(
        t->data, first * (tensor_n_row(t) / (t->dim[0] ? t->dim[0] : 1)) * t->row_bytes);
    if (info->scale_rows) {
        assert(t->n_dim > 2 || first % info->scale_rows == 0);
        struct tensor skipped = *t;
        skipped.dim[0] = first;
        s.scale = advance(t->scale, tensor_scale_bytes(t->type, t->n_dim, skipped.dim));
    }
    return s;
}

struct tensor tensor_matrix(const struct tensor *t, int64_t e)
{
    assert(t->n_dim == 3 && e >= 0 && e < t->dim[0]);
    struct tensor m = tensor_slice(t, e, 1);
    if (m.part) {
        m.data = (void *)(uintptr_t)*m.part;
        m.scale = m.scale_part ? *m.scale_part : NULL;
        m.part = m.scale_part = NULL;
    }
    m.n_dim = 2;
    m.dim[0] = t->dim[1];
    m.dim[1] = t->dim[2];
    m.dim[2] = 1;
    return m;
}

const char *tensor_describe(const struct tensor *t, char *text, int n_text)
{
    int n = snprintf(text, (size_t)n_text, "%s [", dtype_info(t->type)->name);
    for (int i = 0; i < t->n_dim && n < n_text; i++)
        n += snprintf(text + n, (size_t)(n_text - n), i ? ", %lld" : "%lld", (long long)t->dim[i]);
    if (n < n_text)
        snprintf(text + n, (size_t)(n_text - n), "]");
    return text;
}

void tensor_decode(const struct tensor *t, int64_t row, int64_t first, int64_t n, float *out)
{
    struct tensor m = *t;
    if (t->n_dim == 3 &&
        (t->part ||
            t->scale)) { /* every slice has its own scale array, and perhaps its own address */
        m = tensor_matrix(t, row / t->dim[1]);
        row %= t->dim[1];
    }
    const struct dtype_info *info = dtype_info(m.type);
    struct decode_run r = {
        .row = (const uint8_t *)m.data + row * m.row_bytes, .n_col = tensor_n_col(&m)};
    if (info->scale_rows)
        r.scale =
            (const uint8_t *)m.scale + row / info->scale_rows * n_tile(r.n_col, info->scale_cols);
    r.first = first;
    r.n = n;
    r.out = out;
    decoder[m.type](&r);
}

int tensor_encode(enum dtype type, const float *values, int64_t n, void *out)
{
    if (!encoder[type])
        return -1;
    encoder[type](values, n, out);
    return 0;
}
