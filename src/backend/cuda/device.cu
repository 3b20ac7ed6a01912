/* device.cu: a GPU as a backend: opening, memory, copies, errors. See backend.h and cuda.cuh. */
#include "backend/cuda/device.cuh"

#include <stdio.h>

extern "C" {
#include "base/arena.h"
}

enum { LEAST_MAJOR = 8 };

static const char *const refusals[] = {[CUDA_NONE] = "",
    "gather: row",
    "append: slot",
    "append: position",
    "add_by_pos: position",
    "pool: row",
    "index_score: slot",
    "index_score: visible rows",
    "topk: visible rows",
    "attend: slot",
    "attend: row",
    "router_by_token: token",
    "expert_mlp: expert"};

/* ---- Errors ---- */

int cuda_report(struct err *e, const char *what, cudaError_t error)
{
    enum err_code code = error == cudaErrorMemoryAllocation ? ERR_MEMORY : ERR_UNSUPPORTED;
    cudaGetLastError();
    return err_set(
        e, code, "CUDA: %s: %s; --backend cpu runs without a GPU", what, cudaGetErrorString(error));
}

void cuda_failed(struct backend *be, const char *what, cudaError_t error)
{
    struct err e = {};
    char text[160];
    snprintf(text, sizeof text, "launching %s", what);
    cuda_report(&e, text, error);
    backend_fail(be, e.code, "%s", e.text);
}

int cuda_prepare(struct backend *be, const char *what, const void *kernel, size_t shared)
{
    struct cuda_backend *c = cuda_of(be);
    enum { ALWAYS_ALLOWED = 48 << 10 };
    if (be->failure.code)
        return -1;
    if (cuda_graph_note(c, kernel))
        return -1; /* it runs with the graph */
    if (shared <= ALWAYS_ALLOWED)
        return 0;
    cudaError_t error = shared > c->max_shared
                            ? cudaErrorInvalidConfiguration
                            : cudaFuncSetAttribute(
                                  kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (error != cudaSuccess)
        return cuda_failed(be, what, error), -1;
    return 0;
}

/* ---- Memory ---- */

static uint64_t free_bytes(struct backend *be)
{
    (void)be;
    size_t n_free = 0, n_total = 0;
    return cudaMemGetInfo(&n_free, &n_total) == cudaSuccess ? n_free : 0;
}

static int buffer_new(struct backend *be, struct backend_buffer *b, uint64_t n_byte, struct err *e)
{
    *b = (struct backend_buffer){};
    b->n_byte = n_byte;
    if (!n_byte)
        return 0;
    cudaError_t error = cudaMalloc(&b->data, n_byte);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return err_set(e, ERR_MEMORY,
            "CUDA: no %.2f GiB on %s, which has %.2f GiB free; try a smaller --context or model, "
            "or --backend cpu",
            (double)n_byte / 0x1p30, cuda_of(be)->name, (double)free_bytes(be) / 0x1p30);
    }
    if (error == cudaSuccess)
        error = cudaMemsetAsync(b->data, 0, n_byte, cuda_of(be)->stream);
    return error == cudaSuccess ? 0 : cuda_report(e, "allocating memory", error);
}

int cuda_buffer_wrap(
    struct backend *be, struct backend_buffer *b, const void *host, uint64_t n_byte, struct err *e)
{
    if (buffer_new(be, b, n_byte, e))
        return -1;
    return cuda_staging_write(be, b->data, host, n_byte, e);
}

static void buffer_free(struct backend *be, struct backend_buffer *b)
{
    if (b->data) {
        cudaStreamSynchronize(cuda_of(be)->stream);
        cudaFree(b->data);
    }
    *b = (struct backend_buffer){};
}

/* ---- Opening ---- */

static __global__ void version_kernel()
{
    cuda_wait();
}

/* Whether the code that runs here was compiled for a device on which cuda_wait waits. */
static int has_wait(void)
{
    cudaFuncAttributes a = {};
    return cudaFuncGetAttributes(&a, version_kernel) == cudaSuccess && a.ptxVersion >= 90;
}

/* The device's name and whether this build has code for it. */
static int check_device(struct cuda_backend *c, struct err *e)
{
    cudaDeviceProp p;
    cudaError_t error = cudaGetDeviceProperties(&p, c->device);
    if (error != cudaSuccess)
        return cuda_report(e, "reading the device's properties", error);
    if (p.major < LEAST_MAJOR)
        return err_set(e, ERR_UNSUPPORTED,
            "CUDA: device %d is a %s of compute capability %d.%d, and %d.0 is the least that is "
            "supported; --backend cpu runs without a GPU",
            c->device, p.name, p.major, p.minor, LEAST_MAJOR);
    c->n_multiprocessor = p.multiProcessorCount;
    c->overlaps_launches = has_wait();
    c->max_shared = p.sharedMemPerBlockOptin;
    snprintf(c->name, sizeof c->name, "%s", p.name);
    return 0;
}

static int find_device(struct cuda_backend *c, struct err *e)
{
    int n = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    cudaDriverGetVersion(&driver);
    cudaGetLastError();
    if (error == cudaErrorInsufficientDriver || (error == cudaErrorNoDevice && !driver))
        return err_set(e, ERR_UNSUPPORTED,
            "CUDA: this program needs a driver for CUDA %d.%d, found %d.%d (0.0: none); --backend "
            "cpu runs without a GPU",
            CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, driver / 1000, driver % 1000 / 10);
    if (error != cudaSuccess || n < 1)
        return cuda_report(
            e, "looking for a device", error == cudaSuccess ? cudaErrorNoDevice : error);
    return check_device(c, e);
}

static int open_resources(struct cuda_backend *c, struct err *e)
{
    cudaError_t error = cudaSetDevice(c->device);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    void *fault = NULL;
    if (error == cudaSuccess)
        error = cudaHostAlloc(&fault, sizeof *c->fault, cudaHostAllocMapped);
    if (error != cudaSuccess)
        return cuda_report(e, "opening the device", error);
    c->host_fault = (struct cuda_fault *)fault;
    *c->host_fault = (struct cuda_fault){0, 0};
    void *mapped = NULL;
    error = cudaHostGetDevicePointer(&mapped, fault, 0);
    c->fault = (struct cuda_fault *)mapped;
    if (error != cudaSuccess)
        return cuda_report(e, "opening the device", error);
    return cuda_staging_open(c, e) || cuda_graphs_open(c, e) || cuda_codebooks_open(c, e) ||
                   cuda_values_open(&c->base, e)
               ? -1
               : 0;
}

static void close_cuda(struct backend *be)
{
    struct cuda_backend *c = cuda_of(be);
    if (c->stream)
        cudaStreamSynchronize(c->stream);
    cuda_graphs_close(c);
    cuda_weights_free(c);
    buffer_free(be, &c->grid2);
    cuda_staging_close(c);
    if (c->host_fault)
        cudaFreeHost(c->host_fault);
    if (c->stream)
        cudaStreamDestroy(c->stream);
    mem_free(c);
}

static int open_cuda(struct backend **be, const struct backend_options *options, struct err *e)
{
    (void)options;
    struct cuda_backend *c = (struct cuda_backend *)mem_resize(NULL, sizeof *c);
    if (!c)
        return err_set(e, ERR_MEMORY, "no memory for a backend");
    *c = (struct cuda_backend){};
    c->base.n_thread = 1;
    c->base.level = c->name;
    if (find_device(c, e) || open_resources(c, e)) {
        close_cuda(&c->base);
        return -1;
    }
    *be = &c->base;
    return 0;
}

/* ---- Steps ---- */

static void begin(struct backend *be, uint64_t graph_key)
{
    cuda_graph_begin(cuda_of(be), graph_key);
}

static int end(struct backend *be, struct err *e)
{
    struct cuda_backend *c = cuda_of(be);
    int has_failed = cuda_graph_end(c, e);
    cudaError_t error = cudaStreamSynchronize(c->stream);
    cuda_staging_reset(c);
    if (error != cudaSuccess)
        return cuda_report(e, "running a step", error);
    struct cuda_fault fault = *c->host_fault;
    if (has_failed || !fault.what)
        return has_failed;
    *c->host_fault = (struct cuda_fault){0, 0};
    return err_set(
        e, ERR_ARGUMENT, "%s %d is outside of its tensor", refusals[fault.what], fault.value);
}

static void fill(op_fn table[N_OP])
{
#define CUDA_ENTRY(op) table[OP_##op] = cuda_##op;
    OP_LIST(CUDA_ENTRY)
}

extern "C" const struct backend_kind backend_cuda = {
    .name = "cuda",
    .open = open_cuda,
    .close = close_cuda,
    .buffer_new = buffer_new,
    .buffer_wrap = cuda_buffer_wrap,
    .buffer_free = buffer_free,
    .write = cuda_staging_write,
    .read = cuda_staging_read,
    .begin = begin,
    .end = end,
    .fill = fill,
    .take_weight = cuda_take_weight,
    .free_bytes = free_bytes,
};
