/* main.c: the program: commands, the environment, Ctrl-C and exit codes. Nothing else looks at any of these. */
#include "base/arena.h"
#include "cli/command.h"
#include "cli/suggest.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command *const commands[] = {
    &command_run, &command_score, &command_bench, &command_inspect, &command_convert};
enum { N_COMMAND = sizeof commands / sizeof *commands };

/* A signal handler cannot be passed anything. */
static struct interrupt interrupt;

/* The third Ctrl-C while nothing reacts ends the program. */
static void take_interrupt(int signal_number)
{
    (void)signal_number;
    interrupt.n = interrupt.n + 1;
    if (interrupt.engine)
        hadal_engine_cancel(interrupt.engine);
    if (interrupt.n > 2)
        _exit(EXIT_INTERRUPTED);
}

/* Without SA_RESTART, so that reading a line ends. */
static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = take_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* writing fails instead, and that ends the answer */
}

static int is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static int wants_style(void)
{
    const char *term = getenv("TERM");
    return !is_set("NO_COLOR") && term && *term && strcmp(term, "dumb");
}

static void print_help(FILE *out)
{
    fprintf(out, "hadal %s: runs DeepSeek Flash models, exactly, on this machine\n\nCommands\n", HADAL_VERSION);
    for (int i = 0; i < N_COMMAND; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "  %-10s %s\n\n`hadal help COMMAND` says more. `hadal run` chats with the model in the program.\n", "help",
        "this text");
}

static int print_command_help(const struct command *c)
{
    struct buf out = {0};
    buf_print(&out, "hadal %s %s\n%s\n", c->name, c->usage, c->summary);
    if (c->details)
        buf_print(&out, "\n%s", c->details);
    options_help(c->groups, c->n_group, &out);
    fputs(out.is_broken ? "" : out.data, stdout);
    buf_free(&out);
    return EXIT_OK;
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMAND; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

static int fail_unknown(struct terminal *t, const char *name)
{
    struct err e = {0};
    const char *best = NULL;
    for (int i = 0; i < N_COMMAND; i++)
        best = suggest_closer(name, best, commands[i]->name);
    if (best)
        err_set(&e, ERR_ARGUMENT, "unknown command %s; did you mean %s?", name, best);
    else
        err_set(&e, ERR_ARGUMENT, "unknown command %s; `hadal help` lists them", name);
    terminal_error(t, e.text);
    return EXIT_USAGE;
}

static int wants_help(int n, char **arguments)
{
    for (int i = 0; i < n && strcmp(arguments[i], "--"); i++)
        if (!strcmp(arguments[i], "--help") || !strcmp(arguments[i], "-h"))
            return 1;
    return 0;
}

static int run_command(const struct command *c, struct command_call *call, int n, char **arguments)
{
    struct err e = {0};
    struct option_line line = {.arguments = arguments, .n = n};
    void *settings = mem_resize(NULL, c->settings_bytes ? c->settings_bytes : 1);
    int code = EXIT_USAGE;
    if (!settings)
        return EXIT_FAILED;
    memset(settings, 0, c->settings_bytes);
    if (c->defaults)
        c->defaults(settings);
    if (c->takes_all)
        line.n_rest = n;
    if (c->takes_all || !options_parse(c->groups, c->n_group, &line, settings, &e)) {
        call->rest = arguments;
        call->n_rest = line.n_rest;
        code = c->run(call, settings, &e);
    }
    terminal_end_line(call->terminal);
    if (code != EXIT_OK && e.code != ERR_NONE && e.code != ERR_CANCELLED)
        terminal_error(call->terminal, e.text);
    if (code == EXIT_USAGE)
        fprintf(stderr, "usage: hadal %s %s; `hadal help %s` lists the options\n", c->name, c->usage, c->name);
    mem_free(settings);
    return code;
}

/* Where typed lines are kept; NULL when there is no home. */
static const char *history_file(char *path, size_t n_path)
{
    const char *home = getenv("HOME");
    if (!home || !*home || (size_t)snprintf(path, n_path, "%s/.hadal_history", home) >= n_path)
        return NULL;
    return path;
}

static int dispatch(struct command_call *call, int n, char **arguments)
{
    const char *name = n > 1 ? arguments[1] : "help";
    if (!strcmp(name, "--version") || !strcmp(name, "version")) {
        printf("hadal %s\n", HADAL_VERSION);
        return EXIT_OK;
    }
    int is_help = !strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h");
    if (is_help && n < 3) {
        print_help(n > 1 ? stdout : stderr);
        return n > 1 ? EXIT_OK : EXIT_USAGE;
    }
    name = is_help ? arguments[2] : name;
    const struct command *c = find_command(name);
    if (!c)
        return fail_unknown(call->terminal, name);
    if (is_help || (!c->takes_all && wants_help(n - 2, arguments + 2)))
        return print_command_help(c);
    return run_command(c, call, n - 2, arguments + 2);
}

int main(int n, char **arguments)
{
    struct terminal terminal;
    char path[4096];
    setlocale(LC_CTYPE, "");
    terminal_open(&terminal, wants_style());
    catch_interrupts();
    struct command_call call = {.program_version = HADAL_VERSION, .terminal = &terminal, .interrupt = &interrupt,
        .history_file = history_file(path, sizeof path)};
    int code = dispatch(&call, n, arguments);
    if (fflush(stdout) && code == EXIT_OK)
        code = EXIT_FAILED;
    return code;
}
