/* device.cuh: parts of the device object: staged copies, captured steps, weights. */
#ifndef HADAL_BACKEND_CUDA_DEVICE_CUH
#define HADAL_BACKEND_CUDA_DEVICE_CUH

#include "backend/cuda/cuda.cuh"

/* Forgets the runtime's last error and says what failed; -1. */
int cuda_report(struct err *e, const char *what, cudaError_t error);

/* ---- Copies through pinned memory; staging.cu ---- */

int cuda_staging_open(struct cuda_backend *c, struct err *e);
void cuda_staging_close(struct cuda_backend *c);
/* The caller's memory is free again on return. Behind what was launched before; inside a captured
 * step in front of all of it. */
int cuda_staging_write(struct backend *be, void *to, const void *from, uint64_t n, struct err *e);
/* Waits. Not inside a captured step. */
int cuda_staging_read(struct backend *be, void *to, const void *from, uint64_t n, struct err *e);
/* After a wait: nothing is in flight any more. */
void cuda_staging_reset(struct cuda_backend *c);

/* ---- Captured steps; graphs.cu ----
 *
 * A key that is not 0 stands for one sequence of launches with the same arguments. Its first step
 * runs launch by launch, its second is captured, the others replay. */

void cuda_graph_begin(struct cuda_backend *c, uint64_t key);
/* Submits what was captured or replays; -1 when the launches are not those of the key. */
int cuda_graph_end(struct cuda_backend *c, struct err *e);
/* Notes a launch; whether it is left out, because the step replays. */
int cuda_graph_note(struct cuda_backend *c, const void *kernel);
int cuda_graphs_open(struct cuda_backend *c, struct err *e);
int cuda_graph_is_open(const struct cuda_backend *c);
void cuda_graphs_close(struct cuda_backend *c);

/* ---- Weights; weights.cu ---- */

/* Copies a weight to the device and points t there. */
int cuda_take_weight(struct backend *be, struct tensor *t, struct err *e);
void cuda_weights_free(struct cuda_backend *c);

/* Device memory with a copy of n_byte bytes. */
int cuda_buffer_wrap(
    struct backend *be, struct backend_buffer *b, const void *host, uint64_t n_byte, struct err *e);
int cuda_codebooks_open(struct cuda_backend *c, struct err *e); /* matmul.cu */
int cuda_values_open(struct backend *be, struct err *e); /* values.cu: tables of the formats */

#endif
