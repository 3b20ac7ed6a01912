/* bench_report.h: the rows of `hadal bench` for people, as JSON and as CSV. */
#ifndef HADAL_CLI_BENCH_REPORT_H
#define HADAL_CLI_BENCH_REPORT_H

#include "cli/bench_measure.h"

struct bench_report {
    const struct bench_rows *rows;
    const struct hadal_engine_info *info;
    const struct hadal_store_stats *store; /* of weights on disk */
    const char *model;   /* file, or NULL */
    const char *version; /* of the program */
    const char *commit;  /* or NULL */
    int n_chunk;         /* 0: the engine's default */
};

void bench_print_table(const struct bench_report *r, struct buf *out);
/* A JSON object's beginning, up to a comma: version, command, machine, model, engine. */
void bench_print_head(const struct bench_report *r, struct buf *out);
void bench_print_json(const struct bench_report *r, struct buf *out);
void bench_print_csv(const struct bench_report *r, struct buf *out);

#endif
