/* test_dsml.c: events of completions, whole and cut anywhere, good and malformed. */
#include "text/control_tokens.h"
#include "text/dsml.h"
#include "text/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define D "｜DSML｜"
#define N CONTROL_END_THINK

/* ---- events as text: "kind:text|", runs of text joined ---- */

struct log {
    struct buf text;
    int last; /* kind of the open run, -1: none */
};

static void note(void *user, const struct dsml_event *event)
{
    static const char *const names[] = {"reasoning", "content", "call", "argument", "value",
        "argument end", "call end", "malformed", "finish"};
    struct log *log = user;
    int is_run =
        event->kind == DSML_REASONING || event->kind == DSML_CONTENT || event->kind == DSML_VALUE;
    if (!is_run || log->last != (int)event->kind)
        buf_print(&log->text, "%s%s%s:", log->text.n_byte ? "|" : "", names[event->kind],
            event->is_string ? "(s)" : "");
    log->last = is_run ? (int)event->kind : -1;
    if (event->kind == DSML_CALL || event->kind == DSML_ARGUMENT)
        buf_print(&log->text, "%zu ", event->index);
    buf_append(&log->text, event->text.data, event->text.n_byte);
}

/* Feeds pieces of the lengths that `cut` gives. */
typedef size_t cutter(size_t n_left);
static size_t whole(size_t n_left)
{
    return n_left;
}
static size_t single(size_t n_left)
{
    (void)n_left;
    return 1;
}
static size_t randomly(size_t n_left)
{
    size_t n = (size_t)rand() % 9;
    return n < n_left ? n : n_left;
}

static void read_events(
    const char *dialect, int is_thinking, struct text text, cutter *cut, struct buf *out)
{
    struct dsml_parser p;
    struct log log = {.last = -1};
    dsml_open(&p, dialect_find(dialect), is_thinking);
    p.take = note;
    p.user = &log;
    for (size_t at = 0, n; at < text.n_byte; at += n) {
        n = cut(text.n_byte - at);
        assert_int_equal(dsml_push(&p, (struct text){text.data + at, n}, NULL), 0);
    }
    assert_int_equal(dsml_finish(&p, NULL), 0);
    dsml_close(&p);
    *out = log.text;
}

static void check_cuts(const char *dialect, int is_thinking, struct text text, const char *expected)
{
    cutter *const cutters[] = {whole, single, randomly, randomly, randomly, randomly};
    struct buf first = {0};
    for (size_t i = 0; i < sizeof cutters / sizeof *cutters; i++) {
        struct buf log;
        read_events(dialect, is_thinking, text, cutters[i], &log);
        if (expected)
            assert_string_equal(log.data, expected);
        if (!first.data)
            first = log;
        else {
            assert_string_equal(log.data, first.data);
            buf_free(&log);
        }
    }
    buf_free(&first);
}

#define CALLS                                                                                      \
    "\n\n<" D " calls>\n<" D " invoke name=\"f\">\n"                                               \
    "<" D " parameter name=\"x\" string=\"false\">[1, 2]</" D " parameter>\n"                      \
    "<" D " parameter name=\"s\" string=\"true\">a < b\n</" D " p</" D " parameter>\n"             \
    "</" D " invoke>\n<" D " invoke name=\"g\">\n\n</" D " invoke>\n</" D " calls>"
#define CALL_EVENTS                                                                                \
    "call:0 f|argument:0 x|value:[1, 2]|argument end:|argument(s):1 s|value(s):a < b\n</" D        \
    " p|argument end(s):|call end:|call:1 g|call end:"
#define OPEN  "\n\n<" D " calls>\n<" D " invoke name=\"f\">\n"
#define CLOSE "</" D " invoke>\n</" D " calls>"
#define PARAMETER(key, kind, value)                                                                \
    "<" D " parameter name=\"" key "\" string=\"" kind "\">" value "</" D " parameter>\n"

static void good_completions(void **state)
{
    static const struct {
        int is_thinking;
        const char *text, *events;
    } cases[] = {
        {0, "", "finish:"},
        {0, "Hello", "content:Hello|finish:"},
        {0, "a\n\nb\n\n<c", "content:a\n\nb\n\n<c|finish:"},
        {1, "why" N "because", "reasoning:why|content:because|finish:"},
        {1, N, "finish:"},
        {1, "a </thin" N "b", "reasoning:a </thin|content:b|finish:"},
        {0, CALLS, CALL_EVENTS "|finish:"},
        {1, "R" N "ok" CALLS, "reasoning:R|content:ok|" CALL_EVENTS "|finish:"},
        {0, OPEN CLOSE, "call:0 f|call end:|finish:"},
        {0, "\n\n<" D " calls>\n</" D " calls>", "finish:"},
        {0, OPEN PARAMETER("", "true", "") CLOSE,
            "call:0 f|argument(s):0 |argument end(s):|call end:|finish:"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_cuts("v41", cases[i].is_thinking, text_of(cases[i].text), cases[i].events);
}

static void other_tag_names(void **state)
{
    (void)state;
    check_cuts("v4", 0,
        (struct text)TEXT("x\n\n<" D "tool_calls>\n<" D "invoke name=\"f\">\n<" D
                          "parameter name=\"k\" string=\"true\">v</" D "parameter>\n</" D
                          "invoke>\n</" D "tool_calls>"),
        "content:x|call:0 f|argument(s):0 k|value(s):v|argument end(s):|call end:|finish:");
}

static void malformed_completions(void **state)
{
    static const struct {
        int is_thinking;
        const char *text, *events;
    } cases[] = {
        {1, "endless", "reasoning:endless|malformed:no </think> after the reasoning|finish:"},
        {1, "", "malformed:no </think> after the reasoning|finish:"},
        {1, "R" CALLS,
            "reasoning:R|malformed:tool calls within the reasoning|" CALL_EVENTS "|finish:"},
        {0, "see <" D " calls>",
            "content:see <|malformed:a DSML token outside of tool calls|content:" D
            " calls>|finish:"},
        {0, "\n\n<" D " cal",
            "content:\n\n<|malformed:a DSML token outside of tool calls|content:" D " cal|finish:"},
        {0, D CALLS,
            "malformed:a DSML token outside of tool calls|content:" D "|" CALL_EVENTS "|finish:"},
        {0, CALLS " more",
            CALL_EVENTS "|malformed:text after the tool calls|content: more|finish:"},
        {0, CALLS "\n", CALL_EVENTS "|malformed:text after the tool calls|content:\n|finish:"},
        {0, "\n\n<" D " calls> x",
            "malformed:expected '>' and a line feed after the start of tool calls|content:> "
            "x|finish:"},
        {0, "\n\n<" D " calls>\nx",
            "malformed:expected a call or the end of tool calls|content:x|finish:"},
        {0, "\n\n<" D " calls>\n", "malformed:the completion ends within tool calls|finish:"},
        {0, OPEN "x",
            "call:0 f|malformed:expected a parameter or the end of a call|content:x|finish:"},
        {0, OPEN PARAMETER("a", "true", "1") "\n" CLOSE,
            "call:0 f|argument(s):0 a|value(s):1|argument end(s):|malformed:expected a parameter "
            "or the end of a call|"
            "content:\n" CLOSE "|finish:"},
        {0, OPEN "<" D " parameter name=\"a\" string=\"maybe\">",
            "call:0 f|malformed:expected string=\"true\" or "
            "string=\"false\"|content:maybe\">|finish:"},
        {0, OPEN PARAMETER("a", "true", "1") PARAMETER("a", "true", "2") CLOSE,
            "call:0 f|argument(s):0 a|value(s):1|argument end(s):|malformed:a parameter appears "
            "twice|content:2</" D " parameter>\n" CLOSE "|finish:"},
        {0, OPEN PARAMETER("a", "false", "{x") CLOSE,
            "call:0 f|argument:0 a|value:{x|malformed:a parameter with string=\"false\" is not "
            "JSON|content:\n" CLOSE "|finish:"},
        {0, OPEN PARAMETER("a", "false", "") CLOSE,
            "call:0 f|argument:0 a|malformed:a parameter with string=\"false\" is not "
            "JSON|content:\n" CLOSE "|finish:"},
        {0, OPEN "<" D " parameter name=\"a\" string=\"true\">long text",
            "call:0 f|argument(s):0 a|value(s):long text|malformed:the completion ends within tool "
            "calls|finish:"},
        {0, OPEN "<" D " par",
            "call:0 f|malformed:the completion ends within tool calls|content:<" D " par|finish:"},
        {0, OPEN "<" D " parameter name=\"a\" string=\"true\">x</" D " parameter>y",
            "call:0 f|argument(s):0 a|value(s):x|argument end(s):|malformed:expected a line feed "
            "after a parameter|content:y|finish:"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_cuts("v41", cases[i].is_thinking, text_of(cases[i].text), cases[i].events);
}

static void names_are_bounded(void **state)
{
    for (size_t n = DSML_MAX_NAME_BYTES - 2; n < DSML_MAX_NAME_BYTES + 6; n++) {
        struct buf text = {0};
        struct buf log;
        (void)state;
        buf_text(&text, "\n\n<" D " calls>\n<" D " invoke name=\"");
        for (size_t i = 0; i < n; i++)
            buf_append(&text, i % 2 ? "\"" : "n", 1);
        buf_text(&text, "\">\n" CLOSE);
        check_cuts("v41", 0, (struct text){text.data, text.n_byte}, NULL);
        read_events("v41", 0, (struct text){text.data, text.n_byte}, whole, &log);
        assert_int_equal(strstr(log.data, "malformed:") != NULL, n > DSML_MAX_NAME_BYTES);
        buf_free(&log);
        buf_free(&text);
    }
}

/* Completions put together from pieces of the grammar, most of them wrong. */
static void random_completions_do_not_depend_on_cuts(void **state)
{
    static const char *const parts[] = {"\n\n<" D " calls", ">\n", "<" D " invoke name=\"", "f",
        "\">\n", "<" D " parameter name=\"", "k", "\" string=\"", "true\">", "false\">", "1",
        "</" D " parameter>", "\n", "</" D " invoke>\n", "</" D " calls>", N, D, "<", "\n\n",
        "text", "｜", "</", "\xEF\xBD", "\xFF"};
    (void)state;
    srand(5);
    for (int round = 0; round < 4000; round++) {
        struct buf text = {0};
        size_t n_in_order = (size_t)rand() % 16, n = (size_t)rand() % 10;
        buf_text(&text, "");
        for (size_t i = 0; i < n_in_order; i++)
            buf_text(&text, parts[i == 9 ? 0 : i]);
        for (size_t i = 0; i < n; i++)
            buf_text(&text, parts[(size_t)rand() % (sizeof parts / sizeof *parts)]);
        check_cuts("v41", round % 2, (struct text){text.data, text.n_byte}, NULL);
        buf_free(&text);
    }
}

/* ---- whole messages ---- */

static void messages(void **state)
{
    struct dsml_message m;
    (void)state;
    assert_int_equal(dsml_read(&m, dialect_find("v41"), 1,
                         (struct text)TEXT("R" N "ok" CALLS CONTROL_EOS), NULL),
        0);
    assert_true(text_is(m.reasoning, "R") && text_is(m.content, "ok") && !m.malformed.n_byte);
    assert_int_equal(m.n_call, 2);
    assert_true(text_is(m.calls[0].name, "f") && text_is(m.calls[1].name, "g"));
    assert_true(text_is(m.calls[0].arguments, "{\"x\": [1, 2], \"s\": \"a < b\\n</" D " p\"}"));
    assert_true(text_is(m.calls[1].arguments, "{}"));
    dsml_message_free(&m);
    assert_int_equal(dsml_read(&m, dialect_find("v41"), 0,
                         (struct text)TEXT(OPEN PARAMETER("\"", "true", "\"\\\n") CLOSE), NULL),
        0);
    assert_true(text_is(m.calls[0].arguments, "{\"\\\"\": \"\\\"\\\\\\n\"}"));
    dsml_message_free(&m);
    assert_int_equal(dsml_read(&m, dialect_find("v41"), 0, (struct text)TEXT(CALLS " x"), NULL), 0);
    assert_true(m.n_call == 2 && text_is(m.malformed, "text after the tool calls") &&
                text_is(m.content, " x"));
    dsml_message_free(&m);
    assert_int_equal(dsml_read(&m, dialect_find("v41"), 0, (struct text)TEXT(OPEN), NULL), 0);
    assert_true(m.n_call == 0 && m.malformed.n_byte);
    dsml_message_free(&m);
}

/* A value of a megabyte, byte by byte, must not take quadratic time. */
static void long_values_are_linear(void **state)
{
    struct buf text = {0}, log;
    (void)state;
    buf_text(&text, OPEN "<" D " parameter name=\"a\" string=\"true\">");
    for (int i = 0; i < 1000000; i++)
        buf_append(&text, i % 7 ? "<" : "\n", 1);
    buf_text(&text, "</" D " parameter>\n" CLOSE);
    read_events("v41", 0, (struct text){text.data, text.n_byte}, single, &log);
    assert_null(strstr(log.data, "malformed"));
    buf_free(&log);
    buf_free(&text);
}

static void take_nothing(void *user, const struct dsml_event *event)
{
    (void)user;
    (void)event;
}

/* Behind every byte of a completion what is said to follow follows. Returns the bytes foretold. */
static size_t foretell(const char *dialect, int is_thinking, struct text text)
{
    struct dsml_parser p;
    struct buf forced = {0};
    size_t n = 0;
    dsml_open(&p, dialect_find(dialect), is_thinking);
    p.take = take_nothing;
    for (size_t at = 0; at < text.n_byte; at++) {
        assert_int_equal(dsml_push(&p, (struct text){text.data + at, 1}, NULL), 0);
        buf_clear(&forced);
        dsml_forced(&p, &forced);
        if (!forced.n_byte)
            continue;
        assert_true(forced.n_byte <= text.n_byte - at - 1);
        assert_memory_equal(forced.data, text.data + at + 1, forced.n_byte);
        n += forced.n_byte;
    }
    dsml_close(&p);
    buf_free(&forced);
    return n;
}

static void what_must_follow_follows(void **state)
{
    (void)state;
    static const char call[] =
        "a < b </ c\n\n<" D " calls>\n<" D " invoke name=\"f\">\n<" D
        " parameter name=\"x\" string=\"true\">1 </b> \"y\"</" D " parameter>\n<" D
        " parameter name=\"n\" string=\"false\">2</" D " parameter>\n</" D " invoke>\n<" D
        " invoke name=\"g\">\n\n</" D " invoke>\n</" D " calls>";
    assert_true(foretell("v41", 0, text_of(call)) > 200);
    assert_true(foretell("v41", 1, text_of("thought" N "text")) == 0);
    assert_true(foretell("v41", 0, text_of("plain \" text > with < signs")) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_completions),
        cmocka_unit_test(other_tag_names),
        cmocka_unit_test(malformed_completions),
        cmocka_unit_test(names_are_bounded),
        cmocka_unit_test(random_completions_do_not_depend_on_cuts),
        cmocka_unit_test(messages),
        cmocka_unit_test(long_values_are_linear),
        cmocka_unit_test(what_must_follow_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
