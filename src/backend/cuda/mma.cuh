/* mma.cuh: 16 x 8 x 16 matrix instructions. One kind for all row counts: an output's bits depend on
 * its own row and column only.
 *
 * Thread g * 4 + t of a warp (g < 8, t < 4) holds of A (16 x 16) rows g and g + 8, of B (16 x 8)
 * column g, of C (16 x 8) rows g and g + 8 and columns 2t, 2t + 1. Which columns of A a thread
 * holds is our choice, as long as B has the same: here 4t .. 4t + 3.
 */
#ifndef HADAL_BACKEND_CUDA_MMA_CUH
#define HADAL_BACKEND_CUDA_MMA_CUH

#include <stdint.h>

/* c += a b, halves in, floats out. a: {row g: 4t, 4t+1}, {row g + 8: the same}, {row g: 4t+2,
 * 4t+3}, {row g + 8: the same}; b: {4t, 4t+1}, {4t+2, 4t+3} */
static __device__ inline void mma_f16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ inline void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* 16 bytes from device to shared memory, both aligned to 16; done after copy_wait<0>. */
static __device__ inline void copy_16(void *shared, const void *global)
{
    uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global));
}
static __device__ inline void copy_close()
{
    asm volatile("cp.async.commit_group;");
}
/* Until all but the newest N closed groups are there. */
template <int N> static __device__ inline void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#endif
