/* options.h: command-line options as tables. The parser, the help text and the suggestions all read the same rows. */
#ifndef HADAL_CLI_OPTIONS_H
#define HADAL_CLI_OPTIONS_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

enum option_kind {
    OPTION_FLAG,   /* int, set to 1 */
    OPTION_TEXT,   /* const char * */
    OPTION_CHOICE, /* const char *, one of the words in `value`, which "|" separates */
    OPTION_INT,    /* int within [least, most] */
    OPTION_NUMBER, /* float within [least, most] */
    OPTION_SEED,   /* uint64_t */
    OPTION_SIZE,   /* uint64_t: bytes, typed as 500M, 1.5G, 1T; a plain number counts bytes */
    OPTION_TEXTS   /* struct option_texts; the option may be repeated */
};

enum { OPTION_MAX_TEXTS = 16 };
struct option_texts {
    int n;
    const char *text[OPTION_MAX_TEXTS];
};

struct option {
    const char *name; /* without dashes */
    char letter;      /* or 0 */
    enum option_kind kind;
    size_t offset;     /* of the variable in the settings */
    const char *value; /* as the help calls it: "FILE" */
    const char *help;
    double least, most;
    size_t given_offset; /* of an int that becomes 1 when the option is given; 0: none */
};

/* Options that belong together, under a title of their own in the help. Offsets count from `base` in the settings. */
struct option_group {
    const char *title;
    const struct option *rows;
    int n_row;
    size_t base;
};

/* Reads arguments[0..n) into *settings. What is no option is moved to the front; *n_rest says how many. After "--"
 * nothing is an option. */
struct option_line {
    char **arguments;
    int n, n_rest;
};
int options_parse(const struct option_group *groups, int n_group, struct option_line *line, void *settings, struct err *e);
/* Sets one option by name, as options_parse does for --NAME VALUE. */
int options_set(const struct option_group *group, const char *name, const char *value, void *settings, struct err *e);

void options_help(const struct option_group *groups, int n_group, struct buf *out);

#endif
