/* test_options.c: option tables, suggestions and stop strings of the command line. */
#include "base/arena.h"
#include "cli/options.h"
#include "cli/stop.h"
#include "cli/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

struct inner {
    float x;
    int has_seed;
    uint64_t seed;
};

struct settings {
    const char *text, *choice;
    int flag, number;
    struct option_texts texts;
    uint64_t size;
    struct inner inner;
};

#define AT(field) offsetof(struct settings, field)
static const struct option outer_rows[] = {
    {"text", 't', OPTION_TEXT, AT(text), "TEXT", "a text", 0, 0, 0},
    {"choice", 0, OPTION_CHOICE, AT(choice), "red|green", "a word", 0, 0, 0},
    {"flag", 'f', OPTION_FLAG, AT(flag), NULL, "a flag", 0, 0, 0},
    {"number", 'n', OPTION_INT, AT(number), "N", "a number", -5, 5, 0},
    {"texts", 0, OPTION_TEXTS, AT(texts), "TEXT", "texts", 0, 0, 0},
    {"size", 0, OPTION_SIZE, AT(size), "SIZE", "a size", 0, 0, 0},
};
static const struct option inner_rows[] = {
    {"x", 0, OPTION_NUMBER, offsetof(struct inner, x), "X", "a real number", 0, 1, 0},
    {"seed", 0, OPTION_SEED, offsetof(struct inner, seed), "N", "a seed", 0, 0, offsetof(struct inner, has_seed)},
};
static const struct option_group groups[] = {{"Outer", outer_rows, 6, 0}, {"Inner", inner_rows, 2, AT(inner)}};

static int parse(struct settings *s, struct option_line *line, struct err *e, int n, const char *const *arguments)
{
    static char *copy[2 * OPTION_MAX_TEXTS + 2];
    for (int i = 0; i < n; i++)
        copy[i] = (char *)(size_t)arguments[i];
    *s = (struct settings){0};
    *e = (struct err){0};
    *line = (struct option_line){.arguments = copy, .n = n};
    return options_parse(groups, 2, line, s, e);
}

#define PARSE(...)                                                                                 \
    parse(&s, &line, &e, (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(char *)), (const char *const[]){__VA_ARGS__})

static void test_values(void **unused)
{
    (void)unused;
    struct settings s;
    struct option_line line;
    struct err e;
    assert_int_equal(PARSE("a", "--text", "t", "-n5", "b", "-f", "--x=0.25", "--seed", "0x10", "--texts", "1", "--texts=2",
                         "--choice", "green", "--", "-c"), 0);
    assert_string_equal(s.text, "t");
    assert_string_equal(s.choice, "green");
    assert_int_equal(s.flag, 1);
    assert_int_equal(s.number, 5);
    assert_true(s.inner.x == 0.25f && s.inner.seed == 16 && s.inner.has_seed == 1);
    assert_int_equal(s.texts.n, 2);
    assert_string_equal(s.texts.text[1], "2");
    assert_int_equal(line.n_rest, 3);
    assert_string_equal(line.arguments[2], "-c");
    assert_int_equal(PARSE("-"), 0);
    assert_int_equal(line.n_rest, 1);
    assert_int_equal(s.inner.has_seed, 0);
}

static void test_sizes(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        uint64_t n_byte;
    } sizes[] = {{"1", 1}, {"5000", 5000}, {"3k", 3072}, {"1.5G", 3ull << 29}, {"2GiB", 2ull << 30}, {"7MB", 7 << 20},
        {"1T", 1ull << 40}};
    static const char *const wrong[] = {"", "G", "-1", "0", "1X", "1GG", "nan", "1e30", "1 G", "1Gi!"};
    struct settings s;
    struct option_line line;
    struct err e;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(PARSE("--size", sizes[i].text), 0);
        assert_true(s.size == sizes[i].n_byte);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(PARSE("--size", wrong[i]), -1);
        assert_non_null(strstr(e.text, "is not a size like 500M or 1.5G"));
    }
}

static void expect_error(int result, const struct err *e, const char *text)
{
    assert_int_equal(result, -1);
    assert_int_equal(e->code, ERR_ARGUMENT);
    assert_string_equal(e->text, text);
}

static void test_errors(void **unused)
{
    (void)unused;
    struct settings s;
    struct option_line line;
    struct err e;
    expect_error(PARSE("--txet", "a"), &e, "unknown option --txet; did you mean --text?");
    expect_error(PARSE("--nonsense"), &e, "unknown option --nonsense");
    expect_error(PARSE("-q"), &e, "unknown option -q");
    expect_error(PARSE("--text"), &e, "--text needs a value: TEXT");
    expect_error(PARSE("-n", "6"), &e, "--number: 6 is not a number from -5 to 5");
    expect_error(PARSE("-n", "1.5"), &e, "--number: 1.5 is not a number from -5 to 5");
    expect_error(PARSE("-n", ""), &e, "--number:  is not a number from -5 to 5");
    expect_error(PARSE("--x", "1e9"), &e, "--x: 1e9 is not a number from 0 to 1");
    expect_error(PARSE("--flag=yes"), &e, "--flag=yes: --flag takes no value");
    expect_error(PARSE("--choice", "gre"), &e, "--choice: gre is not red|green");
    expect_error(PARSE("--choice", ""), &e, "--choice:  is not red|green");
    expect_error(PARSE("--seed", "99999999999999999999"), &e,
        "--seed: 99999999999999999999 is not a whole number from 0 to 18446744073709551615");
}

static void test_too_many_texts(void **unused)
{
    (void)unused;
    struct settings s;
    struct option_line line;
    struct err e;
    const char *arguments[2 * (OPTION_MAX_TEXTS + 1)];
    for (int i = 0; i <= OPTION_MAX_TEXTS; i++) {
        arguments[2 * i] = "--texts";
        arguments[2 * i + 1] = "x";
    }
    assert_int_equal(parse(&s, &line, &e, 2 * OPTION_MAX_TEXTS, arguments), 0);
    expect_error(parse(&s, &line, &e, 2 * OPTION_MAX_TEXTS + 2, arguments), &e, "--texts: at most 16 times");
}

static void test_help_names_every_option(void **unused)
{
    (void)unused;
    struct buf out = {0};
    options_help(groups, 2, &out);
    assert_non_null(strstr(out.data, "\nOuter\n  -t, --text TEXT"));
    assert_non_null(strstr(out.data, "\nInner\n      --x X"));
    for (int i = 0; i < 6; i++)
        assert_non_null(strstr(out.data, outer_rows[i].help));
    buf_free(&out);
}

static void test_suggestions(void **unused)
{
    (void)unused;
    static const char *const names[] = {"temperature", "top-k", "top-p", "seed", "threads"};
    static const char *const typed[][2] = {{"temprature", "temperature"}, {"temp", "temperature"}, {"topk", "top-k"},
        {"sede", "seed"}, {"thread", "threads"}, {"unrelated", NULL}, {"", NULL}, {"x", NULL}};
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
        const char *best = NULL;
        for (int k = 0; k < 5; k++)
            best = suggest_closer(typed[i][0], best, names[k]);
        if (typed[i][1])
            assert_string_equal(best, typed[i][1]);
        else
            assert_null(best);
    }
}

/* Feeds a text in pieces of n_piece bytes; returns what came out. */
static struct buf stop_text(const struct option_texts *stops, const char *text, size_t n_piece, int *is_stopped)
{
    struct stop_scan scan = {.stops = stops};
    struct buf out = {0};
    size_t n = strlen(text);
    *is_stopped = 0;
    for (size_t i = 0; i < n && !*is_stopped; i += n_piece)
        *is_stopped = stop_push(&scan, text + i, n - i < n_piece ? n - i : n_piece, &out);
    if (!*is_stopped)
        stop_finish(&scan, &out);
    stop_free(&scan);
    buf_text(&out, "");
    return out;
}

static void test_stop_strings(void **unused)
{
    (void)unused;
    static const struct {
        struct option_texts stops;
        const char *text, *out;
        int is_stopped;
    } rows[] = {
        {{0}, "anything", "anything", 0},
        {{1, {"END"}}, "text END more", "text ", 1},
        {{1, {"END"}}, "text EN", "text EN", 0},
        {{1, {"aab"}}, "aaab", "a", 1},
        {{2, {"xyz", "y"}}, "wxyz", "wx", 1}, /* complete first wins */
        {{2, {"b", "ab"}}, "ccab", "cc", 1},  /* of several the longest */
        {{2, {"\n\n", "#"}}, "a\nb\n\nc", "a\nb", 1},
        {{1, {""}}, "text", "text", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t n_piece = 1; n_piece < 6; n_piece++) {
            int is_stopped;
            struct buf out = stop_text(&rows[i].stops, rows[i].text, n_piece, &is_stopped);
            assert_string_equal(out.data ? out.data : "", rows[i].out);
            assert_int_equal(is_stopped, rows[i].is_stopped);
            buf_free(&out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_too_many_texts),
        cmocka_unit_test(test_help_names_every_option),
        cmocka_unit_test(test_suggestions),
        cmocka_unit_test(test_stop_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
