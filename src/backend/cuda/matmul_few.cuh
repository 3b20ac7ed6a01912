/* matmul_few.cuh: up to eight activation rows, bound by reading weights: a block makes 16 outputs,
 * its warps share the slices and stream weights through shared memory.
 *
 *   | partial sums [n_slice][16][n] | codebook | per warp: n split rows, buffers of 16 weight rows
 * |
 */
#ifndef HADAL_BACKEND_CUDA_MATMUL_FEW_CUH
#define HADAL_BACKEND_CUDA_MATMUL_FEW_CUH

#include "backend/cuda/slices.cuh"

enum { FEW_WARPS = 8, FEW_OUT = 16 };

/* Shared memory of a block, carved. */
struct few_memory {
    float *partial;
    uint32_t *grid;
    char *x, *stage; /* of this warp: n split rows, n_stage buffers of weights */
};
template <enum dtype T> struct few_sizes {
    enum { GRID_BYTES = format<T>::HAS_GRID ? 2048 : 0, STAGE_BYTES = FEW_OUT * stage_pitch<T>() };
    static __host__ __device__ int partial_bytes(int n_slice, int n)
    {
        return n_slice * FEW_OUT * n * (int)sizeof(float);
    }
    /* n_partial slices' sums, n_warp warps with n_stage buffers and n rows each */
    static __host__ size_t all(int n_partial, int n_warp, int n_stage, int n)
    {
        return (size_t)(partial_bytes(n_partial, n) + GRID_BYTES +
                        n_warp * (n_stage * STAGE_BYTES + n * X_BYTES));
    }
};
template <enum dtype T>
static __device__ inline few_memory few_carve(int n_partial, int n_stage, int n)
{
    extern __shared__ __align__(16) char memory[];
    few_memory m;
    m.partial = (float *)memory;
    m.grid = (uint32_t *)(memory + few_sizes<T>::partial_bytes(n_partial, n));
    m.x = (char *)m.grid + few_sizes<T>::GRID_BYTES +
          threadIdx.x / 32 * (n_stage * few_sizes<T>::STAGE_BYTES + n * X_BYTES);
    m.stage = m.x + n * X_BYTES;
    return m;
}

template <enum dtype T> static __device__ inline char *few_buffer(const few_memory &m, int i)
{
    return m.stage + i * few_sizes<T>::STAGE_BYTES;
}

/* What a warp multiplies: 16 flat weight rows from `row`, and n activation rows x_stride floats
 * apart. */
struct few_rows {
    weight_rows w;
    int64_t row;
    const float *x;
    int64_t x_stride;
    int n;
};

template <enum dtype T>
static __device__ inline void few_stage(char *to, const few_rows &r, int slice)
{
    stage_rows<T, 32>(to, r.w.data + r.row * r.w.row_bytes, r.w.row_bytes, FEW_OUT, slice);
    copy_close();
}

/* partial[16][n] = one slice's sums, of which this warp has the staged weights and split rows. */
template <enum dtype T>
static __device__ inline void few_product(
    float *partial, const few_rows &r, const char *stage, char *x, int slice, const uint32_t *grid)
{
    int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
    open_slice<T> w0 = open_row<T>(staged_row<T>(stage, r.w, r.row + g, g, slice, grid));
    open_slice<T> w1 = open_row<T>(staged_row<T>(stage, r.w, r.row + g + 8, g + 8, slice, grid));
    x_slice column = x_slice_at(x + (g < r.n ? g : 0) * X_BYTES);
    int c0 = 2 * t < r.n ? 2 * t : 0, c1 = 2 * t + 1 < r.n ? 2 * t + 1 : 0;
    x_slice x0 = x_slice_at(x + c0 * X_BYTES), x1 = x_slice_at(x + c1 * X_BYTES);
    int left = (r.w.n_in - slice * SLICE) / 32;
    int n_group = left < SLICE_GROUPS ? left : SLICE_GROUPS;
    float acc[4] = {0, 0, 0, 0};
#pragma unroll
    for (int b = 0; b < SLICE_GROUPS; b++) {
        if (b >= n_group)
            break;
        weight_group w;
        x_group v;
        group_load<T>(w, w0, w1, b, t);
        x_group_load<T>(v, column.hi, column.lo, b, t);
        group_product<T>(acc, w, v);
    }
    slice_finish<T>(acc, w0, w1, column.sum, t);
    for (int i = 0; i < 4; i++)
        if (2 * t + i % 2 < r.n)
            partial[(g + 8 * (i / 2)) * r.n + 2 * t + i % 2] =
                acc[i] * *(i % 2 ? x1.scale : x0.scale);
}

/* Splits the slice's part of the n rows. */
static __device__ inline void few_split(char *x, const few_rows &r, int slice)
{
    for (int i = 0; i < r.n; i++)
        x_slice_make(
            x_slice_at(x + i * X_BYTES), r.x + i * r.x_stride, (int64_t)slice * SLICE, r.w.n_in);
}

/* All slices of 16 outputs into m.partial; the block synchronises after it. The first slice is
 * staged by the caller. */
template <enum dtype T>
static __device__ inline void few_slices(const few_memory &m, const few_rows &r, int n_slice)
{
    int n_warp = blockDim.x / 32, buffer = 0;
    for (int s = threadIdx.x / 32; s < n_slice; s += n_warp, buffer ^= 1) {
        few_split(m.x, r, s);
        if (s + n_warp < n_slice)
            few_stage<T>(few_buffer<T>(m, buffer ^ 1), r, s + n_warp);
        else
            copy_close();
        copy_wait<1>();
        __syncwarp();
        few_product<T>(m.partial + s * FEW_OUT * r.n, r, few_buffer<T>(m, buffer), m.x, s, m.grid);
        __syncwarp();
    }
}

/* The sum over slices of n rows at place output * n + row. */
static __device__ inline float few_total(const float *partial, int n_slice, int n, int at)
{
    float total = 0;
    for (int s = 0; s < n_slice; s++)
        total += partial[s * FEW_OUT * n + at];
    return total;
}

#endif
