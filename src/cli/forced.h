/* forced.h: tokens that can only come next, because the syntax of tool calls leaves no choice. They
 * are proposed like drafts and checked like drafts, so they change no token. */
#ifndef HADAL_CLI_FORCED_H
#define HADAL_CLI_FORCED_H

#include "hadal.h"
#include "text/dsml.h"
#include "text/tokenizer.h"

struct forced {
    const struct tokenizer *tokenizer;
    struct dsml_parser parser;
    struct buf text;
    struct token_list ids;
};

/* An answer begins. Without a dialect nothing is forced. */
void forced_open(struct forced *f, const struct tokenizer *t, const struct hadal_engine_info *info,
    int is_thinking);
/* The answer went on with these tokens. */
int forced_take(struct forced *f, const int32_t *ids, int n, struct err *e);
/* Fills what the turn expects; valid until the next call. */
int forced_expect(struct forced *f, struct hadal_turn *turn, struct err *e);
void forced_close(struct forced *f);

#endif
