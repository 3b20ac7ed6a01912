/* chat_loop.c: see chat_loop.h. */
#include "cli/chat_loop.h"

#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct generation_settings, field)
const struct option generation_option_rows[N_GENERATION_OPTION] = {
    {"max-tokens", 'n', OPTION_INT, AT(max_token), "N", "tokens of an answer at most; default: what the context holds", 0, 1 << 24, 0},
    {"stop", 0, OPTION_TEXTS, AT(stops), "TEXT", "end the answer before this text; may be repeated", 0, 0, 0},
    {"think", 0, OPTION_TEXT, AT(think), "HOW", "off (default), on, or how hard: low, high, max; some models take 1 to 100", 0, 0, 0},
    {"draft", 0, OPTION_TEXT, AT(draft), "HOW", "tokens proposed ahead and checked at once: auto (default), off, or at most N; the text is the same", 0, 0, 0},
};
#undef AT

int chat_set_thinking(struct chat *c, const char *think, struct err *e)
{
    struct buf text = {0};
    if (!think || !strcmp(think, "off")) {
        c->options.is_thinking = 0;
        c->options.effort = NULL;
        return 0;
    }
    const char *effort = strcmp(think, "on") ? arena_copy(&c->arena, think, strlen(think)) : NULL;
    int failed = dialect_effort_text(c->options.dialect, effort, &text, e);
    buf_free(&text);
    if (failed)
        return err_wrap(e, "thinking is off, on or an effort");
    c->options.is_thinking = 1;
    c->options.effort = effort;
    return 0;
}

int chat_open(struct chat *c, struct err *e)
{
    hadal_engine_info(c->engine, &c->info);
    c->options.dialect = dialect_find(c->info.dialect);
    if (!c->options.dialect)
        return err_set(e, ERR_UNSUPPORTED, "the model's chat dialect is %s, which is not known here", c->info.dialect);
    sampling_resolve(&c->sampling, &c->sampling_settings, &c->info);
    return chat_set_thinking(c, c->generation.think, e);
}

void chat_close(struct chat *c)
{
    line_editor_close(c->editor);
    transcript_free(&c->transcript);
    answer_free(&c->latest);
    arena_free(&c->arena);
}

/* An answer that is going on is joined to its beginning. */
static int keep_answer(struct chat *c, struct err *e)
{
    struct answer *a = &c->latest;
    struct turn *last = transcript_last(&c->transcript);
    struct text content = {a->content.data, a->content.n_byte}, reasoning = {a->reasoning.data, a->reasoning.n_byte};
    if (last && last->role == CHAT_ASSISTANT) {
        buf_append(&last->content, content.data, content.n_byte);
    } else if (content.n_byte || reasoning.n_byte || a->end == ANSWER_COMPLETE) {
        if (transcript_add(&c->transcript, CHAT_ASSISTANT, content, reasoning, e))
            return -1;
        last = transcript_last(&c->transcript);
    }
    c->is_unanswered = !last || last->role != CHAT_ASSISTANT;
    if (!c->is_unanswered)
        last->is_open = a->end != ANSWER_COMPLETE && a->end != ANSWER_STOP_STRING;
    return 0;
}

static int is_going_on(const struct chat *c)
{
    return c->transcript.n && c->transcript.turns[c->transcript.n - 1].role == CHAT_ASSISTANT;
}

int chat_answer(struct chat *c, const struct token_list *prompt, struct err *e)
{
    struct token_list rendered = {0};
    const struct token_list *ids = prompt ? prompt : &rendered;
    if (!prompt && transcript_encode(&c->transcript, &c->options, hadal_engine_tokenizer(c->engine), &rendered, e)) {
        token_list_free(&rendered);
        return -1;
    }
    uint64_t seed = c->sampling.seed;
    c->sampling.seed = seed + c->n_retry;
    struct answer_request q = {.engine = c->engine, .session = c->session, .tokenizer = hadal_engine_tokenizer(c->engine), .info = &c->info,
        .sampling = &c->sampling, .stops = &c->generation.stops, .prompt = ids->ids, .n_prompt = (int)ids->n,
        .max_token = c->generation.max_token, .n_draft = c->n_draft,
        .is_thinking = !prompt && c->options.is_thinking && !is_going_on(c)};
    answer_free(&c->latest);
    c->latest = (struct answer){0};
    int failed = answer_run(&q, c->call, &c->latest, e);
    terminal_end_line(c->terminal);
    if (!failed && !prompt)
        failed = keep_answer(c, e);
    if (!failed)
        answer_note(&q, &c->latest, c->terminal);
    c->sampling.seed = seed;
    token_list_free(&rendered);
    return failed;
}

static int ask(struct chat *c, const char *text, struct err *e)
{
    c->n_retry = 0;
    const struct turn *last = transcript_last(&c->transcript);
    if (c->is_unanswered && last && last->role == CHAT_USER)
        transcript_drop_exchange(&c->transcript);
    if (transcript_add(&c->transcript, CHAT_USER, text_of(text), (struct text){0}, e) || chat_answer(c, NULL, e)) {
        transcript_drop_exchange(&c->transcript); /* nothing came of it: as if it had not been asked */
        return -1;
    }
    return 0;
}

static int take_message(struct chat *c, struct buf *message, struct err *e)
{
    if (!message->n_byte || strspn(message->data, " \t\n") == message->n_byte)
        return 0;
    if (message->data[0] != '/')
        return ask(c, message->data, e);
    if (message->data[1] == '/')
        return ask(c, message->data + 1, e);
    int result = chat_command(c, message->data, e);
    return result > 0 ? chat_answer(c, NULL, e) : result;
}

int chat_loop(struct chat *c, struct err *e)
{
    struct buf message = {0};
    int n_failed = 0;
    if (c->terminal->in_is_tty)
        c->editor = line_editor_open(c->call->history_file, chat_command_names());
    while (!c->is_leaving) {
        *e = (struct err){0};
        c->call->interrupt->n = 0;
        enum line_result result = chat_read_message(c, &message);
        if (result == LINE_END)
            break;
        if (result == LINE_INTERRUPTED) {
            terminal_note(c->terminal, "Ctrl-D or /exit leaves");
        } else if (take_message(c, &message, e)) {
            terminal_error(c->terminal, e->text);
            n_failed++;
        }
    }
    buf_free(&message);
    *e = (struct err){0};
    return n_failed && !c->terminal->in_is_tty ? EXIT_FAILED : EXIT_OK;
}
