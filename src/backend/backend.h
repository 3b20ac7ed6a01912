/* backend.h: a device as an object. A dozen functions and a table of ops; no global state, so two of
 * a kind can coexist.
 *
 * The reference ("ref") is itself a backend: scalar C, one thread, the definition of every op.
 * Errors stick: the forward pass checks nothing, and backend_end returns the first cause. A backend
 * is used by one thread at a time.
 */
#ifndef HADAL_BACKEND_BACKEND_H
#define HADAL_BACKEND_BACKEND_H

#include "backend/work_memory.h"
#include "base/err.h"
#include "ops/ops.h"

#include <stdint.h>

struct backend_options {
    int n_thread; /* 0: one per processor that this process may use */
    const char
        *level; /* cpu: "portable", "avx2", "avx512", "neon"; NULL: the best that runs here */
    int checks_shapes; /* run op_check before every op */
};

struct backend_kind {
    const char *name;
    int (*open)(struct backend **be, const struct backend_options *options, struct err *e);
    void (*close)(struct backend *be);
    int (*buffer_new)(
        struct backend *be, struct backend_buffer *b, uint64_t n_byte, struct err *e); /* zeroed */
    int (*buffer_wrap)(struct backend *be, struct backend_buffer *b, const void *host,
        uint64_t n_byte, struct err *e);
    void (*buffer_free)(struct backend *be, struct backend_buffer *b);
    int (*write)(struct backend *be, void *to, const void *from, uint64_t n_byte, struct err *e);
    int (*read)(struct backend *be, void *to, const void *from, uint64_t n_byte, struct err *e);
    void (*begin)(
        struct backend *be, uint64_t graph_key); /* may capture, or replay what this key captured */
    int (*end)(struct backend *be, struct err *e); /* waits; the first failure since begin */
    void (*fill)(op_fn
            table[N_OP]); /* this backend's own kernels; NULL entries are filled with definitions */
    /* Devices with memory of their own, NULL elsewhere: copies a weight there and points t to it. */
    int (*take_weight)(struct backend *be, struct tensor *t, struct err *e);
    uint64_t (*free_bytes)(struct backend *be); /* memory left on the device */
};

struct backend {
    const struct backend_kind *kind;
    op_fn op[N_OP];
    struct err failure;      /* failure.code != ERR_NONE: ops do nothing until end */
    struct work_memory work; /* backend_scratch */
    int checks_shapes;
    const char *level; /* what runs: "avx2", "scalar" */
    int n_thread;
};

/* "ref", "cpu" or, where it is built, "cuda". */
int backend_open(
    struct backend **be, const char *name, const struct backend_options *options, struct err *e);
/* NULL is fine. Buffers are freed before. */
void backend_close(struct backend *be);
/* Waits for the ops since begin and returns the first failure, after which the backend is usable
 * again. */
int backend_end(struct backend *be, struct err *e);
/* backend_fail and backend_scratch: ops/ops.h */

/* The kinds that are always built. */
extern const struct backend_kind backend_ref, backend_cpu;
extern const struct backend_kind backend_cuda; /* HADAL_HAS_CUDA */

#endif
