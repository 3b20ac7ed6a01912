/* norm.cu: element-wise ops on rows that need the whole row first: RMS norm, Hadamard; and SwiGLU.
 */
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

enum { LEAST_THREADS = 32, MOST_THREADS = 512, MAX_STAGE = 4096 };

/* About an eighth of a row's values, in whole warps. */
static unsigned threads_for(int64_t n_col)
{
    int64_t n = (n_col / 8 + 31) / 32 * 32;
    return (unsigned)(n < LEAST_THREADS ? LEAST_THREADS : n > MOST_THREADS ? MOST_THREADS : n);
}

struct norm {
    struct tensor y, x, w; /* w.data NULL: none */
    uint32_t n_col, n_stage;
    float eps;
};

/* The factor of a row; every thread of the block gets it. Afterwards the stage holds the row's last
 * n_stage values, all of them when they fit. */
static __device__ float norm_factor(const struct norm &a, const float *x, float *stage)
{
    __shared__ float factor;
    float sum = 0;
    for (uint32_t first = 0; first < a.n_col; first += a.n_stage) {
        uint32_t n = min(a.n_stage, a.n_col - first);
        __syncthreads();
#pragma unroll 8
        for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
            stage[stage_place(i)] = x[first + i];
        __syncthreads();
        if (threadIdx.x < 32)
            sum = stage_walk(stage, stage, n, threadIdx.x % 16, sum);
    }
    if (threadIdx.x < 32) {
        float mean = cuda_fold(sum) / (float)a.n_col;
        if (threadIdx.x == 0)
            factor = 1.0f / sqrtf(mean + a.eps);
    }
    __syncthreads();
    return factor;
}

static __global__ void rms_norm_kernel(struct norm a)
{
    cuda_wait();
    extern __shared__ float4 memory[];
    float *stage = (float *)memory, *y = cuda_row(a.y, blockIdx.x);
    const float *x = cuda_row(a.x, blockIdx.x);
    float factor = norm_factor(a, x, stage);
    bool is_staged = a.n_stage >= a.n_col;
    if (!a.w.data) {
#pragma unroll 8
        for (uint32_t i = threadIdx.x; i < a.n_col; i += blockDim.x)
            y[i] = (is_staged ? stage[stage_place(i)] : x[i]) * factor;
        return;
    }
    struct value_range range = {0, a.n_col, threadIdx.x, blockDim.x};
    value_each(value_row_of(a.w, 0), range, [&](uint32_t i, float w) {
        float normal = (is_staged ? stage[stage_place(i)] : x[i]) * factor;
        y[i] = normal * w;
    });
}

void cuda_rms_norm(struct backend *be, const void *args)
{
    const struct op_rms_norm *a = (const struct op_rms_norm *)args;
    int64_t n_row = tensor_n_row(a->x), n_col = tensor_n_col(a->x);
    struct norm n = {};
    n.y = *a->y;
    n.x = *a->x;
    if (a->w)
        n.w = cuda_weight(be, a->w);
    n.n_col = (uint32_t)n_col;
    n.n_stage = (uint32_t)(n_col < MAX_STAGE ? n_col : MAX_STAGE);
    n.eps = a->eps;
    if (n_col)
        cuda_launch(be, "rms_norm", rms_norm_kernel,
            {dim3((unsigned)n_row), threads_for(n_col), stage_bytes(n.n_stage)}, n);
}

static __global__ void hadamard_kernel(struct tensor x, uint32_t n, float scale)
{
    cuda_wait();
    extern __shared__ float4 memory[];
    float *value = (float *)memory, *row = cuda_row(x, blockIdx.x);
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        value[i] = row[i];
    for (uint32_t stride = 1; stride < n; stride *= 2) {
        __syncthreads();
        for (uint32_t pair = threadIdx.x; pair < n / 2; pair += blockDim.x) {
            uint32_t i = 2 * pair - pair % stride;
            float low = value[i], high = value[i + stride];
            value[i] = low + high;
            value[i + stride] = low - high;
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        row[i] = value[i] * scale;
}

void cuda_hadamard(struct backend *be, const void *args)
{
    const struct op_hadamard *a = (const struct op_hadamard *)args;
    int64_t n_row = tensor_n_row(a->x), n_col = tensor_n_col(a->x);
    int64_t n_thread = n_col / 2 < LEAST_THREADS ? LEAST_THREADS : n_col / 2;
    cuda_launch(be, "hadamard", hadamard_kernel,
        {dim3((unsigned)n_row), (unsigned)(n_thread > MOST_THREADS ? MOST_THREADS : n_thread),
            (size_t)n_col * sizeof(float)},
        *a->x, (uint32_t)n_col, 1.0f / sqrtf((float)n_col));
}

static __global__ void swiglu_kernel(
    struct tensor y, struct tensor gate, struct tensor up, int64_t n_col, float limit)
{
    cuda_wait();
    int64_t r = blockIdx.x, i = row_column();
    if (i < n_col)
        cuda_row(y, r)[i] = fmath_swiglu(cuda_row(gate, r)[i], cuda_row(up, r)[i], limit);
}

void cuda_swiglu(struct backend *be, const void *args)
{
    const struct op_swiglu *a = (const struct op_swiglu *)args;
    int64_t n_col = tensor_n_col(a->y);
    cuda_launch(be, "swiglu", swiglu_kernel, {row_grid(tensor_n_row(a->y), n_col), ROW_THREADS, 0},
        *a->y, *a->gate, *a->up, n_col, a->limit);
}
