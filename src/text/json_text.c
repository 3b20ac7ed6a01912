/* json_text.c: see json_text.h. */
#include "text/json_text.h"

#include "text/utf8.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what json-c would let through ---- */

struct scanner {
    const char *data;
    size_t at, n;
    int takes_big_integers;
};

static int fail(const struct scanner *s, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "JSON text: %s at byte %zu", what, s->at);
}

static size_t skip_space(struct text t, size_t at)
{
    while (at < t.n_byte && t.data[at] && strchr(" \t\r\n", t.data[at]))
        at++;
    return at;
}

static long hex4(const struct scanner *s, size_t at)
{
    long value = 0;
    for (size_t i = at; i < at + 4; i++) {
        char c = i < s->n ? s->data[i] : 0;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* A \u escape; at stands on the backslash. Surrogates must come as pairs. */
static int scan_unicode_escape(struct scanner *s, int *has_nul, struct err *e)
{
    long code = hex4(s, s->at + 2);
    if (code < 0 || (code >= 0xDC00 && code <= 0xDFFF))
        return fail(s, code < 0 ? "bad \\u escape" : "lone surrogate", e);
    *has_nul |= code == 0;
    s->at += 6;
    if (code < 0xD800 || code > 0xDFFF)
        return 0;
    long low = s->at + 1 < s->n && s->data[s->at] == '\\' && s->data[s->at + 1] == 'u'
                   ? hex4(s, s->at + 2)
                   : -1;
    if (low < 0xDC00 || low > 0xDFFF)
        return fail(s, "lone surrogate", e);
    s->at += 6;
    return 0;
}

static int scan_string(struct scanner *s, struct err *e)
{
    int has_nul = 0;
    for (s->at++; s->at < s->n && s->data[s->at] != '"';) {
        if ((unsigned char)s->data[s->at] < 0x20)
            return fail(s, "control character in a string", e);
        if (s->data[s->at] != '\\')
            s->at++;
        else if (s->at + 1 >= s->n || s->data[s->at + 1] != 'u')
            s->at += 2;
        else if (scan_unicode_escape(s, &has_nul, e))
            return -1;
    }
    s->at++;
    size_t next = skip_space((struct text){s->data, s->n}, s->at);
    if (has_nul && next < s->n && s->data[next] == ':')
        return fail(s, "NUL in a key", e);
    return 0;
}

static int scan_number(struct scanner *s, struct err *e)
{
    size_t begin = s->at;
    int is_negative = s->data[begin] == '-';
    size_t digits = begin + (size_t)is_negative;
    while (s->at < s->n && s->data[s->at] && strchr("+-.0123456789eE", s->data[s->at]))
        s->at++;
    size_t n_byte = s->at - digits;
    for (size_t i = digits; i < s->at; i++) {
        if (s->data[i] == '.' && (i + 1 == s->at || s->data[i + 1] < '0' || s->data[i + 1] > '9'))
            return fail(s, "no digit after a decimal point", e);
        if (s->data[i] < '0' || s->data[i] > '9')
            n_byte = 0; /* not an integer */
    }
    const char *limit = is_negative ? "9223372036854775808" : "18446744073709551615";
    size_t n_limit = strlen(limit);
    if (s->takes_big_integers)
        return 0;
    if (n_byte > n_limit || (n_byte == n_limit && memcmp(s->data + digits, limit, n_limit) > 0))
        return fail(s, "integer beyond 64 bits", e);
    return 0;
}

static int check(struct text text, int takes_big_integers, struct err *e)
{
    struct scanner s = {text.data, 0, text.n_byte, takes_big_integers};
    if (text.n_byte > JSON_TEXT_MAX_BYTES)
        return err_set(e, ERR_FORMAT, "JSON text of %zu bytes, expected at most %d", text.n_byte,
            JSON_TEXT_MAX_BYTES);
    s.at = utf8_valid_prefix(text.data, text.n_byte);
    if (s.at < s.n)
        return fail(&s, "ill-formed UTF-8", e);
    for (s.at = 0; s.at < s.n;) {
        char c = s.data[s.at];
        int rc = 0;
        if (c == '"')
            rc = scan_string(&s, e);
        else if (c == '-' || (c >= '0' && c <= '9'))
            rc = scan_number(&s, e);
        else
            s.at++;
        if (rc)
            return -1;
    }
    return 0;
}

/* ---- reading ---- */

static int parse(struct json_object **value, struct text text, struct err *e)
{
    struct json_tokener *tokener = json_tokener_new_ex(JSON_TEXT_MAX_DEPTH);
    if (!tokener)
        return err_set(e, ERR_MEMORY, "no memory to read JSON");
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
    *value = json_tokener_parse_ex(tokener, text.data, (int)text.n_byte);
    enum json_tokener_error cause = json_tokener_get_error(tokener);
    if (cause == json_tokener_continue) /* a number ends only where something follows it */
        *value = json_tokener_parse_ex(tokener, "\n", 1);
    enum json_tokener_error rest = json_tokener_get_error(tokener);
    size_t end = cause == json_tokener_continue ? text.n_byte : json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    if (rest == json_tokener_success && skip_space(text, end) == text.n_byte)
        return 0;
    json_object_put(*value);
    *value = NULL;
    const char *what = rest == json_tokener_success    ? "something follows the value"
                       : rest == json_tokener_continue ? "it ends early"
                                                       : json_tokener_error_desc(rest);
    return err_set(e, ERR_FORMAT, "JSON text: %s at byte %zu", what, end);
}

int json_text_read(struct json_object **value, struct text text, struct err *e)
{
    *value = NULL;
    return check(text, 0, e) || parse(value, text, e) ? -1 : 0;
}

int json_text_is_valid(struct text text)
{
    struct json_object *value = NULL;
    int is_valid = !check(text, 1, NULL) && !parse(&value, text, NULL);
    json_object_put(value);
    return is_valid;
}

struct json_object *json_text_member(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;
    if (json_object_is_type(object, json_type_object))
        json_object_object_get_ex(object, key, &value);
    return value;
}

struct text json_text_string(struct json_object *value)
{
    if (!json_object_is_type(value, json_type_string))
        return (struct text){"", 0};
    return (struct text){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}

/* ---- writing ---- */

void json_text_escape(struct buf *out, struct text t)
{
    static const char *const named[] = {['\b'] = "\\b",
        ['\t'] = "\\t",
        ['\n'] = "\\n",
        ['\f'] = "\\f",
        ['\r'] = "\\r",
        ['"'] = "\\\"",
        ['\\'] = "\\\\"};
    size_t plain = 0; /* begin of the run that needs no escape */
    for (size_t i = 0; i < t.n_byte; i++) {
        unsigned char c = (unsigned char)t.data[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_append(out, t.data + plain, i - plain);
        plain = i + 1;
        if (named[c])
            buf_text(out, named[c]);
        else
            buf_print(out, "\\u%04x", c);
    }
    if (t.n_byte)
        buf_append(out, t.data + plain, t.n_byte - plain);
}

void json_text_write_string(struct buf *out, struct text text)
{
    buf_append(out, "\"", 1);
    json_text_escape(out, text);
    buf_append(out, "\"", 1);
}

/* Python's repr: the shortest digits that read back the same; plain notation for exponents -4
 * to 15. */
static void write_double(struct buf *out, double value)
{
    char form[32] = "", digits[24] = "";
    if (isnan(value) || isinf(value)) {
        buf_text(out, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    for (int n = 1; n <= 17; n++) {
        snprintf(form, sizeof form, "%.*e", n - 1, fabs(value)); /* d.ddde+XX */
        if (strtod(form, NULL) == fabs(value))
            break;
    }
    int n = 0, exponent = atoi(strchr(form, 'e') + 1);
    for (const char *c = form; *c != 'e'; c++)
        if (*c != '.')
            digits[n++] = *c;
    buf_text(out, signbit(value) ? "-" : "");
    if (exponent < -4 || exponent >= 16)
        buf_print(out, "%c%s%se%+03d", digits[0], n > 1 ? "." : "", digits + 1, exponent);
    else if (exponent < 0)
        buf_print(out, "0.%.*s%s", -exponent - 1, "000", digits);
    else if (n <= exponent + 1)
        buf_print(out, "%s%.*s.0", digits, exponent + 1 - n, "0000000000000000");
    else
        buf_print(out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
}

static void write_array(struct buf *out, struct json_object *value)
{
    buf_text(out, "[");
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        buf_text(out, i ? ", " : "");
        json_text_write(out, json_object_array_get_idx(value, i));
    }
    buf_text(out, "]");
}

static void write_object(struct buf *out, struct json_object *value)
{
    int n = 0;
    buf_text(out, "{");
    json_object_object_foreach(value, key, member)
    {
        buf_text(out, n++ ? ", " : "");
        json_text_write_string(out, text_of(key));
        buf_text(out, ": ");
        json_text_write(out, member);
    }
    buf_text(out, "}");
}

static void write_integer(struct buf *out, struct json_object *value)
{
    int64_t number = json_object_get_int64(value);
    if (number == INT64_MAX) /* or more: json-c caps what does not fit */
        buf_print(out, "%llu", (unsigned long long)json_object_get_uint64(value));
    else
        buf_print(out, "%lld", (long long)number);
}

void json_text_write(struct buf *out, struct json_object *value)
{
    switch (json_object_get_type(value)) {
    case json_type_null:
        buf_text(out, "null");
        break;
    case json_type_boolean:
        buf_text(out, json_object_get_boolean(value) ? "true" : "false");
        break;
    case json_type_double:
        write_double(out, json_object_get_double(value));
        break;
    case json_type_int:
        write_integer(out, value);
        break;
    case json_type_string:
        json_text_write_string(out, json_text_string(value));
        break;
    case json_type_array:
        write_array(out, value);
        break;
    case json_type_object:
        write_object(out, value);
        break;
    }
}
