/* kernel_dots.h: sums over the inner dimension, continuing kernel_formats.h: dots, tiles, weighted sums of keys. */
#ifndef HADAL_BACKEND_CPU_KERNEL_DOTS_H
#define HADAL_BACKEND_CPU_KERNEL_DOTS_H

#include "backend/cpu/kernel_formats.h"

/* Adds a[i] b[i] for i < n < 16 to lanes 0 .. n - 1; unlike multiplying with zeros, it leaves the others alone. */
static void dots_tail(float lanes[16], const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        lanes[i] = fmaf(a[i], b[i], lanes[i]);
}

/* The same for n < 32. */
static void dots_rest(float lanes[16], const float *a, const float *b, int64_t n)
{
    int64_t first = n < 16 ? n : 16;
    dots_tail(lanes, a, b, first);
    dots_tail(lanes, a + first, b + first, n - first);
}

static void dots_fold(const float (*lanes)[16], int64_t n, float *out)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        v16_fold4(out + i, v16_load(lanes[i]), v16_load(lanes[i + 1]), v16_load(lanes[i + 2]), v16_load(lanes[i + 3]));
    for (; i < n; i++) {
        float four[4];
        v16 x = v16_load(lanes[i]);
        v16_fold4(four, x, x, x, x);
        out[i] = four[0];
    }
}

/* The last columns of rows that do not fill a block of 32 plain values. */
static void dots_finish4(const struct micro_rows *w, const float *x, void (*decode)(const struct decode_run *),
    float (*lanes)[16], float *y)
{
    int64_t n_done = w->n_col / 32 * 32, n = w->n_col - n_done;
    for (int m = 0; m < 4; m++) {
        float rest[32];
        decode(&(struct decode_run){
            .row = w->row[m], .scale = w->scale[m], .n_col = w->n_col, .first = n_done, .n = n, .out = rest});
        dots_rest(lanes[m], rest, x, n);
    }
    dots_fold((const float(*)[16])lanes, 4, y);
}

/* ---- One kernel pair per format ---- */

#define DEFINE_DOT4(name, block, block_bytes)                                                      \
    static void dot4_##name(const struct micro_rows *w, const float *x, float *y)                  \
    {                                                                                              \
        v16 acc0 = v16_set(0), acc1 = acc0, acc2 = acc0, acc3 = acc0, value[2];                    \
        int64_t n_block = w->n_col / (block);                                                      \
        for (int64_t b = 0; b < n_block; b++) {                                                    \
            struct head head[4];                                                                   \
            for (int m = 0; m < 4; m++)                                                            \
                name##_head(w->row[m] + b * (block_bytes), w->scale[m], b, &head[m]);              \
            for (int g = 0; g < (block) / 32; g++, x += 32) {                                      \
                v16 x0 = v16_load(x), x1 = v16_load(x + 16);                                       \
                DOTS_ROW(name, 0);                                                                 \
                DOTS_ROW(name, 1);                                                                 \
                DOTS_ROW(name, 2);                                                                 \
                DOTS_ROW(name, 3);                                                                 \
            }                                                                                      \
        }                                                                                          \
        if (n_block * (block) == w->n_col) {                                                       \
            v16_fold4(y, acc0, acc1, acc2, acc3);                                                  \
            return;                                                                                \
        }                                                                                          \
        float lanes[4][16];                                                                        \
        v16_store(lanes[0], acc0);                                                                 \
        v16_store(lanes[1], acc1);                                                                 \
        v16_store(lanes[2], acc2);                                                                 \
        v16_store(lanes[3], acc3);                                                                 \
        dots_finish4(w, x, decode_##name, lanes, y);                                               \
    }

#define DOTS_ROW(name, m)                                                                          \
    name##_load(&head[m], g, value);                                                               \
    acc##m = v16_fma(value[0], x0, acc##m);                                                        \
    acc##m = v16_fma(value[1], x1, acc##m)

/* first and n are multiples of the format's block; where that is 1, runs are cut at multiples of 32 columns and what does
 * not fill 32 goes to the scalar decoder. */
#define DEFINE_DECODE(name, block, block_bytes, scalar)                                            \
    static void decode_##name(const struct decode_run *r)                                          \
    {                                                                                              \
        if (r->first % (block)) {                                                                  \
            scalar(r);                                                                             \
            return;                                                                                \
        }                                                                                          \
        float *out = r->out;                                                                       \
        int64_t first = r->first / (block), n_block = r->n / (block);                              \
        for (int64_t b = first; b < first + n_block; b++) {                                        \
            struct head head;                                                                      \
            name##_head(r->row + b * (block_bytes), r->scale, b, &head);                           \
            for (int g = 0; g < (block) / 32; g++, out += 32) {                                    \
                v16 value[2];                                                                      \
                name##_load(&head, g, value);                                                      \
                v16_store(out, value[0]);                                                          \
                v16_store(out + 16, value[1]);                                                     \
            }                                                                                      \
        }                                                                                          \
        struct decode_run rest = *r;                                                               \
        rest.first += n_block * (block);                                                           \
        rest.n -= n_block * (block);                                                               \
        rest.out = out;                                                                            \
        if (rest.n)                                                                                \
            scalar(&rest);                                                                         \
    }

#define DEFINE_FORMAT(name, block, block_bytes, scalar)                                            \
    DEFINE_DECODE(name, block, block_bytes, scalar)                                                \
    DEFINE_DOT4(name, block, block_bytes)

/* ---- F32 rows against F32 rows ---- */

static float dots_dot(const float *a, const float *b, int64_t n)
{
    v16 acc = v16_set(0);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        acc = v16_fma(v16_load(a + i), v16_load(b + i), acc);
    float lanes[1][16], sum;
    v16_store(lanes[0], acc);
    dots_tail(lanes[0], a + i, b + i, n - i);
    dots_fold((const float(*)[16])lanes, 1, &sum);
    return sum;
}

static float dots_dot3(const float *a, const float *b, const float *c, int64_t n)
{
    v16 acc = v16_set(0);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        acc = v16_fma(v16_mul(v16_load(a + i), v16_load(b + i)), v16_load(c + i), acc);
    float lanes[1][16], sum;
    v16_store(lanes[0], acc);
    for (int64_t j = 0; i + j < n; j++)
        lanes[0][j] = fmaf(a[i + j] * b[i + j], c[i + j], lanes[0][j]);
    dots_fold((const float(*)[16])lanes, 1, &sum);
    return sum;
}

/* The accumulators of row r, in registers while the tile runs. */
#define TILE_BEGIN(r) v16 acc##r##0 = v16_load(t->lanes[2 * r]), acc##r##1 = v16_load(t->lanes[2 * r + 1])
#define TILE_STEP(r)                                                                               \
    x = v16_load(t->x[r] + i);                                                                     \
    acc##r##0 = v16_fma(x, w0, acc##r##0);                                                         \
    acc##r##1 = v16_fma(x, w1, acc##r##1)
#define TILE_END(r)                                                                                \
    v16_store(t->lanes[2 * r], acc##r##0);                                                         \
    v16_store(t->lanes[2 * r + 1], acc##r##1)

static void tile_tail(const struct micro_tile *t, int n_row)
{
    int64_t i = t->n / 16 * 16;
    for (int r = 0; r < n_row; r++)
        for (int m = 0; m < 2; m++)
            dots_tail(t->lanes[2 * r + m], t->x[r] + i, t->w[m] + i, t->n - i);
}

static void tile_1(const struct micro_tile *t)
{
    TILE_BEGIN(0);
    for (int64_t i = 0; i + 16 <= t->n; i += 16) {
        v16 w0 = v16_load(t->w[0] + i), w1 = v16_load(t->w[1] + i), x;
        TILE_STEP(0);
    }
    TILE_END(0);
    tile_tail(t, 1);
}

static void tile_2(const struct micro_tile *t)
{
    TILE_BEGIN(0);
    TILE_BEGIN(1);
    for (int64_t i = 0; i + 16 <= t->n; i += 16) {
        v16 w0 = v16_load(t->w[0] + i), w1 = v16_load(t->w[1] + i), x;
        TILE_STEP(0);
        TILE_STEP(1);
    }
    TILE_END(0);
    TILE_END(1);
    tile_tail(t, 2);
}

static void tile_3(const struct micro_tile *t)
{
    TILE_BEGIN(0);
    TILE_BEGIN(1);
    TILE_BEGIN(2);
    for (int64_t i = 0; i + 16 <= t->n; i += 16) {
        v16 w0 = v16_load(t->w[0] + i), w1 = v16_load(t->w[1] + i), x;
        TILE_STEP(0);
        TILE_STEP(1);
        TILE_STEP(2);
    }
    TILE_END(0);
    TILE_END(1);
    TILE_END(2);
    tile_tail(t, 3);
}

#define DOTS_STEP(r)                                                                               \
    v = v16_load(x[r] + i);                                                                        \
    acc##r##0 = v16_fma(v, w0, acc##r##0);                                                         \
    acc##r##1 = v16_fma(v, w1, acc##r##1)

static void dots_3x2(const float *const x[3], const float *const w[2], int64_t n, float out[6])
{
    v16 acc00 = v16_set(0), acc01 = acc00, acc10 = acc00, acc11 = acc00, acc20 = acc00, acc21 = acc00, v;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 w0 = v16_load(w[0] + i), w1 = v16_load(w[1] + i);
        DOTS_STEP(0);
        DOTS_STEP(1);
        DOTS_STEP(2);
    }
    float rest[4];
    v16_fold4(out, acc00, acc01, acc10, acc11);
    v16_fold4(rest, acc20, acc21, acc20, acc21);
    out[4] = rest[0];
    out[5] = rest[1];
    for (int j = 0; j < 6 && i < n; j++) /* rows that do not fill their lanes: again, one by one */
        out[j] = dots_dot(x[j / 2], w[j % 2], n);
}

/* ---- Weighted sum of keys ---- */

#define WEIGHTED_STEP(h) acc##h = v16_fma(v16_set(w->e[h][k]), key, acc##h)

static void weighted_tail(const struct micro_weighted *w, int64_t from)
{
    for (int h = 0; h < 4; h++)
        for (int64_t k = 0; k < w->n_key; k++)
            for (int64_t i = from; i < w->d; i++)
                w->o[h][i] = fmaf(w->e[h][k], w->key[k][i], w->o[h][i]);
}

static void dots_weighted(const struct micro_weighted *w)
{
    int64_t i = 0;
    for (; i + 16 <= w->d; i += 16) {
        v16 acc0 = v16_load(w->o[0] + i), acc1 = v16_load(w->o[1] + i);
        v16 acc2 = v16_load(w->o[2] + i), acc3 = v16_load(w->o[3] + i);
        for (int64_t k = 0; k < w->n_key; k++) {
            v16 key = v16_load(w->key[k] + i);
            WEIGHTED_STEP(0);
            WEIGHTED_STEP(1);
            WEIGHTED_STEP(2);
            WEIGHTED_STEP(3);
        }
        v16_store(w->o[0] + i, acc0);
        v16_store(w->o[1] + i, acc1);
        v16_store(w->o[2] + i, acc2);
        v16_store(w->o[3] + i, acc3);
    }
    weighted_tail(w, i);
}

#endif
