/* terminal.h: where the program writes. Answers go to out, everything else (progress, notes, statistics) to note, so that
 * a pipe gets the answer and nothing but the answer. */
#ifndef HADAL_CLI_TERMINAL_H
#define HADAL_CLI_TERMINAL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct terminal {
    FILE *in, *out, *note;
    int in_is_tty, out_is_tty, note_is_tty;
    int has_style;       /* dimmed and bold text may be used on terminals */
    int is_quiet;        /* notes are left out */
    int column_is_open;  /* out has text behind its last line feed */
    int note_is_open;    /* and note, where that is another device */
    double progress_start, progress_shown; /* seconds; 0: no progress under way */
    int progress_is_drawn;
};

enum terminal_style { STYLE_PLAIN, STYLE_DIM, STYLE_BOLD };

/* is_styled: what main.c made of the environment. */
void terminal_open(struct terminal *t, int is_styled);

/* Model text. Control characters that could steer a terminal are shown as U+FFFD when `stream` is one. */
void terminal_write(struct terminal *t, FILE *stream, const char *text, size_t n_byte);
/* Switches the style of a stream that is a terminal; others stay plain. */
void terminal_style(struct terminal *t, FILE *stream, enum terminal_style style);
/* Makes sure that out is at the beginning of a line. */
void terminal_end_line(struct terminal *t);
/* One dimmed line to note, after ending the line of out. */
void terminal_note(struct terminal *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "hadal: TEXT" on note, quiet or not. */
void terminal_error(struct terminal *t, const char *text);

/* A hadal_progress_fn with a terminal as context: one line drawn over and over on a terminal once work takes longer than
 * 0.3 s; elsewhere a line every 10 s. */
void terminal_progress(void *terminal, const char *what, uint64_t done, uint64_t total);
/* Removes the progress line. */
void terminal_progress_end(struct terminal *t);

#endif
