/* pretokenize.h: cuts text into the pieces that are merged separately.
 *
 * Patterns are applied one after the other: each cuts every piece that the one before left into its
 * matches and the text between them. A pattern sees only its piece, so that a look-ahead at the end
 * of a piece sees an end; putting the patterns into one alternation would give other pieces.
 * Ill-formed UTF-8 never matches: a run of it is a piece.
 */
#ifndef HADAL_TEXT_PRETOKENIZE_H
#define HADAL_TEXT_PRETOKENIZE_H

#include "base/err.h"
#include "text/text.h"

enum { PRETOKENIZE_MAX_PATTERN = 8 };

/* Patterns known by name. Returns how many and sets *patterns, or 0 for an unknown name. */
int pretokenize_named(const char *name, const struct text **patterns);
/* The name of a set of patterns, or NULL. */
const char *pretokenize_name(const struct text *patterns, int n_pattern);

struct pretokenizer {
    void *codes[PRETOKENIZE_MAX_PATTERN]; /* pcre2_code */
    int n_code;
    void *memory; /* pcre2_general_context */
};
int pretokenizer_open(
    struct pretokenizer *p, const struct text *patterns, int n_pattern, struct err *e);
void pretokenizer_close(struct pretokenizer *p);

/* Calls `take` for every piece, in order; stops when it returns non-zero and returns that. */
typedef int pretokenize_take(void *user, struct text piece, struct err *e);
int pretokenize(const struct pretokenizer *p, struct text text, pretokenize_take *take, void *user,
    struct err *e);

#endif
