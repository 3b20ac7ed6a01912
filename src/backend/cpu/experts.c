/* experts.c: expert_mlp. Batch rows are grouped by expert, so that an expert's weights are decoded
 * once for all of its rows; results are kept per (row, choice) and added in the order of the
 * choices, as the definition says. */
#include "backend/cpu/cpu.h"
#include "ops/ref/ref.h"

#include <string.h>

/* One expert with rows, and its places in the arrays of pairs, which are sorted by expert. */
struct expert {
    int64_t first_pair, n_pair;
    struct cpu_matmul gate, up, down;
};

struct experts_job {
    const struct op_expert_mlp *a;
    int64_t n_pair, n_expert; /* experts with rows */
    struct expert *expert;
    int32_t *pair_of; /* [n, k] -> place */
    const float **x;  /* by place: the row's input; then its inner values and its result */
    float **gate, **up, **out;
    float *weight;
};

/* Fills count[e + 1] with the pairs of expert e, then turns it into first places. */
static int count_pairs(struct backend *be, const struct op_expert_mlp *a, int32_t *count)
{
    int64_t n_expert = a->gate->dim[0], k = a->idx->dim[1];
    memset(count, 0, (size_t)(n_expert + 1) * sizeof *count);
    for (int64_t i = 0; i < a->idx->dim[0] * k; i++) {
        int32_t e = ref_ints(a->idx, i / k)[i % k];
        if (ref_refuse_index(be, "expert_mlp: expert", e, n_expert))
            return -1;
        count[e + 1]++;
    }
    for (int64_t e = 0; e < n_expert; e++)
        count[e + 1] += count[e];
    return 0;
}

static void list_experts(struct experts_job *j, const int32_t *first)
{
    const struct op_expert_mlp *a = j->a;
    for (int64_t e = 0; e < a->gate->dim[0]; e++) {
        int64_t at = first[e], n = first[e + 1] - at;
        if (!n)
            continue;
        struct expert *x = &j->expert[j->n_expert++];
        *x = (struct expert){.first_pair = at, .n_pair = n};
        x->gate = (struct cpu_matmul){tensor_matrix(a->gate, e), n, j->x + at, j->gate + at};
        x->up = (struct cpu_matmul){tensor_matrix(a->up, e), n, j->x + at, j->up + at};
        x->down = (struct cpu_matmul){
            tensor_matrix(a->down, e), n, (const float *const *)j->gate + at, j->out + at};
    }
}

/* Arrays of pairs. Places within an expert are in row order; `next` is used up. */
static int place_pairs(struct backend *be, struct experts_job *j, int32_t *next)
{
    const struct op_expert_mlp *a = j->a;
    int64_t f = a->gate->dim[1], d = a->y->dim[1], k = a->idx->dim[1];
    float *memory = backend_scratch(be, (size_t)(j->n_pair * (2 * f + d)) * sizeof *memory);
    if (!memory)
        return -1;
    for (int64_t i = 0; i < j->n_pair; i++) {
        int32_t place = next[ref_ints(a->idx, i / k)[i % k]]++;
        j->pair_of[i] = place;
        j->x[place] = ref_row(a->x, i / k);
        j->weight[place] = ref_row(a->weight, i / k)[i % k];
        j->gate[i] = memory + i * (2 * f + d);
        j->up[i] = j->gate[i] + f;
        j->out[i] = j->up[i] + f;
    }
    return 0;
}

static int prepare(struct backend *be, struct experts_job *j)
{
    int64_t n_expert = j->a->gate->dim[0], n = j->n_pair;
    int32_t *first = backend_scratch(be, (size_t)(2 * n_expert + 2) * sizeof *first),
            *next = first + n_expert + 1;
    j->expert = backend_scratch(be, (size_t)(n_expert < n ? n_expert : n) * sizeof *j->expert);
    j->pair_of = backend_scratch(be, (size_t)n * sizeof *j->pair_of);
    j->weight = backend_scratch(be, (size_t)n * sizeof *j->weight);
    float **pointers = backend_scratch(be, 4 * (size_t)n * sizeof *pointers);
    if (!first || !j->expert || !j->pair_of || !j->weight || !pointers ||
        count_pairs(be, j->a, first))
        return -1;
    j->x = (const float **)pointers;
    j->gate = pointers + n;
    j->up = j->gate + n;
    j->out = j->up + n;
    memcpy(next, first, (size_t)(n_expert + 1) * sizeof *next);
    if (place_pairs(be, j, next))
        return -1;
    list_experts(j, first);
    return 0;
}

/* Items: inner values of all experts in a row; each run does gate, up and their product for its
 * columns. */
static void run_inner(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    struct experts_job *j = job;
    int64_t f = j->a->gate->dim[1];
    while (first < end) {
        const struct expert *x = &j->expert[first / f];
        int64_t from = first % f, to = from + end - first < f ? from + end - first : f;
        cpu_matmul_range(lane, &x->gate, from, to);
        cpu_matmul_range(lane, &x->up, from, to);
        for (int64_t i = x->first_pair; i < x->first_pair + x->n_pair; i++) {
            float *gate = j->gate[i] + from;
            const float limit_weight[2] = {j->a->limit, j->weight[i]};
            lane->micro->swiglu(gate, gate, j->up[i] + from, limit_weight, to - from);
        }
        first += to - from;
    }
}

static void run_down(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    struct experts_job *j = job;
    int64_t d = j->a->y->dim[1];
    while (first < end) {
        int64_t from = first % d, to = from + end - first < d ? from + end - first : d;
        cpu_matmul_range(lane, &j->expert[first / d].down, from, to);
        first += to - from;
    }
}

/* Adds up each row's choices. */
static void run_sum(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    struct experts_job *j = job;
    int64_t d = j->a->y->dim[1], k = j->a->idx->dim[1];
    for (int64_t r = first; r < end; r++) {
        float *y = ref_row(j->a->y, r);
        memset(y, 0, (size_t)d * sizeof *y);
        for (int64_t i = 0; i < k; i++)
            lane->micro->add(y, j->out[j->pair_of[r * k + i]], d);
    }
}

/* Items come in runs of whole panels (matmul.c); a run may not straddle experts at odd places. */
static int64_t step_of(int64_t n)
{
    return n % 8 ? n : 8;
}

void cpu_expert_mlp(struct backend *be, const void *args)
{
    const struct op_expert_mlp *a = args;
    struct cpu *c = cpu_of(be);
    int64_t n = a->y->dim[0], d = a->y->dim[1], f = a->gate->dim[1], k = a->idx->dim[1];
    struct experts_job job = {.a = a, .n_pair = n * k};
    if (!n || prepare(be, &job))
        return;
    int64_t rows_each = job.n_pair / (job.n_expert ? job.n_expert : 1) + 1;
    cpu_run(
        c, (struct cpu_split){job.n_expert * f, step_of(f), 2 * d * rows_each}, run_inner, &job);
    cpu_run(c, (struct cpu_split){job.n_expert * d, step_of(d), f * rows_each}, run_down, &job);
    cpu_run(c, (struct cpu_split){n, 1, d * k}, run_sum, &job);
}
