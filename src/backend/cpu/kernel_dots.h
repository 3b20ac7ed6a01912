/* kernel_dots.h: sums over the inner dimension, continuing kernel_formats.h: dots, tiles, weighted
 * sums of keys. */
#ifndef HADAL_BACKEND_CPU_KERNEL_DOTS_H
#define HADAL_BACKEND_CPU_KERNEL_DOTS_H

#include "backend/cpu/kernel_formats.h"

/* Adds a[i] b[i] for i < n < 16 to lanes 0 .. n - 1; unlike multiplying with zeros, it leaves the
 * others alone. */
VEC void dots_tail(float lanes[16], const float *a, const float *b, int64_t n)
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
        v16_fold4(out + i, v16_load(lanes[i]), v16_load(lanes[i + 1]), v16_load(lanes[i + 2]),
            v16_load(lanes[i + 3]));
    if (i == n)
        return;
    float last[4];
    const float(*second)[16] = lanes + (i + 1 < n ? i + 1 : i),
          (*third)[16] = lanes + (i + 2 < n ? i + 2 : i);
    v16_fold4(last, v16_load(lanes[i]), v16_load(*second), v16_load(*third), v16_load(*third));
    for (int64_t j = 0; i + j < n; j++)
        out[i + j] = last[j];
}

/* The last columns of rows that do not fill a block of 32 plain values. */
static void dots_finish4(const struct micro_rows *w, const float *x,
    void (*decode)(const struct decode_run *), float (*lanes)[16], float *y)
{
    int64_t n_done = w->n_col / 32 * 32, n = w->n_col - n_done;
    for (int m = 0; m < 4; m++) {
        float rest[32];
        decode(&(struct decode_run){.row = w->row[m],
            .scale = w->scale[m],
            .n_col = w->n_col,
            .first = n_done,
            .n = n,
            .out = rest});
        dots_rest(lanes[m], rest, x, n);
    }
    dots_fold((const float(*)[16])lanes, 4, y);
}

/* Four rows at once are too many streams, and too short ones, for a processor to foresee. */
VEC void dots_prefetch(const uint8_t *p, int n)
{
    EACH (i, (n + 63) / 64)
        __builtin_prefetch(p + 64 * i);
}

/* ---- One kernel pair per format ---- */

/* Everything is written out, so that heads and sums live in registers and shift counts are
 * constants. */
#define DOTS_HEAD(name, block_bytes, m)                                                            \
    dots_prefetch(w->row[m] + b * (block_bytes) + w->ahead, block_bytes);                          \
    name##_head(w->row[m] + b * (block_bytes), w->scale[m], b, &head##m)
#define DOTS_ROW(name, g, m)                                                                       \
    name##_load(&head##m, g, value);                                                               \
    acc##m = v16_fma(value[0], x0, acc##m);                                                        \
    acc##m = v16_fma(value[1], x1, acc##m)
#define DOTS_GROUP(name, g)                                                                        \
    x0 = v16_load(x + 32 * (g));                                                                   \
    x1 = v16_load(x + 32 * (g) + 16);                                                              \
    DOTS_ROW(name, g, 0);                                                                          \
    DOTS_ROW(name, g, 1);                                                                          \
    DOTS_ROW(name, g, 2);                                                                          \
    DOTS_ROW(name, g, 3)
#define DOTS_EACH_32(each, name) each(name, 0)
#define DOTS_EACH_256(each, name)                                                                  \
    each(name, 0);                                                                                 \
    each(name, 1);                                                                                 \
    each(name, 2);                                                                                 \
    each(name, 3);                                                                                 \
    each(name, 4);                                                                                 \
    each(name, 5);                                                                                 \
    each(name, 6);                                                                                 \
    each(name, 7)

#define DEFINE_DOT4(name, block, block_bytes)                                                      \
    static void dot4_##name(const struct micro_rows *w, const float *x, float *y)                  \
    {                                                                                              \
        v16 acc0 = v16_set(0), acc1 = acc0, acc2 = acc0, acc3 = acc0, value[2], x0, x1;            \
        int64_t n_block = w->n_col / (block);                                                      \
        for (int64_t b = 0; b < n_block; b++, x += (block)) {                                      \
            struct head head0, head1, head2, head3;                                                \
            DOTS_HEAD(name, block_bytes, 0);                                                       \
            DOTS_HEAD(name, block_bytes, 1);                                                       \
            DOTS_HEAD(name, block_bytes, 2);                                                       \
            DOTS_HEAD(name, block_bytes, 3);                                                       \
            DOTS_EACH_##block(DOTS_GROUP, name);                                                   \
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

/* first and n are multiples of the format's block; where that is 1, runs are cut at multiples of 32
 * columns and what does not fill 32 goes to the scalar decoder. */
#define DECODE_GROUP(name, g)                                                                      \
    name##_load(&head, g, value);                                                                  \
    v16_store(out + 32 * (g), value[0]);                                                           \
    v16_store(out + 32 * (g) + 16, value[1])

#define DEFINE_DECODE(name, block, block_bytes, scalar)                                            \
    static void decode_##name(const struct decode_run *r)                                          \
    {                                                                                              \
        if (r->first % (block)) {                                                                  \
            scalar(r);                                                                             \
            return;                                                                                \
        }                                                                                          \
        float *out = r->out;                                                                       \
        int64_t first = r->first / (block), n_block = r->n / (block);                              \
        for (int64_t b = first; b < first + n_block; b++, out += (block)) {                        \
            struct head head;                                                                      \
            v16 value[2];                                                                          \
            name##_head(r->row + b * (block_bytes), r->scale, b, &head);                           \
            DOTS_EACH_##block(DECODE_GROUP, name);                                                 \
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

/* Lanes `at` .. at + VEC_PART of a tile's sums. n_x is a constant once inlined, so that they live
 * in registers; with the x rows and one weight at a time they just fit. */
VEC void tile_part(const struct micro_tile *t, int n_x, int at)
{
    vec_part acc[MICRO_TILE_SUMS], x[MICRO_TILE_X];
    const float *x_row[MICRO_TILE_X], *w_row[MICRO_TILE_W];
    int64_t n = t->n / 16 * 16;
    EACH (r, n_x)
        x_row[r] = t->x[r] + at;
    EACH (m, MICRO_TILE_W)
        w_row[m] = t->w[m] + at;
    EACH (j, n_x * MICRO_TILE_W)
        acc[j] = vec_part_load(t->lanes[j] + at);
    for (int64_t i = 0; i < n; i += 16) {
        EACH (r, n_x)
            x[r] = vec_part_load(x_row[r] + i);
        EACH (m, MICRO_TILE_W) {
            vec_part w = vec_part_load(w_row[m] + i);
            EACH (r, n_x)
                acc[r * MICRO_TILE_W + m] = vec_part_fma(x[r], w, acc[r * MICRO_TILE_W + m]);
        }
    }
    EACH (j, n_x * MICRO_TILE_W)
        vec_part_store(t->lanes[j] + at, acc[j]);
}

VEC void tile_run(const struct micro_tile *t, int n_x)
{
    if (n_x > VEC_TILE_X)
        return;
    if (t->is_first)
        memset(t->lanes, 0, (size_t)(n_x * MICRO_TILE_W) * sizeof *t->lanes);
    for (int at = 0; at < 16; at += VEC_PART)
        tile_part(t, n_x, at);
    int64_t n_done = t->n / 16 * 16;
    for (int j = 0; j < n_x * MICRO_TILE_W && n_done < t->n; j++)
        dots_tail(t->lanes[j], t->x[j / MICRO_TILE_W] + n_done, t->w[j % MICRO_TILE_W] + n_done,
            t->n - n_done);
}

static void dots_tile(const struct micro_tile *t)
{
    switch (t->n_x) {
    case 1:
        tile_run(t, 1);
        break;
    case 2:
        tile_run(t, 2);
        break;
    case 3:
        tile_run(t, 3);
        break;
    case 4:
        tile_run(t, 4);
        break;
    case 5:
        tile_run(t, 5);
        break;
    default:
        tile_run(t, 6);
    }
}

/* ---- Weighted sum of keys ---- */

#define WEIGHTED_STEP(h) acc##h = v16_fma(v16_set(w->e[h][k]), key, acc##h)

VEC void weighted_tail(const struct micro_weighted *w, int64_t from)
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
