/* test_ops.c: every op of every backend against the reference.
 *
 * For each case (op_cases.c), contiguous and with gaps between rows: the reference writes every
 * output value and nothing else; every backend and level returns the same bytes (or what
 * op_compare.h allows), with all batch rows in one call, with each row alone and split at a random
 * row; with 1 and 3 threads. Prints "N passed, N failed"; the exit code follows.
 *
 *   test_ops [--bench] [--op NAME] [--backend NAME] [--level NAME] [--threads N] [--seed N]
 */
#include "ops/op_case.h"
#include "ops/op_cases.h"
#include "ops/op_compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct target {
    const char *backend, *level;
    int n_thread;
    struct backend *be;
};

static const struct target all_targets[] = {
    {"ref", NULL, 1, NULL},
    {"cpu", "portable", 1, NULL},
    {"cpu", "portable", 3, NULL},
    {"cpu", "avx2", 1, NULL},
    {"cpu", "avx2", 3, NULL},
    {"cpu", "avx512", 1, NULL},
    {"cpu", "avx512", 3, NULL},
    {"cpu", "neon", 1, NULL},
    {"cpu", "neon", 3, NULL},
    {"cuda", NULL, 1, NULL},
    {"metal", NULL, 1, NULL},
};
enum { MAX_TARGET = sizeof all_targets / sizeof *all_targets };

struct test {
    const char *op, *backend, *level;
    int n_thread, is_bench;
    uint64_t seed;
    struct target target[MAX_TARGET];
    int n_target, n_passed, n_failed;
    struct backend *ref;
    uint64_t digest; /* of everything the reference returned */
};

static void open_target(struct test *t, struct target x, int checks_shapes)
{
    struct err e = {0};
    struct backend_options o = {
        .n_thread = t->n_thread ? t->n_thread : x.n_thread, .level = x.level};
    o.checks_shapes = checks_shapes;
    if (!backend_open(&x.be, x.backend, &o, &e))
        t->target[t->n_target++] = x;
    else if (x.n_thread < 2)
        printf("# not here: %s\n", e.text);
}

static void open_targets(struct test *t)
{
    if (t->is_bench) { /* one backend, as asked for, else as programs open it */
        open_target(t, (struct target){t->backend ? t->backend : "cpu", t->level, 0, NULL}, 0);
        return;
    }
    for (int i = 0; i < MAX_TARGET; i++) {
        const struct target *x = &all_targets[i];
        if ((!t->backend || !strcmp(t->backend, x->backend)) &&
            (!t->level || !x->level || !strcmp(t->level, x->level)))
            open_target(t, *x, 1);
    }
}

/* ---- Comparing ---- */

static int report(struct test *t, const struct op_case *c, const char *target, const char *format,
    const char *what)
{
    printf(
        "FAIL %s \"%s\" padding %d, %s: ", op_info(c->op)->name, c->line, c->row_padding, target);
    printf(format, what);
    printf("\n");
    t->n_failed++;
    return -1;
}

/* FNV-1a over all images: equal on two machines when their references agree on every bit. */
static void add_digest(struct test *t, const struct op_case *c, const struct case_result *r)
{
    for (int f = 0; f < OP_MAX_FIELD; f++)
        for (int64_t i = 0; c->tensor[f].is_used && i < c->tensor[f].n_byte; i++)
            t->digest = (t->digest ^ r->image[f][i]) * 0x100000001b3u;
}

static int compare(struct test *t, const struct op_case *c, const struct target *target,
    const char *how, const char *difference)
{
    char name[96];
    snprintf(name, sizeof name, "%s %s, %d threads, %s", target->backend, target->be->level,
        target->n_thread, how);
    if (difference)
        return report(t, c, name, "%s", difference);
    t->n_passed++;
    return 0;
}

/* ---- Running ---- */

static int64_t n_batch_row(const struct op_case *c)
{
    const struct op_info *info = op_info(c->op);
    for (int f = 0; f < info->n_field; f++)
        if (c->tensor[f].is_used && strchr("nm*", *info->field[f].shape))
            return c->tensor[f].t.dim[0];
    return 0;
}

static void run_target(struct test *t, const struct op_case *c, const struct target *target,
    const struct case_result *expected)
{
    enum { MAX_ROW = 512 };
    int64_t n = n_batch_row(c), ones[MAX_ROW + 1] = {0}, split[3] = {0};
    struct rng rng = rng_of(t->seed, (uint64_t)n);
    for (int64_t i = 0; i < n && i < MAX_ROW; i++)
        ones[i] = 1;
    split[0] = n > 1 ? 1 + (int64_t)rng_below(&rng, (uint64_t)n - 1) : n;
    split[1] = n - split[0];
    const int64_t *parts[] = {NULL, ones, split};
    static const char *const how[] = {"all rows", "row by row", "split"};
    struct case_result result[3] = {{.seconds = NULL}};
    for (int i = 0; i < 3; i++) {
        struct err e = {0};
        if (case_run(c, target->be, parts[i], &result[i], &e)) {
            report(t, c, target->backend, "%s", e.text);
            continue;
        }
        struct comparison k = {c, t->ref, target->backend, expected, &result[i], &result[0]};
        compare(t, c, target, how[i], compare_results(&k));
    }
    for (int i = 0; i < 3; i++)
        case_result_free(&result[i]);
}

static void run_case(struct test *t, struct backend *ref, const struct case_line *line, int padding)
{
    struct op_case c;
    struct case_result expected = {.seconds = NULL};
    struct err e = {0};
    if (case_build(&c, line->op, line->line, padding, t->seed)) {
        t->n_failed++;
    } else if (case_run(&c, ref, NULL, &expected, &e)) {
        if (!padding || e.code != ERR_SHAPE) /* some ops want contiguous rows */
            report(t, &c, "ref", "%s", e.text);
    } else {
        const char *fault = NULL;
        for (int f = 0; f < OP_MAX_FIELD && !fault; f++)
            fault = c.tensor[f].is_used ? compare_places(&c, f, &expected) : NULL;
        if (fault)
            report(t, &c, "ref", "%s", fault);
        add_digest(t, &c, &expected);
        for (int i = 0; i < t->n_target; i++)
            run_target(t, &c, &t->target[i], &expected);
    }
    case_result_free(&expected);
    case_free(&c);
}

/* ---- Timing ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double all_bytes(const struct op_case *c)
{
    double n = 0;
    for (int f = 0; f < op_info(c->op)->n_field; f++)
        if (c->tensor[f].is_used)
            n += (double)c->tensor[f].n_byte;
    return n;
}

static void time_case(struct test *t, const struct case_line *line)
{
    enum { MAX_REPEAT = 200 };
    struct op_case c;
    double seconds[MAX_REPEAT];
    if (case_build(&c, line->op, line->line, 0, t->seed))
        exit(2);
    for (int i = 0; i < t->n_target; i++) {
        struct case_result r = {.seconds = seconds, .n_repeat = 3};
        struct err e = {0};
        const struct target *x = &t->target[i];
        if (!case_run(&c, x->be, NULL, &r, &e)) {
            double once = seconds[2];
            case_result_free(&r);
            int n_repeat = once > .1                ? 3
                           : once > .1 / MAX_REPEAT ? 3 + (int)(.1 / once)
                                                    : MAX_REPEAT;
            r = (struct case_result){.seconds = seconds, .n_repeat = n_repeat};
            case_run(&c, x->be, NULL, &r, &e);
            qsort(seconds, (size_t)r.n_repeat, sizeof *seconds, by_value);
            double best = seconds[0], median = seconds[r.n_repeat / 2];
            printf("%-16s %-60.60s %s %s x%d: best %9.1f us %7.2f GB/s, median %9.1f us\n",
                op_info(c.op)->name, c.line, x->backend, x->be->level, x->be->n_thread, best * 1e6,
                all_bytes(&c) / best / 1e9, median * 1e6);
        } else {
            report(t, &c, x->backend, "%s", e.text);
        }
        case_result_free(&r);
    }
    case_free(&c);
}

/* How fast this machine reads memory with one thread, for comparison. */
static void time_reading(void)
{
    enum { N = 1 << 24 };
    uint64_t *p = malloc(N * sizeof *p), sum = 0;
    double best = 1e9;
    for (size_t i = 0; i < N; i++)
        p[i] = i;
    for (int repeat = 0; repeat < 5; repeat++) {
        uint64_t part[8] = {0};
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (size_t i = 0; i < N; i += 8)
            for (int j = 0; j < 8; j++)
                part[j] += p[i + (size_t)j];
        clock_gettime(CLOCK_MONOTONIC, &b);
        for (int j = 0; j < 8; j++)
            sum += part[j];
        best = fmin(best, (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
    }
    printf("reading 128 MiB, one thread: %.1f GB/s (%llu)\n", N * 8 / best / 1e9,
        (unsigned long long)(sum & 1));
    free(p);
}

/* ---- Cases ---- */

static void run_line(struct test *t, struct backend *ref, const struct case_line *line)
{
    if (t->is_bench) {
        time_case(t, line);
        return;
    }
    run_case(t, ref, line, 0);
    run_case(t, ref, line, 16);
}

/* Replaces every "*" after a colon by a format's name. */
static void run_formats(struct test *t, struct backend *ref, const struct case_line *line)
{
    for (int type = 0; type < N_DTYPE; type++) {
        char text[512];
        size_t n = 0;
        if (type == DT_I32 || type == DT_I64 || type == DT_I8)
            continue;
        for (const char *p = line->line; *p && n + 32 < sizeof text; p++) {
            text[n++] = *p;
            if (p[0] == ':' && p[1] == '*')
                n += (size_t)snprintf(text + n, 32, "%s", dtype_info((enum dtype)type)->name), p++;
        }
        text[n] = 0;
        run_line(t, ref, &(struct case_line){line->op, text});
    }
}

static void run_all(struct test *t, struct backend *ref)
{
    int n_case[N_OP] = {0};
    for (const struct case_line *line = t->is_bench ? bench_cases : test_cases; line->line;
         line++) {
        n_case[line->op]++;
        if (t->op && strcmp(t->op, op_info(line->op)->name))
            continue;
        if (strstr(line->line, ":*"))
            run_formats(t, ref, line);
        else
            run_line(t, ref, line);
        fflush(stdout);
    }
    for (int op = 0; op < N_OP && !t->is_bench; op++)
        if (!n_case[op])
            printf("FAIL op %s has no case\n", op_info((enum op)op)->name), t->n_failed++;
}

static void read_options(struct test *t, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--bench")) {
            t->is_bench = 1;
            continue;
        }
        if (!strcmp(argv[i], "--op"))
            t->op = value;
        else if (!strcmp(argv[i], "--backend"))
            t->backend = value;
        else if (!strcmp(argv[i], "--level"))
            t->level = value;
        else if (!strcmp(argv[i], "--threads"))
            t->n_thread = atoi(value);
        else if (!strcmp(argv[i], "--seed"))
            t->seed = strtoull(value, NULL, 10);
        else
            exit((fprintf(stderr, "unknown option %s\n", argv[i]), 2));
        i++;
    }
}

int main(int argc, char **argv)
{
    struct test t = {.seed = 1, .digest = 0xcbf29ce484222325u};
    struct backend *ref = NULL;
    struct err e = {0};
    read_options(&t, argc, argv);
    if (backend_open(&ref, "ref", &(struct backend_options){.checks_shapes = 1}, &e))
        return fprintf(stderr, "%s\n", e.text), 2;
    t.ref = ref;
    open_targets(&t);
    if (t.is_bench)
        time_reading();
    run_all(&t, ref);
    for (int i = 0; i < t.n_target; i++)
        backend_close(t.target[i].be);
    backend_close(ref);
    if (!t.is_bench)
        printf("# digest of the reference's results: %016llx\n", (unsigned long long)t.digest);
    printf("%d passed, %d failed\n", t.n_passed, t.n_failed);
    return t.n_failed > 0;
}
