/* test_json_text.c: JSON written as Python writes it, and what is refused. */
#include "text/json_text.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void check_written(const char *from, const char *to)
{
    struct json_object *value;
    struct buf out = {0};
    struct err e = {0};
    if (json_text_read(&value, text_of(from), &e))
        fail_msg("%s: %s", from, e.text);
    json_text_write(&out, value);
    assert_string_equal(out.data, to);
    assert_true(json_text_is_valid(text_of(from)));
    buf_free(&out);
    json_object_put(value);
}

static void written_like_python(void **state)
{
    static const char *const cases[][2] = {
        {"{\"a\":1,\"b\":[1,2,{}],\"c\":[]}", "{\"a\": 1, \"b\": [1, 2, {}], \"c\": []}"},
        {" [ true , false,null ] ", "[true, false, null]"},
        {"\"\\u00e9\\n\\u0001\\u007f\\\"\\\\\\/\\b\\f\\r\\t\"",
            "\"é\\n\\u0001\x7f\\\"\\\\/\\b\\f\\r\\t\""},
        {"\"a\\u0000b\"", "\"a\\u0000b\""},
        {"\"\\ud83d\\ude00\"", "\"😀\""},
        {"{\"b\":1,\"a\":2,\"b\":3}", "{\"b\": 3, \"a\": 2}"},
        {"18446744073709551615", "18446744073709551615"},
        {"9223372036854775807", "9223372036854775807"},
        {"9223372036854775808", "9223372036854775808"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"-0", "0"},
        {"0", "0"},
        {"7", "7"},
        {"-0.0", "-0.0"},
        {"0.0", "0.0"},
        {"1.0", "1.0"},
        {"2.50", "2.5"},
        {"1E3", "1000.0"},
        {"1e15", "1000000000000000.0"},
        {"1e16", "1e+16"},
        {"1.5e16", "1.5e+16"},
        {"1e22", "1e+22"},
        {"0.0001", "0.0001"},
        {"0.00012", "0.00012"},
        {"0.00001", "1e-05"},
        {"1.25e-7", "1.25e-07"},
        {"0.1", "0.1"},
        {"123456789012345.0", "123456789012345.0"},
        {"5e-324", "5e-324"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"1e400", "Infinity"},
        {"-1e400", "-Infinity"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"3.14", "3.14"},
        {"12.5", "12.5"},
        {"9007199254740993.0", "9007199254740992.0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_written(cases[i][0], cases[i][1]);
}

static void refused(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "ends early"},
        {"{", "ends early"},
        {"[1,", "ends early"},
        {"\"abc", "ends early"},
        {"[1,]", "byte 3"},
        {"{} x", "something follows"},
        {"1 2", "something follows"},
        {"\"\xff\"", "ill-formed UTF-8 at byte 1"},
        {"\"\xed\xa0\x80\"", "ill-formed UTF-8"},
        {"\"\xc0\x80\"", "ill-formed UTF-8"},
        {"\"\\ud800\"", "lone surrogate"},
        {"\"\\udc00\"", "lone surrogate"},
        {"\"\\ud800\\u0041\"", "lone surrogate"},
        {"\"\\u12g4\"", "bad \\u escape"},
        {"\"\\x\"", "byte"},
        {"\"a\nb\"", "control character"},
        {"{\"a\\u0000\" : 1}", "NUL in a key"},
        {"18446744073709551616", "beyond 64 bits"},
        {"[-9223372036854775809]", "beyond 64 bits"},
        {"123456789012345678901", "beyond 64 bits"},
        {"1.", "decimal point"},
        {"01", "byte"},
        {"1e", "byte"},
        {"tru", "byte"},
        {"'a'", "byte"},
        {"-", "byte"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_object *value;
        struct err e = {0};
        assert_int_equal(json_text_read(&value, text_of(cases[i].text), &e), -1);
        assert_null(value);
        if (!strstr(e.text, cases[i].reason))
            fail_msg("%s: %s", cases[i].text, e.text);
    }
    struct json_object *value;
    assert_int_equal(json_text_read(&value, (struct text){NULL, 0}, NULL), -1);
    assert_true(json_text_is_valid(text_of("18446744073709551616")));
}

static void nesting_is_bounded(void **state)
{
    char text[4000];
    struct json_object *value;
    (void)state;
    memset(text, '[', 2000);
    memset(text + 2000, ']', 2000);
    assert_int_equal(json_text_read(&value, (struct text){text, sizeof text}, NULL), -1);
    assert_int_equal(json_text_read(&value, (struct text){text + 1900, 200}, NULL), 0);
    json_object_put(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_like_python),
        cmocka_unit_test(refused),
        cmocka_unit_test(nesting_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
