/* chat_commands.c: what can be typed after "/". */
#include "cli/chat_loop.h"

#include "base/file.h"
#include "cli/store_report.h"
#include "cli/suggest.h"

#include <ctype.h>
#include <string.h>

struct chat_verb {
    const char *name, *argument, *help;
    int (*run)(struct chat *c, char *argument, struct err *e); /* 1: an answer is wanted */
    int needs_argument;
};
static const struct chat_verb *all_verbs(void);

static void say_help(struct terminal *t, const char *left, const char *text)
{
    fprintf(t->out, "  %-22s %s\n", left, text);
}

static int do_help(struct chat *c, char *argument, struct err *e)
{
    (void)argument;
    (void)e;
    for (const struct chat_verb *v = all_verbs(); v->name; v++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", v->name, v->argument);
        say_help(c->terminal, left, v->help);
    }
    say_help(c->terminal, "\"\"\"", "begins and ends a message of several lines; so does \\ at the end of a line");
    say_help(c->terminal, "//text", "a message that begins with /");
    say_help(c->terminal, "Ctrl-C", "stops the answer and keeps the chat; Ctrl-D leaves");
    return 0;
}

static int do_clear(struct chat *c, char *argument, struct err *e)
{
    (void)argument;
    (void)e;
    transcript_clear(&c->transcript);
    terminal_note(c->terminal, "a new conversation%s", transcript_system(&c->transcript) ? "; the system message stays" : "");
    return 0;
}

static int do_retry(struct chat *c, char *argument, struct err *e)
{
    (void)argument;
    transcript_drop_answer(&c->transcript);
    const struct turn *last = transcript_last(&c->transcript);
    if (!last || last->role == CHAT_SYSTEM)
        return err_set(e, ERR_ARGUMENT, "/retry: nothing has been asked yet");
    c->n_retry++;
    return 1;
}

static int do_undo(struct chat *c, char *argument, struct err *e)
{
    (void)argument;
    if (!transcript_drop_exchange(&c->transcript))
        return err_set(e, ERR_ARGUMENT, "/undo: nothing has been asked yet");
    terminal_note(c->terminal, "the last question and its answer are forgotten");
    return 0;
}

static int do_continue(struct chat *c, char *argument, struct err *e)
{
    (void)argument;
    struct turn *last = transcript_last(&c->transcript);
    if (!last || last->role != CHAT_ASSISTANT || !last->content.n_byte)
        return err_set(e, ERR_ARGUMENT, "/continue: there is no answer to go on with");
    last->is_open = 1;
    return 1;
}

static int do_system(struct chat *c, char *argument, struct err *e)
{
    const struct turn *system = transcript_system(&c->transcript);
    if (!*argument) {
        terminal_note(c->terminal, "%s", system ? system->content.data : "no system message");
        return 0;
    }
    if (transcript_set_system(&c->transcript, text_of(strcmp(argument, "none") ? argument : ""), e))
        return -1;
    terminal_note(c->terminal, "set; it also holds for what was said before (/clear starts over)");
    return 0;
}

static int do_think(struct chat *c, char *argument, struct err *e)
{
    if (*argument && chat_set_thinking(c, argument, e))
        return -1;
    terminal_note(c->terminal, "thinking %s%s%s", c->options.is_thinking ? "on" : "off",
        c->options.effort ? ", effort " : "", c->options.effort ? c->options.effort : "");
    return 0;
}

static int do_draft(struct chat *c, char *argument, struct err *e)
{
    if (*argument)
        return draft_read_limit(argument, &c->n_draft, e);
    draft_note_limit(c->n_draft, c->terminal);
    draft_report(c->session, c->terminal);
    store_report(c->engine, c->terminal);
    return 0;
}

static void show_settings(struct chat *c)
{
    const struct hadal_sampling *s = &c->sampling;
    terminal_note(c->terminal, "temperature %g  top-k %d  top-p %g  min-p %g  presence-penalty %g  frequency-penalty %g",
        (double)s->temperature, s->top_k, (double)s->top_p, (double)s->min_p, (double)s->presence_penalty,
        (double)s->frequency_penalty);
    terminal_note(c->terminal, "repetition-penalty %g  seed %llu  max-tokens %d", (double)s->repetition_penalty,
        (unsigned long long)s->seed, c->generation.max_token);
    for (int i = 0; i < c->generation.stops.n; i++)
        terminal_note(c->terminal, "stop \"%s\"", c->generation.stops.text[i]);
}

static int is_option(const struct option *rows, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].name, name))
            return 1;
    return 0;
}

static int do_set(struct chat *c, char *argument, struct err *e)
{
    size_t n = strcspn(argument, " \t=");
    const char *value = argument + n + strspn(argument + n, " \t=");
    struct option_group sampling = {"", sampling_option_rows, N_SAMPLING_OPTION, 0},
                        generation = {"", generation_option_rows, N_GENERATION_OPTION, 0};
    if (!*argument) {
        show_settings(c);
        return 0;
    }
    if (!*value)
        return err_set(e, ERR_ARGUMENT, "/set %s needs a value", argument);
    argument[n] = 0;
    if (!strcmp(argument, "draft"))
        return draft_read_limit(value, &c->n_draft, e);
    if (!strcmp(argument, "think"))
        return chat_set_thinking(c, value, e);
    value = arena_copy(&c->arena, value, strlen(value));
    if (!value)
        return err_set(e, ERR_MEMORY, "no memory for a setting");
    if (!strcmp(argument, "stop") && !strcmp(value, "none"))
        c->generation.stops.n = 0;
    else if (is_option(generation_option_rows, N_GENERATION_OPTION, argument)) {
        if (options_set(&generation, argument, value, &c->generation, e))
            return -1;
    } else if (options_set(&sampling, argument, value, &c->sampling_settings, e)) {
        return err_wrap(e, "/set");
    }
    uint64_t seed = c->sampling.seed;
    sampling_resolve(&c->sampling, &c->sampling_settings, &c->info);
    if (!c->sampling_settings.has_seed)
        c->sampling.seed = seed;
    show_settings(c);
    return 0;
}

static int do_save(struct chat *c, char *argument, struct err *e)
{
    if (transcript_save(&c->transcript, argument, e))
        return -1;
    terminal_note(c->terminal, "%zu messages written to %s", c->transcript.n, argument);
    return 0;
}

static int do_load(struct chat *c, char *argument, struct err *e)
{
    if (transcript_load(&c->transcript, argument, e))
        return -1;
    c->is_unanswered = 0;
    terminal_note(c->terminal, "%zu messages read from %s", c->transcript.n, argument);
    return 0;
}

static int do_read(struct chat *c, char *argument, struct err *e)
{
    size_t n = strcspn(argument, " \t");
    const char *question = argument + n + strspn(argument + n, " \t");
    struct file_map m;
    struct buf text = {0};
    int has_question = *question != 0;
    argument[n] = 0;
    if (file_map_open(&m, argument, e))
        return -1;
    buf_append(&text, m.data, m.n_byte);
    if (has_question)
        buf_print(&text, "\n\n%s", question);
    file_map_close(&m);
    c->n_retry = 0;
    int failed = text.is_broken ? err_set(e, ERR_MEMORY, "%s: no memory for it", argument)
                                : transcript_add(&c->transcript, CHAT_USER, (struct text){text.data, text.n_byte},
                                      (struct text){0}, e);
    buf_free(&text);
    return failed ? -1 : 1;
}

static int do_show(struct chat *c, char *argument, struct err *e)
{
    static const char *const roles[] = {[CHAT_SYSTEM] = "system", [CHAT_DEVELOPER] = "developer", [CHAT_USER] = "you",
        [CHAT_ASSISTANT] = "model", [CHAT_TOOL] = "tool", [CHAT_REMINDER] = "reminder"};
    (void)argument;
    (void)e;
    for (size_t i = 0; i < c->transcript.n; i++) {
        const struct turn *turn = &c->transcript.turns[i];
        terminal_style(c->terminal, c->terminal->out, STYLE_BOLD);
        fprintf(c->terminal->out, "%s:", roles[turn->role]);
        terminal_style(c->terminal, c->terminal->out, STYLE_PLAIN);
        fputc(' ', c->terminal->out);
        terminal_write(c->terminal, c->terminal->out, turn->content.data, turn->content.n_byte);
        terminal_end_line(c->terminal);
    }
    return 0;
}

static int do_stats(struct chat *c, char *argument, struct err *e)
{
        int n_now;
    (void)argument;
    (void)e;
    hadal_session_ids(c->session, &n_now);
    
    terminal_note(c->terminal, "%s (%s), %s %s, %d threads", c->info.model_name, c->info.architecture, c->info.backend,
        c->info.level, c->info.n_thread);
    terminal_note(c->terminal, "context %d of %d tokens, %zu messages", n_now, c->info.n_context, c->transcript.n);
    terminal_note(c->terminal, "memory: weights %.1f MiB, conversation %.1f MiB, work %.1f MiB",
        (double)c->info.weight_bytes / 0x1p20, (double)c->info.session_bytes / 0x1p20, (double)c->info.scratch_bytes / 0x1p20);
    
    draft_report(c->session, c->terminal);
    return 0;
}

static int do_exit(struct chat *c, char *argument, struct err *e)
{
    (void)argument;
    (void)e;
    c->is_leaving = 1;
    return 0;
}

static const struct chat_verb *all_verbs(void)
{
    static const struct chat_verb verbs[] = {
        {"/help", "", "this list", do_help, 0},
        {"/clear", "", "a new conversation; the system message stays", do_clear, 0},
        {"/retry", "", "another answer to the same question", do_retry, 0},
        {"/continue", "", "go on with an answer that was stopped or cut off", do_continue, 0},
        {"/undo", "", "forget the last question and its answer", do_undo, 0},
        {"/system", "TEXT", "set the system message; none removes it, without text it is shown", do_system, 0},
        {"/set", "NAME VALUE", "change a setting, as the options of the command line; without a name all are shown", do_set, 0},
        {"/draft", "HOW", "auto, off, or at most N tokens ahead; without it, what drafts gave", do_draft, 0},
        {"/think", "HOW", "off, on, or an effort", do_think, 0},
        {"/read", "FILE QUESTION", "ask about the text of a file", do_read, 1},
        {"/show", "", "the conversation so far", do_show, 0},
        {"/save", "FILE", "write the conversation as JSON messages", do_save, 1},
        {"/load", "FILE", "go on with a saved conversation", do_load, 1},
        {"/stats", "", "model, context, memory and drafts", do_stats, 0},
        {"/exit", "", "leave; also /quit and /bye", do_exit, 0},
        {NULL, NULL, NULL, NULL, 0},
    };
    return verbs;
}

/* Other names that people know. */
static const char *const synonyms[][2] = {{"/quit", "/exit"}, {"/bye", "/exit"}, {"/q", "/exit"}, {"/new", "/clear"},
    {"/reset", "/clear"}, {"/regen", "/retry"}, {"/regenerate", "/retry"}, {"/?", "/help"}, {"/history", "/show"},
    {"/file", "/read"}};

const char *const *chat_command_names(void)
{
    static const char *const names[] = {"/help", "/clear", "/retry", "/continue", "/undo", "/system", "/set", "/draft", "/think",
        "/read", "/show", "/save", "/load", "/stats", "/exit", NULL};
    return names;
}

static int fail_unknown(const char *name, struct err *e)
{
    const char *best = NULL;
    for (const struct chat_verb *v = all_verbs(); v->name; v++)
        best = suggest_closer(name, best, v->name);
    if (best)
        return err_set(e, ERR_ARGUMENT, "unknown command %s; did you mean %s? (//... sends a message that begins with /)", name, best);
    return err_set(e, ERR_ARGUMENT, "unknown command %s; /help lists them, //... sends a message that begins with /", name);
}

int chat_command(struct chat *c, char *line, struct err *e)
{
    size_t n = strcspn(line, " \t\n");
    char *argument = line + n + strspn(line + n, " \t\n");
    size_t n_argument = strlen(argument);
    while (n_argument && isspace((unsigned char)argument[n_argument - 1]))
        argument[--n_argument] = 0;
    line[n] = 0;
    const char *name = line;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (!strcmp(name, synonyms[i][0]))
            name = synonyms[i][1];
    const struct chat_verb *v = all_verbs();
    while (v->name && strcmp(v->name, name))
        v++;
    if (!v->name)
        return fail_unknown(name, e);
    if (v->needs_argument && !*argument)
        return err_set(e, ERR_ARGUMENT, "%s needs: %s", v->name, v->argument);
    return v->run(c, argument, e);
}
