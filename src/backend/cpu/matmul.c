/* matmul.c: activation rows times weights, decoded as they are read.
 *
 * One row: four weight rows at a time, decoded in registers. Several rows: a panel of weight rows
 * is decoded in chunks of columns and used for a block of activation rows, so loads and decoding
 * are shared; the 16 lanes of every sum stay in memory between chunks (unless one chunk is all) and
 * see the same additions in the same order in all ways.
 */
#include "backend/cpu/cpu.h"
#include "ops/ref/ref.h"

#include <string.h>

enum { PANEL = 8, CHUNK = 512, BLOCK = 48 };

const float **cpu_rows(struct cpu *c, const struct tensor *t, int64_t n, int64_t offset)
{
    const float **p = backend_scratch(&c->base, (size_t)n * sizeof *p);
    for (int64_t r = 0; p && r < n; r++)
        p[r] = ref_row(t, r) + offset;
    return p;
}

/* Dots of up to 3 vectors q and 2 keys. */
static void dot_tile(struct cpu *lane, const struct cpu_dots *s, int64_t q, int64_t key)
{
    int64_t last_q = s->n_q - 1, last_key = s->n_key - 1;
    const float *x[3], *w[2] = {s->key[key], s->key[key < last_key ? key + 1 : last_key]};
    float out[6];
    for (int64_t i = 0; i < 3; i++)
        x[i] = s->q[q + i < last_q ? q + i : last_q];
    lane->micro->dots(x, w, s->d, out);
    for (int64_t i = 0; i < 6; i++)
        if (q + i / 2 <= last_q && key + i % 2 <= last_key)
            s->out[(q + i / 2) * s->stride + key + i % 2] = out[i];
}

void cpu_dot_all(struct cpu *lane, const struct cpu_dots *s)
{
    for (int64_t key = 0; key < s->n_key; key += 2)
        for (int64_t q = 0; q < s->n_q; q += 3)
            dot_tile(lane, s, q, key);
}

const float *cpu_cache_row(struct cpu *lane, const struct tensor *t, int64_t row, float *decoded)
{
    const uint8_t *p = (const uint8_t *)t->data + row * t->row_bytes;
    if (t->type == DT_F32)
        return (const float *)(const void *)p;
    int64_t n = tensor_n_col(t);
    lane->micro->decode[t->type](
        &(struct decode_run){.row = p, .n_col = n, .n = n, .out = decoded});
    return decoded;
}

static const uint8_t *scale_of(const struct tensor *w, int64_t row)
{
    const struct dtype_info *type = dtype_info(w->type);
    if (!type->scale_rows)
        return NULL;
    int64_t n_scale = (w->dim[1] + type->scale_cols - 1) / type->scale_cols;
    return (const uint8_t *)w->scale + row / type->scale_rows * n_scale;
}

static const uint8_t *data_of(const struct tensor *w, int64_t row)
{
    return (const uint8_t *)w->data + row * w->row_bytes;
}

static void decode(
    struct cpu *lane, const struct tensor *w, int64_t row, int64_t first, int64_t n, float *out)
{
    if (!lane->micro->decode[w->type]) {
        tensor_decode(w, row, first, n, out);
        return;
    }
    struct decode_run run = {.row = data_of(w, row),
        .scale = scale_of(w, row),
        .n_col = w->dim[1],
        .first = first,
        .n = n,
        .out = out};
    lane->micro->decode[w->type](&run);
}

/* ---- One activation row ---- */

static void run_single(struct cpu *lane, const struct cpu_matmul *m, int64_t first, int64_t end)
{
    struct micro_rows rows = {.n_col = m->w.dim[1]};
    for (int64_t o = first; o < end; o += 4) {
        float y[4];
        for (int i = 0; i < 4; i++) {
            int64_t row = o + i < end
                              ? o + i
                              : end - 1; /* the last row again where there are fewer than four */
            rows.row[i] = data_of(&m->w, row);
            rows.scale[i] = scale_of(&m->w, row);
        }
        lane->micro->dot4[m->w.type](&rows, m->x[0], y);
        for (int i = 0; i < 4 && o + i < end; i++)
            m->y[0][o + i] = y[i];
    }
}

/* ---- Several activation rows ---- */

/* Up to PANEL weight rows and up to BLOCK activation rows. The latter in groups of 3 or 2, as even
 * as possible (a group of one would keep the multipliers half idle). lanes: for every group and
 * every pair of weight rows, 6 sums (micro_tile). */
struct panel {
    const struct cpu_matmul *m;
    int64_t o, n_out, r, n_row, n_group;
    float *decoded;        /* PANEL x CHUNK values */
    const float *w[PANEL]; /* the chunk of every weight row: there, or where F32 weights lie */
    float (*lanes)[16];
};

enum { N_PAIR = PANEL / 2, TILE_SUMS = 6, N_SUM = (BLOCK + 2) / 3 * N_PAIR * TILE_SUMS };

static float (*tile_lanes(const struct panel *p, int64_t group, int pair))[16]
{
    return p->lanes + (group * N_PAIR + pair) * TILE_SUMS;
}

/* First activation row of group g within the block. */
static int64_t group_row(const struct panel *p, int64_t g)
{
    return g * p->n_row / p->n_group;
}

/* F32 rows are used where they lie only if that is once or twice: rows that are a multiple of 4 KiB
 * apart would push each other out of the first cache, and decoded ones are not. */
static void load_chunk(struct cpu *lane, struct panel *p, int64_t first, int64_t n)
{
    int may_stay = p->m->w.type == DT_F32 && p->n_group <= 2;
    for (int64_t i = 0; i < p->n_out; i++) {
        const float *row = (const float *)(const void *)data_of(&p->m->w, p->o + i);
        if (may_stay && (uintptr_t)row % sizeof *row == 0) {
            p->w[i] = row + first;
            continue;
        }
        p->w[i] = p->decoded + i * CHUNK;
        decode(lane, &p->m->w, p->o + i, first, n, p->decoded + i * CHUNK);
    }
}

/* Group g of activation rows times one pair of weight rows, for the chunk that is loaded. Returns
 * the rows in the group. */
static int64_t point_tile(
    const struct panel *p, int64_t g, int pair, int64_t first, struct micro_tile *t)
{
    int64_t row = group_row(p, g), n_row = group_row(p, g + 1) - row;
    for (int64_t i = 0; i < 3; i++)
        t->x[i] = p->m->x[p->r + row + (i < n_row ? i : 0)] + first;
    t->w[0] = p->w[2 * pair];
    t->w[1] = p->w[2 * pair + 1 < p->n_out ? 2 * pair + 1 : 2 * pair];
    return n_row;
}

static void store_tile(const struct panel *p, int64_t g, int pair, const float sum[TILE_SUMS])
{
    int64_t row = group_row(p, g), n_row = group_row(p, g + 1) - row;
    for (int64_t i = 0; i < 2 * n_row; i++)
        if (2 * pair + i % 2 < p->n_out)
            p->m->y[p->r + row + i / 2][p->o + 2 * pair + i % 2] = sum[i];
}

static void add_chunk(struct cpu *lane, const struct panel *p, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < p->n_group * N_PAIR; i++) {
        struct micro_tile t;
        int pair = (int)(i % N_PAIR);
        if (2 * pair >= p->n_out)
            continue;
        int64_t n_row = point_tile(p, i / N_PAIR, pair, first, &t);
        t.n = n;
        t.lanes = tile_lanes(p, i / N_PAIR, pair);
        lane->micro->tile[n_row - 1](&t);
    }
}

static void store_sums(struct cpu *lane, const struct panel *p)
{
    for (int64_t i = 0; i < p->n_group * N_PAIR; i++) {
        float sum[TILE_SUMS];
        int pair = (int)(i % N_PAIR);
        if (2 * pair >= p->n_out)
            continue;
        lane->micro->fold((const float(*)[16])tile_lanes(p, i / N_PAIR, pair), TILE_SUMS, sum);
        store_tile(p, i / N_PAIR, pair, sum);
    }
}

/* Rows that fit one chunk: every sum is done at once. */
static void run_whole(struct cpu *lane, struct panel *p)
{
    int64_t n_in = p->m->w.dim[1];
    load_chunk(lane, p, 0, n_in);
    for (int64_t i = 0; i < p->n_group * N_PAIR; i++) {
        struct micro_tile t;
        float sum[TILE_SUMS];
        int pair = (int)(i % N_PAIR);
        if (2 * pair >= p->n_out)
            continue;
        point_tile(p, i / N_PAIR, pair, 0, &t);
        lane->micro->dots(t.x, t.w, n_in, sum);
        store_tile(p, i / N_PAIR, pair, sum);
    }
}

static void run_chunks(struct cpu *lane, struct panel *p)
{
    int64_t n_in = p->m->w.dim[1];
    memset(p->lanes, 0, (size_t)(p->n_group * N_PAIR * TILE_SUMS) * sizeof *p->lanes);
    for (int64_t i = 0; i < n_in; i += CHUNK) {
        int64_t n_col = n_in - i < CHUNK ? n_in - i : CHUNK;
        load_chunk(lane, p, i, n_col);
        add_chunk(lane, p, i, n_col);
    }
    store_sums(lane, p);
}

static void run_panels(struct cpu *lane, const struct cpu_matmul *m, int64_t first, int64_t end)
{
    struct panel p = {.m = m};
    int64_t n_in = m->w.dim[1];
    p.decoded = backend_scratch(&lane->base, PANEL * CHUNK * sizeof *p.decoded);
    p.lanes = backend_scratch(&lane->base, N_SUM * sizeof *p.lanes);
    if (!p.decoded || !p.lanes)
        return;
    for (p.o = first; p.o < end; p.o += PANEL) {
        p.n_out = end - p.o < PANEL ? end - p.o : PANEL;
        for (p.r = 0; p.r < m->n; p.r += BLOCK) {
            p.n_row = m->n - p.r < BLOCK ? m->n - p.r : BLOCK;
            p.n_group = (p.n_row + 2) / 3;
            if (n_in <= CHUNK)
                run_whole(lane, &p);
            else
                run_chunks(lane, &p);
        }
    }
}

void cpu_matmul_range(struct cpu *lane, const struct cpu_matmul *m, int64_t first, int64_t end)
{
    if (m->n == 1 && lane->micro->dot4[m->w.type])
        run_single(lane, m, first, end);
    else if (m->n > 0)
        run_panels(lane, m, first, end);
}

static void run_range(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    cpu_matmul_range(lane, job, first, end);
}

void cpu_matmul_all(struct cpu *c, struct cpu_matmul *m)
{
    struct cpu_split split = {m->w.dim[0], PANEL, m->n * m->w.dim[1]};
    cpu_run(c, split, run_range, m);
}

void cpu_matmul(struct backend *be, const void *args)
{
    const struct op_matmul *a = args;
    struct cpu *c = cpu_of(be);
    struct cpu_matmul m = {.w = *a->w, .n = a->x->dim[0]};
    m.x = cpu_rows(c, a->x, m.n, 0);
    m.y = (float *const *)cpu_rows(c, a->y, m.n, 0);
    if (m.x && m.y)
        cpu_matmul_all(c, &m);
}

/* Outputs of all groups in a row; an item is an output. */
struct grouped_job {
    struct cpu_matmul *group;
    int64_t n_out_each;
};

static void run_grouped(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    struct grouped_job *j = job;
    while (first < end) {
        int64_t g = first / j->n_out_each, group_end = (g + 1) * j->n_out_each;
        int64_t last = end < group_end ? end : group_end;
        cpu_matmul_range(lane, &j->group[g], first, last);
        first = last;
    }
}

void cpu_matmul_grouped(struct backend *be, const void *args)
{
    const struct op_matmul_grouped *a = args;
    struct cpu *c = cpu_of(be);
    int64_t n = a->x->dim[0], n_in = a->w->dim[1];
    struct grouped_job job = {.n_out_each = a->w->dim[0] / a->n_group};
    job.group = backend_scratch(be, (size_t)a->n_group * sizeof *job.group);
    float *const *y = (float *const *)cpu_rows(c, a->y, n, 0);
    for (int g = 0; job.group && g < a->n_group; g++) {
        job.group[g] =
            (struct cpu_matmul){.w = *a->w, .n = n, .x = cpu_rows(c, a->x, n, g * n_in), .y = y};
        if (!y || !job.group[g].x)
            return;
    }
    if (job.group)
        cpu_run(c, (struct cpu_split){a->w->dim[0], PANEL, n * n_in}, run_grouped, &job);
}
