/* matmul.cu: matmul and matmul_grouped. Formats and sizes that matrix instructions do not cover go
 * to matmul_plain.cu. */
#include "backend/cuda/device.cuh"
#include "backend/cuda/matmul.cuh"
#include "backend/cuda/matmul_few.cuh"

extern "C" {
#include "ops/fused.h"
#include "tensor/decode.h"
}

int cuda_has_slices(const struct tensor *w)
{
    int is_known = 0;
#define CUDA_IS_KNOWN(T) is_known |= w->type == T;
    CUDA_FORMATS(CUDA_IS_KNOWN)
    int64_t n_in = tensor_n_col(w);
    int is_even = w->row_bytes % 2 == 0 || w->type == DT_MXFP4;
    return is_known && is_even && n_in % 32 == 0 && w->dim[w->n_dim - 2] % FEW_OUT == 0;
}

int cuda_codebooks_open(struct cuda_backend *c, struct err *e)
{
    uint8_t grid[256][8];
    for (int i = 0; i < 256 * 8; i++)
        grid[i / 8][i % 8] = (uint8_t)iquants_grid2[i / 8][i % 8];
    return cuda_buffer_wrap(&c->base, &c->grid2, grid, sizeof grid, e);
}

/* ---- Few rows ---- */

struct few_job {
    enum dtype type;
    weight_rows w;
    struct tensor x, y;
    int64_t out_per_group;
    int n, n_slice;
    const uint32_t *grid;
};

/* 16 outputs from `out` on. */
template <enum dtype T> static __device__ inline void few_block(const few_job &j, int64_t out)
{
    few_memory m = few_carve<T>(j.n_slice, 2, j.n);
    few_rows r;
    r.w = j.w;
    r.row = out;
    r.x = cuda_row(j.x, 0) + out / j.out_per_group * j.w.n_in;
    r.x_stride = j.x.row_bytes / (int64_t)sizeof(float);
    r.n = j.n;
    few_stage<T>(m.stage, r, threadIdx.x / 32);
    grid_load<T>(m.grid, j.grid);
    if (format<T>::HAS_GRID)
        __syncthreads();
    few_slices<T>(m, r, j.n_slice);
    __syncthreads();
    for (int i = threadIdx.x; i < FEW_OUT * j.n; i += blockDim.x)
        cuda_row(j.y, i / FEW_OUT)[out + i % FEW_OUT] =
            few_total(m.partial, j.n_slice, j.n, i % FEW_OUT * j.n + i / FEW_OUT);
}

template <enum dtype T>
static __global__ void __launch_bounds__(32 * FEW_WARPS) few_kernel(const few_job j)
{
    cuda_wait();
    few_block<T>(j, (int64_t)blockIdx.x * FEW_OUT);
}

/* Several products of the same rows. */
struct each_job {
    few_job job[MATMUL_EACH_MAX];
    int first[MATMUL_EACH_MAX + 1]; /* block of each, and how many blocks there are */
};

static __global__ void __launch_bounds__(32 * FEW_WARPS) each_kernel(const each_job e)
{
    cuda_wait();
    int i = 0;
    while ((int)blockIdx.x >= e.first[i + 1])
        i++;
    int64_t out = (int64_t)((int)blockIdx.x - e.first[i]) * FEW_OUT;
    switch (e.job[i].type) {
#define CUDA_EACH_BLOCK(T)                                                                         \
    case T:                                                                                        \
        few_block<T>(e.job[i], out);                                                               \
        break;
        CUDA_FORMATS(CUDA_EACH_BLOCK)
    default:
        break;
    }
}

template <enum dtype T> static void run_few(struct backend *be, const few_job &j)
{
    int n_warp = j.n_slice < FEW_WARPS ? j.n_slice : FEW_WARPS;
    cuda_launch(be, "matmul", few_kernel<T>,
        {dim3((unsigned)(j.w.n_out / FEW_OUT)), dim3(32 * n_warp),
            few_sizes<T>::all(j.n_slice, n_warp, 2, j.n)},
        j);
}

/* ---- Many rows ---- */

int cuda_split_new(struct backend *be, split_rows *s, int64_t n_row, int64_t n_in)
{
    s->n_slice = cuda_slices(n_in);
    size_t n = (size_t)n_row * (size_t)s->n_slice;
    s->hi = (half *)backend_scratch(be, n * SLICE * sizeof *s->hi);
    s->lo = (half *)backend_scratch(be, n * SLICE * sizeof *s->lo);
    s->scale = (float *)backend_scratch(be, n * sizeof *s->scale);
    s->sum = (half *)backend_scratch(be, n * 32 * sizeof *s->sum);
    return s->hi && s->lo && s->scale && s->sum;
}

/* Row r of the split rows is part r % n_group of row r / n_group of x. One warp per slice. */
static __global__ void split_kernel(const struct tensor x, split_rows to, int64_t n_in, int n_group)
{
    cuda_wait();
    int lane = threadIdx.x, slice = blockIdx.y * blockDim.y + threadIdx.y;
    int64_t row = blockIdx.x;
    if (slice >= to.n_slice)
        return;
    float v[8];
    load_values(cuda_row(x, row / n_group) + row % n_group * n_in, (int64_t)slice * SLICE, n_in, v);
    split_write(to, row * to.n_slice + slice, split_slice(v), lane);
}

void cuda_split_many(
    struct backend *be, const split_rows &to, const struct tensor *x, int64_t n_in, int n_group)
{
    enum { WARPS = 8 };
    dim3 grid((unsigned)(x->dim[0] * n_group), (unsigned)((to.n_slice + WARPS - 1) / WARPS));
    cuda_launch(be, "matmul", split_kernel, {grid, dim3(32, WARPS), 0}, *x, to, n_in, n_group);
}

template <enum dtype T> static void run_many(struct backend *be, const many_job &j, int64_t n_y)
{
    dim3 grid((unsigned)((j.w.n_out + MANY_OUT - 1) / MANY_OUT), (unsigned)n_y);
    cuda_launch(be, "matmul", many_kernel<T>, {grid, dim3(MANY_THREADS), many_shared<T>()}, j);
}

void cuda_run_many(struct backend *be, const many_job &j, int64_t n_y)
{
    switch (j.type) {
#define CUDA_RUN_MANY(T)                                                                           \
    case T:                                                                                        \
        run_many<T>(be, j, n_y);                                                                   \
        break;
        CUDA_FORMATS(CUDA_RUN_MANY)
    default:
        break;
    }
}

/* ---- Ops ---- */

static void run_few_rows(struct backend *be, const few_job &j)
{
    switch (j.type) {
#define CUDA_RUN_FEW(T)                                                                            \
    case T:                                                                                        \
        run_few<T>(be, j);                                                                         \
        break;
        CUDA_FORMATS(CUDA_RUN_FEW)
    default:
        break;
    }
}

static few_job few_job_of(struct backend *be, const struct tensor *y, const struct tensor *x,
    const struct tensor *w, int n_group)
{
    return few_job{w->type, weight_rows_of(w), *x, *y, w->dim[0] / n_group, (int)x->dim[0],
        cuda_slices(w->dim[1]), (const uint32_t *)cuda_of(be)->grid2.data};
}

/* y = w x of rows that are split already. */
static void run_split(struct backend *be, const struct tensor *y, const struct tensor *w,
    const split_rows &x, int n_group)
{
    many_job j = {};
    j.type = w->type;
    j.w = weight_rows_of(w);
    j.x = x;
    j.n_row = y->dim[0];
    j.out_per_group = w->dim[0] / n_group;
    j.n_group = n_group;
    j.y = (float *)y->data;
    j.y_stride = y->row_bytes / (int64_t)sizeof(float);
    j.grid = (const uint32_t *)cuda_of(be)->grid2.data;
    cuda_run_many(be, j, (j.n_row + MANY_ROWS - 1) / MANY_ROWS);
}

/* For any number of rows alike, as the plain products add in another order. */
static int is_covered(const struct tensor *w, int n_group)
{
    int least = n_group == 1 ? (int)FEW_OUT : (int)MANY_OUT; /* no block crosses groups */
    return cuda_has_slices(w) && w->dim[0] / n_group % least == 0;
}

static void multiply(struct backend *be, const struct tensor *y, const struct tensor *x,
    const struct tensor *w, int n_group)
{
    int64_t n = x->dim[0];
    split_rows split;
    if (!is_covered(w, n_group)) {
        cuda_matmul_plain(be, y, x, w, n_group);
    } else if (n <= CUDA_FEW_ROWS) {
        run_few_rows(be, few_job_of(be, y, x, w, n_group));
    } else if (cuda_split_new(be, &split, n * n_group, w->dim[1])) {
        cuda_split_many(be, split, x, w->dim[1], n_group);
        run_split(be, y, w, split, n_group);
    }
}

void cuda_matmul(struct backend *be, const void *args)
{
    const struct op_matmul *a = (const struct op_matmul *)args;
    multiply(be, a->y, a->x, a->w, 1);
}

void cuda_matmul_grouped(struct backend *be, const void *args)
{
    const struct op_matmul_grouped *a = (const struct op_matmul_grouped *)args;
    multiply(be, a->y, a->x, a->w, a->n_group);
}

/* ---- Several products of the same rows ---- */

static void run_each(struct backend *be, const struct op_matmul_each *a, int n,
    const struct tensor *const *y, const struct tensor *const *w)
{
    each_job e = {};
    int n_slice = cuda_slices(a->x->dim[1]), n_warp = n_slice < FEW_WARPS ? n_slice : FEW_WARPS;
    size_t shared = 0;
    for (int i = 0; i < MATMUL_EACH_MAX; i++)
        e.first[i + 1] = e.first[i] + (i < n ? (int)(w[i]->dim[0] / FEW_OUT) : 0);
    for (int i = 0; i < n; i++) {
        e.job[i] = few_job_of(be, y[i], a->x, w[i], 1);
        size_t need = 0;
        switch (w[i]->type) {
#define CUDA_NEED(T)                                                                               \
    case T:                                                                                        \
        need = few_sizes<T>::all(n_slice, n_warp, 2, e.job[i].n);                                  \
        break;
            CUDA_FORMATS(CUDA_NEED)
        default:
            break;
        }
        shared = need > shared ? need : shared;
    }
    cuda_launch(be, "matmul_each", each_kernel,
        {dim3((unsigned)e.first[MATMUL_EACH_MAX]), dim3(32 * n_warp), shared}, e);
}

void cuda_matmul_each(struct backend *be, const void *args)
{
    const struct op_matmul_each *a = (const struct op_matmul_each *)args;
    const struct tensor *y[MATMUL_EACH_MAX], *w[MATMUL_EACH_MAX];
    const struct tensor *plain_y[MATMUL_EACH_MAX], *plain_w[MATMUL_EACH_MAX];
    int n = matmul_each_list(a, plain_y, plain_w), n_covered = 0;
    int64_t n_row = a->x->dim[0];
    for (int i = 0; i < n; i++) {
        if (!is_covered(plain_w[i], 1)) {
            cuda_matmul_plain(be, plain_y[i], a->x, plain_w[i], 1);
            continue;
        }
        y[n_covered] = plain_y[i];
        w[n_covered++] = plain_w[i];
    }
    split_rows split;
    if (n_covered && n_row <= CUDA_FEW_ROWS) {
        run_each(be, a, n_covered, y, w);
    } else if (n_covered && cuda_split_new(be, &split, n_row, a->x->dim[1])) {
        cuda_split_many(be, split, a->x, a->x->dim[1], 1);
        for (int i = 0; i < n_covered; i++)
            run_split(be, y[i], w[i], split, 1);
    }
}
