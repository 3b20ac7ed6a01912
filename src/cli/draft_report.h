/* draft_report.h: how many tokens ahead are proposed, as people say it, and what came of it. */
#ifndef HADAL_CLI_DRAFT_REPORT_H
#define HADAL_CLI_DRAFT_REPORT_H

#include "base/err.h"
#include "cli/terminal.h"
#include "hadal.h"

/* "auto", "off" or a number into n_draft of hadal_session_next. NULL: auto. */
int draft_read_limit(const char *text, int *n_draft, struct err *e);
void draft_note_limit(int n_draft, struct terminal *t);
/* What the session's proposals gave so far, in a few lines. */
void draft_report(const hadal_session *session, struct terminal *t);

#endif
