/* chat.c: writes prompts. See chat.h; the rules are those of the vendor's encoders (spec: chat
 * encoding).
 *
 * put_trusted writes what the format says, put_plain what anybody else said. Nothing else appends
 * to the prompt.
 */
#include "text/chat.h"

#include "text/chat_turns.h"
#include "text/control_tokens.h"
#include "text/json_text.h"
#include "text/shown.h"

#include <json-c/json.h>

struct writer {
    struct chat_prompt *prompt;
    const struct chat_options *options;
    const struct dialect *dialect;
    struct chat_turns turns;
    struct arena arena;
    int is_broken; /* no memory for a span */
};

/* ---- text and trust ---- */

static int reserve_span(struct chat_prompt *p)
{
    if (p->n_trusted < p->capacity)
        return 0;
    size_t capacity = p->capacity ? p->capacity * 2 : 32;
    struct text_span *spans = mem_resize(p->trusted, capacity * sizeof *spans);
    if (!spans)
        return -1;
    p->trusted = spans;
    p->capacity = capacity;
    return 0;
}

static void trust(struct writer *w, size_t begin)
{
    struct chat_prompt *p = w->prompt;
    size_t end = p->text.n_byte;
    if (p->n_trusted && p->trusted[p->n_trusted - 1].end == begin)
        p->trusted[p->n_trusted - 1].end = end;
    else if (reserve_span(p))
        w->is_broken = 1;
    else if (end > begin)
        p->trusted[p->n_trusted++] = (struct text_span){begin, end};
}

static void put_trusted_text(struct writer *w, struct text text)
{
    size_t begin = w->prompt->text.n_byte;
    buf_append(&w->prompt->text, text.data, text.n_byte);
    trust(w, begin);
}

static void put_trusted(struct writer *w, const char *text)
{
    put_trusted_text(w, text_of(text));
}

static void put_plain(struct writer *w, struct text text)
{
    if (text.n_byte)
        buf_append(&w->prompt->text, text.data, text.n_byte);
}

/* ---- tools and response format ---- */

static void put_tag(struct writer *w, const char *before, const char *name, const char *after)
{
    put_trusted(w, before);
    put_trusted(w, CONTROL_DSML);
    put_trusted(w, name);
    put_trusted(w, after);
}

static void put_json(struct writer *w, struct json_object *value)
{
    json_text_write(&w->prompt->text, value);
}

/* One schema a line; of a tool in the OpenAI form only the function. */
static void put_schemas(struct writer *w, struct json_object *tools)
{
    for (size_t i = 0; i < json_object_array_length(tools); i++) {
        struct json_object *tool = json_object_array_get_idx(tools, i);
        struct json_object *function = json_text_member(tool, "function");
        put_trusted(w, i ? "\n" : "");
        put_json(w, function ? function : tool);
    }
}

static const char *tag_name(const struct dialect *d, char letter)
{
    return letter == 'C' ? d->calls : letter == 'I' ? d->invoke : d->parameter;
}

/* The block with its {C}, {I}, {P} and {S} replaced. */
static void put_tools_block(struct writer *w, struct json_object *tools)
{
    const char *text = w->dialect->tools;
    for (const char *brace; (brace = strchr(text, '{')); text = brace + 3) {
        put_trusted_text(w, (struct text){text, (size_t)(brace - text)});
        if (brace[1] == 'S')
            put_schemas(w, tools);
        else
            put_tag(w, "", tag_name(w->dialect, brace[1]), "");
    }
    put_trusted(w, text);
}

static int put_tools(struct writer *w, struct text json, struct err *e)
{
    struct json_object *tools;
    if (!json.n_byte)
        return 0;
    if (json_text_read(&tools, json, e))
        return err_wrap(e, "tools");
    int is_array = json_object_is_type(tools, json_type_array);
    if (is_array && json_object_array_length(tools)) {
        put_trusted(w, "\n\n");
        put_tools_block(w, tools);
    }
    json_object_put(tools);
    return is_array ? 0 : err_set(e, ERR_ARGUMENT, "tools must be a JSON array");
}

static int put_response_format(struct writer *w, struct text json, struct err *e)
{
    struct json_object *format;
    if (!json.n_byte)
        return 0;
    if (json_text_read(&format, json, e))
        return err_wrap(e, "response_format");
    put_trusted(w, "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to "
                   "reply:\n");
    put_json(w, format);
    json_object_put(format);
    return 0;
}

/* ---- calls ---- */

struct parameter {
    struct text key;
    int is_string;
    struct text string;
    struct json_object *value; /* when it is not a string; NULL is null */
};

static void put_parameter(struct writer *w, const struct parameter *p)
{
    put_tag(w, "<", w->dialect->parameter, " name=\"");
    put_plain(w, p->key);
    put_trusted(w, p->is_string ? "\" string=\"true\">" : "\" string=\"false\">");
    if (p->is_string)
        put_plain(w, p->string);
    else
        put_json(w, p->value);
    put_tag(w, "</", w->dialect->parameter, ">");
}

/* The object that arguments stand for, or NULL. */
static struct json_object *read_arguments(const struct dialect *d, struct text arguments)
{
    struct json_object *value = NULL, *inner = NULL;
    if (json_text_read(&value, arguments, NULL))
        return NULL;
    if (d->reads_arguments_twice && json_object_is_type(value, json_type_string) &&
        !json_text_read(&inner, json_text_string(value), NULL)) {
        json_object_put(value);
        value = inner;
    }
    if (json_object_is_type(value, json_type_object))
        return value;
    json_object_put(value);
    return NULL;
}

static void put_arguments(struct writer *w, struct text arguments)
{
    struct json_object *object = read_arguments(w->dialect, arguments);
    if (!object) {
        put_parameter(w, &(struct parameter){TEXT("arguments"), 1, arguments, NULL});
        return;
    }
    int n = 0;
    json_object_object_foreach(object, key, value)
    {
        int is_string = json_object_is_type(value, json_type_string);
        put_trusted(w, n++ ? "\n" : "");
        put_parameter(
            w, &(struct parameter){text_of(key), is_string, json_text_string(value), value});
    }
    json_object_put(object);
}

static void put_calls(struct writer *w, const struct chat_message *m)
{
    if (!m->n_call)
        return;
    put_tag(w, "\n\n<", w->dialect->calls, ">\n");
    for (size_t i = 0; i < m->n_call; i++) {
        put_tag(w, "<", w->dialect->invoke, " name=\"");
        put_plain(w, m->calls[i].name);
        put_trusted(w, "\">\n");
        put_arguments(w, m->calls[i].arguments);
        put_tag(w, "\n</", w->dialect->invoke, ">\n");
    }
    put_tag(w, "</", w->dialect->calls, ">");
}

/* ---- turns ---- */

static void put_user(struct writer *w, const struct chat_turn *turn)
{
    put_trusted(w, CONTROL_USER);
    for (size_t i = 0; i < turn->n_block; i++) {
        int is_result = turn->blocks[i]->role == CHAT_TOOL;
        put_trusted(w, i ? "\n\n" : "");
        put_trusted(w, is_result ? "<tool_result>" : "");
        put_plain(w, turn->blocks[i]->content);
        put_trusted(w, is_result ? "</tool_result>" : "");
    }
}

static void put_assistant(struct writer *w, size_t i)
{
    const struct chat_turns *t = &w->turns;
    const struct chat_message *m = t->turns[i].first;
    int follows_task = i && t->turns[i - 1].task.n_byte;
    if (w->options->is_thinking && !follows_task &&
        (!t->drops_reasoning || (long)i > t->last_user)) {
        put_plain(w, m->reasoning);
        put_trusted(w, CONTROL_END_THINK);
    }
    put_plain(w, m->content);
    put_calls(w, m);
    put_trusted(w, m->is_open ? "" : CONTROL_EOS);
}

static int put_instructions(struct writer *w, const struct chat_message *m, struct err *e)
{
    put_plain(w, m->content);
    return put_tools(w, m->tools, e) || put_response_format(w, m->response_format, e) ? -1 : 0;
}

/* What stands before the first message: the effort, in thinking mode. */
static int put_head(struct writer *w, size_t i, struct err *e)
{
    int is_system = w->turns.turns[i].role == CHAT_SYSTEM;
    int has_effort = i == 0 && w->options->is_thinking;
    if (w->dialect->has_system_token && (is_system || has_effort))
        put_trusted(w, CONTROL_SYSTEM);
    if (!has_effort)
        return 0;
    size_t begin = w->prompt->text.n_byte;
    int rc = dialect_effort_text(w->dialect, w->options->effort, &w->prompt->text, e);
    trust(w, begin);
    return rc;
}

static int put_turn(struct writer *w, size_t i, struct err *e)
{
    const struct chat_turn *turn = &w->turns.turns[i];
    switch (turn->role) {
    case CHAT_DEVELOPER:
        put_trusted(w, CONTROL_USER);
        return put_instructions(w, turn->first, e);
    case CHAT_SYSTEM:
        return put_instructions(w, turn->first, e);
    case CHAT_USER:
        put_user(w, turn);
        return 0;
    case CHAT_ASSISTANT:
        put_assistant(w, i);
        return 0;
    case CHAT_REMINDER:
        put_trusted(w, CONTROL_REMINDER);
        put_plain(w, turn->first->content);
        return 0;
    case CHAT_TOOL: /* part of a user turn by now */
        break;
    }
    return err_set(e, ERR_ARGUMENT, "message role %d is unknown", (int)turn->role);
}

static const char *task_token(struct text task)
{
    static const struct {
        const char *task, *token;
    } tasks[] = {{"action", "<｜action｜>"}, {"query", "<｜query｜>"},
        {"authority", "<｜authority｜>"}, {"domain", "<｜domain｜>"}, {"title", "<｜title｜>"},
        {"read_url", "<｜read_url｜>"}};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (text_is(task, tasks[i].task))
            return tasks[i].token;
    return NULL;
}

/* What stands between a turn and the answer to it. */
static void put_transition(struct writer *w, size_t i)
{
    const struct chat_turns *t = &w->turns;
    const struct chat_turn *turn = &t->turns[i];
    enum chat_role next = i + 1 < t->n ? t->turns[i + 1].role : CHAT_ASSISTANT;
    if (next != CHAT_ASSISTANT && next != CHAT_REMINDER)
        return;
    int is_thinking = w->options->is_thinking;
    int is_action = text_is(turn->task, "action");
    if (turn->task.n_byte && !is_action) {
        put_trusted(w, task_token(turn->task));
    } else if (is_action || chat_turn_asks(t, i, w->dialect)) {
        is_thinking &= is_action || !t->drops_reasoning || (long)i >= t->last_user;
        put_trusted(w, CONTROL_ASSISTANT);
        put_trusted(w, is_thinking ? CONTROL_THINK : CONTROL_END_THINK);
        put_trusted(w, is_action ? task_token(turn->task) : "");
    }
}

/* ---- public ---- */

static int check_messages(
    const struct chat_message *messages, size_t n_message, const struct dialect *d, struct err *e)
{
    if (!n_message || n_message > CHAT_MAX_MESSAGE)
        return err_set(
            e, ERR_ARGUMENT, "%zu messages, expected 1 to %d", n_message, CHAT_MAX_MESSAGE);
    for (size_t i = 0; i < n_message; i++) {
        const struct chat_message *m = &messages[i];
        if (m->task.n_byte && !task_token(m->task))
            return err_set(e, ERR_ARGUMENT, "message %zu has the unknown task \"%s\"", i,
                shown_text(m->task).text);
        if (m->role == CHAT_DEVELOPER && !d->has_developer)
            return err_set(e, ERR_ARGUMENT,
                "message %zu has the role developer, which dialect %s does not know", i, d->name);
        if (m->role == CHAT_DEVELOPER && !m->content.n_byte)
            return err_set(e, ERR_ARGUMENT, "developer message %zu is empty", i);
        if (m->n_call > CHAT_MAX_CALL)
            return err_set(e, ERR_ARGUMENT, "message %zu has %zu calls, expected at most %d", i,
                m->n_call, CHAT_MAX_CALL);
    }
    return 0;
}

static int write_all(struct writer *w, struct err *e)
{
    put_trusted(w, CONTROL_BOS);
    for (size_t i = 0; i < w->turns.n; i++) {
        if (put_head(w, i, e) || put_turn(w, i, e))
            return -1;
        put_transition(w, i);
    }
    return w->is_broken || w->prompt->text.is_broken
               ? err_set(e, ERR_MEMORY, "no memory for a prompt of %zu turns", w->turns.n)
               : 0;
}

int chat_render(struct chat_prompt *prompt, const struct chat_message *messages, size_t n_message,
    const struct chat_options *options, struct err *e)
{
    struct writer w = {.prompt = prompt, .options = options, .dialect = options->dialect};
    buf_clear(&prompt->text);
    prompt->n_trusted = 0;
    if (check_messages(messages, n_message, w.dialect, e))
        return -1;
    int rc =
        chat_turns_build(&w.turns, &w.arena, messages, n_message, options, e) || write_all(&w, e);
    arena_free(&w.arena);
    return rc ? -1 : 0;
}

void chat_prompt_free(struct chat_prompt *prompt)
{
    buf_free(&prompt->text);
    mem_free(prompt->trusted);
    *prompt = (struct chat_prompt){0};
}

int chat_encode(const struct tokenizer *t, const struct chat_prompt *prompt, struct token_list *out,
    struct err *e)
{
    struct text text = {prompt->text.data, prompt->text.n_byte};
    struct text_spans trusted = {prompt->trusted, prompt->n_trusted};
    return tokenizer_encode_spans(t, text, trusted, out, e);
}
