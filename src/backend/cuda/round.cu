/* round.cu: the trained roundings as ops of their own; a warp takes one group of values. */
#include "backend/cuda/round.cuh"

enum { THREADS = 128, GROUPS = THREADS / 32 };

/* n_group groups in every row. */
template <typename R>
static __global__ void round_kernel(struct tensor x, int64_t n_row, int block, int64_t n_group)
{
    cuda_wait();
    int64_t at = (int64_t)blockIdx.x * GROUPS + threadIdx.x / 32;
    if (at < n_row * n_group)
        round_group<R>(cuda_row(x, at / n_group) + at % n_group * block, block);
}

template <typename R>
static void launch(
    struct backend *be, const char *name, const struct tensor *x, int block, int n_col)
{
    int64_t n_row = tensor_n_row(x), n_group = (n_col ? n_col : tensor_n_col(x)) / block;
    unsigned n_block = (unsigned)((n_row * n_group + GROUPS - 1) / GROUPS);
    cuda_launch(be, name, round_kernel<R>, {dim3(n_block), THREADS, 0}, *x, n_row, block, n_group);
}

void cuda_round_fp8(struct backend *be, const void *args)
{
    const struct op_round_fp8 *a = (const struct op_round_fp8 *)args;
    launch<fp8>(be, "round_fp8", a->x, a->block, a->n_col);
}

void cuda_round_fp4(struct backend *be, const void *args)
{
    const struct op_round_fp4 *a = (const struct op_round_fp4 *)args;
    launch<fp4>(be, "round_fp4", a->x, a->block, a->n_col);
}

void cuda_round_fp4_e4m3(struct backend *be, const void *args)
{
    const struct op_round_fp4_e4m3 *a = (const struct op_round_fp4_e4m3 *)args;
    launch<fp4_e4m3>(be, "round_fp4_e4m3", a->x, a->block, a->n_col);
}
