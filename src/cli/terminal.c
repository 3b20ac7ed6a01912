/* terminal.c: see terminal.h. */
#include "cli/terminal.h"

#include "base/clock.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define REPLACEMENT "\xef\xbf\xbd"
#define DRAW_AFTER_SECONDS 0.3
#define DRAW_EVERY_SECONDS 0.1
#define PRINT_EVERY_SECONDS 10.0

void terminal_open(struct terminal *t, int is_styled)
{
    *t = (struct terminal){.in = stdin, .out = stdout, .note = stderr, .has_style = is_styled};
    t->in_is_tty = isatty(STDIN_FILENO);
    t->out_is_tty = isatty(STDOUT_FILENO);
    t->note_is_tty = isatty(STDERR_FILENO);
}

static int is_tty(const struct terminal *t, FILE *stream)
{
    return stream == t->out ? t->out_is_tty : t->note_is_tty;
}

static int is_steering(unsigned char c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
}

/* C1 controls, U+0080 to U+009F, are C2 80 to C2 9F in UTF-8. */
static size_t plain_run(const char *text, size_t n_byte)
{
    size_t n = 0;
    while (n < n_byte && !is_steering((unsigned char)text[n]) &&
           !(text[n] == '\xc2' && n + 1 < n_byte && (unsigned char)text[n + 1] < 0xa0))
        n++;
    return n;
}

static void write_safely(FILE *stream, const char *text, size_t n_byte)
{
    while (n_byte) {
        size_t n = plain_run(text, n_byte);
        fwrite(text, 1, n, stream);
        if (n < n_byte) {
            fputs(REPLACEMENT, stream);
            n += text[n] == '\xc2' ? 2 : 1;
        }
        text += n;
        n_byte -= n;
    }
}

void terminal_write(struct terminal *t, FILE *stream, const char *text, size_t n_byte)
{
    if (!n_byte)
        return;
    terminal_progress_end(t);
    if (is_tty(t, stream))
        write_safely(stream, text, n_byte);
    else
        fwrite(text, 1, n_byte, stream);
    fflush(stream);
    if (stream == t->out || (t->out_is_tty && t->note_is_tty))
        t->column_is_open = text[n_byte - 1] != '\n';
    else
        t->note_is_open = text[n_byte - 1] != '\n';
}

void terminal_style(struct terminal *t, FILE *stream, enum terminal_style style)
{
    static const char *const codes[] = {"\033[0m", "\033[2m", "\033[1m"};
    if (t->has_style && is_tty(t, stream))
        fputs(codes[style], stream);
}

void terminal_end_line(struct terminal *t)
{
    if (t->column_is_open)
        fputc('\n', t->out);
    fflush(t->out);
    t->column_is_open = 0;
}

static void end_note_line(struct terminal *t)
{
    if (t->note_is_open)
        fputc('\n', t->note);
    t->note_is_open = 0;
}

void terminal_note(struct terminal *t, const char *format, ...)
{
    if (t->is_quiet)
        return;
    terminal_progress_end(t);
    end_note_line(t);
    if (t->out_is_tty)
        terminal_end_line(t);
    terminal_style(t, t->note, STYLE_DIM);
    va_list args;
    va_start(args, format);
    vfprintf(t->note, format, args);
    va_end(args);
    terminal_style(t, t->note, STYLE_PLAIN);
    fputc('\n', t->note);
}

void terminal_error(struct terminal *t, const char *text)
{
    terminal_progress_end(t);
    terminal_end_line(t);
    end_note_line(t);
    fprintf(t->note, "hadal: %s\n", text);
}

void terminal_progress(void *terminal, const char *what, uint64_t done, uint64_t total)
{
    struct terminal *t = terminal;
    double now = clock_seconds(), every = t->note_is_tty ? DRAW_EVERY_SECONDS : PRINT_EVERY_SECONDS;
    if (t->is_quiet || !total)
        return;
    if (t->progress_start == 0.0) {
        t->progress_start = now;
        t->progress_shown = now + (t->note_is_tty ? DRAW_AFTER_SECONDS - every : 0.0);
    }
    if (done >= total) {
        terminal_progress_end(t);
    } else if (now - t->progress_shown >= every) {
        t->progress_shown = now;
        t->progress_is_drawn = t->note_is_tty;
        fprintf(t->note, t->note_is_tty ? "\r\033[K%s %3.0f %%" : "%s %.0f %%\n", what, 100.0 * (double)done / (double)total);
        fflush(t->note);
    }
}

void terminal_progress_end(struct terminal *t)
{
    if (t->progress_is_drawn)
        fputs("\r\033[K", t->note);
    t->progress_is_drawn = 0;
    t->progress_start = 0.0;
}
