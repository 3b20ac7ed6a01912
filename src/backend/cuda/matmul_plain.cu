/* matmul_plain.cu: products with weights of any format in the reference's order of additions: 16
 * neighbouring threads per output, each a lane. What the other kernels do not take comes here.
 */
#include "backend/cuda/matmul.cuh"
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

/* A group of 16 threads decodes CHUNK values of a weight row at a time. */
enum { THREADS = 128, GROUPS = THREADS / 16, CHUNK = 256, MAX_ROW = 4 };

static __device__ inline float *group_stage(void)
{
    __shared__ float4 memory[GROUPS * CHUNK / 4];
    return (float *)memory + threadIdx.x / 16 * CHUNK;
}

static __device__ inline void decode_chunk(
    const struct value_row &w, uint32_t first, uint32_t lane, float *stage)
{
    for (uint32_t run = lane; run < CHUNK / 8 && first + 8 * run < w.n_col; run += 16) {
        float value[8];
        value_run(w, first / 8 + run, value);
#pragma unroll
        for (uint32_t k = 0; k < 8; k++)
            stage[stage_place(8 * run + k)] = value[k];
    }
}

/* This lane's parts of w . x for R rows x; whole warps call. */
template <int R>
static __device__ void lane_dots(const struct value_row &w, const float *const x[R], float sum[R])
{
    uint32_t lane = threadIdx.x % 16;
    float *stage = group_stage();
    for (int r = 0; r < R; r++)
        sum[r] = 0;
    for (uint32_t first = 0; first < w.n_col; first += CHUNK) {
        uint32_t n = min((uint32_t)CHUNK, w.n_col - first);
        __syncwarp();
        decode_chunk(w, first, lane, stage);
        __syncwarp();
#pragma unroll 4
        for (uint32_t i = lane; i < n; i += 16) {
            float value = stage[stage_place(i)];
#pragma unroll
            for (int r = 0; r < R; r++)
                sum[r] = fmaf(value, x[r][first + i], sum[r]);
        }
    }
}

/* w . x, for all 16 threads. */
static __device__ float dot(const struct value_row &w, const float *x)
{
    const float *row[1] = {x};
    float sum[1];
    lane_dots<1>(w, row, sum);
    return cuda_fold(sum[0]);
}

/* ---- Matmul ---- */

struct product {
    struct tensor y, x, w;
    int64_t n_out_each; /* outputs of a group of inputs */
};

/* Outputs along x, R rows along y. */
template <int R> static __global__ void matmul_kernel(struct product a)
{
    cuda_wait();
    int64_t out = (int64_t)blockIdx.x * GROUPS + threadIdx.x / 16, n_row = a.x.dim[0];
    int64_t o = out < a.w.dim[0] ? out : a.w.dim[0] - 1, first = (int64_t)blockIdx.y * R;
    const float *x[R];
    float sum[R];
    for (int r = 0; r < R; r++)
        x[r] = cuda_row(a.x, first + r < n_row ? first + r : n_row - 1) +
               o / a.n_out_each * a.w.dim[1];
    lane_dots<R>(value_row_of(a.w, o), x, sum);
    for (int r = 0; r < R; r++) {
        float total = cuda_fold(sum[r]);
        if (threadIdx.x % 16 == 0 && out < a.w.dim[0] && first + r < n_row)
            cuda_row(a.y, first + r)[out] = total;
    }
}

void cuda_matmul_plain(struct backend *be, const struct tensor *y, const struct tensor *x,
    const struct tensor *w, int n_group)
{
    struct product p = {*y, *x, cuda_weight(be, w), w->dim[0] / n_group};
    unsigned n_row = (unsigned)x->dim[0], n_block = (unsigned)((w->dim[0] + GROUPS - 1) / GROUPS);
    if (n_row <= 1)
        cuda_launch(be, "matmul", matmul_kernel<1>, {dim3(n_block, n_row), THREADS, 0}, p);
    else
        cuda_launch(be, "matmul", matmul_kernel<MAX_ROW>,
            {dim3(n_block, (n_row + MAX_ROW - 1) / MAX_ROW), THREADS, 0}, p);
}

/* ---- Experts: each row's chosen experts on their own ---- */

struct experts {
    struct tensor y, x, idx, weight, gate, up, down;
    float *hidden; /* rows x k x f */
    float limit;
};

/* hidden = weight swiglu(gate x, up x), outputs along y, chosen experts of all rows along x. */
static __global__ void hidden_kernel(struct experts a, struct cuda_fault *fault)
{
    cuda_wait();
    int64_t k = a.idx.dim[1], r = blockIdx.x / k, f = a.gate.dim[1];
    int32_t expert = cuda_ints(a.idx, r)[blockIdx.x % k];
    if (cuda_refuse(fault, CUDA_EXPERT, expert, a.gate.dim[0]))
        return;
    int64_t out = (int64_t)blockIdx.y * GROUPS + threadIdx.x / 16, o = out < f ? out : f - 1;
    const float *x = cuda_row(a.x, r);
    float gate = dot(value_row_of(a.gate, expert * f + o), x);
    float up = dot(value_row_of(a.up, expert * f + o), x);
    float value = cuda_row(a.weight, r)[blockIdx.x % k] * fmath_swiglu(gate, up, a.limit);
    if (threadIdx.x % 16 == 0 && out < f)
        a.hidden[blockIdx.x * f + out] = value;
}

/* y = sum_k down[e_k] hidden_k, outputs along y, rows along x. */
static __global__ void down_kernel(struct experts a, struct cuda_fault *fault)
{
    cuda_wait();
    int64_t k = a.idx.dim[1], r = blockIdx.x, f = a.gate.dim[1], d = a.y.dim[1];
    int64_t out = (int64_t)blockIdx.y * GROUPS + threadIdx.x / 16, o = out < d ? out : d - 1;
    float sum = 0;
    for (int64_t i = 0; i < k; i++) {
        int32_t expert = cuda_ints(a.idx, r)[i];
        if (cuda_refuse(fault, CUDA_EXPERT, expert, a.gate.dim[0]))
            return;
        sum += dot(value_row_of(a.down, expert * d + o), a.hidden + (r * k + i) * f);
    }
    if (threadIdx.x % 16 == 0 && out < d)
        cuda_row(a.y, r)[out] = sum;
}

void cuda_expert_mlp_plain(struct backend *be, const void *args)
{
    const struct op_expert_mlp *a = (const struct op_expert_mlp *)args;
    int64_t n_row = a->y->dim[0], k = a->idx->dim[1], f = a->gate->dim[1], d = a->y->dim[1];
    float *hidden = (float *)backend_scratch(be, (size_t)(n_row * k * f) * sizeof *hidden);
    struct experts e = {*a->y, *a->x, *a->idx, *a->weight, cuda_weight(be, a->gate),
        cuda_weight(be, a->up), cuda_weight(be, a->down), hidden, a->limit};
    if (!hidden)
        return;
    cuda_launch(be, "expert_mlp", hidden_kernel,
        {dim3((unsigned)(n_row * k), (unsigned)((f + GROUPS - 1) / GROUPS)), THREADS, 0}, e,
        cuda_fault_of(be));
    cuda_launch(be, "expert_mlp", down_kernel,
        {dim3((unsigned)n_row, (unsigned)((d + GROUPS - 1) / GROUPS)), THREADS, 0}, e,
        cuda_fault_of(be));
}
