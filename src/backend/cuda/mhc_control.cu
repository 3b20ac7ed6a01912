/* mhc_control.cu: a matmul with few outputs and long rows. See mhc.cuh.
 *
 * Not in lane sums: those of one row alone would take longer than all the rest of a step. A sum has
 * 256 parts; part p adds, fused and ascending, values 4 p .. 4 p + 3 of every 1,024. Parts are
 * folded in a warp by halves 16, 8, 4, 2, 1, then warps are added ascending. A block of 256 threads
 * has some rows times some outputs; the order is the same for one as for many.
 */
#include "backend/cuda/mhc.cuh"
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

#include <cuda_fp16.h>

struct control {
    struct tensor x, fn;
    float *m; /* rows x n_out */
    uint32_t n_row, n_value, n_out;
    float eps;
};

enum { THREADS = 256, WARPS = THREADS / 32, EACH_PART = 4, STRIDE = THREADS * EACH_PART };

static __device__ inline float4 row_part(const float *x, uint32_t i, uint32_t n)
{
    if (i + EACH_PART <= n && ((uintptr_t)(x + i) & 15) == 0)
        return *(const float4 *)(x + i);
    return make_float4(
        x[i], i + 1 < n ? x[i + 1] : 0, i + 2 < n ? x[i + 2] : 0, i + 3 < n ? x[i + 3] : 0);
}

/* Four weights of an output; 0 behind the end. */
static __device__ inline float4 weight_part(
    const struct tensor &fn, uint32_t out, uint32_t i, uint32_t n)
{
    const char *row = (const char *)fn.data + out * fn.row_bytes;
    if (fn.type == DT_F32)
        return row_part((const float *)row, i, n);
    if (fn.type == DT_F16 && i + EACH_PART <= n && ((uintptr_t)(row + 2 * i) & 7) == 0) {
        uint2 u = *(const uint2 *)(row + 2 * i);
        half2 low, high;
        memcpy(&low, &u.x, 4);
        memcpy(&high, &u.y, 4);
        float2 a = __half22float2(low), b = __half22float2(high);
        return make_float4(a.x, a.y, b.x, b.y);
    }
    float v[EACH_PART];
#pragma unroll
    for (uint32_t k = 0; k < EACH_PART; k++)
        v[k] = i + k < n ? value_at(fn, out, i + k) : 0;
    return make_float4(v[0], v[1], v[2], v[3]);
}

static __device__ inline float add_part(float sum, float4 a, float4 b)
{
    sum = fmaf(a.x, b.x, sum);
    sum = fmaf(a.y, b.y, sum);
    sum = fmaf(a.z, b.z, sum);
    return fmaf(a.w, b.w, sum);
}

static __device__ inline float fold_warp(float sum)
{
    for (int half = 16; half; half /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, half);
    return sum;
}

/* The sums of ROWS rows with OUTS outputs, and of their squares. */
template <int ROWS, int OUTS> struct sums {
    float dot[ROWS][OUTS], square[ROWS];
};

template <int ROWS, int OUTS>
static __device__ inline void add_all(
    struct sums<ROWS, OUTS> &s, const struct control &a, uint32_t row, uint32_t out)
{
#pragma unroll 2
    for (uint32_t i = threadIdx.x * EACH_PART; i < a.n_value; i += STRIDE) {
        float4 x[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            x[r] = row_part(
                cuda_row(a.x, (int64_t)min(row + r, a.n_row - 1) * a.x.dim[1]), i, a.n_value);
            s.square[r] = add_part(s.square[r], x[r], x[r]);
        }
#pragma unroll
        for (int o = 0; o < OUTS; o++) {
            float4 w = weight_part(a.fn, min(out + o, a.n_out - 1), i, a.n_value);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                s.dot[r][o] = add_part(s.dot[r][o], w, x[r]);
        }
    }
}

template <int ROWS, int OUTS>
static __global__ void __launch_bounds__(THREADS) control_kernel(struct control a)
{
    enum { N_SUM = ROWS * (OUTS + 1) };
    __shared__ float folded[N_SUM][WARPS];
    cuda_wait();
    uint32_t row = blockIdx.x * ROWS, out = blockIdx.y * OUTS, warp = threadIdx.x / 32;
    struct sums<ROWS, OUTS> s = {
    };
    add_all(s, a, row, out);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int o = 0; o < OUTS; o++)
            folded[r * (OUTS + 1) + o][warp] = fold_warp(s.dot[r][o]);
        folded[r * (OUTS + 1) + OUTS][warp] = fold_warp(s.square[r]);
    }
    __syncthreads();
    int r = (int)threadIdx.x / OUTS, o = (int)threadIdx.x % OUTS;
    if (r >= ROWS || row + r >= a.n_row || out + o >= a.n_out)
        return;
    float dot = 0, square = 0;
    for (int w = 0; w < WARPS; w++) {
        dot += folded[r * (OUTS + 1) + o][w];
        square += folded[r * (OUTS + 1) + OUTS][w];
    }
    a.m[(int64_t)(row + r) * a.n_out + out + o] =
        dot * (1.0f / sqrtf(square / (float)a.n_value + a.eps));
}

const float *mhc_control(
    struct backend *be, const struct tensor *x, const struct tensor *fn, float eps)
{
    enum { FEW = 16, ROWS = 4, OUTS = 8 };
    int64_t n_row = x->dim[0], n_out = fn->dim[0];
    float *m = (float *)backend_scratch(be, (size_t)(n_row * n_out) * sizeof *m);
    struct control a = {*x, cuda_weight(be, fn), m, (uint32_t)n_row,
        (uint32_t)(x->dim[1] * x->dim[2]), (uint32_t)n_out, eps};
    if (m && n_row <= FEW)
        cuda_launch(
            be, "mhc_control", control_kernel<1, 1>, {dim3(a.n_row, a.n_out), THREADS, 0}, a);
    else if (m)
        cuda_launch(be, "mhc_control", control_kernel<ROWS, OUTS>,
            {dim3((a.n_row + ROWS - 1) / ROWS, (a.n_out + OUTS - 1) / OUTS), THREADS, 0}, a);
    return m;
}
