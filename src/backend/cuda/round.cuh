/* round.cuh: the roundings the models were trained with, of a group of values by a warp. v4 spec
 * 4.6, v41 spec 3.3 */
#ifndef HADAL_BACKEND_CUDA_ROUND_CUH
#define HADAL_BACKEND_CUDA_ROUND_CUH

#include "backend/cuda/cuda.cuh"

#include "tensor/round.h"

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

static __device__ inline float nearest_e2m1(float x)
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

/* The `block` values of one group, by all lanes of a warp. */
template <typename R> static __device__ inline void round_group(float *value, int block)
{
    float largest = 0;
    int lane = (int)threadIdx.x % 32;
    for (int i = lane; i < block; i += 32)
        largest = fabsf(value[i]) > largest ? fabsf(value[i]) : largest;
    for (int half = 16; half; half /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, half));
    float scale = R::scale(largest);
    for (int i = lane; i < block; i += 32)
        value[i] = R::nearest(value[i] / scale) * scale;
}

#endif
