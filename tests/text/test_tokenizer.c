/* test_tokenizer.c: pieces, merges, special tokens, decoding, and sources that are refused.
 * Equality with the Hugging Face library on a corpus is in test_tokenizer_hf.py. */
#include "small_tokenizer.h"
#include "text/bpe.h"
#include "text/control_tokens.h"
#include "text/pretokenize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- pieces ---- */

static int join_piece(void *user, struct text piece, struct err *e)
{
    (void)e;
    buf_append(user, "[", 1);
    buf_append(user, piece.data, piece.n_byte);
    buf_append(user, "]", 1);
    return 0;
}

static void pieces(void **state)
{
    static const char *const cases[][2] = {
        {"12345", "[123][45]"},
        {"    int", "[   ][ int]"},
        {"a;\n\nb", "[a][;\n\n][b]"},
        {"x \n  \n y", "[x][ \n  \n][ y]"},
        {"a   1", "[a][   ][1]"},
        {"カタ・カナ", "[カタ][・][カナ]"},
        {"中文abc", "[中文][abc]"},
        {"don't", "[don]['t]"},
        {"hello world!", "[hello][ world][!]"},
        {"a\u200d\u200db", "[a][\u200d][\u200db]"},
        {"1\u200d\u200d1", "[1][\u200d\u200d][1]"},
        {"a\u00a0b", "[a][\u00a0b]"},
        {"\u180e\u180e", "[\u180e\u180e]"}, /* not white space: unmatched */
        {"a\u180e b", "[a][\u180e][ b]"},
        {"\u0967\u0968\u0969\u096a", "[\u0967\u0968\u0969][\u096a]"},
        {"\U000105C0a", "[\U000105C0a]"}, /* a letter since Unicode 16 */
        {"a\xff\xfe"
         "b",
            "[a][\xff\xfe][b]"},
        {"\xe4\xb8", "[\xe4\xb8]"},
        {" \xff ", "[ ][\xff][ ]"},
        {"", ""},
    };
    struct pretokenizer p;
    const struct text *patterns;
    int n = pretokenize_named("joyai-llm", &patterns);
    (void)state;
    assert_int_equal(n, 3);
    assert_string_equal(pretokenize_name(patterns, n), "deepseek-v3");
    assert_int_equal(pretokenizer_open(&p, patterns, n, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0};
        struct err e = {0};
        assert_int_equal(pretokenize(&p, text_of(cases[i][0]), join_piece, &out, &e), 0);
        assert_string_equal(out.data ? out.data : "", cases[i][1]);
        buf_free(&out);
    }
    pretokenizer_close(&p);
}

static void patterns_refused(void **state)
{
    static const char *const patterns[] = {
        "\\P{L}", "[\\S]", "\\p{Lu}", "\\pL", "(", "[a", "\\", "\\C", "*"};
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct text pattern = text_of(patterns[i]);
        struct pretokenizer p;
        struct err e = {0};
        assert_int_equal(pretokenizer_open(&p, &pattern, 1, &e), -1);
        assert_true(e.text[0]);
    }
}

static void runaway_pattern_is_an_error(void **state)
{
    struct text pattern = TEXT("(?:a+)+\\s"), text;
    char many[64];
    struct pretokenizer p;
    struct err e = {0};
    struct buf out = {0};
    (void)state;
    memset(many, 'a', sizeof many);
    text = (struct text){many, sizeof many};
    assert_int_equal(pretokenizer_open(&p, &pattern, 1, &e), 0);
    assert_int_equal(pretokenize(&p, text, join_piece, &out, &e), -1);
    assert_non_null(strstr(e.text, "gives up"));
    buf_free(&out);
    pretokenizer_close(&p);
}

/* ---- merging against a plain definition ---- */

struct naive {
    struct text symbols[64];
    int n;
};

static int naive_rank(const struct tokenizer_source *s, struct text left, struct text right)
{
    for (int32_t r = 0; r < s->n_merge; r++) {
        const char *space = memchr(s->merges[r].data, ' ', s->merges[r].n_byte);
        size_t n_left = (size_t)(space - s->merges[r].data);
        struct text a = {s->merges[r].data, n_left};
        struct text b = {space + 1, s->merges[r].n_byte - n_left - 1};
        if (text_equal(a, left) && text_equal(b, right))
            return r;
    }
    return INT32_MAX;
}

static int naive_merge(const struct tokenizer_source *s, struct naive *w)
{
    int best = INT32_MAX, at = -1;
    for (int i = 0; i + 1 < w->n; i++) {
        int rank = naive_rank(s, w->symbols[i], w->symbols[i + 1]);
        if (rank < best) {
            best = rank;
            at = i;
        }
    }
    if (at < 0)
        return 0;
    w->symbols[at].n_byte += w->symbols[at + 1].n_byte; /* symbols lie side by side */
    memmove(&w->symbols[at + 1], &w->symbols[at + 2], (size_t)(w->n - at - 2) * sizeof *w->symbols);
    w->n--;
    return 1;
}

static void merges_follow_the_definition(void **state)
{
    static const char *const lists[][12] = {
        {"a a", "aa a", "a b", "b a", "ab ab", "aa aa", NULL},
        {"b c", "a b", "a bc", "ab c", "c c", "c a", "abc a", NULL},
        {"a b", "ab a", "b a", "ba b", "aba b", "a a", "b b", "bb bb", NULL},
    };
    struct small_tokenizer *s = malloc(sizeof *s);
    (void)state;
    assert_non_null(s);
    srand(3);
    for (int round = 0; round < 3000; round++) {
        const char *const *list = lists[round % 3];
        const char *unique[12];
        int n_unique = 0;
        for (int i = 0; list[i]; i++) /* "a bc" and "ab c" join to the same text: keep the first */
            if (strcmp(list[i], "ab c"))
                unique[n_unique++] = list[i];
        unique[n_unique] = NULL;
        small_tokenizer_make(s, unique, NULL);
        struct tokenizer *t;
        struct err e = {0};
        struct token_list out = {0};
        char text[32];
        size_t n = 1 + (size_t)rand() % sizeof text;
        struct naive w = {.n = (int)n};
        for (size_t i = 0; i < n; i++) {
            text[i] = (char)('a' + rand() % 3);
            w.symbols[i] = (struct text){text + i, 1};
        }
        if (tokenizer_open(&t, &s->source, &e))
            fail_msg("%s", e.text);
        while (naive_merge(&s->source, &w))
            ;
        assert_int_equal(tokenizer_encode(t, (struct text){text, n}, 0, &out, &e), 0);
        assert_int_equal(out.n, w.n);
        for (size_t i = 0; i < out.n; i++)
            assert_true(text_equal(tokenizer_bytes(t, out.ids[i]), w.symbols[i]));
        token_list_free(&out);
        tokenizer_close(t);
    }
    free(s);
}

/* ---- special tokens ---- */

static void check_ids(const struct tokenizer *t, const char *text, int flags, const char *expected)
{
    struct token_list ids = {0};
    struct buf out = {0};
    struct err e = {0};
    assert_int_equal(tokenizer_encode(t, text_of(text), flags, &ids, &e), 0);
    for (size_t i = 0; i < ids.n; i++) {
        struct text bytes = tokenizer_bytes(t, ids.ids[i]);
        buf_text(&out, tokenizer_is_special(t, ids.ids[i]) ? "{" : "[");
        buf_append(&out, bytes.data, bytes.n_byte);
        buf_text(&out, tokenizer_is_special(t, ids.ids[i]) ? "}" : "]");
    }
    assert_string_equal(out.data ? out.data : "", expected);
    buf_free(&out);
    token_list_free(&ids);
}

static void special_tokens(void **state)
{
    static const char *const merges[] = {"h e", "l l", "he ll", "hell o", NULL};
    static const char *const specials[] = {"<a>", "<a>>", "<ab", "x<", NULL};
    struct small_tokenizer *s = malloc(sizeof *s);
    struct tokenizer *t;
    (void)state;
    assert_non_null(s);
    small_tokenizer_make(s, merges, specials);
    assert_int_equal(tokenizer_open(&t, &s->source, NULL), 0);
    check_ids(t, "hello<a>hello", TOKENIZER_SPECIALS, "[hello]{<a>}[hello]");
    check_ids(t, "hello<a>hello", TOKENIZER_PLAIN, "[hello][<][a][>][hello]");
    check_ids(t, "<a>>", TOKENIZER_SPECIALS, "{<a>>}");     /* longest */
    check_ids(t, "x<a>", TOKENIZER_SPECIALS, "{x<}[a][>]"); /* leftmost */
    check_ids(t, "<a><ab<a", TOKENIZER_SPECIALS, "{<a>}{<ab}[<][a]");
    check_ids(t, "", TOKENIZER_SPECIALS, "");
    check_ids(t, NULL, TOKENIZER_SPECIALS, "");
    assert_int_equal(tokenizer_special(t, text_of("<ab")), 256 + 4 + 2);
    assert_int_equal(tokenizer_special(t, text_of("<")), -1);
    assert_int_equal(tokenizer_special(t, text_of("hello")), -1);
    assert_int_equal(tokenizer_bytes(t, -1).n_byte, 0);
    assert_int_equal(tokenizer_bytes(t, 100000).n_byte, 0);
    tokenizer_close(t);
    free(s);
}

static void spans_allow_and_do_not_cut(void **state)
{
    struct tokenizer *t = small_tokenizer_open();
    struct text text = TEXT("hel<think>lo hello");
    struct text_span whole = {0, 18}, inside = {3, 10}, cut = {3, 9}, within_word = {1, 2};
    struct text_span bad[] = {{5, 19}, {5, 4}}, overlap[] = {{0, 5}, {4, 6}};
    struct token_list a = {0}, b = {0};
    struct err e = {0};
    (void)state;
    assert_int_equal(tokenizer_encode_spans(t, text, (struct text_spans){&whole, 1}, &a, &e), 0);
    assert_int_equal(tokenizer_encode_spans(t, text, (struct text_spans){&inside, 1}, &b, &e), 0);
    assert_true(a.n == b.n && !memcmp(a.ids, b.ids, a.n * sizeof *a.ids));
    a.n = b.n = 0;
    assert_int_equal(tokenizer_encode_spans(t, text, (struct text_spans){&cut, 1}, &a, &e), 0);
    assert_int_equal(tokenizer_encode(t, text, TOKENIZER_PLAIN, &b, &e), 0);
    assert_true(a.n == b.n && !memcmp(a.ids, b.ids, a.n * sizeof *a.ids));
    a.n = 0;
    assert_int_equal(tokenizer_encode_spans(t, (struct text)TEXT("hello"),
                         (struct text_spans){&within_word, 1}, &a, &e),
        0);
    assert_int_equal(a.n, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            tokenizer_encode_spans(t, text, (struct text_spans){&bad[i], 1}, &a, &e), -1);
    assert_int_equal(tokenizer_encode_spans(t, text, (struct text_spans){overlap, 2}, &a, &e), -1);
    token_list_free(&a);
    token_list_free(&b);
    tokenizer_close(t);
}

static void any_bytes_round_trip(void **state)
{
    struct tokenizer *t = small_tokenizer_open();
    (void)state;
    srand(4);
    for (int round = 0; round < 3000; round++) {
        char text[40];
        struct token_list ids = {0};
        struct buf out = {0};
        size_t n = (size_t)rand() % sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] = (char)(round % 2 ? rand() : "hello wor\n1<\xE4\xB8\xAD"[rand() % 15]);
        assert_int_equal(tokenizer_encode(t, (struct text){text, n}, round % 4 > 1, &ids, NULL), 0);
        assert_int_equal(tokenizer_decode(t, ids.ids, ids.n, &out, NULL), 0);
        assert_int_equal(out.n_byte, n);
        assert_true(!n || !memcmp(out.data, text, n));
        token_list_free(&ids);
        buf_free(&out);
    }
    struct buf out = {0};
    struct err e = {0};
    int32_t ids[] = {0, 100000};
    assert_int_equal(tokenizer_decode(t, ids, 2, &out, &e), -1);
    assert_non_null(strstr(e.text, "100000"));
    buf_free(&out);
    tokenizer_close(t);
}

static void description_opens_the_same_tokenizer(void **state)
{
    struct tokenizer *a = small_tokenizer_open(), *b;
    struct token_list x = {0}, y = {0};
    struct text text = TEXT("hello worlds<think>1234");
    struct err e = {0};
    (void)state;
    if (tokenizer_open(&b, tokenizer_describe(a), &e))
        fail_msg("%s", e.text);
    tokenizer_encode(a, text, TOKENIZER_SPECIALS, &x, NULL);
    tokenizer_close(a);
    tokenizer_encode(b, text, TOKENIZER_SPECIALS, &y, NULL);
    assert_true(x.n == y.n && !memcmp(x.ids, y.ids, x.n * sizeof *x.ids));
    assert_string_equal(tokenizer_describe(b)->pre, "deepseek-v3");
    token_list_free(&x);
    token_list_free(&y);
    tokenizer_close(b);
}

/* ---- bad sources ---- */

static void spoil(struct small_tokenizer *s, int how)
{
    static const struct text empty = TEXT(""), not_alphabet = TEXT("中"), same = TEXT("a"),
                             broken = TEXT("\xFF");
    static const struct text bad_merges[] = {TEXT("he"), TEXT("zz q"), TEXT("h zz"), TEXT("h q"),
        TEXT("h e"), TEXT(" e"), TEXT("h e l")};
    struct tokenizer_source *source = &s->source;
    static char long_name[VOCAB_MAX_TOKEN_BYTES + 2];
    memset(long_name, 'a', sizeof long_name - 1);
    switch (how) {
    case 0:
        source->n_token = 0;
        break;
    case 1:
        source->n_token = -5;
        break;
    case 2:
        source->n_token = VOCAB_MAX_TOKEN + 1;
        break;
    case 3:
        source->n_merge = -1;
        break;
    case 4:
        source->n_merge = BPE_MAX_MERGE + 1;
        break;
    case 5:
        s->tokens[70] = empty;
        break;
    case 6:
        s->tokens[70] = not_alphabet;
        break;
    case 7:
        s->tokens[70] = same;
        break;
    case 8:
        s->tokens[70] = broken;
        break;
    case 9:
        s->types[70] = 2;
        break;
    case 10:
        s->types[70] = TOKEN_UNUSED;
        break;
    case 11:
        s->types[257] = 0;
        break;
    case 12:
        source->pre = "gpt-2";
        break;
    case 13:
        source->pre = NULL;
        break;
    case 14:
        source->bos = source->n_token;
        break;
    case 15:
        source->eos = -2;
        break;
    case 16:
        s->tokens[source->n_token - 1] = s->tokens[source->n_token - 2];
        break;
    case 17:
        s->tokens[source->n_token - 1] = text_of(long_name);
        break;
    case 18:
        source->n_pattern = 9;
        break;
    default:
        s->merges[1] = bad_merges[how - 19];
        break;
    }
}

static void bad_sources_are_refused_with_one_line(void **state)
{
    static const char *const reasons[] = {"0 tokens", "-5 tokens", "2097153 tokens", "-1 merges",
        "2097153 merges", "token 70 has 0 bytes", "token 70 \"中\"",
        "tokens 70 and 97 are both \"a\"", "token 70 \"\"", "type 2", "single byte 0x46", "type 0",
        "\"gpt-2\"", "(none)", "bos token", "eos token", "special tokens", "65537 bytes",
        "9 pre-tokenizer patterns", "merge 1 is \"he\"", "left half", "right half",
        "joins to text that is not a token", "merges 0 and 1", "two tokens", "right half"};
    static const char *const merges[] = {"h e", "l l", "he ll", NULL};
    static const char *const specials[] = {"<a>", "<b>", NULL};
    struct small_tokenizer *s = malloc(sizeof *s);
    (void)state;
    assert_non_null(s);
    for (int how = 0; how < (int)(sizeof reasons / sizeof *reasons); how++) {
        struct tokenizer *t;
        struct err e = {0};
        small_tokenizer_make(s, merges, specials);
        spoil(s, how);
        assert_int_equal(tokenizer_open(&t, &s->source, &e), -1);
        assert_null(t);
        if (!strstr(e.text, reasons[how]))
            fail_msg("case %d: %s", how, e.text);
        assert_null(strchr(e.text, '\n'));
    }
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),
        cmocka_unit_test(patterns_refused),
        cmocka_unit_test(runaway_pattern_is_an_error),
        cmocka_unit_test(merges_follow_the_definition),
        cmocka_unit_test(special_tokens),
        cmocka_unit_test(spans_allow_and_do_not_cut),
        cmocka_unit_test(any_bytes_round_trip),
        cmocka_unit_test(description_opens_the_same_tokenizer),
        cmocka_unit_test(bad_sources_are_refused_with_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
