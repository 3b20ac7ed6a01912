/* rope.cu: rotary positions: the reference's sequence of operations in double. v4 spec 3.2 */
#include "backend/cuda/cuda.cuh"

enum { THREADS = 128 };

static unsigned blocks_for(int64_t n)
{
    return (unsigned)((n + THREADS - 1) / THREADS);
}

/* sin and cos of |r| <= pi/4 by their Taylor series. */
static __device__ double sin_near_zero(double r)
{
    const double term[] = {-1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
        1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0};
    double z = r * r, p = term[0];
#pragma unroll
    for (int i = 1; i < 7; i++)
        p = fma(p, z, term[i]);
    return fma(p * z, r, r);
}

static __device__ double cos_near_zero(double r)
{
    const double term[] = {1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
        -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5};
    double z = r * r, p = term[0];
#pragma unroll
    for (int i = 1; i < 8; i++)
        p = fma(p, z, term[i]);
    return fma(p, z, 1.0);
}

static __global__ void angles_kernel(struct tensor cs, struct tensor pos, struct tensor freq)
{
    cuda_wait();
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, n_pair = cs.dim[1];
    if (at >= cs.dim[0] * n_pair)
        return;
    double angle =
        (double)cuda_ints(pos, 0)[at / n_pair] * (double)cuda_row(freq, 0)[at % n_pair];
    double n = floor(angle * 0x1.45f306dc9c883p-1 + 0.5); /* 2 / pi */
    double r = fma(-n, 0x1.921fb54442d18p+0, angle);      /* pi / 2 in two pieces */
    r = fma(-n, 0x1.1a62633145c07p-54, r);
    double s = sin_near_zero(r), c = cos_near_zero(r);
    int quarter = (int)((int64_t)n & 3);
    double swapped_c = quarter & 1 ? s : c, swapped_s = quarter & 1 ? c : s;
    float *to = cuda_row(cs, at);
    to[0] = (float)(quarter == 1 || quarter == 2 ? -swapped_c : swapped_c);
    to[1] = (float)(quarter >= 2 ? -swapped_s : swapped_s);
}

void cuda_rope_angles(struct backend *be, const void *args)
{
    const struct op_rope_angles *a = (const struct op_rope_angles *)args;
    cuda_launch(be, "rope_angles", angles_kernel, {dim3(blocks_for(a->cs->dim[0] * a->cs->dim[1])), THREADS, 0}, *a->cs, *a->pos, *a->freq);
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
    cuda_launch(be, "rope_tail", tail_kernel, {dim3(blocks_for(a->x->dim[0] * a->x->dim[1] * a->cs->dim[1])), THREADS, 0}, *a->x, *a->cs,
        a->is_inverse);
}
