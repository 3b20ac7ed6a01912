/* dsml_message.c: events of a completion collected: JSON of arguments, and whole messages. See
 * dsml.h. */
#include "text/control_tokens.h"
#include "text/dsml.h"
#include "text/json_text.h"

void dsml_arguments_json(struct buf *out, const struct dsml_event *event)
{
    const char *quote = event->is_string ? "\"" : "";
    switch (event->kind) {
    case DSML_CALL:
        buf_text(out, "{");
        break;
    case DSML_ARGUMENT:
        buf_text(out, event->index ? ", " : "");
        json_text_write_string(out, event->text);
        buf_print(out, ": %s", quote);
        break;
    case DSML_VALUE:
        if (event->is_string)
            json_text_escape(out, event->text);
        else
            buf_append(out, event->text.data, event->text.n_byte);
        break;
    case DSML_ARGUMENT_END:
        buf_text(out, quote);
        break;
    case DSML_CALL_END:
        buf_text(out, "}");
        break;
    default:
        break;
    }
}

struct collector {
    struct dsml_message *message;
    struct buf reasoning, content, arguments;
    struct text name; /* of the open call, in the arena */
    size_t capacity;
    int is_broken;
};

static struct text keep(struct collector *c, const char *data, size_t n_byte)
{
    struct text kept = {arena_copy(&c->message->arena, data, n_byte), n_byte};
    c->is_broken |= !kept.data;
    return kept;
}

static void add_call(struct collector *c)
{
    struct dsml_message *m = c->message;
    if (m->n_call == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : 8;
        struct dsml_call *calls = ARENA_NEW(&m->arena, struct dsml_call, capacity);
        c->is_broken |= !calls;
        if (!calls)
            return;
        if (m->n_call)
            memcpy(calls, m->calls, m->n_call * sizeof *calls);
        m->calls = calls;
        c->capacity = capacity;
    }
    m->calls[m->n_call++] =
        (struct dsml_call){c->name, keep(c, c->arguments.data, c->arguments.n_byte)};
}

static void collect(void *user, const struct dsml_event *event)
{
    struct collector *c = user;
    struct text text = event->text;
    if (event->kind == DSML_REASONING)
        buf_append(&c->reasoning, text.data, text.n_byte);
    if (event->kind == DSML_CONTENT)
        buf_append(&c->content, text.data, text.n_byte);
    if (event->kind == DSML_MALFORMED)
        c->message->malformed = keep(c, text.data, text.n_byte);
    if (event->kind == DSML_CALL) {
        buf_clear(&c->arguments);
        c->name = keep(c, text.data, text.n_byte);
    }
    dsml_arguments_json(&c->arguments, event);
    if (event->kind == DSML_CALL_END && !c->is_broken)
        add_call(c);
}

int dsml_read(struct dsml_message *m, const struct dialect *d, int is_thinking,
    struct text completion, struct err *e)
{
    struct text eos = TEXT(CONTROL_EOS);
    struct collector c = {.message = m};
    struct dsml_parser p;
    *m = (struct dsml_message){.n_call = 0};
    if (completion.n_byte >= eos.n_byte &&
        !memcmp(completion.data + completion.n_byte - eos.n_byte, eos.data, eos.n_byte))
        completion.n_byte -= eos.n_byte;
    dsml_open(&p, d, is_thinking);
    p.take = collect;
    p.user = &c;
    int rc = dsml_push(&p, completion, e) || dsml_finish(&p, e) ? -1 : 0;
    dsml_close(&p);
    m->reasoning = keep(&c, c.reasoning.data, c.reasoning.n_byte);
    m->content = keep(&c, c.content.data, c.content.n_byte);
    if (!rc &&
        (c.is_broken || c.reasoning.is_broken || c.content.is_broken || c.arguments.is_broken))
        rc = err_set(
            e, ERR_MEMORY, "no memory to read a completion of %zu bytes", completion.n_byte);
    buf_free(&c.reasoning);
    buf_free(&c.content);
    buf_free(&c.arguments);
    if (rc)
        dsml_message_free(m);
    return rc;
}

void dsml_message_free(struct dsml_message *m)
{
    arena_free(&m->arena);
    *m = (struct dsml_message){.n_call = 0};
}
