/* staging.cu: copies through pinned memory, a ring that every wait empties. */
#include "backend/cuda/device.cuh"

#include <string.h>

extern "C" {
#include "base/arena.h"
}

enum { RING_BYTES = 8 << 20, ALIGN = 64 };

struct cuda_staging {
    char *ring;
    uint64_t used;
};

int cuda_staging_open(struct cuda_backend *c, struct err *e)
{
    c->staging = (struct cuda_staging *)mem_resize(NULL, sizeof *c->staging);
    if (!c->staging)
        return err_set(e, ERR_MEMORY, "no memory for a backend");
    *c->staging = (struct cuda_staging){};
    void *ring = NULL;
    cudaError_t error = cudaHostAlloc(&ring, RING_BYTES, cudaHostAllocDefault);
    c->staging->ring = (char *)ring;
    return error == cudaSuccess ? 0 : cuda_report(e, "allocating pinned memory", error);
}

void cuda_staging_close(struct cuda_backend *c)
{
    if (!c->staging)
        return;
    if (c->staging->ring)
        cudaFreeHost(c->staging->ring);
    mem_free(c->staging);
}

void cuda_staging_reset(struct cuda_backend *c)
{
    c->staging->used = 0;
}

/* Room for n bytes, which are at most the ring; waits when it is full. */
static cudaError_t take(struct cuda_backend *c, uint64_t n, char **at)
{
    struct cuda_staging *s = c->staging;
    uint64_t need = (n + ALIGN - 1) / ALIGN * ALIGN;
    cudaError_t error = cudaSuccess;
    if (s->used + need > RING_BYTES) {
        error = cudaStreamSynchronize(c->stream);
        s->used = 0;
    }
    *at = s->ring + s->used;
    s->used += need;
    return error;
}

static uint64_t part_of(uint64_t n_byte, uint64_t done)
{
    return n_byte - done < RING_BYTES ? n_byte - done : RING_BYTES;
}

int cuda_staging_write(
    struct backend *be, void *to, const void *from, uint64_t n_byte, struct err *e)
{
    struct cuda_backend *c = cuda_of(be);
    for (uint64_t done = 0; done < n_byte; done += RING_BYTES) {
        uint64_t n = part_of(n_byte, done);
        char *at = NULL;
        cudaError_t error = take(c, n, &at);
        if (error == cudaSuccess) {
            memcpy(at, (const char *)from + done, n);
            error = cudaMemcpyAsync((char *)to + done, at, n, cudaMemcpyHostToDevice, c->stream);
        }
        if (error != cudaSuccess)
            return cuda_report(e, "writing to the device", error);
    }
    return 0;
}

int cuda_staging_read(
    struct backend *be, void *to, const void *from, uint64_t n_byte, struct err *e)
{
    struct cuda_backend *c = cuda_of(be);
    if (cuda_graph_is_open(c))
        return err_set(e, ERR_ARGUMENT, "CUDA: a captured step cannot be read from");
    for (uint64_t done = 0; done < n_byte; done += RING_BYTES) {
        uint64_t n = part_of(n_byte, done);
        char *at = NULL;
        cudaError_t error = take(c, n, &at);
        if (error == cudaSuccess)
            error = cudaMemcpyAsync(
                at, (const char *)from + done, n, cudaMemcpyDeviceToHost, c->stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(c->stream);
        if (error != cudaSuccess)
            return cuda_report(e, "reading from the device", error);
        memcpy((char *)to + done, at, n);
    }
    return 0;
}
