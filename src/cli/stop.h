/* stop.h: cuts a stream of text at the first stop string. Text that may be the beginning of one is held back. The result
 * does not depend on how the stream was cut: the stop string that is complete first wins, of several the longest. */
#ifndef HADAL_CLI_STOP_H
#define HADAL_CLI_STOP_H

#include "base/buf.h"
#include "cli/options.h"

struct stop_scan {
    const struct option_texts *stops;
    struct buf held; /* starts as all zeros */
};

/* Appends to `out` what is certain. 1: a stop string was found, which is left out with all that follows; 0: go on. */
int stop_push(struct stop_scan *s, const char *text, size_t n_byte, struct buf *out);
/* The stream ends: what was held comes out. */
void stop_finish(struct stop_scan *s, struct buf *out);
void stop_free(struct stop_scan *s);

#endif
