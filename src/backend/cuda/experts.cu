/* experts.cu: expert_mlp. Up to eight rows: a block per pair (row, choice) and 16 outputs, gate and
 * up at once; then a block per row and 16 outputs over all its choices. More rows: pairs are sorted
 * by expert on the device, products run tile by tile, and a row's results are added in the order of
 * its choices.
 */
#include "backend/cuda/matmul.cuh"
#include "backend/cuda/matmul_few.cuh"

extern "C" {
#include "base/fmath.h"
#include "ops/fused.h"
}

/* Expert of pair i; an impossible one is refused and read as 0. */
static __device__ inline int expert_of(
    const struct tensor &idx, int64_t i, int64_t n_expert, struct cuda_fault *fault)
{
    int64_t k = idx.dim[1];
    if (!idx.data)
        return 0; /* there is one */
    int e = cuda_ints(idx, i / k)[i % k];
    return cuda_refuse(fault, CUDA_EXPERT, e, n_expert) ? 0 : e;
}

/* ---- Few rows ---- */

struct few_experts {
    weight_rows gate, up, down;
    struct tensor x, idx, weight, y;
    int64_t n_expert;
    float *inner; /* [pair][f] */
    float limit;
    int n_slice; /* of the matrix at hand */
    const uint32_t *grid;
    struct cuda_fault *fault;
};

template <enum dtype T>
static __global__ void __launch_bounds__(32 * FEW_WARPS) inner_kernel(const few_experts j)
{
    cuda_wait();
    enum { N_STAGE = 2 };
    few_memory m = few_carve<T>(2 * j.n_slice, N_STAGE, 1);
    int64_t k = j.idx.dim[1], pair = blockIdx.y, out = (int64_t)blockIdx.x * FEW_OUT;
    int64_t expert = expert_of(j.idx, pair, j.n_expert, j.fault);
    grid_load<T>(m.grid, j.grid);
    if (format<T>::HAS_GRID)
        __syncthreads();
    int64_t row = expert * j.gate.n_out + out;
    few_rows gate = {j.gate, row, cuda_row(j.x, pair / k), 0, 1};
    few_rows up = {j.up, row, gate.x, 0, 1};
    float *up_partial = m.partial + j.n_slice * FEW_OUT;
    for (int s = threadIdx.x / 32; s < j.n_slice; s += blockDim.x / 32) {
        few_stage<T>(few_buffer<T>(m, 0), gate, s);
        few_stage<T>(few_buffer<T>(m, 1), up, s);
        few_split(m.x, gate, s);
        copy_wait<0>();
        __syncwarp();
        int at = s * FEW_OUT;
        few_product<T>(m.partial + at, gate, few_buffer<T>(m, 0), m.x, s, m.grid);
        few_product<T>(up_partial + at, up, few_buffer<T>(m, 1), m.x, s, m.grid);
        __syncwarp();
    }
    __syncthreads();
    if (threadIdx.x >= FEW_OUT)
        return;
    float weight = j.weight.data ? cuda_row(j.weight, pair / k)[pair % k] : 1;
    j.inner[pair * j.gate.n_out + out + threadIdx.x] =
        weight * fmath_swiglu(few_total(m.partial, j.n_slice, 1, threadIdx.x),
                     few_total(up_partial, j.n_slice, 1, threadIdx.x), j.limit);
}

/* Item i of a row: slice i % n_slice of its choice i / n_slice. */
static __device__ inline few_rows down_rows(const few_experts &j, int64_t choice, int64_t out)
{
    int64_t k = j.idx.dim[1], pair = (int64_t)blockIdx.y * k + choice;
    int64_t expert = expert_of(j.idx, pair, j.n_expert, j.fault);
    return (few_rows){j.down, expert * j.down.n_out + out, j.inner + pair * j.down.n_in, 0, 1};
}

template <enum dtype T>
static __global__ void __launch_bounds__(32 * FEW_WARPS) down_kernel(const few_experts j)
{
    cuda_wait();
    int n_choice = (int)j.idx.dim[1], n_item = n_choice * j.n_slice, n_warp = blockDim.x / 32;
    few_memory m = few_carve<T>(n_item, 2, 1);
    int64_t out = (int64_t)blockIdx.x * FEW_OUT;
    int item = threadIdx.x / 32, buffer = 0;
    few_rows now = down_rows(j, item / j.n_slice, out);
    few_stage<T>(few_buffer<T>(m, 0), now, item % j.n_slice);
    grid_load<T>(m.grid, j.grid);
    if (format<T>::HAS_GRID)
        __syncthreads();
    for (; item < n_item; item += n_warp, buffer ^= 1) {
        int next = item + n_warp;
        few_rows then = next < n_item ? down_rows(j, next / j.n_slice, out) : now;
        few_split(m.x, now, item % j.n_slice);
        if (next < n_item)
            few_stage<T>(few_buffer<T>(m, buffer ^ 1), then, next % j.n_slice);
        else
            copy_close();
        copy_wait<1>();
        __syncwarp();
        few_product<T>(m.partial + item * FEW_OUT, now, few_buffer<T>(m, buffer), m.x,
            item % j.n_slice, m.grid);
        __syncwarp();
        now = then;
    }
    __syncthreads();
    if (threadIdx.x >= FEW_OUT)
        return;
    float sum = 0;
    for (int c = 0; c < n_choice; c++)
        sum += few_total(m.partial + c * j.n_slice * FEW_OUT, j.n_slice, 1, threadIdx.x);
    cuda_row(j.y, blockIdx.y)[out + threadIdx.x] = sum;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

template <enum dtype T>
static void run_inner(struct backend *be, const few_experts &j, int64_t n_pair)
{
    int n_warp = least(j.n_slice, FEW_WARPS);
    dim3 grid((unsigned)(j.gate.n_out / FEW_OUT), (unsigned)n_pair);
    cuda_launch(be, "expert_mlp", inner_kernel<T>,
        {grid, dim3(32 * n_warp), few_sizes<T>::all(2 * j.n_slice, n_warp, 2, 1)}, j);
}

template <enum dtype T>
static void run_down(struct backend *be, const few_experts &j, int64_t n_row)
{
    int n_item = j.n_slice * (int)j.idx.dim[1], n_warp = least(n_item, FEW_WARPS);
    dim3 grid((unsigned)(j.down.n_out / FEW_OUT), (unsigned)n_row);
    cuda_launch(be, "expert_mlp", down_kernel<T>,
        {grid, dim3(32 * n_warp), few_sizes<T>::all(n_item, n_warp, 2, 1)}, j);
}

#define CUDA_BY_FORMAT(T)                                                                          \
    case T:                                                                                        \
        CUDA_RUN(T);                                                                               \
        break;

static void run_inner_of(struct backend *be, enum dtype type, few_experts j, int64_t n_pair)
{
    j.n_slice = cuda_slices(j.gate.n_in);
#define CUDA_RUN(T) run_inner<T>(be, j, n_pair)
    switch (type) {
        CUDA_FORMATS(CUDA_BY_FORMAT)
    default:
        break;
    }
#undef CUDA_RUN
}

static void run_few(struct backend *be, const struct op_expert_mlp *a)
{
    int64_t n = a->x->dim[0], n_pair = n * a->idx->dim[1], f = a->gate->dim[1];
    few_experts j = {weight_rows_of(a->gate), weight_rows_of(a->up), weight_rows_of(a->down), *a->x,
        *a->idx, *a->weight, *a->y, a->gate->dim[0]};
    j.inner = (float *)backend_scratch(be, (size_t)(n_pair * f) * sizeof *j.inner);
    j.limit = a->limit;
    j.grid = (const uint32_t *)cuda_of(be)->grid2.data;
    j.fault = cuda_fault_of(be);
    if (!j.inner)
        return;
    run_inner_of(be, a->gate->type, j, n_pair);
    j.n_slice = cuda_slices(f);
#define CUDA_RUN(T) run_down<T>(be, j, n)
    switch (a->down->type) {
        CUDA_FORMATS(CUDA_BY_FORMAT)
    default:
        break;
    }
#undef CUDA_RUN
}

/* ---- Many rows ---- */

/* Pairs sorted by expert, and the tiles of them. */
struct pair_list {
    int32_t *pair, *n_tile;
    expert_tile *tile;
};

/* One block: counts, first places, tiles, then every pair to its place. Places within an expert are
 * in no order; results are kept by pair, so it does not matter. */
static __global__ void sort_kernel(
    const struct tensor idx, pair_list list, int n_expert, struct cuda_fault *fault)
{
    cuda_wait();
    extern __shared__ int32_t count[]; /* [n_expert] pairs, then [n_expert] next places */
    int32_t *next = count + n_expert;
    int64_t n_pair = idx.dim[0] * idx.dim[1];
    for (int e = threadIdx.x; e < n_expert; e += blockDim.x)
        count[e] = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n_pair; i += blockDim.x)
        atomicAdd(&count[expert_of(idx, i, n_expert, fault)], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        int place = 0, n_tile = 0;
        for (int e = 0; e < n_expert; e++) {
            next[e] = place;
            for (int i = 0; i < count[e]; i += MANY_ROWS)
                list.tile[n_tile++] =
                    (expert_tile){e, place + i, min(count[e] - i, (int)MANY_ROWS)};
            place += count[e];
        }
        *list.n_tile = n_tile;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n_pair; i += blockDim.x)
        list.pair[atomicAdd(&next[expert_of(idx, i, n_expert, fault)], 1)] = (int32_t)i;
}

/* The inner values of every pair, split. One warp per slice. */
static __global__ void inner_split_kernel(const float *gate, const float *up, split_rows to,
    const struct tensor weight, int64_t f, float limit)
{
    cuda_wait();
    int lane = threadIdx.x, slice = blockIdx.y * blockDim.y + threadIdx.y;
    int64_t pair = blockIdx.x, k = weight.dim[1];
    if (slice >= to.n_slice)
        return;
    float g[8], u[8], w = cuda_row(weight, pair / k)[pair % k];
    load_values(gate + pair * f, (int64_t)slice * SLICE, f, g);
    load_values(up + pair * f, (int64_t)slice * SLICE, f, u);
    for (int i = 0; i < 8; i++)
        g[i] = w * fmath_swiglu(g[i], u[i], limit);
    split_write(to, pair * to.n_slice + slice, split_slice(g), lane);
}

static __global__ void combine_kernel(const struct tensor y, const float *out, int n_choice)
{
    cuda_wait();
    int64_t d = y.dim[1], i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (i >= d)
        return;
    float sum = 0;
    for (int c = 0; c < n_choice; c++)
        sum += out[(row * n_choice + c) * d + i];
    cuda_row(y, row)[i] = sum;
}

static int list_new(struct backend *be, pair_list *list, int64_t n_pair, int64_t n_expert)
{
    list->pair = (int32_t *)backend_scratch(be, (size_t)n_pair * sizeof(int32_t));
    list->n_tile = (int32_t *)backend_scratch(be, sizeof(int32_t));
    list->tile = (expert_tile *)backend_scratch(
        be, (size_t)(n_pair / MANY_ROWS + n_expert) * sizeof(expert_tile));
    return list->pair && list->n_tile && list->tile;
}

static many_job job_of(struct backend *be, const struct tensor *w, const pair_list &list, float *y)
{
    many_job j = {};
    j.type = w->type;
    j.w = weight_rows_of(w);
    j.out_per_group = j.w.n_out;
    j.n_group = 1;
    j.tile = list.tile;
    j.n_tile = list.n_tile;
    j.pair = list.pair;
    j.y = y;
    j.y_stride = j.w.n_out;
    j.grid = (const uint32_t *)cuda_of(be)->grid2.data;
    return j;
}

static void run_many(struct backend *be, const struct op_expert_mlp *a)
{
    enum { THREADS = 1024, WARPS = 8, COLS = 256 };
    int64_t n = a->x->dim[0], k = a->idx->dim[1], n_pair = n * k, n_expert = a->gate->dim[0];
    int64_t d = a->x->dim[1], f = a->gate->dim[1], n_y = n_pair / MANY_ROWS + n_expert;
    pair_list list;
    split_rows x, inner;
    float *gate = (float *)backend_scratch(be, (size_t)(n_pair * f) * sizeof *gate);
    float *up = (float *)backend_scratch(be, (size_t)(n_pair * f) * sizeof *up);
    float *out = (float *)backend_scratch(be, (size_t)(n_pair * d) * sizeof *out);
    if (!gate || !up || !out || !list_new(be, &list, n_pair, n_expert) ||
        !cuda_split_new(be, &x, n, d) || !cuda_split_new(be, &inner, n_pair, f))
        return;
    cuda_launch(be, "expert_mlp", sort_kernel,
        {dim3(1), dim3(THREADS), (size_t)n_expert * 2 * sizeof(int32_t)}, *a->idx, list,
        (int)n_expert, cuda_fault_of(be));
    cuda_split_many(be, x, a->x, d, 1);
    many_job j = job_of(be, a->gate, list, gate);
    j.x = x;
    j.pairs_per_x = (int)k;
    cuda_run_many(be, j, n_y);
    j.w = weight_rows_of(a->up);
    j.y = up;
    cuda_run_many(be, j, n_y);
    dim3 grid((unsigned)n_pair, (unsigned)((inner.n_slice + WARPS - 1) / WARPS));
    cuda_launch(be, "expert_mlp", inner_split_kernel, {grid, dim3(32, WARPS), 0}, gate, up, inner,
        *a->weight, f, a->limit);
    j = job_of(be, a->down, list, out);
    j.x = inner;
    j.pairs_per_x = 1;
    cuda_run_many(be, j, n_y);
    cuda_launch(be, "expert_mlp", combine_kernel,
        {dim3((unsigned)((d + COLS - 1) / COLS), (unsigned)n), dim3(COLS), 0}, *a->y, out, (int)k);
}

void cuda_expert_mlp(struct backend *be, const void *args)
{
    const struct op_expert_mlp *a = (const struct op_expert_mlp *)args;
    if (a->gate->type != a->up->type || !cuda_has_slices(a->gate) || !cuda_has_slices(a->up) ||
        !cuda_has_slices(a->down))
        cuda_expert_mlp_plain(be, args);
    else if (a->x->dim[0] <= CUDA_FEW_ROWS)
        run_few(be, a);
    else
        run_many(be, a);
}

void cuda_gated_mlp(struct backend *be, const void *args)
{
    const struct op_gated_mlp *a = (const struct op_gated_mlp *)args;
    int64_t n = a->x->dim[0], f = a->gate->dim[0];
    if (!n || n > CUDA_FEW_ROWS || a->gate->type != a->up->type || !cuda_has_slices(a->gate) ||
        !cuda_has_slices(a->up)) {
        fused_gated_mlp(be, args);
        return;
    }
    few_experts j = {};
    j.gate = weight_rows_of(a->gate);
    j.up = weight_rows_of(a->up);
    j.x = *a->x;
    j.idx.dim[1] = 1;
    j.n_expert = 1;
    j.limit = a->limit;
    j.grid = (const uint32_t *)cuda_of(be)->grid2.data;
    j.inner = (float *)backend_scratch(be, (size_t)(n * f) * sizeof *j.inner);
    if (!j.inner)
        return;
    run_inner_of(be, a->gate->type, j, n);
    struct tensor inner = tensor_of(DT_F32, j.inner, n, f, 0, 0);
    op_matmul down = {};
    down.y = a->y;
    down.x = &inner;
    down.w = a->down;
    cuda_matmul(be, &down);
}
