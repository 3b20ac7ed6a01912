/* test_tokenizer_json.c: tokenizer.json files that lie, and files cut off anywhere: one line of
 * error, no crash. */
#include "small_tokenizer.h"
#include "text/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define SPLIT                                                                                      \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\p{N}{1,3}\"},\"behavior\":\"Isolated\","     \
    "\"invert\":false}"

/* A whole file with one merge, "h e", and one added token, "<a>", id 257. */
static void write_file(struct buf *out)
{
    static const char *const merges[] = {"h e", NULL};
    struct small_tokenizer *s = malloc(sizeof *s);
    assert_non_null(s);
    small_tokenizer_make(s, merges, NULL);
    buf_text(out,
        "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":257,\"content\":\"<a>\",\"special\":true,"
        "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false}],"
        "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" SPLIT
        "," BYTE_LEVEL "]},\"model\":{\"type\":\"BPE\",\"dropout\":null,\"byte_fallback\":false,"
        "\"merges\":[\"h e\"],\"vocab\":{");
    for (int32_t id = 0; id < s->source.n_token; id++) {
        buf_text(out, id ? "," : "");
        json_text_write_string(out, s->tokens[id]);
        buf_print(out, ":%d", (int)id);
    }
    buf_text(out, "}}}");
    free(s);
}

/* The file with the first `from` replaced. */
static void replace(struct buf *out, const struct buf *file, const char *from, const char *to)
{
    const char *at = strstr(file->data, from);
    assert_non_null(at);
    buf_append(out, file->data, (size_t)(at - file->data));
    buf_text(out, to);
    buf_text(out, at + strlen(from));
}

static void a_good_file_opens(void **state)
{
    struct buf file = {0};
    struct tokenizer *t;
    struct token_list ids = {0};
    struct err e = {0};
    (void)state;
    write_file(&file);
    if (tokenizer_open_json_text(&t, (struct text){file.data, file.n_byte}, &e))
        fail_msg("%s", e.text);
    assert_int_equal(tokenizer_n_token(t), 258);
    assert_null(tokenizer_describe(t)->pre); /* one pattern of its own: no known name */
    assert_int_equal(tokenizer_describe(t)->bos, -1);
    tokenizer_encode(t, (struct text)TEXT("he<a>"), TOKENIZER_SPECIALS, &ids, NULL);
    assert_true(ids.n == 2 && ids.ids[0] == 256 && ids.ids[1] == 257);
    token_list_free(&ids);
    tokenizer_close(t);
    buf_free(&file);
}

static void lies_are_refused(void **state)
{
    static const char *const cases[][3] = {
        {"\"BPE\"", "\"Unigram\"", "model type is \"Unigram\""},
        {"\"dropout\":null", "\"dropout\":0.1", "dropout"},
        {"\"byte_fallback\":false", "\"byte_fallback\":true", "byte_fallback"},
        {"\"byte_fallback\":false", "\"ignore_merges\":true", "ignore_merges"},
        {"\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}", "normalizer \"NFC\""},
        {"\"Sequence\"", "\"Whitespace\"", "pre_tokenizer \"Whitespace\""},
        {SPLIT ",", "", "Sequence of Split"},
        {"\"Split\"", "\"Digits\"", "\"Digits\""},
        {"\"Isolated\"", "\"Removed\"", "\"Removed\""},
        {"\"invert\":false", "\"invert\":true", "inverted"},
        {"\"Regex\"", "\"String\"", "without a Regex"},
        {"\\\\p{N}{1,3}", "\\\\p{Lu}", "\\p{Lu}"},
        {"\\\\p{N}{1,3}", "(", "pattern 0"},
        {"\"use_regex\":false", "\"use_regex\":true", "ByteLevel without regex"},
        {"\"use_regex\":false", "\"x\":1", "ByteLevel without regex"},
        {"\"rstrip\":false", "\"rstrip\":true", "rstrip"},
        {"\"id\":257", "\"id\":256", "same id 256"},
        {"\"id\":257", "\"id\":258", "has id 258"},
        {"\"id\":257", "\"id\":-1", "has id -1"},
        {"\"id\":257", "\"id\":1.5", "has id 1.5"},
        {"\"id\":257", "\"id\":null", "has id null"},
        {"\"content\":\"<a>\"", "\"content\":7", "257"},
        {"\"a\":97", "\"a\":98", "same id 98"},
        {"\"a\":97,", "\"中\":97,", "not spelled in the byte alphabet"},
        {"\"a\":97,", "", "has id 257"},
        {"\"a\":97", "\"b\":97", "has id 257"},
        {"[\"h e\"]", "[\"h e\",\"h e\"]", "merges 0 and 1"},
        {"[\"h e\"]", "[\"he\"]", "merge 0"},
        {"[\"h e\"]", "[[\"h\"]]", "merge 0"},
        {"[\"h e\"]", "[[\"h\",\"x\"]]", "not a token"},
        {"[\"h e\"]", "{}", "model.merges"},
        {"\"vocab\":{", "\"vocab\":[{", "byte"},
        {"\"added_tokens\":[", "\"added_tokens\":7,\"x\":[", "added_tokens an array"},
    };
    struct buf file = {0};
    (void)state;
    write_file(&file);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf text = {0};
        struct tokenizer *t;
        struct err e = {0};
        replace(&text, &file, cases[i][0], cases[i][1]);
        assert_int_equal(
            tokenizer_open_json_text(&t, (struct text){text.data, text.n_byte}, &e), -1);
        assert_null(t);
        if (!strstr(e.text, cases[i][2]))
            fail_msg("%s: %s", cases[i][1], e.text);
        assert_null(strchr(e.text, '\n'));
        buf_free(&text);
    }
    buf_free(&file);
}

static void cut_files_are_refused(void **state)
{
    struct buf file = {0};
    (void)state;
    write_file(&file);
    for (size_t n = 0; n < file.n_byte; n += n < 1000 ? 1 : 37) {
        struct tokenizer *t;
        struct err e = {0};
        char *copy = malloc(n + 1); /* so that a sanitizer sees reads behind the end */
        assert_non_null(copy);
        memcpy(copy, file.data, n);
        assert_int_equal(tokenizer_open_json_text(&t, (struct text){copy, n}, &e), -1);
        assert_true(e.text[0]);
        free(copy);
    }
    buf_free(&file);
}

static void missing_files_are_named(void **state)
{
    struct tokenizer *t;
    struct err e = {0};
    (void)state;
    assert_int_equal(tokenizer_open_json(&t, "/nowhere/tokenizer.json", &e), -1);
    assert_non_null(strstr(e.text, "/nowhere/tokenizer.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_file_opens),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(missing_files_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
