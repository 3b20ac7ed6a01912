/* dialect.h: what differs between the chat formats of the model versions, as data.
 *
 * This and dialect.c are the only places of the text layer that know versions. Everything else asks
 * a field.
 */
#ifndef HADAL_TEXT_DIALECT_H
#define HADAL_TEXT_DIALECT_H

#include "base/buf.h"
#include "base/err.h"

struct dialect_effort {
    const char *name;
    const char *text; /* written before the first message in thinking mode */
};

struct dialect {
    const char *name;
    const char *calls, *invoke, *parameter; /* what follows the DSML token in the three tags */
    const char *tools; /* the tools block; {C} {I} {P}: tags, {S}: schemas, one a line */
    const struct dialect_effort *efforts;
    int n_effort;
    const char *default_effort;
    const char
        *effort_number[2]; /* text around a number from 1 to 100; NULL: efforts have names only */
    int has_system_token;  /* system text is marked, and after the first message it opens a turn */
    int has_developer;     /* the developer role exists */
    int keeps_user_tools;  /* tools on a user message count (they are never written) */
    int reads_arguments_twice; /* call arguments that are a JSON string holding JSON are read as
                                  that JSON */
};

/* NULL when there is no such dialect. */
const struct dialect *dialect_find(const char *name);
/* The i-th dialect, NULL behind the last one. */
const struct dialect *dialect_at(int i);

/* Appends the text of an effort; a NULL name means the default. */
int dialect_effort_text(const struct dialect *d, const char *name, struct buf *out, struct err *e);

#endif
