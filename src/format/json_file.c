/* json_file.c: see json_file.h. */
#include "format/json_file.h"

#include "base/file.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static int is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i])
            return 0;
    return 1;
}

/* What a document must be, and its text. */
struct document {
    const char *what;
    const char *text;
    size_t n_byte;
    enum json_type type;
};

static int parse(struct json_object **out, const struct document *d, struct err *e)
{
    const char *what = d->what, *text = d->text;
    size_t n_byte = d->n_byte;
    *out = NULL;
    if (n_byte > JSON_FILE_MAX_BYTES)
        return err_set(e, ERR_FORMAT, "%s: JSON of %zu bytes, expected at most %d", what, n_byte,
            JSON_FILE_MAX_BYTES);
    struct json_tokener *tokener = json_tokener_new_ex(JSON_FILE_MAX_DEPTH);
    if (!tokener)
        return err_set(e, ERR_MEMORY, "%s: no memory to read JSON", what);
    json_tokener_set_flags(tokener,
        JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8 | JSON_TOKENER_ALLOW_TRAILING_CHARS);
    struct json_object *value = json_tokener_parse_ex(tokener, n_byte ? text : "", (int)n_byte);
    enum json_tokener_error error = json_tokener_get_error(tokener);
    size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    int failed = 0;
    if (error != json_tokener_success)
        failed = err_set(e, ERR_FORMAT, "%s: not JSON at byte %zu: %s", what, end,
            json_tokener_error_desc(error));
    else if (!is_blank(text + end, n_byte - end))
        failed = err_set(e, ERR_FORMAT, "%s: text after the JSON value at byte %zu", what, end);
    else if (!json_object_is_type(value, d->type))
        failed = err_set(e, ERR_FORMAT, "%s: JSON holds %s, expected %s", what,
            json_type_to_name(json_object_get_type(value)), json_type_to_name(d->type));
    if (failed) {
        json_object_put(value);
        return -1;
    }
    *out = value;
    return 0;
}

int json_file_parse(
    struct json_object **object, const void *text, size_t n_byte, const char *what, struct err *e)
{
    struct document d = {what, text, n_byte, json_type_object};
    return parse(object, &d, e);
}

int json_file_parse_list(
    struct json_object **list, const void *text, size_t n_byte, const char *what, struct err *e)
{
    struct document d = {what, text, n_byte, json_type_array};
    return parse(list, &d, e);
}

int json_file_read(struct json_object **object, const char *path, struct err *e)
{
    struct file_map m;
    *object = NULL;
    if (file_map_open(&m, path, e))
        return -1;
    int failed = json_file_parse(object, m.data, (size_t)m.n_byte, path, e);
    file_map_close(&m);
    return failed;
}

struct json_object *json_file_get(struct json_object *object, const char *key)
{
    while (object) {
        char part[64];
        size_t n = strcspn(key, ".");
        struct json_object *value = NULL;
        if (n >= sizeof part || !json_object_is_type(object, json_type_object))
            return NULL;
        snprintf(part, sizeof part, "%.*s", (int)n, key);
        json_object_object_get_ex(object, part, &value);
        if (!key[n])
            return value;
        object = value;
        key += n + 1;
    }
    return NULL;
}
