/* chat_json.c: reads conversations in the OpenAI form. See chat_from_json in chat.h. */
#include "text/chat.h"

#include "text/json_text.h"
#include "text/shown.h"

#include <json-c/json.h>

/* A request being filled from one JSON value. */
struct reader {
    struct chat_request *request;
    struct arena *arena;
};

static int keep(struct reader *r, struct text from, struct text *to, struct err *e)
{
    *to = (struct text){arena_copy(r->arena, from.data, from.n_byte), from.n_byte};
    return to->data ? 0
                    : err_set(e, ERR_MEMORY, "no memory for %zu bytes of a message", from.n_byte);
}

static int keep_buf(struct reader *r, struct buf *from, struct text *to, struct err *e)
{
    int rc = from->is_broken ? err_set(e, ERR_MEMORY, "no memory for a message")
                             : keep(r, (struct text){from->data, from->n_byte}, to, e);
    buf_free(from);
    return rc;
}

/* ---- fields ---- */

/* A string; absent and null are empty. */
static int read_string(
    struct reader *r, struct json_object *m, const char *key, struct text *to, struct err *e)
{
    struct json_object *value = json_text_member(m, key);
    if (value && !json_object_is_type(value, json_type_string))
        return err_set(e, ERR_ARGUMENT, "%s must be a string", key);
    return keep(r, json_text_string(value), to, e);
}

/* Any JSON, kept as text; absent, null, {} and [] are empty. */
static int read_json(struct reader *r, struct json_object *value, struct text *to, struct err *e)
{
    struct buf text = {0};
    int is_empty =
        !value ||
        (json_object_is_type(value, json_type_array) && !json_object_array_length(value)) ||
        (json_object_is_type(value, json_type_object) && !json_object_object_length(value));
    if (!is_empty)
        json_text_write(&text, value);
    return keep_buf(r, &text, to, e);
}

static int read_tools(struct reader *r, struct json_object *tools, struct text *to, struct err *e)
{
    if (tools && !json_object_is_type(tools, json_type_array))
        return err_set(e, ERR_ARGUMENT, "tools must be an array");
    return read_json(r, tools, to, e);
}

/* {"type": "text"} asks for nothing. */
static int read_response_format(
    struct reader *r, struct json_object *format, struct text *to, struct err *e)
{
    if (text_is(json_text_string(json_text_member(format, "type")), "text"))
        format = NULL;
    return read_json(r, format, to, e);
}

/* Texts of the parts, joined by empty lines. User and tool messages say that a part could not be
 * shown. */
static int read_parts(struct buf *out, struct json_object *parts, int names_others, struct err *e)
{
    int n = 0;
    for (size_t i = 0; i < json_object_array_length(parts); i++) {
        struct json_object *part = json_object_array_get_idx(parts, i);
        struct text type = json_text_string(json_text_member(part, "type"));
        struct text text = json_text_string(json_text_member(part, "text"));
        int is_text = text_is(type, "text");
        if (!type.n_byte ||
            (is_text && !json_object_is_type(json_text_member(part, "text"), json_type_string)))
            return err_set(e, ERR_ARGUMENT, "content part %zu has no type or no text", i);
        if (!is_text && !names_others)
            continue;
        buf_text(out, n++ ? "\n\n" : "");
        buf_text(out, is_text ? "" : "[Unsupported ");
        text = is_text ? text : type;
        buf_append(out, text.data, text.n_byte);
        buf_text(out, is_text ? "" : "]");
    }
    return 0;
}

static int read_content(
    struct reader *r, struct json_object *m, struct chat_message *to, struct err *e)
{
    struct json_object *content = json_text_member(m, "content");
    struct buf text = {0};
    if (!json_object_is_type(content, json_type_array))
        return read_string(r, m, "content", &to->content, e);
    if (read_parts(&text, content, to->role == CHAT_USER || to->role == CHAT_TOOL, e)) {
        buf_free(&text);
        return -1;
    }
    return keep_buf(r, &text, &to->content, e);
}

/* ---- calls ---- */

static int read_call(
    struct reader *r, struct json_object *call, struct chat_call *to, struct err *e)
{
    struct json_object *function = json_text_member(call, "function");
    struct json_object *arguments = json_text_member(function, "arguments");
    if (!json_object_is_type(json_text_member(function, "name"), json_type_string))
        return err_set(e, ERR_ARGUMENT, "function.name is missing");
    if (read_string(r, call, "id", &to->id, e) || read_string(r, function, "name", &to->name, e))
        return -1;
    if (json_object_is_type(arguments, json_type_string))
        return keep(r, json_text_string(arguments), &to->arguments, e);
    struct buf text = {0};
    if (arguments)
        json_text_write(&text, arguments);
    else
        buf_text(&text, "{}");
    return keep_buf(r, &text, &to->arguments, e);
}

static int read_calls(
    struct reader *r, struct json_object *calls, struct chat_message *to, struct err *e)
{
    if (!calls)
        return 0;
    size_t n =
        json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : SIZE_MAX;
    if (n > CHAT_MAX_CALL)
        return err_set(e, ERR_ARGUMENT, "tool_calls must be an array of at most %d", CHAT_MAX_CALL);
    struct chat_call *list = ARENA_NEW(r->arena, struct chat_call, n);
    if (!list)
        return err_set(e, ERR_MEMORY, "no memory for %zu calls", n);
    for (size_t i = 0; i < n; i++)
        if (read_call(r, json_object_array_get_idx(calls, i), &list[i], e))
            return err_wrap(e, "tool_calls[%zu]", i);
    to->calls = list;
    to->n_call = n;
    return 0;
}

/* ---- messages ---- */

static int read_role(struct json_object *m, enum chat_role *role, struct err *e)
{
    static const char *const names[] = {
        "system", "developer", "user", "assistant", "tool", "latest_reminder"};
    struct text name = json_text_string(json_text_member(m, "role"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_is(name, names[i])) {
            *role = (enum chat_role)i;
            return 0;
        }
    return err_set(e, ERR_ARGUMENT,
        "role is \"%s\", expected system, developer, user, assistant, "
        "tool or latest_reminder",
        shown_text(name).text);
}

static int read_message(
    struct reader *r, struct json_object *m, struct chat_message *to, struct err *e)
{
    if (!json_object_is_type(m, json_type_object))
        return err_set(e, ERR_ARGUMENT, "a message must be an object");
    if (read_role(m, &to->role, e) || read_content(r, m, to, e) ||
        read_string(r, m, json_text_member(m, "reasoning") ? "reasoning" : "reasoning_content",
            &to->reasoning, e) ||
        read_string(r, m, "tool_call_id", &to->call_id, e) ||
        read_string(r, m, "task", &to->task, e) ||
        read_calls(r, json_text_member(m, "tool_calls"), to, e) ||
        read_tools(r, json_text_member(m, "tools"), &to->tools, e) ||
        read_response_format(r, json_text_member(m, "response_format"), &to->response_format, e))
        return -1;
    to->is_open = json_object_get_boolean(json_text_member(m, "wo_eos"));
    return 0;
}

/* Tools and response format of the request belong to the system message, which is made when there
 * is none. */
static int read_settings(struct reader *r, struct json_object *root, struct err *e)
{
    struct text tools, format;
    if (read_tools(r, json_text_member(root, "tools"), &tools, e) ||
        read_response_format(r, json_text_member(root, "response_format"), &format, e))
        return -1;
    struct chat_message *first = r->request->messages; /* one is free in front of the list */
    if (!tools.n_byte && !format.n_byte)
        return 0;
    if (!r->request->n_message || first->role != CHAT_SYSTEM) {
        first = --r->request->messages;
        *first = (struct chat_message){.role = CHAT_SYSTEM};
        r->request->n_message++;
    }
    if (tools.n_byte)
        first->tools = tools;
    if (format.n_byte)
        first->response_format = format;
    return 0;
}

static int read_effort(struct reader *r, struct json_object *effort, struct err *e)
{
    if (!effort)
        return 0;
    if (!json_object_is_type(effort, json_type_string) &&
        !json_object_is_type(effort, json_type_int))
        return err_set(e, ERR_ARGUMENT, "reasoning_effort must be a name or a number");
    r->request->options.effort = arena_print(r->arena, "%s", json_object_get_string(effort));
    return r->request->options.effort ? 0 : err_set(e, ERR_MEMORY, "no memory for an effort");
}

static int read_options(struct reader *r, struct json_object *root, struct err *e)
{
    struct json_object *thinking = json_text_member(root, "thinking"),
                       *drop = json_text_member(root, "drop_thinking");
    r->request->has_thinking = thinking != NULL;
    if ((thinking && !json_object_is_type(thinking, json_type_boolean)) ||
        (drop && !json_object_is_type(drop, json_type_boolean)))
        return err_set(e, ERR_ARGUMENT, "thinking and drop_thinking must be true or false");
    r->request->options.is_thinking = json_object_get_boolean(thinking);
    r->request->options.keeps_reasoning = drop && !json_object_get_boolean(drop);
    return read_effort(r, json_text_member(root, "reasoning_effort"), e);
}

static int read_request(struct reader *r, struct json_object *root, struct err *e)
{
    struct json_object *list =
        json_object_is_type(root, json_type_array) ? root : json_text_member(root, "messages");
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    if (!n || n > CHAT_MAX_MESSAGE)
        return err_set(e, ERR_ARGUMENT, "messages must be an array of 1 to %d", CHAT_MAX_MESSAGE);
    struct chat_message *messages = ARENA_NEW(r->arena, struct chat_message, n + 1);
    if (!messages)
        return err_set(e, ERR_MEMORY, "no memory for %zu messages", n);
    r->request->messages = messages + 1;
    for (size_t i = 0; i < n; i++, r->request->n_message++)
        if (read_message(r, json_object_array_get_idx(list, i), &messages[i + 1], e))
            return err_wrap(e, "messages[%zu]", i);
    return read_options(r, root, e) || read_settings(r, root, e) ? -1 : 0;
}

int chat_from_json(struct chat_request *request, struct text json, struct err *e)
{
    struct json_object *root;
    *request = (struct chat_request){.n_message = 0};
    if (json_text_read(&root, json, e))
        return -1;
    struct reader r = {request, &request->arena};
    int rc = read_request(&r, root, e);
    json_object_put(root);
    if (rc)
        chat_request_free(request);
    return rc;
}

void chat_request_free(struct chat_request *request)
{
    arena_free(&request->arena);
    *request = (struct chat_request){.n_message = 0};
}
