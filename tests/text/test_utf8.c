/* test_utf8.c: reading of good and bad UTF-8, and that streams do not depend on how they are cut.
 */
#include "text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_code_point_round_trips(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        struct buf b = {0};
        uint32_t read = 0;
        utf8_append(&b, c);
        int n = utf8_read(b.data, b.n_byte, &read);
        if (c >= 0xD800 && c <= 0xDFFF)
            assert_true(n < 0);
        else
            assert_true(n == (int)b.n_byte && read == c);
        for (size_t cut = 1; n > 0 && cut < b.n_byte; cut++)
            assert_int_equal(utf8_read(b.data, cut, &read), 0);
        buf_free(&b);
    }
}

static void bad_bytes_are_told_apart(void **state)
{
    static const struct {
        const char *bytes;
        int result;
    } cases[] = {{"\x80", -1}, {"\xC0\x80", -1}, {"\xC1", -1}, {"\xF5", -1}, {"\xFF", -1},
        {"\xE0\x9F\x80", -1}, {"\xED\xA0\x80", -1}, {"\xF0\x8F\x80\x80", -1},
        {"\xF4\x90\x80\x80", -1}, {"\xE4\xB8x", -2}, {"\xF0\x9F\x92x", -3}, {"\xC3(", -1},
        {"\xE4\xB8", 0}, {"\xF0\x9F\x92", 0}};
    uint32_t code;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(utf8_read(cases[i].bytes, strlen(cases[i].bytes), &code), cases[i].result);
}

static void push_whole(const char *data, size_t n, struct buf *out)
{
    struct utf8_stream s = {{0}, 0};
    utf8_stream_push(&s, data, n, out);
    utf8_stream_finish(&s, out);
}

static void streams_hold_back_and_replace(void **state)
{
    struct utf8_stream s = {{0}, 0};
    struct buf out = {0};
    (void)state;
    utf8_stream_push(&s, "a\xE4\xB8", 3, &out);
    assert_string_equal(out.data, "a");
    utf8_stream_push(&s, "\xAD", 1, &out);
    assert_string_equal(out.data, "a中");
    utf8_stream_push(&s, "\xF0\x9F", 2, &out);
    utf8_stream_push(&s, "b\xFF", 2, &out);
    assert_string_equal(out.data, "a中\xEF\xBF\xBD"
                                  "b\xEF\xBF\xBD");
    utf8_stream_push(&s, "\xE4", 1, &out);
    utf8_stream_finish(&s, &out);
    assert_string_equal(out.data, "a中\xEF\xBF\xBD"
                                  "b\xEF\xBF\xBD\xEF\xBF\xBD");
    buf_free(&out);
}

static void streams_do_not_depend_on_cuts(void **state)
{
    static const unsigned char alphabet[] = {'a', 0x80, 0xBF, 0xC3, 0xA9, 0xE4, 0xB8, 0xAD, 0xF0,
        0x9F, 0x92, 0xA9, 0xED, 0xA0, 0xFF, 0xE0};
    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        char text[24];
        struct buf whole = {0}, cut = {0};
        struct utf8_stream s = {{0}, 0};
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)alphabet[(size_t)rand() % sizeof alphabet];
        push_whole(text, sizeof text, &whole);
        for (size_t at = 0, n; at < sizeof text; at += n) {
            n = 1 + (size_t)rand() % (sizeof text - at);
            utf8_stream_push(&s, text + at, n, &cut);
        }
        utf8_stream_finish(&s, &cut);
        assert_string_equal(whole.data, cut.data);
        assert_int_equal(utf8_valid_prefix(whole.data, whole.n_byte), whole.n_byte);
        buf_free(&whole);
        buf_free(&cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_round_trips),
        cmocka_unit_test(bad_bytes_are_told_apart),
        cmocka_unit_test(streams_hold_back_and_replace),
        cmocka_unit_test(streams_do_not_depend_on_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
