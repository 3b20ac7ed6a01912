/* run.c: `hadal run`: one answer to -p, -f or piped text, or a chat. */
#include "cli/chat_loop.h"
#include "cli/read_input.h"
#include "cli/store_report.h"

#include <string.h>

struct run_settings {
    struct engine_settings engine;
    struct sampling_settings sampling;
    struct generation_settings generation;
    const char *prompt, *file, *system, *saved;
    int is_raw, is_interactive, is_quiet;
};

#define AT(field) offsetof(struct run_settings, field)
static const struct option prompt_option_rows[] = {
    {"prompt", 'p', OPTION_TEXT, AT(prompt), "TEXT", "answer this and end", 0, 0, 0},
    {"file", 'f', OPTION_TEXT, AT(file), "FILE", "the prompt, or what follows it, is in a file; - is standard input", 0, 0, 0},
    {"system", 0, OPTION_TEXT, AT(system), "TEXT", "system message", 0, 0, 0},
    {"load", 0, OPTION_TEXT, AT(saved), "FILE", "begin with a saved conversation", 0, 0, 0},
    {"raw", 0, OPTION_FLAG, AT(is_raw), NULL, "no chat format: go on with the text; special tokens are recognised", 0, 0, 0},
    {"interactive", 'i', OPTION_FLAG, AT(is_interactive), NULL, "chat even when the input is no terminal", 0, 0, 0},
    {"quiet", 'q', OPTION_FLAG, AT(is_quiet), NULL, "no progress, notes or statistics", 0, 0, 0},
};

static void defaults(void *settings)
{
    struct run_settings *s = settings;
    sampling_defaults(&s->sampling);
    s->generation.max_token = -1;
}

static int read_prompt(const struct run_settings *s, struct buf *out, struct err *e)
{
    if (s->prompt)
        buf_text(out, s->prompt);
    if (s->prompt && s->file)
        buf_text(out, "\n\n");
    if ((s->file || !s->prompt) && read_input(s->file ? s->file : "-", out, e))
        return -1;
    if (!out->n_byte)
        return err_set(e, ERR_ARGUMENT, "the prompt is empty");
    return 0;
}

static int answer_raw(struct chat *c, const struct buf *prompt, struct err *e)
{
    struct token_list ids = {0};
    const struct tokenizer *t = hadal_engine_tokenizer(c->engine);
    int failed = (c->info.bos_id >= 0 && token_list_append(&ids, c->info.bos_id, e)) ||
                 tokenizer_encode(t, (struct text){prompt->data, prompt->n_byte}, TOKENIZER_SPECIALS, &ids, e) ||
                 chat_answer(c, &ids, e);
    token_list_free(&ids);
    return failed ? -1 : 0;
}

static int answer_once(struct chat *c, const struct run_settings *s, struct err *e)
{
    struct buf prompt = {0};
    int failed = read_prompt(s, &prompt, e);
    if (!failed && s->is_raw)
        failed = answer_raw(c, &prompt, e);
    else if (!failed)
        failed = transcript_add(&c->transcript, CHAT_USER, (struct text){prompt.data, prompt.n_byte}, (struct text){0}, e) ||
                 chat_answer(c, NULL, e);
    buf_free(&prompt);
        if (failed)
        return EXIT_FAILED;
    if (s->generation.draft)
        draft_report(c->session, c->terminal);
    store_report(c->engine, c->terminal);
    return c->latest.end == ANSWER_CANCELLED ? EXIT_INTERRUPTED : EXIT_OK;
}

static void greet(const struct chat *c)
{
    terminal_note(c->terminal, "hadal %s: %s (%s) on %s %s, %d threads, context %d", c->call->program_version,
        c->info.model_name, c->info.architecture, c->info.backend, c->info.level, c->info.n_thread, c->info.n_context);
    terminal_note(c->terminal, "/help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves");
}

static int converse(struct chat *c, const struct run_settings *s, struct err *e)
{
    int is_chat = s->is_interactive || (c->terminal->in_is_tty && c->terminal->out_is_tty && !s->prompt && !s->file);
    if (chat_open(c, e) || (s->saved && transcript_load(&c->transcript, s->saved, e)) ||
        (s->system && transcript_set_system(&c->transcript, text_of(s->system), e)))
        return EXIT_FAILED;
    if (!is_chat)
        return answer_once(c, s, e);
    greet(c);
    return chat_loop(c, e);
}

static int run(struct command_call *call, void *settings, struct err *e)
{
    struct run_settings *s = settings;
    struct chat c = {.call = call, .terminal = call->terminal, .sampling_settings = s->sampling,
        .generation = s->generation};
    call->terminal->is_quiet = s->is_quiet;
    if (call->n_rest) {
        err_set(e, ERR_ARGUMENT, "run takes no %s; a prompt is given with -p, a model with -m", call->rest[0]);
        return EXIT_USAGE;
    }
        if (draft_read_limit(s->engine.has_no_drafts ? "off" : s->generation.draft, &c.n_draft, e))
        return EXIT_USAGE;
    if (s->is_interactive && (s->is_raw || s->prompt || s->file)) {
        err_set(e, ERR_ARGUMENT, "--interactive goes with none of --raw, --prompt and --file");
        return EXIT_USAGE;
    }
    if (settings_open_engine(&c.engine, &s->engine, call, e))
        return EXIT_FAILED;
    int code = EXIT_FAILED;
    if (!hadal_session_open(&c.session, c.engine, e)) {
        code = converse(&c, s, e);
        chat_close(&c);
        hadal_session_close(c.session);
    }
    settings_close_engine(c.engine, call);
    return code;
}

const struct command command_run = {
    .name = "run",
    .usage = "[-m MODEL] [-p PROMPT] [options]",
    .summary = "answer a prompt, or chat",
    .details = "With -p, -f or piped input the model answers once and the program ends; the answer goes to standard\n"
               "output, everything else to standard error. In a terminal without a prompt it is a chat: /help lists what\n"
               "can be typed. With --seed the text is the same each time, whatever the number of threads.\n",
    .groups = {{"Prompt", prompt_option_rows, sizeof prompt_option_rows / sizeof *prompt_option_rows, 0},
        {"Answer", generation_option_rows, N_GENERATION_OPTION, AT(generation)}, {"Sampling", sampling_option_rows, N_SAMPLING_OPTION, AT(sampling)},
        {"Engine", engine_option_rows, N_ENGINE_OPTION, AT(engine)}},
    .n_group = 4,
    .settings_bytes = sizeof(struct run_settings),
    .defaults = defaults,
    .run = run,
};
