/* config_json.c: a checkpoint folder's config.json and generation_config.json. v4 spec 1.1, v41
 * spec 1.1. */
#include "model/config.h"

#include "base/file.h"
#include "format/json_file.h"
#include "model/config_read.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Language model fields may stand one level down; the rest of the file is asked second. */
struct documents {
    struct json_object *text, *root;
};

static int to_number(struct json_object *value, struct config_value *v)
{
    *v = (struct config_value){.n = 1};
    switch (json_object_get_type(value)) {
    case json_type_int:
        v->is_integer = 1;
        v->i = json_object_get_int64(value);
        v->f = (double)v->i;
        return 1;
    case json_type_double:
        v->f = json_object_get_double(value);
        return 1;
    case json_type_boolean:
        v->is_integer = 1;
        v->i = json_object_get_boolean(value);
        v->f = (double)v->i;
        return 1;
    default:
        return 0;
    }
}

static int is_list_of_numbers(struct json_object *value)
{
    struct config_value v;
    if (!json_object_is_type(value, json_type_array))
        return 0;
    for (size_t i = 0; i < json_object_array_length(value); i++)
        if (!to_number(json_object_array_get_idx(value, i), &v))
            return 0;
    return 1;
}

static int find(const void *context, const char *key, struct config_value *v, struct err *e)
{
    const struct documents *d = context;
    struct json_object *value = json_file_get(d->text, key);
    if (!value)
        value = json_file_get(d->root, key);
    if (!value)
        return 0;
    if (to_number(value, v))
        return 1;
    if (!is_list_of_numbers(value))
        return err_set(e, ERR_FORMAT, "config: %s is neither a number nor a list of numbers", key);
    *v =
        (struct config_value){.is_array = 1, .n = json_object_array_length(value), .handle = value};
    return 1;
}

static void at(
    const void *context, const struct config_value *array, uint64_t i, struct config_value *element)
{
    (void)context;
    struct json_object *list = (struct json_object *)(uintptr_t)array->handle;
    if (!to_number(json_object_array_get_idx(list, (size_t)i), element))
        *element = (struct config_value){.n = 1};
}

static const char *string_of(struct json_object *object, const char *key)
{
    struct json_object *value = json_file_get(object, key);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

/* Strings that must say what the forward pass does, where they are there. */
static int check_strings(const struct documents *d, struct err *e)
{
    static const char *const expected[][2] = {{"hidden_act", "silu"},
        {"scoring_func", "sqrtsoftplus"}, {"topk_method", "noaux_tc"},
        {"rope_scaling.type", "yarn"}, {"rope_scaling.rope_type", "yarn"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *found = string_of(d->text, expected[i][0]);
        if (found && strcmp(found, expected[i][1]))
            return err_set(e, ERR_UNSUPPORTED, "config: %s is %.40s, expected %s", expected[i][0],
                found, expected[i][1]);
    }
    return 0;
}

static int read_token_id(
    const struct documents *d, const char *key, int fallback, int *id, struct err *e)
{
    struct config_value v;
    int found = find(d, key, &v, e);
    if (found < 0)
        return -1;
    struct config_value element = v;
    if (found && v.is_array && v.n) /* several end tokens: the first */
        at(NULL, &v, 0, &element);
    *id = found ? -2 : fallback; /* config_check refuses -2 */
    if (found && element.f >= -1 && element.f <= INT_MAX)
        *id = (int)element.f;
    return 0;
}

static int read_name(struct model_config *c, const struct documents *d, const char *name)
{
    const char *found = string_of(d->root, "_name_or_path");
    snprintf(c->name, sizeof c->name, "%s", found && *found ? found : name ? name : "checkpoint");
    return 0;
}

static int read_document(struct model_config *c, struct json_object *root, const char *name,
    struct arena *arena, struct err *e)
{
    struct json_object *text = json_file_get(root, "text_config");
    struct documents d = {json_object_is_type(text, json_type_object) ? text : root, root};
    struct config_source source = {.context = &d, .find = find, .at = at};
    const char *type = string_of(d.text, "model_type");
    if (!type)
        type = string_of(root, "model_type");
    *c = (struct model_config){.temperature = 1, .top_p = 1};
    if (config_set_architecture(c, type ? type : "missing", e) || check_strings(&d, e) ||
        read_name(c, &d, name) || read_token_id(&d, "bos_token_id", 0, &c->bos_id, e) ||
        read_token_id(&d, "eos_token_id", 1, &c->eos_id, e) ||
        read_token_id(&d, "pad_token_id", 2, &c->pad_id, e))
        return -1;
    return config_read(c, &source, arena, e);
}

int config_from_json(
    struct model_config *c, const void *text, size_t n_byte, struct arena *arena, struct err *e)
{
    struct json_object *root = NULL;
    if (json_file_parse(&root, text, n_byte, "config", e))
        return -1;
    int failed = read_document(c, root, NULL, arena, e) || config_finish(c, e);
    json_object_put(root);
    return failed ? -1 : 0;
}

/* Sampling defaults; a folder without the file, or a file without the keys, keeps those that are
 * set. */
static int read_generation(struct model_config *c, const char *folder, struct err *e)
{
    static const struct {
        const char *key;
        size_t offset;
    } floats[] = {{"temperature", offsetof(struct model_config, temperature)},
        {"top_p", offsetof(struct model_config, top_p)},
        {"min_p", offsetof(struct model_config, min_p)}};
    char path[4096];
    snprintf(path, sizeof path, "%s/generation_config.json", folder);
    if (!file_exists(path))
        return 0;
    struct json_object *root = NULL;
    if (json_file_read(&root, path, e))
        return -1;
    struct config_value v;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if (to_number(json_file_get(root, floats[i].key), &v))
            *(float *)(void *)((char *)c + floats[i].offset) = (float)v.f;
    if (to_number(json_file_get(root, "top_k"), &v))
        c->top_k = v.f >= 0 && v.f <= 1 << 24 ? (int)v.f : -1;
    json_object_put(root);
    return 0;
}

/* The last part of a path, slashes at its end left out. */
static const char *base_name(const char *path, char *text, size_t n_text)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t first = n;
    while (first && path[first - 1] != '/')
        first--;
    snprintf(text, n_text, "%.*s", (int)(n - first), path + first);
    return text;
}

int config_from_folder(
    struct model_config *c, const char *folder, struct arena *arena, struct err *e)
{
    char path[4096], name[128];
    if (snprintf(path, sizeof path, "%s/config.json", folder) >= (int)sizeof path)
        return err_set(e, ERR_ARGUMENT, "path %.200s... is too long", folder);
    struct json_object *root = NULL;
    if (json_file_read(&root, path, e))
        return -1;
    int failed = read_document(c, root, base_name(folder, name, sizeof name), arena, e) ||
                 read_generation(c, folder, e) || config_finish(c, e);
    json_object_put(root);
    return failed ? err_wrap(e, "%s", path) : 0;
}
