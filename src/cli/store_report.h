/* store_report.h: what weights on disk cost, as people say it. */
#ifndef HADAL_CLI_STORE_REPORT_H
#define HADAL_CLI_STORE_REPORT_H

#include "base/buf.h"
#include "cli/terminal.h"
#include "hadal.h"

/* One line about reads since the engine was opened; nothing when all weights are in memory. */
void store_print(const hadal_engine *engine, struct buf *out);
void store_report(const hadal_engine *engine, struct terminal *t);

#endif
