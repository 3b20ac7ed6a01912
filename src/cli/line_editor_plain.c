/* line_editor_plain.c: no editing; the terminal's own. See line_editor.h. */
#include "cli/line_editor.h"

#include <stddef.h>

struct line_editor *line_editor_open(const char *history_file, const char *const *names)
{
    (void)history_file;
    (void)names;
    return NULL;
}

enum line_result line_editor_read(struct line_editor *l, const char *prompt, struct buf *out)
{
    (void)l;
    (void)prompt;
    (void)out;
    return LINE_END;
}

void line_editor_remember(struct line_editor *l, const char *message)
{
    (void)l;
    (void)message;
}

void line_editor_close(struct line_editor *l)
{
    (void)l;
}
