/* command.h: what a command is, and what it gets from main. */
#ifndef HADAL_CLI_COMMAND_H
#define HADAL_CLI_COMMAND_H

#include "base/err.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "hadal.h"

#include <signal.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* Ctrl-C as data. The signal handler of main.c counts, and cancels the engine if one is set. */
struct interrupt {
    volatile sig_atomic_t n;
    hadal_engine *volatile engine;
};

struct command_call {
    const char *program_version;
    const char *history_file; /* of typed lines; NULL: not kept */
    struct terminal *terminal;
    struct interrupt *interrupt;
    char **rest; /* arguments that are no options */
    int n_rest;
};

enum { COMMAND_MAX_GROUP = 4 };
struct command {
    const char *name;
    const char *usage;   /* behind the name: "[-m MODEL] FILE" */
    const char *summary; /* one line */
    const char *details; /* paragraphs for `hadal help NAME`, or NULL */
    struct option_group groups[COMMAND_MAX_GROUP];
    int n_group;
    size_t settings_bytes;
    void (*defaults)(void *settings); /* may be NULL: all zeros */
    /* Returns an exit code. A failure with e->code set is printed by main. */
    int (*run)(struct command_call *call, void *settings, struct err *e);
    int takes_all; /* every argument is passed on in `rest`, options too */
};

extern const struct command command_run, command_score, command_inspect, command_convert, command_bench;

#endif
