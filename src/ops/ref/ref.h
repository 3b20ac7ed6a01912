/* ref.h: the scalar reference: every base op in plain C, one thread. It defines what the ops
 * compute, bit for bit.
 *
 * Shapes are taken as checked (op_check). Values that come from the batch (ids, slots) are checked
 * where a wrong one would read or write outside of a tensor.
 */
#ifndef HADAL_OPS_REF_REF_H
#define HADAL_OPS_REF_REF_H

#include "base/fmath.h"
#include "ops/ops.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define REF_DECLARE(op) void ref_##op(struct backend *be, const void *args);
OP_LIST_BASE(REF_DECLARE)

/* Puts the reference of every base op into a table. */
void ref_fill(op_fn table[N_OP]);

/* Flat row r of an F32 or I32 tensor (r counts over all dimensions but the last). */
static inline float *ref_row(const struct tensor *t, int64_t r)
{
    return (float *)(void *)((char *)t->data + r * t->row_bytes);
}

static inline int32_t *ref_ints(const struct tensor *t, int64_t r)
{
    return (int32_t *)(void *)((char *)t->data + r * t->row_bytes);
}

/* The 16 lanes of a sum over an inner dimension (op_list.h, conventions). */
enum { REF_N_LANE = 16 };
struct ref_lanes {
    float lane[REF_N_LANE];
};

static inline float ref_fold(struct ref_lanes *s)
{
    for (int half = REF_N_LANE / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            s->lane[l] += s->lane[l + half];
    return s->lane[0];
}

/* sum_i a_i b_i */
float ref_dot(const float *a, const float *b, int64_t n);

/* Row `row` of a weight as floats: the row itself when it is stored so, else decoded into scratch.
 * NULL: failed. */
const float *ref_weight_row(struct backend *be, const struct tensor *t, int64_t row);
/* All values of a small weight, decoded into one contiguous array. NULL: failed. */
const float *ref_weight_values(struct backend *be, const struct tensor *t);

/* 0 when `value` lies in [0, limit); else the op has failed. */
int ref_refuse_index(struct backend *be, const char *what, int64_t value, int64_t limit);

/* A total order on scores that sorts like the floats, -0 as +0. */
static inline int32_t ref_order(float x)
{
    union {
        float f;
        int32_t i;
    } u = {.f = x + 0.0f};
    return u.i < 0 ? (int32_t)(0x80000000u - (uint32_t)u.i) : u.i;
}

/* ---- Pieces that faster backends share with the reference ---- */

/* One step of a Hadamard transform: x[i], x[i + stride] become their sum and difference. */
void ref_butterflies(float *x, int64_t d, int64_t stride);

/* One group of `block` values of the trained roundings. */
void ref_round_fp8_block(float *x, int block);
void ref_round_fp4_block(float *x, int block);
void ref_round_fp4_e4m3_block(float *x, int block);

/* Row sums and column sums of c [s, s] brought to 1. */
void ref_sinkhorn(float *c, int64_t s, int n_iter, float eps);

/* From the control vector m [(2+S) S] of row r to its pre, post and comb. */
enum { REF_MAX_STREAM = 16 };
struct ref_mhc {
    int64_t n_stream;
    const float *scale, *base;
    const struct tensor *pre, *post, *comb;
    float eps;
    int n_iter;
};
void ref_mhc_split(const struct ref_mhc *h, const float *m, int64_t r);

#endif
