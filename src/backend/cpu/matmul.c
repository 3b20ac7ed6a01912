/* matmul.c: activation rows times weights, decoded as they are read.
 *
 * One row: four weight rows at a time, decoded in registers. Several rows, in blocks: they are
 * copied so that the same columns of all rows lie together; then, for a panel of weight rows and
 * one chunk of columns after the other, four weight rows at a time are decoded into the first cache
 * and used for all activation rows. The 16 lanes of every sum stay in memory between chunks and see
 * the same additions in the same order in all ways.
 */
#include "backend/cpu/cpu.h"
#include "ops/ref/ref.h"

#include <string.h>

/* Weight rows, columns, activation rows. A block's chunk of columns and a panel's sums share the
 * second cache; a panel is long enough that a block's columns come from further away rarely. */
enum { PANEL = 48, CHUNK = 512, BLOCK = 96, FEW_ROWS = 12, SMALL_PANEL = 8, STEP = 8 };

const float **cpu_rows(struct cpu *c, const struct tensor *t, int64_t n, int64_t offset)
{
    const float **p = backend_scratch(&c->base, (size_t)n * sizeof *p);
    for (int64_t r = 0; p && r < n; r++)
        p[r] = ref_row(t, r) + offset;
    return p;
}

/* Dots of up to MICRO_TILE_X vectors q and MICRO_TILE_W keys. */
static void dot_tile(struct cpu *lane, const struct cpu_dots *s, int64_t q, int64_t key)
{
    float lanes[MICRO_TILE_SUMS][16], out[MICRO_TILE_SUMS];
    int64_t n_x = s->n_q - q < lane->micro->n_tile_x ? s->n_q - q : lane->micro->n_tile_x;
    struct micro_tile t = {.n = s->d, .n_x = (int)n_x, .is_first = 1, .lanes = lanes};
    for (int64_t i = 0; i < n_x; i++)
        t.x[i] = s->q[q + i];
    for (int64_t i = 0; i < MICRO_TILE_W; i++)
        t.w[i] = s->key[key + i < s->n_key ? key + i : s->n_key - 1];
    lane->micro->tile(&t);
    lane->micro->fold((const float(*)[16])lanes, n_x * MICRO_TILE_W, out);
    for (int64_t i = 0; i < n_x; i++)
        for (int64_t k = 0; k < MICRO_TILE_W && key + k < s->n_key; k++)
            s->out[(q + i) * s->stride + key + k] = out[i * MICRO_TILE_W + k];
}

void cpu_dot_all(struct cpu *lane, const struct cpu_dots *s)
{
    for (int64_t key = 0; key < s->n_key; key += MICRO_TILE_W)
        for (int64_t q = 0; q < s->n_q; q += lane->micro->n_tile_x)
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
    struct micro_rows rows = {.n_col = m->w.dim[1], .ahead = 4 * m->w.row_bytes};
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

/* A panel of weight rows from o, a block of activation rows from r. The latter in groups as even as
 * possible, as many in a group as a tile takes. */
struct panel {
    const struct cpu_matmul *m;
    int64_t o, n_out, r, n_row, n_group;
    const float *x; /* by chunk, then row: CHUNK values each */
    float *decoded; /* MICRO_TILE_W x CHUNK */
    float (*lanes)[16];
};

/* First activation row of group g within the block. */
static int64_t group_row(const struct panel *p, int64_t g)
{
    return g * p->n_row / p->n_group;
}

static float (*tile_lanes(const struct panel *p, int64_t quad, int64_t g))[16]
{
    return p->lanes + (quad * p->n_row + group_row(p, g)) * MICRO_TILE_W;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Copies a block's rows. */
static void pack_rows(const struct panel *p, float *to)
{
    int64_t n_in = p->m->w.dim[1];
    for (int64_t i = 0; i < n_in; i += CHUNK)
        for (int64_t r = 0; r < p->n_row; r++, to += CHUNK)
            memcpy(to, p->m->x[p->r + r] + i, (size_t)min64(CHUNK, n_in - i) * sizeof *to);
}

/* Columns [first, first + n) of four weight rows; where the panel has fewer, the last one again. */
static void load_weights(struct cpu *lane, const struct panel *p, int64_t quad, int64_t first,
    int64_t n, struct micro_tile *t)
{
    for (int64_t i = 0; i < MICRO_TILE_W; i++) {
        int64_t row = quad * MICRO_TILE_W + i;
        if (row < p->n_out)
            decode(lane, &p->m->w, p->o + row, first, n, p->decoded + i * CHUNK);
        t->w[i] = row < p->n_out ? p->decoded + i * CHUNK : t->w[i - 1];
    }
}

static void add_chunk(struct cpu *lane, const struct panel *p, int64_t first)
{
    struct micro_tile t = {.n = min64(CHUNK, p->m->w.dim[1] - first), .is_first = !first};
    const float *x = p->x + first * p->n_row;
    for (int64_t quad = 0; quad * MICRO_TILE_W < p->n_out; quad++) {
        load_weights(lane, p, quad, first, t.n, &t);
        for (int64_t g = 0; g < p->n_group; g++) {
            t.n_x = (int)(group_row(p, g + 1) - group_row(p, g));
            for (int64_t i = 0; i < t.n_x; i++)
                t.x[i] = x + (group_row(p, g) + i) * CHUNK;
            t.lanes = tile_lanes(p, quad, g);
            lane->micro->tile(&t);
        }
    }
}

static void store_sums(struct cpu *lane, const struct panel *p)
{
    for (int64_t quad = 0; quad * MICRO_TILE_W < p->n_out; quad++)
        for (int64_t r = 0; r < p->n_row; r++) {
            const float(*lanes)[16] =
                (const float(*)[16])p->lanes + (quad * p->n_row + r) * MICRO_TILE_W;
            float sum[MICRO_TILE_W];
            lane->micro->fold(lanes, MICRO_TILE_W, sum);
            int64_t o = quad * MICRO_TILE_W;
            memcpy(p->m->y[p->r + r] + p->o + o, sum,
                (size_t)min64(MICRO_TILE_W, p->n_out - o) * sizeof *sum);
        }
}

/* Outputs [first, end) for one block of activation rows. */
static void run_block(struct cpu *lane, struct panel *p, int64_t first, int64_t end)
{
    int64_t n_in = p->m->w.dim[1], n_panel = p->n_row > FEW_ROWS ? PANEL : SMALL_PANEL;
    p->n_group = (p->n_row + lane->micro->n_tile_x - 1) / lane->micro->n_tile_x;
    for (p->o = first; p->o < end; p->o += n_panel) {
        p->n_out = min64(n_panel, end - p->o);
        for (int64_t i = 0; i < n_in; i += CHUNK)
            add_chunk(lane, p, i);
        store_sums(lane, p);
    }
}

static void run_blocks(struct cpu *lane, const struct cpu_matmul *m, int64_t first, int64_t end)
{
    struct panel p = {.m = m};
    int64_t n_block = (m->n + BLOCK - 1) / BLOCK, most = (m->n + n_block - 1) / n_block,
            n_chunk = (m->w.dim[1] + CHUNK - 1) / CHUNK;
    float *x = backend_scratch(&lane->base, (size_t)(most * n_chunk * CHUNK) * sizeof *x);
    p.decoded = backend_scratch(&lane->base, MICRO_TILE_W * CHUNK * sizeof *p.decoded);
    p.lanes = backend_scratch(&lane->base, (size_t)(most * PANEL) * sizeof *p.lanes);
    p.x = x;
    for (int64_t b = 0; x && p.decoded && p.lanes && b < n_block; b++) {
        p.r = b * m->n / n_block;
        p.n_row = (b + 1) * m->n / n_block - p.r;
        pack_rows(&p, x);
        run_block(lane, &p, first, end);
    }
}

void cpu_matmul_range(struct cpu *lane, const struct cpu_matmul *m, int64_t first, int64_t end)
{
    if (m->n == 1 && lane->micro->dot4[m->w.type])
        run_single(lane, m, first, end);
    else if (m->n > 0)
        run_blocks(lane, m, first, end);
}

static void run_range(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    cpu_matmul_range(lane, job, first, end);
}

void cpu_matmul_all(struct cpu *c, struct cpu_matmul *m)
{
    struct cpu_split split = {m->w.dim[0], STEP, m->n * m->w.dim[1]};
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
        cpu_run(c, (struct cpu_split){a->w->dim[0], STEP, n * n_in}, run_grouped, &job);
}
