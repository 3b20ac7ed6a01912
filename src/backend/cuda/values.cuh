/* values.cuh: values of weights of every format (tensor/dtype.h) on the device.
 *
 * A weight lies in memory as its file has it. One value is decoded by the float operations of the
 * host's decoder (tensor/decode.h), in the same order, so the bits are the same. Codebook formats
 * find their codebooks where others have their scales: kernels get such weights from cuda_weight.
 */
#ifndef HADAL_BACKEND_CUDA_VALUES_CUH
#define HADAL_BACKEND_CUDA_VALUES_CUH

#include "backend/cuda/cuda.cuh"

#include "tensor/round.h"

/* The host's tables as bytes; values.cu. */
struct codebooks {
    uint8_t grid2[256][8], grid3[256][4];
    int8_t value4[16];
};
/* Copies them to the device. */
int cuda_values_open(struct backend *be, struct err *e);
/* The tensor as kernels take it. */
struct tensor cuda_weight(struct backend *be, const struct tensor *t);

/* ---- Rows ---- */

struct value_row {
    const uint8_t *data, *scale; /* scale: E8M0 bytes of the row, or the codebooks */
    enum dtype type;
    uint32_t n_col;
};

/* Values of the second last dimension that a scale covers; 0: no scales. */
static __device__ inline uint32_t value_scale_rows(enum dtype type)
{
    switch (type) {
    case DT_FP8_TILE32:
        return 32;
    case DT_FP8_TILE128:
        return 128;
    case DT_FP4_ROW:
    case DT_FP8_ROW32:
        return 1;
    default:
        return 0;
    }
}

/* Flat row `row`; the scales of a 3-d tensor stand matrix by matrix. */
static __device__ inline struct value_row value_row_of(const struct tensor &w, int64_t row)
{
    struct value_row r;
    r.type = w.type;
    r.n_col = (uint32_t)(w.n_dim == 3 ? w.dim[2] : w.n_dim == 2 ? w.dim[1] : w.dim[0]);
    r.data = (const uint8_t *)w.data + row * w.row_bytes;
    r.scale = (const uint8_t *)w.scale;
    uint32_t n_rows = value_scale_rows(w.type);
    if (n_rows) {
        uint32_t n_cols = n_rows == 128 ? 128 : 32, at = (uint32_t)row, n_before = 0;
        if (w.n_dim == 3) {
            uint32_t n_each = (uint32_t)w.dim[1];
            n_before = at / n_each * ((n_each + n_rows - 1) / n_rows);
            at %= n_each;
        }
        r.scale += (int64_t)(n_before + at / n_rows) * ((r.n_col + n_cols - 1) / n_cols);
    }
    return r;
}

/* ---- One value; v: its place in the block ----
 *
 * __ldg is for what no kernel writes: weights. */

static __device__ inline float value_half(const uint8_t *p)
{
    return f16_to_float((uint16_t)(p[0] | p[1] << 8));
}
static __device__ inline uint32_t value_word(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static __device__ inline float value_f32(const struct value_row &r, uint32_t i)
{
    return __ldg((const float *)r.data + i);
}
static __device__ inline float value_f16(const struct value_row &r, uint32_t i)
{
    return f16_to_float(__ldg((const uint16_t *)r.data + i));
}
static __device__ inline float value_bf16(const struct value_row &r, uint32_t i)
{
    return bf16_to_float(__ldg((const uint16_t *)r.data + i));
}
static __device__ inline float value_i32(const struct value_row &r, uint32_t i)
{
    return (float)((const int32_t *)r.data)[i];
}
static __device__ inline float value_i64(const struct value_row &r, uint32_t i)
{
    return (float)((const int64_t *)r.data)[i];
}
static __device__ inline float value_i8(const struct value_row &r, uint32_t i)
{
    return (float)(int8_t)r.data[i];
}

static __device__ inline float value_q8_0(const struct value_row &r, uint32_t i)
{
    const uint8_t *block = r.data + i / 32 * 34;
    return value_half(block) * (float)(int8_t)block[2 + i % 32];
}

static __device__ inline float value_q2_k(const struct value_row &r, uint32_t i)
{
    const uint8_t *block = r.data + i / 256 * 84;
    uint32_t v = i % 256, code = block[16 + v / 128 * 32 + v % 32] >> v / 32 % 4 * 2 & 3;
    float scale = value_half(block + 80) * (float)(block[v / 16] & 15);
    float minimum = value_half(block + 82) * (float)(block[v / 16] >> 4);
    return scale * (float)code - minimum;
}

static __device__ inline float value_q3_k(const struct value_row &r, uint32_t i)
{
    const uint8_t *block = r.data + i / 256 * 110, *packed = block + 96;
    uint32_t v = i % 256, s = v / 16;
    int low = packed[s % 8] >> (s < 8 ? 0 : 4) & 15, high = packed[8 + s % 4] >> s / 4 * 2 & 3;
    int code = block[32 + v / 128 * 32 + v % 32] >> v / 32 % 4 * 2 & 3;
    float scale = value_half(block + 108) * (float)((low | high << 4) - 32);
    return scale * (float)(code - (block[v % 32] >> v / 32 & 1 ? 0 : 4));
}

/* | d | dmin | scales[12] | high bits[32], if any | q[128] | */
static __device__ inline float value_q4_q5(const uint8_t *block, uint32_t v, bool has_high)
{
    const uint8_t *packed = block + 4, *q = block + (has_high ? 48 : 16);
    uint32_t b = v / 32, code = q[v / 64 * 32 + v % 32] >> (b & 1) * 4 & 15;
    if (has_high)
        code |= (block[16 + v % 32] >> b & 1u) << 4;
    int scale, minimum;
    if (b < 4) {
        scale = packed[b] & 63;
        minimum = packed[b + 4] & 63;
    } else {
        scale = (packed[b + 4] & 15) | (packed[b - 4] >> 6) << 4;
        minimum = packed[b + 4] >> 4 | (packed[b] >> 6) << 4;
    }
    float ds = value_half(block) * (float)scale, dm = value_half(block + 2) * (float)minimum;
    return ds * (float)code - dm;
}
static __device__ inline float value_q4_k(const struct value_row &r, uint32_t i)
{
    return value_q4_q5(r.data + i / 256 * 144, i % 256, false);
}
static __device__ inline float value_q5_k(const struct value_row &r, uint32_t i)
{
    return value_q4_q5(r.data + i / 256 * 176, i % 256, true);
}

static __device__ inline float value_q6_k(const struct value_row &r, uint32_t i)
{
    const uint8_t *block = r.data + i / 256 * 210;
    uint32_t v = i % 256, half = v / 128, column = v % 32, j = v % 128 / 32;
    int q = block[64 * half + column + 32 * (j & 1)] >> (j < 2 ? 0 : 4) & 15;
    q |= (block[128 + 32 * half + column] >> 2 * j & 3) << 4;
    float scale = value_half(block + 208) * (float)(int8_t)block[192 + v / 16];
    return scale * (float)(q - 32);
}

/* Sign k of eight: seven stored bits, and an eighth that makes the minus signs even in number. */
static __device__ inline float value_sign(uint32_t bits, uint32_t k)
{
    uint32_t is_minus = k < 7 ? bits >> k & 1 : __popc(bits) & 1;
    return is_minus ? -1.0f : 1.0f;
}

static __device__ inline float value_iq2_xxs(const struct value_row &r, uint32_t i)
{
    const struct codebooks *books = (const struct codebooks *)r.scale;
    const uint8_t *block = r.data + i / 256 * 66;
    uint32_t v = i % 256, l = v % 32 / 8;
    const uint8_t *group = block + 2 + v / 32 * 8;
    uint32_t word = value_word(group + 4);
    float scale = value_half(block) * (0.5f + (float)(word >> 28)) * 0.25f;
    return scale * (float)books->grid2[group[l]][v % 8] * value_sign(word >> 7 * l & 127, v % 8);
}

static __device__ inline float value_iq3_xxs(const struct value_row &r, uint32_t i)
{
    const struct codebooks *books = (const struct codebooks *)r.scale;
    const uint8_t *block = r.data + i / 256 * 98;
    uint32_t v = i % 256, word = value_word(block + 66 + v / 32 * 4);
    float scale = value_half(block) * (0.5f + (float)(word >> 28)) * 0.5f;
    float sign = value_sign(word >> 7 * (v % 32 / 8) & 127, v % 8);
    return scale * (float)books->grid3[block[2 + v / 4]][v % 4] * sign;
}

static __device__ inline float value_iq4_xs(const struct value_row &r, uint32_t i)
{
    const struct codebooks *books = (const struct codebooks *)r.scale;
    const uint8_t *block = r.data + i / 256 * 136;
    uint32_t v = i % 256, b = v / 32;
    uint32_t high = (uint32_t)(block[2] | block[3] << 8) >> 2 * b & 3;
    int s = (int)((block[4 + b / 2] >> 4 * (b & 1) & 15) | high << 4);
    float scale = value_half(block) * (float)(s - 32);
    return scale * (float)books->value4[block[8 + 16 * b + v % 16] >> (v % 32 < 16 ? 0 : 4) & 15];
}

static __device__ inline float value_mxfp4(const struct value_row &r, uint32_t i)
{
    const uint8_t *block = r.data + i / 32 * 17;
    uint32_t code = block[1 + i % 16] >> (i % 32 < 16 ? 0 : 4);
    return e8m0_to_float(block[0]) * e2m1_to_float((uint8_t)(code & 15));
}
static __device__ inline float value_fp4_row(const struct value_row &r, uint32_t i)
{
    uint32_t code = r.data[i / 2] >> (i & 1) * 4;
    return e8m0_to_float(r.scale[i / 32]) * e2m1_to_float((uint8_t)(code & 15));
}

static __device__ inline float value_fp8_tile128(const struct value_row &r, uint32_t i)
{
    return e4m3_to_float(r.data[i]) * e8m0_to_float(r.scale[i / 128]);
}
static __device__ inline float value_fp8_by_32(const struct value_row &r, uint32_t i)
{
    return e4m3_to_float(r.data[i]) * e8m0_to_float(r.scale[i / 32]);
}
static __device__ inline float value_fp8_pack32(const struct value_row &r, uint32_t i)
{
    return e4m3_to_float(r.data[i]) * e8m0_to_float(r.data[r.n_col + i / 32]);
}

/* clang-format off */
#define VALUE_FORMATS(X)                                                                           \
    X(DT_F32, value_f32) X(DT_F16, value_f16) X(DT_BF16, value_bf16)                               \
    X(DT_I32, value_i32) X(DT_I64, value_i64) X(DT_I8, value_i8) X(DT_Q8_0, value_q8_0)            \
    X(DT_Q2_K, value_q2_k) X(DT_Q3_K, value_q3_k) X(DT_Q4_K, value_q4_k) X(DT_Q5_K, value_q5_k)    \
    X(DT_Q6_K, value_q6_k) X(DT_IQ2_XXS, value_iq2_xxs) X(DT_IQ3_XXS, value_iq3_xxs)               \
    X(DT_IQ4_XS, value_iq4_xs) X(DT_MXFP4, value_mxfp4) X(DT_FP4_ROW, value_fp4_row)               \
    X(DT_FP8_TILE32, value_fp8_by_32) X(DT_FP8_TILE128, value_fp8_tile128)                         \
    X(DT_FP8_ROW32, value_fp8_by_32) X(DT_FP8_PACK32, value_fp8_pack32)
/* clang-format on */

/* Value i of a row. */
static __device__ inline float value_in(const struct value_row &r, uint32_t i)
{
#define VALUE_ONE(type, value)                                                                     \
    case type:                                                                                     \
        return value(r, i);
    switch (r.type) {
        VALUE_FORMATS(VALUE_ONE)
    default:
        return 0;
    }
}

static __device__ inline float value_at(const struct tensor &w, int64_t row, int64_t col)
{
    return value_in(value_row_of(w, row), (uint32_t)col);
}

/* ---- Many values ---- */

template <float (*value)(const struct value_row &, uint32_t)>
static __device__ inline void value_run_of(const struct value_row &r, uint32_t run, float out[8])
{
#pragma unroll
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t i = run << 3 | k; /* so that the compiler sees what eight neighbours share */
        out[k] = i < r.n_col ? value(r, i) : 0.0f;
    }
}

/* Values 8 run .. 8 run + 7; 0 behind the end of the row. */
static __device__ inline void value_run(const struct value_row &r, uint32_t run, float out[8])
{
#define VALUE_RUN(type, value)                                                                     \
    case type:                                                                                     \
        value_run_of<value>(r, run, out);                                                          \
        break;
    switch (r.type) {
        VALUE_FORMATS(VALUE_RUN)
    default:
        break;
    }
}

struct value_range {
    uint32_t first, n;         /* values of the row */
    uint32_t thread, n_thread; /* this one of those that share the work */
};

template <float (*value)(const struct value_row &, uint32_t), typename F>
static __device__ inline void value_each_of(
    const struct value_row &r, const struct value_range &range, F take)
{
#pragma unroll 8
    for (uint32_t i = range.thread; i < range.n; i += range.n_thread)
        take(i, value(r, range.first + i));
}

/* take(i, value first + i) for this thread's i; formats of small weights with loads in flight. */
template <typename F>
static __device__ inline void value_each(
    const struct value_row &r, const struct value_range &range, F take)
{
    if (r.type == DT_F32)
        value_each_of<value_f32>(r, range, take);
    else if (r.type == DT_BF16)
        value_each_of<value_bf16>(r, range, take);
    else if (r.type == DT_F16)
        value_each_of<value_f16>(r, range, take);
    else
        for (uint32_t i = range.thread; i < range.n; i += range.n_thread)
            take(i, value_in(r, range.first + i));
}

#endif
