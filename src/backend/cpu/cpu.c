/* cpu.c: opening the CPU backend and splitting work. See cpu.h. */
#include "backend/cpu/cpu.h"

#include "backend/cpu/levels.h"
#include "backend/host.h"
#include "base/arena.h"
#include "ops/ref/ref.h"

#include <string.h>

/* Below this much work a call is done by the calling thread: waking workers takes several
 * microseconds. */
enum { MIN_SPLIT_COST = 1 << 17, RUNS_PER_WORKER = 4 };

static void close_cpu(struct backend *be)
{
    struct cpu *c = cpu_of(be);
    workers_close(c->workers);
    for (int i = 0; i < c->n_lane; i++)
        work_memory_free(&c->lane[i].base);
    mem_free(c->lane);
    mem_free(c);
}

static int open_cpu(struct backend **be, const struct backend_options *options, struct err *e)
{
    const struct micro *micro = levels_find(options->level, e);
    if (!micro)
        return -1;
    struct cpu *c = mem_resize(NULL, sizeof *c);
    if (!c)
        return err_set(e, ERR_MEMORY, "no memory for a backend");
    *c = (struct cpu){.base = {.kind = &backend_cpu, .level = micro->name}, .micro = micro};
    if (workers_open(&c->workers, options->n_thread, e)) {
        close_cpu(&c->base);
        return -1;
    }
    c->base.n_thread = workers_n(c->workers);
    c->lane = mem_resize(NULL, (size_t)c->base.n_thread * sizeof *c->lane);
    if (!c->lane) {
        close_cpu(&c->base);
        return err_set(e, ERR_MEMORY, "no memory for %d workers", workers_n(c->workers));
    }
    for (; c->n_lane < c->base.n_thread; c->n_lane++)
        c->lane[c->n_lane] =
            (struct cpu){.base = {.kind = &backend_cpu, .level = micro->name}, .micro = micro};
    *be = &c->base;
    return 0;
}

/* ---- Splitting ---- */

struct run {
    struct cpu *c;
    struct cpu_split split;
    cpu_fn fn;
    void *job;
};

/* Items here are steps. */
static void run_steps(void *context, int64_t first, int64_t end, int worker)
{
    struct run *r = context;
    struct cpu *lane = &r->c->lane[worker];
    struct work_mark mark = work_memory_mark(&lane->base);
    int64_t last = end * r->split.step;
    if (!lane->base.failure.code)
        r->fn(lane, r->job, first * r->split.step, last < r->split.n_item ? last : r->split.n_item);
    work_memory_release(&lane->base, mark);
}

static void take_failures(struct cpu *c)
{
    for (int i = 0; i < c->n_lane; i++) {
        struct err *e = &c->lane[i].base.failure;
        if (!e->code)
            continue;
        backend_fail(&c->base, e->code, "%s", e->text);
        *e = (struct err){.code = ERR_NONE};
    }
}

void cpu_run(struct cpu *c, struct cpu_split split, cpu_fn fn, void *job)
{
    if (!c->workers) {
        fn(c, job, 0, split.n_item);
        return;
    }
    struct run r = {c, split, fn, job};
    int64_t n_step = (split.n_item + split.step - 1) / split.step;
    int64_t cost = split.cost > 0 ? split.cost : 1;
    int64_t smallest = MIN_SPLIT_COST / 2 / (cost * split.step) + 1;
    int64_t grain = n_step / (RUNS_PER_WORKER * c->n_lane);
    if (split.n_item <= MIN_SPLIT_COST / cost)
        grain = n_step;
    workers_run(c->workers, n_step, grain > smallest ? grain : smallest, run_steps, &r);
    take_failures(c);
}

struct row_job {
    enum op op;
    const void *args;
    op_fn fn;
};

static void run_rows(struct cpu *lane, void *job, int64_t first, int64_t end)
{
    struct row_job *j = job;
    struct op_cut cut;
    op_cut_rows(&cut, j->op, j->args, first, end - first);
    j->fn(&lane->base, cut.args);
}

void cpu_run_rows(struct backend *be, enum op op, const void *args, op_fn fn, int cost)
{
    struct row_job job = {op, args, fn};
    struct cpu_split split = {op_n_row(op, args), 1, cost * op_row_values(op, args)};
    cpu_run(cpu_of(be), split, run_rows, &job);
}

/* ---- The table ---- */

/* The reference, split over batch rows. Costs: nanoseconds per value, about. */
#define BY_ROWS(op, cost)                                                                          \
    static void rows_##op(struct backend *be, const void *args)                                    \
    {                                                                                              \
        cpu_run_rows(be, OP_##op, args, ref_##op, cost);                                           \
    }
/* clang-format off */
#define BY_ROWS_OPS(X)                                                                             \
    X(gather, 2) X(repeat_streams, 1) X(rope_angles, 30) X(rope_tail, 3) X(round_fp8, 5)           \
    X(round_fp4, 4) X(round_fp4_e4m3, 4) X(append, 2) X(add_by_pos, 2) X(router, 50)               \
    X(router_by_token, 50) X(stream_mean, 2) X(argmax, 2)
/* clang-format on */
BY_ROWS_OPS(BY_ROWS)

#define ROWS_ENTRY(op, cost) [OP_##op] = rows_##op,
#define OWN_ENTRY(op)        [OP_##op] = cpu_##op,
static const op_fn entries[N_OP] = {BY_ROWS_OPS(ROWS_ENTRY) CPU_OPS(OWN_ENTRY)};

static void fill_cpu(op_fn table[N_OP])
{
    ref_fill(table);
    for (int op = 0; op < N_OP; op++)
        if (entries[op])
            table[op] = entries[op];
}

const struct backend_kind backend_cpu = {
    .name = "cpu",
    .open = open_cpu,
    .close = close_cpu,
    .buffer_new = host_buffer_new,
    .buffer_wrap = host_buffer_wrap,
    .buffer_free = host_buffer_free,
    .write = host_copy,
    .read = host_copy,
    .begin = host_begin,
    .end = host_end,
    .fill = fill_cpu,
};
