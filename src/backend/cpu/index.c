/* index.c: scoring and choosing compressed rows without ever keeping the score matrix.
 *
 * With many batch rows every worker takes rows and keeps one row's scores; with few, workers share
 * a row's keys and the caller chooses. Keys are scored in blocks, heads in ascending order for all
 * keys of a block at once.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/select.h"
#include "ops/ref/ref.h"

#include <string.h>

enum { KEY_BLOCK = 64, KEYS_PER_ITEM = 512 };

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Scores ---- */

/* Scores of one batch row: for keys key_row[j], or j when that is NULL, of one slot. */
struct score_job {
    const struct tensor *q, *w, *keys;
    int64_t r, slot;
    float scale;
    const int32_t *key_row;
    float *score;
};

/* Items: keys. */
static void run_scores(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    const struct score_job *j = job;
    int64_t n_head = j->q->dim[1], d = j->q->dim[2];
    float *dot = backend_scratch(&lane->base, (size_t)(n_head * KEY_BLOCK) * sizeof *dot);
    float *decoded = backend_scratch(&lane->base, (size_t)(KEY_BLOCK * d) * sizeof *decoded);
    const float **q = backend_scratch(&lane->base, (size_t)n_head * sizeof *q);
    const float *w = ref_row(j->w, j->r), *key[KEY_BLOCK];
    for (int64_t h = 0; q && h < n_head; h++)
        q[h] = ref_row(j->q, j->r * n_head + h);
    for (; q && dot && decoded && first < end; first += KEY_BLOCK) {
        int64_t n = min64(KEY_BLOCK, end - first);
        for (int64_t i = 0; i < n; i++) {
            int64_t row = j->key_row ? j->key_row[first + i] : first + i;
            key[i] = cpu_cache_row(lane, j->keys, j->slot * j->keys->dim[1] + row, decoded + i * d);
        }
        struct cpu_dots dots = {q, key, n_head, n, d, KEY_BLOCK, dot};
        cpu_dot_all(lane, &dots);
        memset(j->score + first, 0, (size_t)n * sizeof *j->score);
        for (int64_t h = 0; h < n_head; h++) {
            float weight = w[h] * j->scale;
            lane->micro->relu_sum(j->score + first, dot + h * KEY_BLOCK, weight, n);
        }
    }
}

static void score_keys(struct cpu *c, struct score_job *j, int64_t n_key)
{
    struct cpu_split split = {n_key, KEYS_PER_ITEM, j->q->dim[1] * j->q->dim[2]};
    cpu_run(c, split, run_scores, j);
}

void cpu_index_score(struct backend *be, const void *args)
{
    const struct op_index_score *a = args;
    int64_t most = min64(a->keys->dim[1], a->s->dim[1]);
    for (int64_t r = 0; r < a->q->dim[0]; r++) {
        int64_t slot = ref_ints(a->slot, 0)[r], visible = ref_ints(a->visible, 0)[r];
        if (ref_refuse_index(be, "index_score: slot", slot, a->keys->dim[0]) ||
            ref_refuse_index(be, "index_score: visible rows", visible, most + 1))
            return;
        struct score_job j = {.q = a->q,
            .w = a->w,
            .keys = a->keys,
            .r = r,
            .slot = slot,
            .scale = a->scale,
            .score = ref_row(a->s, r)};
        score_keys(cpu_of(be), &j, visible);
    }
}

/* ---- Choosing ---- */

static int32_t fill_rest(int32_t *out, int32_t n, int64_t n_out)
{
    for (int64_t i = n; i < n_out; i++)
        out[i] = -1;
    return n;
}

/* Visible rows of the listed blocks, ascending. */
static int64_t list_rows(
    const int32_t *block, int64_t n_block, int64_t size, int64_t visible, int32_t *row)
{
    int64_t n = 0;
    for (int64_t b = 0; b < n_block; b++)
        for (int64_t j = block[b] * size; j >= 0 && j < (block[b] + 1) * size && j < visible; j++)
            row[n++] = (int32_t)j;
    return n;
}

/* Listed blocks of batch row r: how many. */
static int64_t count_blocks(const struct tensor *block, const struct tensor *n_block, int64_t r)
{
    return min64(ref_ints(n_block, 0)[r], block->dim[1]);
}

static void topk(struct backend *be, const void *args)
{
    const struct op_topk *a = args;
    int64_t k = a->rows->dim[1], n_most = a->block ? a->block->dim[1] * a->block_size : 0;
    int32_t *place = backend_scratch(be, (size_t)n_most * sizeof *place);
    float *gathered = backend_scratch(be, (size_t)n_most * sizeof *gathered);
    for (int64_t r = 0; place && gathered && r < a->rows->dim[0]; r++) {
        int64_t n = ref_ints(a->visible, 0)[r];
        const float *score = ref_row(a->s, r);
        if (ref_refuse_index(be, "topk: visible rows", n, a->s->dim[1] + 1))
            return;
        if (a->block) {
            n = list_rows(ref_ints(a->block, r), count_blocks(a->block, a->n_block, r),
                a->block_size, n, place);
            for (int64_t i = 0; i < n; i++)
                gathered[i] = score[place[i]];
            score = gathered;
        }
        int32_t *rows = ref_ints(a->rows, r);
        ref_ints(a->n_row, 0)[r] =
            fill_rest(rows, select_largest(score, n, k, a->block ? place : NULL, rows), k);
    }
}

void cpu_topk(struct backend *be, const void *args)
{
    cpu_run_rows(be, OP_topk, args, topk, 4);
}

/* The n_out best blocks of the first `visible` scores, the newest always among them. best: room for
 * a value per block. */
static int32_t choose_blocks(
    const float *score, int64_t visible, int64_t size, float *best, int32_t *out, int64_t n_out)
{
    int64_t n_block = (visible + size - 1) / size;
    for (int64_t b = 0; b < n_block; b++) {
        best[b] = score[b * size];
        for (int64_t j = b * size + 1; j < (b + 1) * size && j < visible; j++)
            best[b] = score[j] > best[b] ? score[j] : best[b];
    }
    if (!n_block)
        return 0;
    int32_t n = select_largest(best, n_block - 1, n_out - 1, NULL, out);
    out[n] = (int32_t)n_block - 1;
    return n + 1;
}

static void candidate_blocks(struct backend *be, const void *args)
{
    const struct op_candidate_blocks *a = args;
    float *best = backend_scratch(be, (size_t)(a->s->dim[1] / a->block_size + 1) * sizeof *best);
    for (int64_t r = 0; best && r < a->block->dim[0]; r++) {
        int64_t visible = ref_ints(a->visible, 0)[r], n_out = a->block->dim[1];
        int32_t *out = ref_ints(a->block, r);
        if (ref_refuse_index(be, "candidate_blocks: visible rows", visible, a->s->dim[1] + 1))
            return;
        int32_t n = choose_blocks(ref_row(a->s, r), visible, a->block_size, best, out, n_out);
        ref_ints(a->n_block, 0)[r] = fill_rest(out, n, n_out);
    }
}

void cpu_candidate_blocks(struct backend *be, const void *args)
{
    cpu_run_rows(be, OP_candidate_blocks, args, candidate_blocks, 2);
}

/* ---- Both at once ---- */

/* What is needed of batch row r. */
struct selection {
    const struct op_index_select *a;
    int64_t r, visible, n_candidate;
    int32_t *place; /* with blocks given: the candidates' rows */
    float *score;   /* of the candidates; NULL: everything is chosen anyway */
    float *best;
};

static int list_candidates(
    struct backend *be, const struct op_index_select *a, int64_t r, struct selection *s)
{
    *s = (struct selection){.a = a, .r = r, .visible = ref_ints(a->visible, 0)[r]};
    if (ref_refuse_index(be, "index_select: slot", ref_ints(a->slot, 0)[r], a->keys->dim[0]) ||
        ref_refuse_index(be, "index_select: visible rows", s->visible, a->keys->dim[1] + 1))
        return -1;
    s->n_candidate = s->visible;
    if (!a->block)
        return 0;
    int64_t n_block = count_blocks(a->block, a->n_block, r);
    s->place =
        backend_scratch(be, (size_t)(n_block > 0 ? n_block * a->block_size : 0) * sizeof *s->place);
    if (!s->place)
        return -1;
    s->n_candidate = list_rows(ref_ints(a->block, r), n_block, a->block_size, s->visible, s->place);
    return 0;
}

static int must_score(const struct selection *s)
{
    const struct op_index_select *a = s->a;
    int makes_choice =
        a->make_block && (s->visible + a->block_size - 1) / a->block_size > a->make_block->dim[1];
    return makes_choice || s->n_candidate > a->rows->dim[1];
}

static int score_candidates(struct cpu *c, struct selection *s)
{
    const struct op_index_select *a = s->a;
    s->score = backend_scratch(&c->base, (size_t)s->n_candidate * sizeof *s->score);
    if (!s->score)
        return -1;
    struct score_job j = {.q = a->q,
        .w = a->w,
        .keys = a->keys,
        .r = s->r,
        .slot = ref_ints(a->slot, 0)[s->r],
        .scale = a->scale,
        .key_row = s->place,
        .score = s->score};
    score_keys(c, &j, s->n_candidate);
    return c->base.failure.code ? -1 : 0;
}

/* Everything of [0, n), or of the listed places. */
static int32_t take_all(const int32_t *place, int64_t n, int32_t *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = place ? place[i] : (int32_t)i;
    return (int32_t)n;
}

static int make_blocks(struct backend *be, const struct selection *s)
{
    const struct op_index_select *a = s->a;
    int32_t *out = ref_ints(a->make_block, s->r), n = 0;
    int64_t n_out = a->make_block->dim[1],
            n_block = (s->visible + a->block_size - 1) / a->block_size;
    if (n_block <= n_out) {
        n = take_all(NULL, n_block, out);
    } else {
        float *best = backend_scratch(be, (size_t)n_block * sizeof *best);
        if (!best)
            return -1;
        n = choose_blocks(s->score, s->visible, a->block_size, best, out, n_out);
    }
    ref_ints(a->n_make_block, 0)[s->r] = fill_rest(out, n, n_out);
    return 0;
}

static void select_row(struct cpu *c, const struct op_index_select *a, int64_t r)
{
    struct selection s;
    int64_t k = a->rows->dim[1];
    int32_t *rows = ref_ints(a->rows, r), n;
    if (list_candidates(&c->base, a, r, &s) || (must_score(&s) && score_candidates(c, &s)))
        return;
    if (s.n_candidate <= k)
        n = take_all(s.place, s.n_candidate, rows);
    else
        n = select_largest(s.score, s.n_candidate, k, s.place, rows);
    ref_ints(a->n_row, 0)[r] = fill_rest(rows, n, k);
    if (a->make_block)
        make_blocks(&c->base, &s);
}

/* Items: batch rows. On a lane scoring is not split further; on the backend itself it is. */
static void run_select(struct cpu *c, void *job, int64_t first, int64_t end)
{
    for (int64_t r = first; r < end && !c->base.failure.code; r++) {
        struct work_mark mark = work_memory_mark(&c->base);
        select_row(c, job, r);
        work_memory_release(&c->base, mark);
    }
}

void cpu_index_select(struct backend *be, const void *args)
{
    const struct op_index_select *a = args;
    struct cpu *c = cpu_of(be);
    int64_t n = a->q->dim[0], n_score = 0;
    if (a->block &&
        a->make_block) { /* no model does both at once: the definition scores every row */
        op_definition(OP_index_select)(be, args);
        return;
    }
    for (int64_t r = 0; r < n; r++)
        n_score += ref_ints(a->visible, 0)[r];
    void *job = (void *)(uintptr_t)a;
    if (n < 2 * c->n_lane)
        run_select(c, job, 0, n);
    else
        cpu_run(c, (struct cpu_split){n, 1, n_score / n * a->q->dim[1] * a->q->dim[2]}, run_select,
            job);
}
