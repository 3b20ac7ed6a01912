/* rope.cu: rotary positions. v4 spec 3.2 */
#include "backend/cuda/cuda.cuh"
#include "base/angle.h"

enum { THREADS = 128 };

static unsigned blocks_for(int64_t n)
{
    return (unsigned)((n + THREADS - 1) / THREADS);
}

static __global__ void angles_kernel(struct tensor cs, struct tensor pos, struct tensor freq)
{
    cuda_wait();
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, n_pair = cs.dim[1];
    if (at >= cs.dim[0] * n_pair)
        return;
    double angle = (double)cuda_ints(pos, 0)[at / n_pair] * (double)cuda_row(freq, 0)[at % n_pair];
    float *to = cuda_row(cs, at);
    angle_cos_sin(angle, &to[0], &to[1]);
}

void cuda_rope_angles(struct backend *be, const void *args)
{
    const struct op_rope_angles *a = (const struct op_rope_angles *)args;
    cuda_launch(be, "rope_angles", angles_kernel,
        {dim3(blocks_for(a->cs->dim[0] * a->cs->dim[1])), THREADS, 0}, *a->cs, *a->pos, *a->freq);
}

/* One thread per pair of a head. */
static __global__ void tail_kernel(struct tensor x, struct tensor cs, int is_inverse)
{
    cuda_wait();
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, n_pair = cs.dim[1];
    int64_t row = at / n_pair, i = at % n_pair;
    if (row >= x.dim[0] * x.dim[1])
        return;
    const float *angle = cuda_row(cs, row / x.dim[1] * n_pair + i);
    float *pair = cuda_row(x, row) + x.dim[2] - 2 * n_pair + 2 * i;
    float c = angle[0], s = is_inverse ? -angle[1] : angle[1];
    float even = pair[0], odd = pair[1];
    pair[0] = fmaf(even, c, -(odd * s));
    pair[1] = fmaf(even, s, odd * c);
}

void cuda_rope_tail(struct backend *be, const void *args)
{
    const struct op_rope_tail *a = (const struct op_rope_tail *)args;
    cuda_launch(be, "rope_tail", tail_kernel,
        {dim3(blocks_for(a->x->dim[0] * a->x->dim[1] * a->cs->dim[1])), THREADS, 0}, *a->x, *a->cs,
        a->is_inverse);
}
