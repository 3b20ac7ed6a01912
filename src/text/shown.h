/* shown.h: foreign text as it may stand in an error: one short line of printable characters. */
#ifndef HADAL_TEXT_SHOWN_H
#define HADAL_TEXT_SHOWN_H

#include "text/text.h"

enum { SHOWN_MAX_BYTES = 40 };

struct shown {
    char text[SHOWN_MAX_BYTES + 1];
};

/* At most SHOWN_MAX_BYTES bytes of what is UTF-8, with '?' for control characters. */
struct shown shown_text(struct text text);

#endif
