/* line_editor.h: one edited line from a terminal. line_editor_libedit.c, or line_editor_plain.c where libedit is missing. */
#ifndef HADAL_CLI_LINE_EDITOR_H
#define HADAL_CLI_LINE_EDITOR_H

#include "base/buf.h"

struct line_editor;

enum line_result { LINE_READ, LINE_END, LINE_INTERRUPTED };

/* history_file may be NULL. NULL when the terminal cannot be edited on. `names` ends with NULL: words that the tab key
 * completes at the beginning of a line. */
struct line_editor *line_editor_open(const char *history_file, const char *const *names);
/* Appends the line without its line feed. A paste of several lines becomes part of one line. */
enum line_result line_editor_read(struct line_editor *l, const char *prompt, struct buf *out);
/* Puts a whole message, however it was typed, into the history. */
void line_editor_remember(struct line_editor *l, const char *message);
void line_editor_close(struct line_editor *l);

#endif
