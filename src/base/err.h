/* err.h: how a function says what went wrong.
 *
 * A function that can fail returns int (0: done, -1: failed) and takes `struct err *` last. It fills the struct once,
 * at the place that knows most: the thing, what was found, what was expected. Callers add context with err_wrap and
 * pass it on. Nothing below a program's main file prints or exits.
 */
#ifndef HADAL_BASE_ERR_H
#define HADAL_BASE_ERR_H

enum err_code {
    ERR_NONE = 0,
    ERR_IO,          /* the operating system refused: open, read, write, map */
    ERR_FORMAT,      /* a file is not what it claims to be */
    ERR_SHAPE,       /* a tensor has another shape or type than the model needs */
    ERR_MEMORY,      /* no memory, or a plan that does not fit */
    ERR_UNSUPPORTED, /* known, but not built or not possible here */
    ERR_ARGUMENT,    /* the caller asked for something that cannot be */
    ERR_CANCELLED    /* stopped on request */
};

struct err {
    enum err_code code;
    char text[512]; /* one line, no line feed, always terminated */
};

/* Fills *e (which may be NULL) and returns -1, so that `return err_set(e, ...)` reads well. */
int err_set(struct err *e, enum err_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the text already there and returns -1. */
int err_wrap(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
