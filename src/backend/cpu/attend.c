/* attend.c: attention over one list of keys per batch row.
 *
 * An item is one row and a few of its heads. Keys are walked in blocks that fit the first cache:
 * once for scores, once for the weighted sum, so that a key is loaded once for all heads of the
 * item.
 */
#include "backend/cpu/cpu.h"
#include "base/fmath.h"
#include "ops/ref/ref.h"

#include <string.h>

enum { MAX_HEAD = 8, KEY_BLOCK = 16 };

struct attend_job {
    const struct op_attend *a;
    const float *sink;
    int64_t n_head_each; /* heads per item */
};

/* One row's keys, by number in their joint order. */
struct key_list {
    const struct op_attend *a;
    int64_t slot, n_comp, n_window, first_window; /* position of the oldest window row */
    const int32_t *rows;
};

static int list_keys(struct backend *be, const struct op_attend *a, int64_t r, struct key_list *k)
{
    int64_t last = ref_ints(a->last, 0)[r], n = last + 1 - (a->first ? ref_ints(a->first, 0)[r] : 0);
    int64_t n_window = n < a->window ? n : a->window;
    *k = (struct key_list){
        .a = a, .slot = ref_ints(a->slot, 0)[r], .n_window = n_window > 0 ? n_window : 0};
    k->first_window = last - k->n_window + 1;
    k->n_comp = a->comp ? ref_ints(a->n_row, 0)[r] : 0;
    k->rows = a->rows ? ref_ints(a->rows, r) : NULL;
    if (ref_refuse_index(be, "attend: slot", k->slot, a->ring->dim[0]) ||
        (a->comp &&
            ref_refuse_index(be, "attend: compressed rows", k->n_comp, a->comp->dim[1] + 1)) ||
        (a->rows && ref_refuse_index(be, "attend: chosen rows", k->n_comp, a->rows->dim[1] + 1)))
        return -1;
    for (int64_t j = 0; k->rows && j < k->n_comp; j++)
        if (ref_refuse_index(be, "attend: compressed row", k->rows[j], a->comp->dim[1]))
            return -1;
    return 0;
}

/* Keys [first, first + n) as floats; decoded ones go to `decoded` [KEY_BLOCK, d]. */
static void load_keys(struct cpu *lane, const struct key_list *k, int64_t first, int64_t n,
    float *decoded, const float *key[KEY_BLOCK])
{
    int64_t d = k->a->q->dim[2];
    for (int64_t i = 0; i < n; i++) {
        int64_t j = first + i, at = (k->first_window + j - k->n_comp) % k->a->ring->dim[1];
        if (j < k->n_comp)
            key[i] = cpu_cache_row(lane, k->a->comp,
                k->slot * k->a->comp->dim[1] + (k->rows ? k->rows[j] : j), decoded + i * d);
        else
            key[i] =
                cpu_cache_row(lane, k->a->ring, k->slot * k->a->ring->dim[1] + at, decoded + i * d);
    }
}

/* The heads of one item. Up to MAX_HEAD; the weighted sum takes four at a time, and where there are
 * fewer it runs on with the last head's weights and the spare output. */
struct heads {
    int64_t n, d;
    const float *q[MAX_HEAD];
    float *score[MAX_HEAD], *o[MAX_HEAD], *spare, *decoded;
    float denominator[MAX_HEAD];
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void add_block(
    struct cpu *lane, const struct heads *h, const float *const *key, int64_t first, int64_t n)
{
    for (int64_t j = 0; j < h->n; j += 4) {
        struct micro_weighted w = {.key = key, .n_key = n, .d = h->d};
        for (int64_t i = 0; i < 4; i++) {
            w.e[i] = h->score[min64(j + i, h->n - 1)] + first;
            w.o[i] = j + i < h->n ? h->o[j + i] : h->spare;
        }
        lane->micro->weighted(&w);
    }
}

/* Scores become e^(score - largest). */
static void soften(struct cpu *lane, struct heads *h, int64_t head, int64_t n_key, float sink)
{
    float *score = h->score[head], largest = sink, sum = 0;
    if (n_key) {
        float most = lane->micro->max(score, n_key);
        largest = most > largest ? most : largest;
        sum = lane->micro->exp_sum(score, largest, n_key);
    }
    h->denominator[head] = sum + fmath_exp(sink - largest);
}

static int prepare_heads(
    struct cpu *lane, const struct attend_job *j, int64_t item, int64_t n_key, struct heads *h)
{
    const struct op_attend *a = j->a;
    int64_t n_head = a->q->dim[1], n_group = (n_head + j->n_head_each - 1) / j->n_head_each;
    int64_t r = item / n_group, first = item % n_group * j->n_head_each;
    h->n = min64(j->n_head_each, n_head - first);
    h->d = a->q->dim[2];
    float *scores = backend_scratch(&lane->base, (size_t)(h->n * n_key) * sizeof *scores);
    h->decoded =
        backend_scratch(&lane->base, (size_t)((KEY_BLOCK + 1) * h->d) * sizeof *h->decoded);
    if (!scores || !h->decoded)
        return -1;
    h->spare = h->decoded + KEY_BLOCK * h->d;
    memset(h->spare, 0, (size_t)h->d * sizeof *h->spare);
    for (int64_t i = 0; i < h->n; i++) {
        h->q[i] = ref_row(a->q, r * n_head + first + i);
        h->o[i] = ref_row(a->o, r * n_head + first + i);
        h->score[i] = scores + i * n_key;
        memset(h->o[i], 0, (size_t)h->d * sizeof *h->o[i]);
    }
    return 0;
}

static void run_item(struct cpu *lane, const struct attend_job *j, int64_t item)
{
    const struct op_attend *a = j->a;
    int64_t n_group = (a->q->dim[1] + j->n_head_each - 1) / j->n_head_each,
            first_head = item % n_group * j->n_head_each;
    struct key_list list;
    struct heads h;
    const float *key[KEY_BLOCK];
    if (list_keys(&lane->base, a, item / n_group, &list))
        return;
    int64_t n_key = list.n_comp + list.n_window;
    if (prepare_heads(lane, j, item, n_key, &h))
        return;
    for (int64_t k = 0; k < n_key; k += KEY_BLOCK) {
        load_keys(lane, &list, k, min64(KEY_BLOCK, n_key - k), h.decoded, key);
        struct cpu_dots dots = {.q = h.q,
            .key = key,
            .n_q = h.n,
            .n_key = min64(KEY_BLOCK, n_key - k),
            .d = h.d,
            .stride = n_key,
            .out = h.score[0] + k};
        cpu_dot_all(lane, &dots);
    }
    for (int64_t i = 0; i < h.n; i++) {
        for (int64_t k = 0; k < n_key; k++)
            h.score[i][k] *= a->scale;
        soften(lane, &h, i, n_key, j->sink[first_head + i]);
    }
    for (int64_t k = 0; k < n_key; k += KEY_BLOCK) {
        load_keys(lane, &list, k, min64(KEY_BLOCK, n_key - k), h.decoded, key);
        add_block(lane, &h, key, k, min64(KEY_BLOCK, n_key - k));
    }
    for (int64_t i = 0; i < h.n; i++)
        lane->micro->divide(h.o[i], h.o[i], h.denominator[i], h.d);
}

static void run_items(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    for (int64_t item = first; item < end && !lane->base.failure.code; item++) {
        struct work_mark mark = work_memory_mark(&lane->base);
        run_item(lane, job, item);
        work_memory_release(&lane->base, mark);
    }
}

void cpu_attend(struct backend *be, const void *args)
{
    const struct op_attend *a = args;
    struct cpu *c = cpu_of(be);
    int64_t n = a->q->dim[0], n_head = a->q->dim[1];
    struct attend_job job = {
        .a = a, .sink = ref_weight_row(be, a->sink, 0), .n_head_each = MAX_HEAD};
    if (!job.sink)
        return;
    if (n * n_head < 2 * MAX_HEAD * c->n_lane) /* few rows, many threads: smaller items */
        job.n_head_each = MAX_HEAD / 2;
    int64_t n_group = (n_head + job.n_head_each - 1) / job.n_head_each;
    int64_t n_key = a->window + (a->comp ? (a->rows ? a->rows->dim[1] : 64) : 0);
    cpu_run(c, (struct cpu_split){n * n_group, 1, 2 * n_key * a->q->dim[2] * job.n_head_each},
        run_items, &job);
}
