/* slices.cuh: products of weight rows and activation rows, 256 values at a time.
 *
 * The one order of additions of every matrix product here, for any number of rows:
 *
 *   - activations of a slice are scaled by a power of two and split into two halves, x = hi + lo,
 *     which together keep 22 bits;
 *   - of 32 values (16 where a format has a factor per 16), c = hi and then lo products by matrix
 *     instructions, steps ascending; acc = fma(factor, c, acc), then the minimum's part, groups
 *     ascending from +0;
 *   - y = sum of acc times the slice's power of two, slices ascending from +0.
 */
#ifndef HADAL_BACKEND_CUDA_SLICES_CUH
#define HADAL_BACKEND_CUDA_SLICES_CUH

#include "backend/cuda/formats.cuh"
#include "backend/cuda/mma.cuh"

/* ---- Activations ---- */

/* hi, lo, sums, scale of one row's slice, and what makes rows fall into different banks. */
enum { X_BYTES = 2 * SLICE * 2 + 16 * 4 + 32 };

/* One row's slice in memory of the block. */
struct x_slice {
    half *hi, *lo;
    float *sum;   /* [16] of scaled values, per 16 */
    float *scale; /* values = scale * (hi + lo) */
};
static __device__ inline x_slice x_slice_at(char *memory)
{
    half *hi = (half *)memory;
    float *sum = (float *)(hi + 2 * SLICE);
    return (x_slice){hi, hi + SLICE, sum, sum + 16};
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
static __device__ inline void x_slice_make(const x_slice &to, const float *x, int64_t first, int64_t n)
{
    int lane = threadIdx.x & 31;
    float v[8];
    load_values(x, first, n, v);
    split_values s = split_slice(v);
    *(uint4 *)(to.hi + 8 * lane) = make_uint4(s.hi[0], s.hi[1], s.hi[2], s.hi[3]);
    *(uint4 *)(to.lo + 8 * lane) = make_uint4(s.lo[0], s.lo[1], s.lo[2], s.lo[3]);
    if (lane % 2 == 0)
        to.sum[lane / 2] = s.sum;
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
    for (int i = threadIdx.x % N_THREAD; i < n_row * N; i += N_THREAD) {
        int row = i / N, part = i % N;
        uintptr_t from = (uintptr_t)(rows + row * row_bytes + (int64_t)slice * format<T>::SLICE_BYTES);
        uintptr_t at = (from & ~(uintptr_t)15) + 16 * part;
        if (at < from + format<T>::SLICE_BYTES)
            copy_16(to + row * PITCH + 16 * part, (const void *)at);
    }
}
/* The staged slice of row `row`, which began at `rows` + row * row_bytes. */
template <enum dtype T>
static __device__ inline weight_slice staged_row(const char *stage, const weight_rows &w,
    int64_t flat_row, int row, int slice, const uint32_t *grid)
{
    weight_slice s;
    uintptr_t from = (uintptr_t)(w.data + flat_row * w.row_bytes +
                                 (int64_t)slice * format<T>::SLICE_BYTES);
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

/* Rows g, g + 8 of a group of 32 values, as operands. */
struct weight_group {
    uint32_t a[2][4];
    float factor[2][2], minimum[2][2]; /* [step][row]; step 0 alone when factors are per 32 */
};
template <enum dtype T>
static __device__ inline void group_load(
    weight_group &w, const weight_slice &row0, const weight_slice &row1, int b, int t)
{
    for (int step = 0; step < 2; step++) {
        uint32_t u[2], v[2];
        format<T>::halves(row0, b, step, t, u);
        format<T>::halves(row1, b, step, t, v);
        w.a[step][0] = u[0], w.a[step][1] = v[0], w.a[step][2] = u[1], w.a[step][3] = v[1];
        if (step && !format<T>::FACTORS_16)
            continue;
        w.factor[step][0] = format<T>::factor(row0, b, step);
        w.factor[step][1] = format<T>::factor(row1, b, step);
        if (format<T>::HAS_MINIMUM) {
            w.minimum[step][0] = format<T>::minimum(row0, b, step);
            w.minimum[step][1] = format<T>::minimum(row1, b, step);
        }
    }
}

/* acc += factor c - minimum sum, for the thread's rows and columns. */
template <enum dtype T>
static __device__ inline void add_scaled(
    float acc[4], const float c[4], const weight_group &w, int step, float sum0, float sum1)
{
    for (int i = 0; i < 4; i++)
        acc[i] = fmaf(w.factor[step][i / 2], c[i], acc[i]);
    if (format<T>::HAS_MINIMUM)
        for (int i = 0; i < 4; i++)
            acc[i] = fmaf(-w.minimum[step][i / 2], i % 2 ? sum1 : sum0, acc[i]);
}

/* Columns' operands of a group: [step] of hi and of lo. */
struct x_group {
    uint32_t hi[2][2], lo[2][2];
};
static __device__ inline void x_group_load(x_group &x, const half *hi, const half *lo, int b, int t)
{
    for (int step = 0; step < 2; step++) {
        int at = 32 * b + 16 * step + 4 * t;
        *(uint2 *)x.hi[step] = *(const uint2 *)(hi + at);
        *(uint2 *)x.lo[step] = *(const uint2 *)(lo + at);
    }
}

/* A 16 x 8 tile: acc += group b. sum0, sum1: the thread's two columns' sums [16]. */
template <enum dtype T>
static __device__ inline void group_product(float acc[4], const weight_group &w, const x_group &x,
    int b, const float *sum0, const float *sum1)
{
    float c[4] = {0, 0, 0, 0};
    if (format<T>::FACTORS_16) {
        for (int step = 0; step < 2; step++) {
            float part[4] = {0, 0, 0, 0};
            mma_f16(part, w.a[step], x.hi[step]);
            mma_f16(part, w.a[step], x.lo[step]);
            add_scaled<T>(acc, part, w, step, sum0[2 * b + step], sum1[2 * b + step]);
        }
        return;
    }
    mma_f16(c, w.a[0], x.hi[0]);
    mma_f16(c, w.a[1], x.hi[1]);
    mma_f16(c, w.a[0], x.lo[0]);
    mma_f16(c, w.a[1], x.lo[1]);
    if (format<T>::HAS_MINIMUM)
        add_scaled<T>(acc, c, w, 0, sum0[2 * b] + sum0[2 * b + 1], sum1[2 * b] + sum1[2 * b + 1]);
    else
        add_scaled<T>(acc, c, w, 0, 0, 0);
}

/* Copies the codebook, if the format has one, to shared memory; the block synchronises after it. */
template <enum dtype T>
static __device__ inline void grid_load(uint32_t *to, const uint32_t *grid)
{
    if constexpr (format<T>::HAS_GRID)
        for (int i = threadIdx.x; i < 512; i += blockDim.x)
            to[i] = grid[i];
}

#endif
