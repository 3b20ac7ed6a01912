/* bench_content_report.h: what was found about kinds of content, for people and as JSON. */
#ifndef HADAL_CLI_BENCH_CONTENT_REPORT_H
#define HADAL_CLI_BENCH_CONTENT_REPORT_H

#include "cli/bench_content.h"
#include "cli/bench_report.h"

void content_print_table(const struct content_found *found, struct buf *out);
/* `r`: the machine, the model and the command. */
void content_print_json(const struct bench_report *r, const struct content_plan *plan,
    const struct content_found *found, struct buf *out);

#endif
