/* cuda.cuh: what the CUDA kernels share: the device as an object, launching, refusing, tensors as
 * kernels see them.
 *
 * Kernels take struct tensor by value; its data and scale point into device memory. Weights are
 * there as their files hold them (row_bytes apart, scales beside), caches and activations as the
 * engine placed them.
 *
 * Exactness: the same conventions as op_list.h. Compiled without contraction (-fmad=false), so what
 * is written is what is computed. Ops other than those with matrix instructions return the
 * reference's bits; with matrix instructions a row's bits do not depend on the other rows: products
 * of one output are added in one order, whatever the row count.
 */
#ifndef HADAL_BACKEND_CUDA_CUDA_CUH
#define HADAL_BACKEND_CUDA_CUDA_CUH

extern "C" {
#include "backend/backend.h"
}

#include <cuda_runtime.h>

/* First index that a kernel refused, in memory that host and device see. */
struct cuda_fault {
    int what; /* enum cuda_refusal; 0: none */
    int value;
};
enum cuda_refusal {
    CUDA_NONE,
    CUDA_GATHER_ROW,
    CUDA_APPEND_SLOT,
    CUDA_APPEND_POSITION,
    CUDA_TABLE_POSITION,
    CUDA_POOL_ROW,
    CUDA_SCORE_SLOT,
    CUDA_SCORE_VISIBLE,
    CUDA_TOPK_VISIBLE,
    CUDA_ATTEND_SLOT,
    CUDA_ATTEND_ROW,
    CUDA_ROUTER_TOKEN,
    CUDA_EXPERT
};

struct cuda_backend {
    struct backend base;
    int device, n_multiprocessor;
    unsigned overlaps_launches; /* 1 where cuda_wait waits */
    char name[256];
    size_t max_shared; /* bytes of shared memory a block may ask for */
    cudaStream_t stream;
    struct cuda_fault *fault; /* as the device sees it */
    struct cuda_fault *host_fault;
    struct cuda_graphs *graphs;
    struct cuda_staging *staging;
    struct cuda_weight *weights; /* memory of weights, newest first */
    struct backend_buffer grid2; /* codebook of IQ2_XXS: 256 rows of 8 bytes */
};

static inline struct cuda_backend *cuda_of(struct backend *be)
{
    return (struct cuda_backend *)be;
}
static inline struct cuda_fault *cuda_fault_of(struct backend *be)
{
    return cuda_of(be)->fault;
}

/* Records the failure of a call to the runtime; what: "launching matmul". */
void cuda_failed(struct backend *be, const char *what, cudaError_t error);
/* Before a launch: notes it and allows `shared` bytes of dynamic shared memory. */
int cuda_prepare(struct backend *be, const char *what, const void *kernel, size_t shared);

/* Blocks, threads of a block, bytes of its dynamic shared memory. */
struct cuda_shape {
    dim3 grid, block;
    size_t shared;
};

/* cuda_launch(be, "append", append_kernel, {blocks, threads, shared bytes}, arguments...) */
template <typename... P, typename... A>
static void cuda_launch(
    struct backend *be, const char *what, void (*kernel)(P...), struct cuda_shape s, A... args)
{
    if (!s.grid.x || !s.grid.y || !s.grid.z ||
        cuda_prepare(be, what, (const void *)kernel, s.shared))
        return;
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1; /* cuda_wait */
    cudaLaunchConfig_t config = {};
    config.gridDim = s.grid;
    config.blockDim = s.block;
    config.dynamicSmemBytes = s.shared;
    config.stream = cuda_of(be)->stream;
    config.attrs = &overlap;
    config.numAttrs = cuda_of(be)->overlaps_launches;
    cudaError_t error = cudaLaunchKernelEx(&config, kernel, P(args)...);
    if (error != cudaSuccess)
        cuda_failed(be, what, error);
}

/* ---- In kernels ---- */

/* The first line of every kernel, but for reading weights: until the kernel launched before is done
 * and its results are there. The next one may be brought up from here on, so that its launch costs
 * no time of its own. */
static __device__ inline void cuda_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* 0 when value lies in [0, limit); else the fault is recorded and the caller leaves the row alone.
 */
static __device__ inline int cuda_refuse(
    struct cuda_fault *fault, enum cuda_refusal what, int64_t value, int64_t limit)
{
    if (value >= 0 && value < limit)
        return 0;
    if (!atomicCAS(&fault->what, 0, (int)what))
        fault->value = (int)value;
    return -1;
}

/* Flat row r (over all dimensions but the last). */
static __device__ inline float *cuda_row(const struct tensor &t, int64_t r)
{
    return (float *)((char *)t.data + r * t.row_bytes);
}
static __device__ inline int32_t *cuda_ints(const struct tensor &t, int64_t r)
{
    return (int32_t *)((char *)t.data + r * t.row_bytes);
}

/* The 16 lanes of a sum as 16 neighbouring threads, each with its lane's sum: all get the total in
 * the order of op_list.h. */
static __device__ inline float cuda_fold(float lane)
{
    for (int half = 8; half; half /= 2) {
        float other = __shfl_down_sync(0xffffffffu, lane, half, 16);
        lane += other;
    }
    return __shfl_sync(0xffffffffu, lane, 0, 16);
}

/* ---- Ops, by file ---- */

#define CUDA_DECLARE(op) void cuda_##op(struct backend *be, const void *args);
OP_LIST_BASE(CUDA_DECLARE)
OP_LIST_FUSED(CUDA_DECLARE)

#endif
