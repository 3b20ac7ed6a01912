/* dsml.c: a state machine over held-back bytes. See dsml.h; dsml_message.c collects whole messages.
 *
 * step() looks at pending[at..]: it either moves on (MOVED) or cannot decide without more input
 * (WAIT). Text states search for tags and give out what cannot belong to one; tag states expect one
 * of a few literals.
 */
#include "text/dsml.h"

#include "text/control_tokens.h"
#include "text/json_text.h"

#include <stdio.h>

enum state {
    REASONING,
    CONTENT,
    BLOCK_START, /* after the start of the block: the end of that tag */
    ELEMENT,     /* within the block: a call, or the end */
    CALL_NAME,
    BODY, /* within a call: an argument, or the end */
    KEY,  /* name and kind of an argument */
    VALUE,
    VALUE_END,
    AFTER, /* behind the block: nothing may follow */
    TAIL   /* behind what broke the grammar: all is content */
};

enum progress { WAIT, MOVED };

/* ---- events ---- */

static struct text rest_of(const struct dsml_parser *p)
{
    return (struct text){p->pending.data + p->at, p->pending.n_byte - p->at};
}

static void emit(struct dsml_parser *p, enum dsml_kind kind, struct text text, size_t index)
{
    int is_argument = kind == DSML_ARGUMENT || kind == DSML_VALUE || kind == DSML_ARGUMENT_END;
    struct dsml_event event = {kind, text, is_argument && p->is_string, index};
    p->take(p->user, &event);
}

static void emit_text(struct dsml_parser *p, size_t n_byte)
{
    enum dsml_kind kind = p->state == REASONING ? DSML_REASONING
                          : p->state == VALUE   ? DSML_VALUE
                                                : DSML_CONTENT;
    struct text text = {rest_of(p).data, n_byte};
    if (p->state == VALUE && !p->is_string)
        buf_append(&p->value, text.data, text.n_byte);
    if (n_byte)
        emit(p, kind, text, 0);
    p->at += n_byte;
}

static void report(struct dsml_parser *p, const char *reason)
{
    if (!p->is_malformed)
        emit(p, DSML_MALFORMED, text_of(reason), 0);
    p->is_malformed = 1;
}

static enum progress break_off(struct dsml_parser *p, const char *reason)
{
    report(p, reason);
    p->state = TAIL;
    return MOVED;
}

/* ---- searching and expecting ---- */

enum match { NO, PARTLY, WHOLLY };

static enum match match_at(struct text text, size_t at, const char *literal)
{
    size_t n = strlen(literal), n_left = text.n_byte - at;
    if (memcmp(text.data + at, literal, n < n_left ? n : n_left))
        return NO;
    return n <= n_left ? WHOLLY : PARTLY;
}

/* Where the first of two literals (the second may be NULL) stands or, unless the text is the last,
 * could begin at its end; the length of the text if nowhere. *which is the literal that was found,
 * -1 if there is none yet. */
static size_t search(struct text text, const char *const literals[2], int is_last, int *which)
{
    *which = -1;
    for (size_t at = 0; at < text.n_byte; at++)
        for (int i = 0; i < 2 && literals[i]; i++) {
            enum match m = text.data[at] == literals[i][0] ? match_at(text, at, literals[i]) : NO;
            *which = m == WHOLLY ? i : -1;
            if (m == WHOLLY || (m == PARTLY && !is_last))
                return at;
        }
    return text.n_byte;
}

/* Gives out text up to the first of the literals and moves behind it. Returns which, or -1. */
static int text_until(struct dsml_parser *p, const char *const literals[2], int is_last)
{
    int which;
    emit_text(p, search(rest_of(p), literals, is_last, &which));
    if (which >= 0)
        p->at += strlen(literals[which]);
    return which;
}

/* Moves behind one of up to three literals. Returns which; -1: not certain yet; -2: it is none of
 * them. */
static int expect(struct dsml_parser *p, const char *const literals[3])
{
    int is_open = 0;
    for (int i = 0; i < 3 && literals[i]; i++) {
        enum match m = match_at(rest_of(p), 0, literals[i]);
        if (m == WHOLLY) {
            p->at += strlen(literals[i]);
            return i;
        }
        is_open |= m == PARTLY;
    }
    return is_open ? -1 : -2;
}

/* Reads a name up to `end` and moves behind that. Returns 0; -1: not certain yet; -2: too long. */
static int name_until(struct dsml_parser *p, const char *end, struct text *name)
{
    struct text rest = rest_of(p);
    const char *const literals[2] = {end, NULL};
    int which;
    size_t n = search(rest, literals, 0, &which);
    if (n > DSML_MAX_NAME_BYTES)
        return -2;
    if (which < 0)
        return -1;
    *name = (struct text){rest.data, n};
    p->at += n + strlen(end);
    return 0;
}

/* ---- arguments ---- */

/* Notes a name; returns 0 if the open call has it already. */
static int add_key(struct dsml_parser *p, struct text key)
{
    struct text old;
    for (size_t at = 0; at < p->keys.n_byte; at += sizeof old.n_byte + old.n_byte) {
        memcpy(&old.n_byte, p->keys.data + at, sizeof old.n_byte);
        old.data = p->keys.data + at + sizeof old.n_byte;
        if (text_equal(old, key))
            return 0;
    }
    buf_append(&p->keys, &key.n_byte, sizeof key.n_byte);
    buf_append(&p->keys, key.data, key.n_byte);
    return 1;
}

static enum progress step_name(struct dsml_parser *p)
{
    struct text name;
    int rc = name_until(p, "\">\n", &name);
    if (rc == -1)
        return WAIT;
    if (rc)
        return break_off(p, "the name of a function is too long");
    emit(p, DSML_CALL, name, p->n_call);
    buf_clear(&p->keys);
    p->n_argument = 0;
    p->state = BODY;
    return MOVED;
}

static enum progress step_body(struct dsml_parser *p)
{
    const char *const literals[3] = {
        p->tags.argument, p->tags.call_end, p->n_argument ? NULL : p->tags.empty_call_end};
    int which = expect(p, literals);
    if (which == -1)
        return WAIT;
    if (which == -2)
        return break_off(p, "expected a parameter or the end of a call");
    p->state = which ? ELEMENT : KEY;
    if (which)
        emit(p, DSML_CALL_END, (struct text){"", 0}, p->n_call++);
    return MOVED;
}

/* The name stays in `pending` until the kind is known; the event needs both. */
static enum progress step_key(struct dsml_parser *p)
{
    static const char *const kinds[3] = {"true\">", "false\">", NULL};
    struct text key;
    size_t begin = p->at;
    int rc = name_until(p, "\" string=\"", &key);
    int kind = rc ? rc : expect(p, kinds);
    if (kind == -1) {
        p->at = begin;
        return WAIT;
    }
    if (rc || kind < 0)
        return break_off(p, rc ? "the name of a parameter is too long"
                               : "expected string=\"true\" or string=\"false\"");
    if (p->n_argument == DSML_MAX_ARGUMENT || !add_key(p, key))
        return break_off(p, p->n_argument == DSML_MAX_ARGUMENT ? "too many parameters"
                                                               : "a parameter appears twice");
    p->is_string = kind == 0;
    emit(p, DSML_ARGUMENT, key, p->n_argument++);
    buf_clear(&p->value);
    p->state = VALUE;
    return MOVED;
}

static enum progress step_value(struct dsml_parser *p, int is_last)
{
    const char *const literals[2] = {p->tags.argument_end, NULL};
    if (text_until(p, literals, is_last) < 0)
        return WAIT;
    if (!p->is_string && !json_text_is_valid((struct text){p->value.data, p->value.n_byte}))
        return break_off(p, "a parameter with string=\"false\" is not JSON");
    emit(p, DSML_ARGUMENT_END, (struct text){"", 0}, p->n_argument - 1);
    p->state = VALUE_END;
    return MOVED;
}

/* ---- states ---- */

static enum progress step_reasoning(struct dsml_parser *p, int is_last)
{
    const char *const literals[2] = {CONTROL_END_THINK, p->tags.start};
    int which = text_until(p, literals, is_last);
    if (which < 0)
        return WAIT;
    if (which == 1)
        report(p, "tool calls within the reasoning");
    p->state = which ? BLOCK_START : CONTENT;
    return MOVED;
}

static enum progress step_content(struct dsml_parser *p, int is_last)
{
    const char *const literals[2] = {p->tags.start, CONTROL_DSML};
    int which = text_until(p, literals, is_last);
    if (which < 0)
        return WAIT;
    if (which == 0) {
        p->state = BLOCK_START;
        return MOVED;
    }
    report(p, "a DSML token outside of tool calls");
    p->at -= strlen(CONTROL_DSML);
    emit_text(p, strlen(CONTROL_DSML));
    return MOVED;
}

/* Expects one of two literals, which lead to two states. */
static enum progress step_tag(struct dsml_parser *p, const char *const literals[3],
    const enum state next[2], const char *reason)
{
    int which = expect(p, literals);
    if (which == -1)
        return WAIT;
    if (which == -2)
        return break_off(p, reason);
    p->state = next[which];
    return MOVED;
}

static enum progress step(struct dsml_parser *p, int is_last)
{
    static const char *const block_start[3] = {">\n", NULL}, *const value_end[3] = {"\n", NULL};
    const char *const element[3] = {p->tags.call, p->tags.end, NULL};
    if (p->at == p->pending.n_byte)
        return WAIT;
    switch ((enum state)p->state) {
    case REASONING:
        return step_reasoning(p, is_last);
    case CONTENT:
        return step_content(p, is_last);
    case BLOCK_START:
        return step_tag(p, block_start, (enum state[]){ELEMENT, ELEMENT},
            "expected '>' and a line feed after the start of tool calls");
    case ELEMENT:
        return step_tag(p, element, (enum state[]){CALL_NAME, AFTER},
            "expected a call or the end of tool calls");
    case CALL_NAME:
        return step_name(p);
    case BODY:
        return step_body(p);
    case KEY:
        return step_key(p);
    case VALUE:
        return step_value(p, is_last);
    case VALUE_END:
        return step_tag(
            p, value_end, (enum state[]){BODY, BODY}, "expected a line feed after a parameter");
    case AFTER:
        return break_off(p, "text after the tool calls");
    case TAIL:
        emit_text(p, p->pending.n_byte - p->at);
        return MOVED;
    }
    return WAIT;
}

static int run(struct dsml_parser *p, int is_last, struct err *e)
{
    while (step(p, is_last) == MOVED && !p->keys.is_broken && !p->value.is_broken)
        ;
    if (p->keys.is_broken || p->value.is_broken || p->pending.is_broken)
        return err_set(e, ERR_MEMORY, "no memory to read a completion");
    size_t n_left = p->pending.n_byte - p->at;
    if (n_left)
        memmove(p->pending.data, p->pending.data + p->at, n_left);
    p->pending.n_byte = n_left;
    p->at = 0;
    return 0;
}

/* ---- what must follow ---- */

/* The rest of a literal that the pending text ends within, at least `least` bytes of it. */
static const char *rest_of_begun(const struct dsml_parser *p, const char *literal, size_t least)
{
    const char *const literals[2] = {literal, NULL};
    struct text rest = rest_of(p);
    int which;
    size_t at = search(rest, literals, 0, &which), n = rest.n_byte - at;
    return which < 0 && n && n >= least ? literal + n : NULL;
}

/* The rest of the only one of these literals that the pending text can still become. */
static const char *rest_of_only(const struct dsml_parser *p, const char *const literals[3])
{
    struct text rest = rest_of(p);
    const char *found = NULL;
    for (int i = 0; i < 3 && literals[i]; i++)
        if (match_at(rest, 0, literals[i]) == PARTLY) {
            if (found)
                return NULL;
            found = literals[i] + rest.n_byte;
        }
    return found;
}

/* Behind the name of an argument: what leads to its kind, or the rest of that. */
static const char *forced_key(const struct dsml_parser *p)
{
    static const char lead[] = "\" string=\"";
    struct dsml_parser at = *p;
    struct text rest = rest_of(p);
    const char *const literals[2] = {lead, NULL};
    int which;
    size_t n = search(rest, literals, 1, &which);
    if (which < 0)
        return rest_of_begun(p, lead, 1);
    at.at += n + strlen(lead);
    return at.at < p->pending.n_byte
               ? rest_of_only(&at, (const char *const[3]){"true\">", "false\">", NULL})
               : NULL;
}

static const char *forced_body(const struct dsml_parser *p)
{
    const char *const literals[3] = {
        p->tags.argument, p->tags.call_end, p->n_argument ? NULL : p->tags.empty_call_end};
    return rest_of_only(p, literals);
}

void dsml_forced(const struct dsml_parser *p, struct buf *out)
{
    const size_t n_dsml = strlen(CONTROL_DSML);
    const char *rest = NULL, *then = "";
    switch ((enum state)p->state) {
    case REASONING:
    case CONTENT:
        rest = rest_of_begun(p, p->tags.start, strlen("\n\n<") + n_dsml);
        then = ">\n";
        break;
    case BLOCK_START:
        rest = rest_of_only(p, (const char *const[3]){">\n", NULL});
        break;
    case ELEMENT:
        rest =
            rest_of_only(p, (const char *const[3]){p->tags.call, p->n_call ? p->tags.end : NULL});
        break;
    case CALL_NAME:
        rest = rest_of_begun(p, "\">\n", 1);
        break;
    case BODY:
        rest = forced_body(p);
        break;
    case KEY:
        rest = forced_key(p);
        break;
    case VALUE:
        rest = rest_of_begun(p, p->tags.argument_end, strlen("</") + n_dsml);
        then = "\n";
        break;
    case VALUE_END:
        rest = "\n";
        break;
    case AFTER:
    case TAIL:
        break;
    }
    if (!rest)
        return;
    buf_text(out, rest);
    buf_text(out, then);
    /* a block has a call at least, or it would not have been opened */
    if (p->state == CONTENT || p->state == REASONING || p->state == BLOCK_START)
        buf_text(out, p->tags.call);
}

/* ---- public ---- */

static void write_tags(struct dsml_tags *t, const struct dialect *d)
{
    snprintf(t->start, sizeof t->start, "\n\n<" CONTROL_DSML "%s", d->calls);
    snprintf(t->end, sizeof t->end, "</" CONTROL_DSML "%s>", d->calls);
    snprintf(t->call, sizeof t->call, "<" CONTROL_DSML "%s name=\"", d->invoke);
    snprintf(t->call_end, sizeof t->call_end, "</" CONTROL_DSML "%s>\n", d->invoke);
    snprintf(t->empty_call_end, sizeof t->empty_call_end, "\n</" CONTROL_DSML "%s>\n", d->invoke);
    snprintf(t->argument, sizeof t->argument, "<" CONTROL_DSML "%s name=\"", d->parameter);
    snprintf(t->argument_end, sizeof t->argument_end, "</" CONTROL_DSML "%s>", d->parameter);
}

void dsml_open(struct dsml_parser *p, const struct dialect *d, int is_thinking)
{
    *p = (struct dsml_parser){.state = is_thinking ? REASONING : CONTENT};
    write_tags(&p->tags, d);
}

int dsml_push(struct dsml_parser *p, struct text bytes, struct err *e)
{
    if (bytes.n_byte)
        buf_append(&p->pending, bytes.data, bytes.n_byte);
    return run(p, 0, e);
}

int dsml_finish(struct dsml_parser *p, struct err *e)
{
    if (run(p, 1, e))
        return -1;
    if (p->state == REASONING)
        report(p, "no " CONTROL_END_THINK " after the reasoning");
    else if (p->state != CONTENT && p->state != AFTER && p->state != TAIL)
        break_off(p, "the completion ends within tool calls");
    if (run(p, 1, e))
        return -1;
    emit(p, DSML_FINISH, (struct text){"", 0}, 0);
    return 0;
}

void dsml_close(struct dsml_parser *p)
{
    buf_free(&p->pending);
    buf_free(&p->value);
    buf_free(&p->keys);
}
