/* round.cu: the roundings the models were trained with; a warp takes one group of values. v4 spec
 * 4.6, v41 spec 3.3 */
#include "backend/cuda/cuda.cuh"

#include "tensor/round.h"

enum { THREADS = 128, GROUPS = THREADS / 32 };

struct fp8 {
    static __device__ float scale(float largest)
    {
        return pow2_ceil((largest > 1e-4f ? largest : 1e-4f) / 448.0f);
    }
    static __device__ float nearest(float x)
    {
        return e4m3_to_float(float_to_e4m3(x));
    }
};

static __device__ float nearest_e2m1(float x)
{
    float bounded = x > 6.0f ? 6.0f : x < -6.0f ? -6.0f : x;
    return e2m1_to_float(float_to_e2m1(bounded));
}

struct fp4 {
    static __device__ float scale(float largest)
    {
        const float least = 6 * 0x1p-126f;
        return pow2_ceil((largest > least ? largest : least) / 6.0f);
    }
    static __device__ float nearest(float x)
    {
        return nearest_e2m1(x);
    }
};

struct fp4_e4m3 {
    static __device__ float scale(float largest)
    {
        const float least = 6 * 0x1p-9f;
        return e4m3_to_float(float_to_e4m3((largest > least ? largest : least) / 6.0f));
    }
    static __device__ float nearest(float x)
    {
        return nearest_e2m1(x);
    }
};

/* n_group groups in every row. */
template <typename R>
static __global__ void round_kernel(struct tensor x, int64_t n_row, int block, int64_t n_group)
{
    cuda_wait();
    int64_t at = (int64_t)blockIdx.x * GROUPS + threadIdx.x / 32;
    int lane = (int)threadIdx.x % 32;
    if (at >= n_row * n_group)
        return;
    float *value = cuda_row(x, at / n_group) + at % n_group * block, largest = 0;
    for (int i = lane; i < block; i += 32)
        largest = fabsf(value[i]) > largest ? fabsf(value[i]) : largest;
    for (int half = 16; half; half /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, half));
    float scale = R::scale(largest);
    for (int i = lane; i < block; i += 32)
        value[i] = R::nearest(value[i] / scale) * scale;
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
