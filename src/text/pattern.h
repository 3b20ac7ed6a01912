/* pattern.h: regular expressions whose character classes are those of Unicode 16, whatever PCRE2
 * was built with.
 *
 * The Hugging Face library classifies characters by Unicode 16, PCRE2 10.42 (Debian 12) by Unicode
 * 14; between the two, characters were only added. So \p{L}, \p{M}, \p{N}, \p{P} and \p{S} are
 * rewritten to the same class plus the characters added since 14 (harmless where PCRE2 knows them
 * already), and \s and \S to White_Space spelled out, because PCRE2 counts U+180E as space.
 */
#ifndef HADAL_TEXT_PATTERN_H
#define HADAL_TEXT_PATTERN_H

#include "base/buf.h"
#include "base/err.h"
#include "text/text.h"

enum { PATTERN_MAX_BYTES = 1 << 14 };

/* Appends the rewritten pattern to `out`. Classes that cannot be rewritten (\P{..}, \S within [..],
 * other \p names) and patterns over the limit are refused. */
int pattern_rewrite(struct text pattern, struct buf *out, struct err *e);

#endif
