/* mhc_control.cu: a matmul with few outputs and long rows, in lane sums. See mhc.cuh.
 *
 * Few rows: a block per output and row; one warp adds while the others fetch what comes next.
 * Many rows: a block takes a tile of rows and outputs, a thread 4 x 4 of it on its lane.
 */
#include "backend/cuda/mhc.cuh"
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

struct control {
    struct tensor x, fn;
    float *m; /* rows x n_out */
    uint32_t n_row, n_value, n_out;
    float eps;
};

static __device__ inline const float *flat_row(const struct control &a, int64_t r)
{
    return cuda_row(a.x, r * a.x.dim[1]);
}

static __device__ inline float scale_of(const struct control &a, float squares)
{
    return 1.0f / sqrtf(squares / (float)a.n_value + a.eps);
}

/* ---- Few rows ---- */

enum { CHUNK = 4096, N_FETCHER = 512, MOST_ROWS = 256 };

/* Values first .. of an output's weights and of the row into one half of the stage. */
static __device__ inline void fetch(const struct control &a, uint32_t first, float *stage)
{
    if (first >= a.n_value)
        return;
    struct value_range range = {first, min((uint32_t)CHUNK, a.n_value - first), threadIdx.x - 32,
        N_FETCHER};
    const float *x = flat_row(a, blockIdx.x) + first;
    value_each(value_row_of(a.fn, blockIdx.y), range, [&](uint32_t i, float w) {
        stage[stage_place(i)] = w;
        stage[CHUNK + stage_place(i)] = x[i];
    });
}

/* Half a warp adds products, the other half squares. */
static __global__ void __launch_bounds__(32 + N_FETCHER) row_kernel(struct control a)
{
    cuda_wait();
    extern __shared__ float4 memory[];
    float *stage = (float *)memory, sum = 0;
    bool is_adder = threadIdx.x < 32;
    if (!is_adder)
        fetch(a, 0, stage);
    for (uint32_t first = 0, turn = 0; first < a.n_value; first += CHUNK, turn ^= 1) {
        const float *w = stage + turn * 2 * CHUNK, *x = w + CHUNK;
        __syncthreads();
        if (is_adder)
            sum = stage_walk(threadIdx.x < 16 ? w : x, x, min((uint32_t)CHUNK, a.n_value - first),
                threadIdx.x % 16, sum);
        else
            fetch(a, first + CHUNK, stage + (turn ^ 1) * 2 * CHUNK);
    }
    if (!is_adder)
        return;
    float total = cuda_fold(sum), squares = __shfl_sync(0xffffffffu, total, 16);
    if (threadIdx.x == 0)
        a.m[(int64_t)blockIdx.x * a.n_out + blockIdx.y] = total * scale_of(a, squares);
}

/* ---- Many rows ---- */

enum { EACH = 4, TILE_ROWS = 16, TILE_OUTS = 24, TILE_COLS = 256 };
enum { TILE_THREADS = 16 * (TILE_ROWS / EACH) * (TILE_OUTS / EACH) };

struct tile_sums {
    float dot[EACH][EACH], square[EACH];
};

static __device__ inline void tile_step(
    struct tile_sums &s, const float x[EACH], const float w[EACH])
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            s.dot[i][j] = fmaf(w[j], x[i], s.dot[i][j]);
        s.square[i] = fmaf(x[i], x[i], s.square[i]);
    }
}

/* stage_walk for EACH rows x and EACH outputs w. */
static __device__ inline void tile_walk(
    struct tile_sums &s, const float *x, const float *w, uint32_t n, uint32_t lane)
{
    uint32_t i = 0;
    for (; i + STAGE_GROUP <= n; i += STAGE_GROUP) {
        float4 quad_x[EACH], quad_w[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            quad_x[j] = *(const float4 *)(x + j * TILE_COLS + i + 4 * lane);
            quad_w[j] = *(const float4 *)(w + j * TILE_COLS + i + 4 * lane);
        }
        const float x0[EACH] = {quad_x[0].x, quad_x[1].x, quad_x[2].x, quad_x[3].x};
        const float x1[EACH] = {quad_x[0].y, quad_x[1].y, quad_x[2].y, quad_x[3].y};
        const float x2[EACH] = {quad_x[0].z, quad_x[1].z, quad_x[2].z, quad_x[3].z};
        const float x3[EACH] = {quad_x[0].w, quad_x[1].w, quad_x[2].w, quad_x[3].w};
        const float w0[EACH] = {quad_w[0].x, quad_w[1].x, quad_w[2].x, quad_w[3].x};
        const float w1[EACH] = {quad_w[0].y, quad_w[1].y, quad_w[2].y, quad_w[3].y};
        const float w2[EACH] = {quad_w[0].z, quad_w[1].z, quad_w[2].z, quad_w[3].z};
        const float w3[EACH] = {quad_w[0].w, quad_w[1].w, quad_w[2].w, quad_w[3].w};
        tile_step(s, x0, w0);
        tile_step(s, x1, w1);
        tile_step(s, x2, w2);
        tile_step(s, x3, w3);
    }
    for (i += lane; i < n; i += 16) {
        float one_x[EACH], one_w[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            one_x[j] = x[j * TILE_COLS + stage_place(i)];
            one_w[j] = w[j * TILE_COLS + stage_place(i)];
        }
        tile_step(s, one_x, one_w);
    }
}

/* TILE_ROWS rows of x, then TILE_OUTS rows of fn, a warp per row. */
static __device__ inline void fetch_tile(
    const struct control &a, uint32_t first, uint32_t n, float *stage)
{
    uint32_t thread = threadIdx.x % 32, first_row = blockIdx.x * TILE_ROWS,
             first_out = blockIdx.y * TILE_OUTS;
    for (uint32_t j = threadIdx.x / 32; j < TILE_ROWS + TILE_OUTS; j += TILE_THREADS / 32) {
        float *to = stage + j * TILE_COLS;
        if (j < TILE_ROWS) {
            const float *x = flat_row(a, min(first_row + j, a.n_row - 1)) + first;
#pragma unroll 8
            for (uint32_t i = thread; i < n; i += 32)
                to[stage_place(i)] = x[i];
        } else {
            uint32_t out = min(first_out + j - TILE_ROWS, a.n_out - 1);
            struct value_range range = {first, n, thread, 32};
            value_each(value_row_of(a.fn, out), range,
                [&](uint32_t i, float w) { to[stage_place(i)] = w; });
        }
    }
}

static __global__ void __launch_bounds__(TILE_THREADS) tile_kernel(struct control a)
{
    cuda_wait();
    __shared__ float4 memory[(TILE_ROWS + TILE_OUTS) * TILE_COLS / 4];
    float *stage = (float *)memory;
    uint32_t lane = threadIdx.x % 16, group = threadIdx.x / 16;
    uint32_t row = group % (TILE_ROWS / EACH) * EACH, out = group / (TILE_ROWS / EACH) * EACH;
    struct tile_sums s = {};
    for (uint32_t first = 0; first < a.n_value; first += TILE_COLS) {
        uint32_t n = min((uint32_t)TILE_COLS, a.n_value - first);
        __syncthreads();
        fetch_tile(a, first, n, stage);
        __syncthreads();
        tile_walk(s, stage + row * TILE_COLS, stage + (TILE_ROWS + out) * TILE_COLS, n, lane);
    }
    row += blockIdx.x * TILE_ROWS;
    out += blockIdx.y * TILE_OUTS;
#pragma unroll
    for (uint32_t i = 0; i < EACH; i++) {
        float scale = scale_of(a, cuda_fold(s.square[i]));
#pragma unroll
        for (uint32_t j = 0; j < EACH; j++) {
            float total = cuda_fold(s.dot[i][j]);
            if (lane == 0 && row + i < a.n_row && out + j < a.n_out)
                a.m[(int64_t)(row + i) * a.n_out + out + j] = total * scale;
        }
    }
}

const float *mhc_control(
    struct backend *be, const struct tensor *x, const struct tensor *fn, float eps)
{
    int64_t n_row = x->dim[0], n_out = fn->dim[0];
    float *m = (float *)backend_scratch(be, (size_t)(n_row * n_out) * sizeof *m);
    struct control a = {*x, cuda_weight(be, fn), m, (uint32_t)n_row,
        (uint32_t)(x->dim[1] * x->dim[2]), (uint32_t)n_out, eps};
    if (m && n_row <= MOST_ROWS)
        cuda_launch(be, "mhc_control", row_kernel, {dim3(a.n_row, a.n_out), 32 + N_FETCHER,
            sizeof(float) * 4 * CHUNK}, a);
    else if (m)
        cuda_launch(be, "mhc_control", tile_kernel, {dim3((a.n_row + TILE_ROWS - 1) / TILE_ROWS, (a.n_out + TILE_OUTS - 1) / TILE_OUTS),
            TILE_THREADS, 0}, a);
    return m;
}
