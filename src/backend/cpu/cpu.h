/* cpu.h: the CPU backend: portable C over a crew of threads, with one instruction set's kernels
 * (micro.h) inside.
 *
 * Every worker has a lane: a backend of its own for scratch and failures, so that an op's code for
 * some batch rows, the reference's included, can run on any worker. Work is split over outputs,
 * never over a sum.
 */
#ifndef HADAL_BACKEND_CPU_CPU_H
#define HADAL_BACKEND_CPU_CPU_H

#include "backend/backend.h"
#include "backend/cpu/micro.h"
#include "base/threads.h"

struct cpu {
    struct backend base;
    const struct micro *micro;
    struct workers *workers; /* NULL in a lane: its work is not split further */
    struct cpu *lane;        /* one per worker; lane 0 is the calling thread's */
    int n_lane;
};

static inline struct cpu *cpu_of(struct backend *be)
{
    return (struct cpu *)(void *)be;
}

/* Items [first, end) of a job on a lane. */
typedef void (*cpu_fn)(struct cpu *lane, void *job, int64_t first, int64_t end);

/* Runs a job's items on all workers, or here when it is too small to wake anybody: `cost` is what
 * one item takes, in multiply-adds or values touched. Items come in runs of a multiple of `step`. A
 * lane's failure becomes the op's. */
struct cpu_split {
    int64_t n_item, step, cost;
};
void cpu_run(struct cpu *c, struct cpu_split split, cpu_fn fn, void *job);

/* Runs fn, which does a whole call, on parts of the batch rows. cost: per value of a row. */
void cpu_run_rows(struct backend *be, enum op op, const void *args, op_fn fn, int cost);

/* y[r][o] = w[o,:] . x[r] for outputs [first, end) of a weight matrix and n activation rows. */
struct cpu_matmul {
    struct tensor w; /* [O, I] */
    int64_t n;
    const float *const *x;
    float *const *y;
};
void cpu_matmul_range(struct cpu *lane, const struct cpu_matmul *m, int64_t first, int64_t end);
void cpu_matmul_all(struct cpu *c, struct cpu_matmul *m); /* all outputs, split over workers */
/* Pointers to n rows of F32, `offset` values into each; NULL: failed. */
const float **cpu_rows(struct cpu *c, const struct tensor *t, int64_t n, int64_t offset);

/* out[i * stride + k] = q[i] . key[k], d values each. */
struct cpu_dots {
    const float *const *q, *const *key;
    int64_t n_q, n_key, d, stride;
    float *out;
};
void cpu_dot_all(struct cpu *lane, const struct cpu_dots *s);

/* Rows of a cache as floats: where they lie, or decoded into scratch. NULL: failed. */
const float *cpu_cache_row(struct cpu *lane, const struct tensor *t, int64_t row, float *decoded);

/* This backend's own ops; the rest are the reference's, split over rows. */
/* clang-format off */
#define CPU_OPS(X)                                                                                 \
    X(add) X(rms_norm) X(matmul) X(matmul_grouped) X(hadamard) X(swiglu) X(pool) X(index_score)    \
    X(topk) X(candidate_blocks) X(index_select) X(attend) X(expert_mlp) X(mhc_mix) X(mhc_head)     \
    X(mhc_collapse) X(mhc_merge) X(engram_gate)
/* clang-format on */
#define CPU_DECLARE(op) void cpu_##op(struct backend *be, const void *args);
CPU_OPS(CPU_DECLARE)

#endif
