/* micro.h: the few kernels that exist once per instruction set. Everything else of the CPU backend
 * is portable C around them.
 *
 * Written once, in kernel_*.h, over 16-lane vectors (vec_*.h); each micro_*.c compiles them for one
 * instruction set. All return the reference's bits.
 */
#ifndef HADAL_BACKEND_CPU_MICRO_H
#define HADAL_BACKEND_CPU_MICRO_H

#include "tensor/decode.h"
#include "tensor/dtype.h"

#include <stdint.h>

/* Four weight rows of one format; scale as in decode_run. What lies `ahead` bytes behind a place is
 * read into the cache when the place is used: the rows that come next. */
struct micro_rows {
    const uint8_t *row[4], *scale[4];
    int64_t n_col, ahead;
};

/* Up to MICRO_TILE_X activation rows times MICRO_TILE_W weight rows, both F32, n values (a multiple
 * of 16 but for the last part of a row): the lane sums lanes[MICRO_TILE_W r + w], begun or
 * continued. */
enum { MICRO_TILE_X = 6, MICRO_TILE_W = 4, MICRO_TILE_SUMS = MICRO_TILE_X * MICRO_TILE_W };
struct micro_tile {
    const float *x[MICRO_TILE_X], *w[MICRO_TILE_W];
    int64_t n;
    int n_x, is_first;
    float (*lanes)[16];
};

/* o[h][:] += sum_k e[h][k] key[k][:] for 4 heads, k ascending, over d channels. */
struct micro_weighted {
    const float *const *key;
    const float *e[4];
    float *o[4];
    int64_t n_key, d;
};

/* pool over n_token rows: y[c] = sum_j e^(score_j[c] - max) kv_j[c] / sum_j e^(score_j[c] - max) */
struct micro_pool {
    const float *const *kv, *const *score;
    int64_t n_token, n;
    float *y;
};

/* One row's streams: x[j] += ..., as mhc_merge and mhc_collapse define it. comb is row-major. */
struct micro_streams {
    float *const *x;
    int64_t n_stream, n;
    float *y; /* read by merge, written by collapse */
    const float *pre, *post, *comb;
};

struct micro {
    const char *name;
    void (*decode[N_DTYPE])(const struct decode_run *r); /* NULL: tensor_decode */
    void (*dot4[N_DTYPE])(
        const struct micro_rows *w, const float *x, float *y); /* NULL: decode, then tiles */
    int n_tile_x; /* activation rows that a tile of this instruction set has registers for */
    void (*tile)(const struct micro_tile *t);
    void (*fold)(const float (*lanes)[16], int64_t n, float *out); /* n sums */
    float (*dot)(const float *a, const float *b, int64_t n);
    float (*dot3)(const float *a, const float *b, const float *c, int64_t n); /* sum (a b) c */
    float (*max)(const float *x, int64_t n);                                  /* n > 0 */
    float (*exp_sum)(float *x, float largest, int64_t n); /* x = e^(x - largest); their lane sum */
    void (*weighted)(const struct micro_weighted *w);
    void (*relu_sum)(
        float *s, const float *dot, float weight, int64_t n); /* s += weight * max(0, dot) */
    void (*scale)(
        float *y, const float *x, const float *w, float scale, int64_t n); /* x * scale [* w] */
    void (*divide)(float *y, const float *x, float divisor, int64_t n);
    void (*add)(float *y, const float *x, int64_t n);
    void (*add_scaled)(float *y, const float *x, float factor, int64_t n); /* fused */
    /* weight * silu(min(gate, limit)) * clamp(up); y may be gate */
    void (*swiglu)(
        float *y, const float *gate, const float *up, const float limit_weight[2], int64_t n);
    void (*pool)(const struct micro_pool *p);
    void (*merge)(const struct micro_streams *s);
    void (*collapse)(const struct micro_streams *s);
    void (*butterfly)(float *low, float *high, int64_t n); /* low + high, low - high */
};

/* Each exists only where this program is built for its processor family. */
extern const struct micro micro_portable, micro_avx2, micro_avx512, micro_neon;

#endif
