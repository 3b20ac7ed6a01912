/* matmul_many.cuh: many activation rows: blocks of 128 outputs x 64 rows, rows split once
 * beforehand.
 *
 * A warp has 32 outputs x 32 rows, so that an operand fetched from shared memory serves two matrix
 * instructions and a decoded weight eight. Two blocks share a multiprocessor: one computes while
 * the other's copies are under way.
 *
 *   | codebook | 128 staged weight rows | 64 split rows: hi, lo | their sums, scales and
 *   first slices |
 */
#ifndef HADAL_BACKEND_CUDA_MATMUL_MANY_CUH
#define HADAL_BACKEND_CUDA_MATMUL_MANY_CUH

#include "backend/cuda/slices.cuh"

enum {
    MANY_OUT = 128,
    MANY_ROWS = 64,
    MANY_THREADS = 256,
    WARP_OUT = 32,
    WARP_ROWS = 32,
    MANY_X_PITCH = 2 * SLICE + 16 /* halves of a row: hi, lo, a shift of banks */
};

/* Activation rows as split_many leaves them, n_slice slices each. */
struct split_rows {
    half *hi, *lo, *sum; /* [row][n_slice][SLICE] twice, [row][n_slice][32] as in x_slice */
    float *scale;        /* [row][n_slice] */
    int n_slice;
};

/* A lane's part of slice `at` of all. */
static __device__ inline void split_write(
    const split_rows &to, int64_t at, const split_values &s, int lane)
{
    *(uint4 *)(to.hi + at * SLICE + 8 * lane) = make_uint4(s.hi[0], s.hi[1], s.hi[2], s.hi[3]);
    *(uint4 *)(to.lo + at * SLICE + 8 * lane) = make_uint4(s.lo[0], s.lo[1], s.lo[2], s.lo[3]);
    split_sum(to.sum + at * 32, s.sum);
    if (lane == 0)
        to.scale[at] = s.scale;
}

/* Rows of one expert: places [first, first + n) of the list of pairs. */
struct expert_tile {
    int32_t expert, first, n;
};

/* y[y_row(i), :] = w x[x_row(i), :] for the rows i of every tile. Without tiles: rows 0 .. n_row-1
 * of one matrix. */
struct many_job {
    enum dtype type;
    weight_rows w;
    split_rows x;
    int64_t n_row, out_per_group; /* matmul_grouped: output o reads split row row * n_group + o /
                                     out_per_group */
    int n_group;
    const expert_tile *tile;
    const int32_t *n_tile;
    const int32_t *pair; /* by place: row of y; its row of x is pair / pairs_per_x */
    int pairs_per_x;
    float *y;
    int64_t y_stride;
    const uint32_t *grid;
};

template <enum dtype T> constexpr size_t many_shared()
{
    return (format<T>::HAS_GRID ? 2048 : 0) + MANY_OUT * (size_t)stage_pitch<T>() +
           MANY_ROWS * (2 * MANY_X_PITCH + 32 * sizeof(half) + sizeof(float) + sizeof(int));
}

struct many_memory {
    uint32_t *grid;
    char *stage;
    half *x, *sum;
    float *scale;
    int *row;
};
template <enum dtype T> static __device__ inline many_memory many_carve()
{
    extern __shared__ __align__(16) char memory[];
    many_memory m;
    m.grid = (uint32_t *)memory;
    m.stage = memory + (format<T>::HAS_GRID ? 2048 : 0);
    m.x = (half *)(m.stage + MANY_OUT * stage_pitch<T>());
    m.sum = m.x + MANY_ROWS * MANY_X_PITCH;
    m.scale = (float *)(m.sum + MANY_ROWS * 32);
    m.row = (int *)(m.scale + MANY_ROWS);
    return m;
}

/* The block's part of the job. */
struct many_tile {
    int64_t first_out, weight_row; /* weight_row: flat row of output 0 */
    int first_row, n_row, n_out;   /* rows and outputs of this block, cut at the ends */
};
static __device__ inline int64_t many_x_row(const many_job &j, const many_tile &b, int i)
{
    if (!j.tile)
        return (int64_t)(b.first_row + i) * j.n_group + b.first_out / j.out_per_group;
    return j.pair[b.first_row + i] / j.pairs_per_x;
}
static __device__ inline int many_find(const many_job &j, many_tile &b)
{
    b.first_out = (int64_t)blockIdx.x * MANY_OUT;
    b.weight_row = 0;
    b.first_row = blockIdx.y * MANY_ROWS;
    int64_t n_row = j.n_row;
    if (j.tile) {
        if ((int)blockIdx.y >= *j.n_tile)
            return 0;
        expert_tile t = j.tile[blockIdx.y];
        b.weight_row = (int64_t)t.expert * j.w.n_out;
        b.first_row = t.first;
        n_row = t.first + t.n;
    }
    int64_t rows = n_row - b.first_row, outs = j.w.n_out - b.first_out;
    b.n_row = rows < MANY_ROWS ? (int)rows : MANY_ROWS;
    b.n_out = outs < MANY_OUT ? (int)outs : MANY_OUT;
    return 1;
}

/* Where the block's rows begin, in slices. Rows past the end repeat row 0: their results are not
 * written. */
static __device__ inline void many_list(const many_memory &m, const many_job &j, const many_tile &b)
{
    if ((int)threadIdx.x < MANY_ROWS)
        m.row[threadIdx.x] =
            (int)many_x_row(j, b, (int)threadIdx.x < b.n_row ? threadIdx.x : 0) * j.x.n_slice;
}

/* Copies one slice of the block's weights and rows. */
template <enum dtype T>
static __device__ inline void many_copy(
    const many_memory &m, const many_job &j, const many_tile &b, int slice)
{
    int64_t row_bytes = j.w.row_bytes;
    stage_rows<T, MANY_THREADS>(
        m.stage, j.w.data + (b.weight_row + b.first_out) * row_bytes, row_bytes, b.n_out, slice);
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int row = (int)threadIdx.x / 32; row < MANY_ROWS; row += MANY_THREADS / 32) {
        int64_t at = m.row[row] + slice; /* 32 pieces of 16 bytes are a row's hi */
        half *to = m.x + row * MANY_X_PITCH + 8 * lane;
        copy_16(to, j.x.hi + at * SLICE + 8 * lane);
        copy_16(to + SLICE, j.x.lo + at * SLICE + 8 * lane);
    }
    int row = (int)threadIdx.x / 4, part = 8 * (int)(threadIdx.x % 4);
    int64_t at = m.row[row] + slice;
    copy_16(m.sum + 32 * row + part, j.x.sum + 32 * at + part);
    if (part == 0)
        m.scale[row] = j.x.scale[at];
    copy_close();
}

/* The warp's columns: the first, and how many rows there are from it on. */
struct many_columns {
    int first, n;
};

/* One group of 32 values for the warp's 32 x 32 outputs. */
template <enum dtype T>
static __device__ inline void many_group(float acc[2][4][4], const many_memory &m,
    const open_slice<T> row[2][2], const many_columns c, int b, int t)
{
    weight_group w[2];
    for (int i = 0; i < 2; i++)
        group_load<T>(w[i], row[i][0], row[i][1], b, t);
    for (int k = 0; k < 4; k++) {
        if (8 * k >= c.n)
            break;
        x_group x;
        int g = threadIdx.x % 32 / 4, at = c.first + 8 * k;
        const half *hi = m.x + (at + g) * MANY_X_PITCH;
        x_group_load<T>(x, hi, hi + SLICE, b, t);
        for (int i = 0; i < 2; i++)
            group_product<T>(acc[i][k], w[i], x);
    }
}

template <enum dtype T>
static __global__ void __launch_bounds__(MANY_THREADS, 2) many_kernel(const many_job j)
{
    cuda_wait();
    many_memory m = many_carve<T>();
    many_tile b;
    if (!many_find(j, b))
        return;
    grid_load<T>(m.grid, j.grid);
    many_list(m, j, b);
    __syncthreads();
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    int out = warp % 4 * WARP_OUT, column = warp / 4 * WARP_ROWS;
    float total[2][4][4] = {};
    for (int s = 0; s < j.x.n_slice; s++) {
        many_copy<T>(m, j, b, s);
        copy_wait<0>();
        __syncthreads();
        open_slice<T> row[2][2];
        for (int i = 0; i < 4; i++) {
            int at = out + 16 * (i / 2) + 8 * (i % 2) + g;
            at = at < b.n_out ? at : b.n_out - 1;
            row[i / 2][i % 2] = open_row<T>(
                staged_row<T>(m.stage, j.w, b.weight_row + b.first_out + at, at, s, m.grid));
        }
        float acc[2][4][4] = {};
        int left = (j.w.n_in - s * SLICE) / 32;
#pragma unroll 4
        for (int k = 0; k < SLICE_GROUPS; k++)
            if (k < left)
                many_group<T>(acc, m, row, {column, b.n_row - column}, k, t);
        for (int i = 0; i < 8; i++)
            slice_finish<T>(acc[i / 4][i % 4], row[i / 4][0], row[i / 4][1],
                m.sum + (column + 8 * (i % 4) + g) * 32, t);
        for (int i = 0; i < 32; i++)
            total[i / 16][i / 4 % 4][i % 4] +=
                acc[i / 16][i / 4 % 4][i % 4] * m.scale[column + 8 * (i / 4 % 4) + 2 * t + i % 2];
        __syncthreads();
    }
    for (int i = 0; i < 32; i++) {
        int o = out + 16 * (i / 16) + 8 * (i % 4 / 2) + g,
            r = column + 8 * (i / 4 % 4) + 2 * t + i % 2;
        if (o >= b.n_out || r >= b.n_row)
            continue;
        int64_t y_row = j.tile ? j.pair[b.first_row + r] : b.first_row + r;
        j.y[y_row * j.y_stride + b.first_out + o] = total[i / 16][i / 4 % 4][i % 4];
    }
}

#endif
