/* chat_input.c: one message from the keyboard or a pipe. A line that ends with a backslash goes on in the next one; lines
 * between two """ are one message; a paste of several lines is one message (line_editor.h). */
#include "cli/chat_loop.h"

#include <errno.h>
#include <string.h>

#define QUOTE "\"\"\""
#define PROMPT ">>> "
#define PROMPT_MORE "... "

/* Without an editor: from a pipe, or a terminal's own line editing. */
static enum line_result read_plain(struct chat *c, const char *prompt, struct buf *out)
{
    struct terminal *t = c->terminal;
    int byte, n = 0;
    if (t->in_is_tty) {
        fputs(prompt, t->out);
        fflush(t->out);
    }
    errno = 0;
    while ((byte = getc(t->in)) != EOF && byte != '\n') {
        char text = (char)byte;
        buf_append(out, &text, 1);
        n++;
    }
    if (byte == '\n' || n)
        return LINE_READ;
    int is_interrupted = ferror(t->in) && errno == EINTR;
    clearerr(t->in);
    return is_interrupted ? LINE_INTERRUPTED : LINE_END;
}

static enum line_result read_line(struct chat *c, const char *prompt, struct buf *out)
{
    enum line_result result =
        c->editor ? line_editor_read(c->editor, prompt, out) : read_plain(c, prompt, out);
    if (result != LINE_READ && c->terminal->in_is_tty)
        fputc('\n', c->terminal->out);
    return result;
}

static int begins_with(const struct buf *b, const char *text)
{
    return b->n_byte >= strlen(text) && !memcmp(b->data, text, strlen(text));
}

static void drop_end(struct buf *b, size_t n)
{
    b->n_byte -= n;
    b->data[b->n_byte] = 0;
}

/* `out` begins with a quote. Reads on to the closing one, removes both. */
static enum line_result read_quoted(struct chat *c, struct buf *out)
{
    size_t n_quote = strlen(QUOTE);
    enum line_result result = LINE_READ;
    while (result == LINE_READ && (out->n_byte < 2 * n_quote || memcmp(out->data + out->n_byte - n_quote, QUOTE, n_quote))) {
        buf_text(out, "\n");
        result = read_line(c, PROMPT_MORE, out);
    }
    if (result == LINE_INTERRUPTED)
        return result;
    if (result == LINE_READ)
        drop_end(out, n_quote);
    memmove(out->data, out->data + n_quote, out->n_byte - n_quote + 1);
    out->n_byte -= n_quote;
    return LINE_READ;
}

enum line_result chat_read_message(struct chat *c, struct buf *out)
{
    buf_clear(out);
    enum line_result result = read_line(c, PROMPT, out);
    if (result == LINE_READ && begins_with(out, QUOTE))
        result = read_quoted(c, out);
    while (result == LINE_READ && out->n_byte && out->data[out->n_byte - 1] == '\\') {
        drop_end(out, 1);
        buf_text(out, "\n");
        result = read_line(c, PROMPT_MORE, out);
    }
    if (result == LINE_READ && out->n_byte)
        line_editor_remember(c->editor, out->data);
    return out->is_broken ? LINE_END : result;
}
