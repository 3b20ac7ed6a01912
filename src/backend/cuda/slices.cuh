/* slices.cuh: products of weight rows and activation rows, 256 values at a time.
 *
 * The one order of additions of every matrix product here, for any number of rows:
 *
 *   - activations of a slice are scaled by a power of two and split into two halves, x = hi + lo,
 *     which together keep 22 bits;
 *   - products are added by matrix instructions. Formats with a factor per group: c = hi and then
 * lo products of 32 values, steps ascending; acc = fma(factor, c, acc), groups ascending from +0.
 *     Others: acc takes all of the slice in that order, is multiplied by its factor, and the minima
 *     times the sums of 16 values each, hi and lo, are subtracted;
 *   - y = sum of acc times the slice's power of two, slices ascending from +0.
 */
#ifndef HADAL_BACKEND_CUDA_SLICES_CUH
#define HADAL_BACKEND_CUDA_SLICES_CUH

#include "backend/cuda/formats.cuh"
#include "backend/cuda/mma.cuh"

/* ---- Activations ---- */

/* hi, lo, sums (hi, lo), scale of one row's slice, and what makes rows fall into different banks.
 */
enum { X_BYTES = 2 * SLICE * 2 + 16 * 4 + 32 };

/* One row's slice in memory of the block. */
struct x_slice {
    half *hi, *lo;
    half *sum;    /* [16] hi, [16] lo: of 16 scaled values each, SUM_SCALE times too small */
    float *scale; /* values = scale * (hi + lo) */
};
enum { SUM_SCALE = 32 };
static __device__ inline x_slice x_slice_at(char *memory)
{
    half *hi = (half *)memory;
    half *sum = hi + 2 * SLICE;
    return (x_slice){hi, hi + SLICE, sum, (float *)(sum + 32)};
}

/* Eight values of a lane, split; *scale is what they were divided by, *sum of its 16 values. */
struct split_values {
    uint32_t hi[4], lo[4];
    float scale, sum;
};
static __device__ inline split_values split_slice(const float v[8])
{
    split_values out;
    float most = 0;
    for (int i = 0; i < 8; i++)
        most = fmaxf(most, fabsf(v[i]));
    for (int step = 16; step; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    int exponent = (int)(__float_as_uint(most) >> 23) - 127 - 14; /* largest in [2^14, 2^15) */
    exponent = exponent < -110 ? -110 : exponent > 112 ? 112 : exponent;
    out.scale = __uint_as_float((uint32_t)(exponent + 127) << 23);
    float inverse = __uint_as_float((uint32_t)(127 - exponent) << 23);
    out.sum = 0;
    for (int i = 0; i < 4; i++) {
        float a = v[2 * i] * inverse, b = v[2 * i + 1] * inverse;
        half2 hi = __floats2half2_rn(a, b);
        float2 back = __half22float2(hi);
        out.hi[i] = half2_bits(hi);
        out.lo[i] = half2_bits(__floats2half2_rn(a - back.x, b - back.y));
        out.sum += a;
        out.sum += b;
    }
    float other = __shfl_xor_sync(0xffffffffu, out.sum, 1);
    out.sum += other;
    return out;
}
/* A lane's sum, which its neighbour has too. */
static __device__ inline void split_sum(half *to, float sum)
{
    int lane = threadIdx.x & 31;
    half hi = __float2half_rn(sum / (float)SUM_SCALE);
    half lo = __float2half_rn(sum / (float)SUM_SCALE - __half2float(hi));
    if (lane % 2 == 0)
        to[lane / 2] = hi;
    else
        to[16 + lane / 2] = lo;
}

/* Values [first + 8 lane, + 8) of a row of n; 0 behind its end. */
static __device__ inline void load_values(const float *x, int64_t first, int64_t n, float v[8])
{
    int64_t at = first + 8 * (threadIdx.x & 31);
    if (at >= n) {
        for (int i = 0; i < 8; i++)
            v[i] = 0;
    } else if (((uintptr_t)x & 15) == 0) {
        *(float4 *)v = *(const float4 *)(x + at);
        *(float4 *)(v + 4) = *(const float4 *)(x + at + 4);
    } else {
        for (int i = 0; i < 8; i++)
            v[i] = x[at + i];
    }
}

/* A warp splits one slice of a row into the block's memory. */
static __device__ inline void x_slice_make(
    const x_slice &to, const float *x, int64_t first, int64_t n)
{
    int lane = threadIdx.x & 31;
    float v[8];
    load_values(x, first, n, v);
    split_values s = split_slice(v);
    *(uint4 *)(to.hi + 8 * lane) = make_uint4(s.hi[0], s.hi[1], s.hi[2], s.hi[3]);
    *(uint4 *)(to.lo + 8 * lane) = make_uint4(s.lo[0], s.lo[1], s.lo[2], s.lo[3]);
    split_sum(to.sum, s.sum);
    if (lane == 0)
        *to.scale = s.scale;
}

/* ---- Weights ---- */

/* A matrix, or several of n_out rows each behind one another. */
struct weight_rows {
    const char *data;
    const uint8_t *scale;
    int64_t row_bytes;
    int n_out, n_in;
};
static inline weight_rows weight_rows_of(const struct tensor *w)
{
    return (weight_rows){(const char *)w->data, (const uint8_t *)w->scale, w->row_bytes,
        (int)w->dim[w->n_dim - 2], (int)w->dim[w->n_dim - 1]};
}

/* Bytes between staged rows: odd multiples of 16, so that eight rows fall into different banks. */
template <enum dtype T> __host__ __device__ constexpr int stage_pitch()
{
    return ((format<T>::SLICE_BYTES + 15 + 15) / 16 | 1) * 16;
}

/* N_THREAD neighbouring threads copy a slice of n_row weight rows; closes no group. */
template <enum dtype T, int N_THREAD>
static __device__ inline void stage_rows(
    char *to, const char *rows, int64_t row_bytes, int n_row, int slice)
{
    constexpr int PITCH = stage_pitch<T>(), N = (format<T>::SLICE_BYTES + 15 + 15) / 16;
    int64_t left = row_bytes - (int64_t)slice * format<T>::SLICE_BYTES; /* a row may end earlier */
    int n_byte = left < format<T>::SLICE_BYTES ? (int)left : (int)format<T>::SLICE_BYTES;
    for (int i = threadIdx.x % N_THREAD; i < n_row * N; i += N_THREAD) {
        int row = i / N, part = i % N;
        uintptr_t from =
            (uintptr_t)(rows + row * row_bytes + (int64_t)slice * format<T>::SLICE_BYTES);
        uintptr_t at = (from & ~(uintptr_t)15) + 16 * part;
        if (at < from + n_byte)
            copy_16(to + row * PITCH + 16 * part, (const void *)at);
    }
}
/* The staged slice of row `row`, which began at `rows` + row * row_bytes. */
template <enum dtype T>
static __device__ inline weight_slice staged_row(const char *stage, const weight_rows &w,
    int64_t flat_row, int row, int slice, const uint32_t *grid)
{
    weight_slice s;
    uintptr_t from =
        (uintptr_t)(w.data + flat_row * w.row_bytes + (int64_t)slice * format<T>::SLICE_BYTES);
    s.bytes = (const uint8_t *)stage + row * stage_pitch<T>() + (from & 15);
    s.grid = grid;
    s.scales = NULL;
    if constexpr (format<T>::SCALE_ROWS > 0) {
        constexpr int ROWS = format<T>::SCALE_ROWS, COLS = format<T>::SCALE_COLS;
        int n_col = (w.n_in + COLS - 1) / COLS, n_row = (w.n_out + ROWS - 1) / ROWS;
        int64_t line = flat_row / w.n_out * n_row + flat_row % w.n_out / ROWS;
        s.scales = w.scale + line * n_col + slice * SLICE / COLS;
    }
    return s;
}

/* ---- Products ---- */

/* Rows g, g + 8 of a group of 32 values, as operands, [step]; and their factors. */
struct weight_group {
    uint32_t a[2][4];
    float factor[2];
};

/* A row's staged slice and what holds for all of it. */
template <enum dtype T> struct open_slice {
    weight_slice slice;
    format_of_32::head head;
};
template <enum dtype T> static __device__ inline open_slice<T> open_row(const weight_slice &s)
{
    return {s, format<T>::open(s)};
}

template <enum dtype T>
static __device__ inline void group_load(
    weight_group &w, const open_slice<T> &row0, const open_slice<T> &row1, int b, int t)
{
    group_values u, v;
    format<T>::group(u, row0.slice, row0.head, b, t);
    format<T>::group(v, row1.slice, row1.head, b, t);
    for (int step = 0; step < 2; step++) {
        w.a[step][0] = u.half[2 * step], w.a[step][1] = v.half[2 * step];
        w.a[step][2] = u.half[2 * step + 1], w.a[step][3] = v.half[2 * step + 1];
    }
    w.factor[0] = u.factor, w.factor[1] = v.factor;
}

/* Columns' operands of a group: [step] of hi and of lo. */
struct x_group {
    __align__(16) uint32_t hi[2][2], lo[2][2];
};
template <enum dtype T>
static __device__ inline void x_group_load(x_group &x, const half *hi, const half *lo, int b, int t)
{
    if constexpr (format<T>::IS_WIDE) {
        *(uint4 *)x.hi[0] = *(const uint4 *)(hi + 32 * b + 8 * t);
        *(uint4 *)x.lo[0] = *(const uint4 *)(lo + 32 * b + 8 * t);
    } else {
        for (int step = 0; step < 2; step++) {
            int at = 32 * b + 16 * step + 4 * t;
            *(uint2 *)x.hi[step] = *(const uint2 *)(hi + at);
            *(uint2 *)x.lo[step] = *(const uint2 *)(lo + at);
        }
    }
}

/* A 16 x 8 tile: acc += group. */
template <enum dtype T>
static __device__ inline void group_product(float acc[4], const weight_group &w, const x_group &x)
{
    float c[4] = {0, 0, 0, 0}, *to = format<T>::HAS_GROUP_FACTORS ? c : acc;
    mma_f16(to, w.a[0], x.hi[0]);
    mma_f16(to, w.a[1], x.hi[1]);
    mma_f16(to, w.a[0], x.lo[0]);
    mma_f16(to, w.a[1], x.lo[1]);
    if constexpr (format<T>::HAS_GROUP_FACTORS)
        for (int i = 0; i < 4; i++)
            acc[i] = fmaf(w.factor[i / 2], c[i], acc[i]);
}

/* What a slice's factors and minima make of the sums. sum: column g's. */
template <enum dtype T>
static __device__ inline void slice_finish(
    float acc[4], const open_slice<T> &row0, const open_slice<T> &row1, const half *sum, int t)
{
    if constexpr (format<T>::HAS_GROUP_FACTORS)
        return;
    float c[4] = {0, 0, 0, 0};
    if constexpr (format<T>::HAS_MINIMUM) {
        uint32_t u[2], v[2];
        format<T>::minimum(row0.slice, t, u);
        format<T>::minimum(row1.slice, t, v);
        uint32_t a[4] = {u[0], v[0], u[1], v[1]};
        mma_f16(c, a, (const uint32_t *)(sum + 4 * t));
        mma_f16(c, a, (const uint32_t *)(sum + 16 + 4 * t));
    }
    for (int i = 0; i < 4; i++) {
        const format_of_32::head &h = i / 2 ? row1.head : row0.head;
        acc[i] = fmaf(-h.least * (float)SUM_SCALE, c[i], h.factor * acc[i]);
    }
}

/* Copies the codebook, if the format has one, to shared memory; the block synchronises after it. */
template <enum dtype T> static __device__ inline void grid_load(uint32_t *to, const uint32_t *grid)
{
    if constexpr (format<T>::HAS_GRID)
        for (int i = threadIdx.x; i < 512; i += blockDim.x)
            to[i] = grid[i];
}

#endif
