/* bench_measure.h: what `hadal bench` measures, and the samples it keeps. */
#ifndef HADAL_CLI_BENCH_MEASURE_H
#define HADAL_CLI_BENCH_MEASURE_H

#include "cli/command.h"

enum { BENCH_MAX_SIZE = 32, BENCH_MAX_REPEAT = 99, BENCH_MAX_ROW = 5 * BENCH_MAX_SIZE };

/* Sizes in tokens, ascending. */
struct bench_sizes {
    int n, size[BENCH_MAX_SIZE];
};

struct bench_plan {
    struct bench_sizes depths;   /* context frontiers */
    struct bench_sizes suffixes; /* of the time to the first token; none: not measured */
    int n_decode, n_repeat;
    int has_no_drafts;     /* leave out what drafts do */
    const char *text_file; /* read over and over; NULL: sentences made here */
};

enum bench_kind {
    BENCH_PREFILL, /* tokens/s of the tokens between the frontier before and this one */
    BENCH_DECODE,  /* tokens/s behind the frontier, one token at a time */
    BENCH_DRAFTS,  /* the same with drafts, as many as pay */
    BENCH_LIVE,    /* seconds to the first token after `n_token` new ones behind a live prefix of
                      `depth` */
    BENCH_COLD,    /* seconds to the first token after reading all of them anew */
    N_BENCH_KIND
};

struct bench_row {
    enum bench_kind kind;
    int depth;         /* tokens of context that were there before (BENCH_PREFILL: afterwards) */
    int n_token;       /* tokens measured */
    double n_per_step; /* BENCH_DRAFTS: tokens that a step gave on average */
    struct {
        double seconds, wait_seconds, n_byte; /* measured, stood still, read: all samples together */
        double n_expert, n_expert_hit;
    } disk; /* of weights on disk */
    int n_sample;
    double sample[BENCH_MAX_REPEAT]; /* one per repeat */
};

struct bench_rows {
    int n;
    struct bench_row row[BENCH_MAX_ROW];
};

/* The context that a plan needs. */
int bench_n_context(const struct bench_plan *plan);
/* Runs the plan on an engine; rows->n rows afterwards. Repeats change places between decoding with
 * and without drafts. */
int bench_measure(const struct bench_plan *plan, hadal_engine *engine, struct command_call *call,
    struct bench_rows *rows, struct err *e);

/* Of a row's samples: [0] least, [1] median, [2] most. */
void bench_summary(const struct bench_row *row, double summary[3]);

#endif
