/* tokenizer_json.c: reads a Hugging Face tokenizer.json into a tokenizer_source.
 *
 *   added_tokens [{id, content, special, ...}]   literal tokens, some of them also in model.vocab
 *   normalizer                                   null or empty
 *   pre_tokenizer                                Sequence of Split (Isolated) and one ByteLevel
 * without its own regex model {type: BPE, vocab {spelling: id}, merges ["a b"] or [["a", "b"]]}
 *
 * Whatever would change the ids and is not implemented is refused by name. The post-processor is
 * not read: the chat renderer writes the begin-of-sentence token. The two-pass rule for tokens with
 * `normalized` is not kept apart: it matters only when texts of special tokens overlap.
 */
#include "text/control_tokens.h"
#include "text/json_text.h"
#include "text/pretokenize.h"
#include "text/shown.h"
#include "text/bpe.h"

#include "base/file.h"

#include <json-c/json.h>

/* A source being filled; texts point into the JSON value. */
struct builder {
    struct arena arena;
    struct text *tokens, *merges;
    uint8_t *types; /* 0: no token has this id yet */
    int32_t n_max;  /* entries there are; with no gaps, every id is below */
    int32_t n_token, n_merge;
    struct text patterns[PRETOKENIZE_MAX_PATTERN];
    int n_pattern;
};

static int is_true(struct json_object *object, const char *key)
{
    return json_object_get_boolean(json_text_member(object, key));
}

static int has_type(struct json_object *object, const char *type)
{
    return text_is(json_text_string(json_text_member(object, "type")), type);
}

/* Absent, null, false, "" and [] all mean that a feature is off. */
static int is_off(struct json_object *value)
{
    switch (json_object_get_type(value)) {
    case json_type_boolean:
        return !json_object_get_boolean(value);
    case json_type_string:
        return !json_object_get_string_len(value);
    case json_type_array:
        return !json_object_array_length(value);
    case json_type_null:
        return 1;
    default:
        return 0;
    }
}

static int refuse_features(struct json_object *root, struct err *e)
{
    static const char *const features[] = {"dropout", "unk_token", "continuing_subword_prefix",
        "end_of_word_suffix", "byte_fallback", "ignore_merges"};
    struct json_object *model = json_text_member(root, "model"),
                       *normalizer = json_text_member(root, "normalizer");
    if (!has_type(model, "BPE"))
        return err_set(e, ERR_UNSUPPORTED, "model type is \"%s\", expected \"BPE\"",
            shown_text(json_text_string(json_text_member(model, "type"))).text);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (!is_off(json_text_member(model, features[i])))
            return err_set(
                e, ERR_UNSUPPORTED, "model feature \"%s\" is not supported", features[i]);
    int is_empty_sequence =
        has_type(normalizer, "Sequence") && is_off(json_text_member(normalizer, "normalizers"));
    if (normalizer && !is_empty_sequence)
        return err_set(e, ERR_UNSUPPORTED, "normalizer \"%s\" is not supported",
            shown_text(json_text_string(json_text_member(normalizer, "type"))).text);
    return 0;
}

/* ---- pre-tokenizer ---- */

static int read_split(struct builder *b, struct json_object *step, struct err *e)
{
    struct json_object *regex = json_text_member(json_text_member(step, "pattern"), "Regex");
    struct text behavior = json_text_string(json_text_member(step, "behavior"));
    if (!json_object_is_type(regex, json_type_string))
        return err_set(e, ERR_UNSUPPORTED, "Split without a Regex pattern is not supported");
    if (!text_is(behavior, "Isolated") || is_true(step, "invert"))
        return err_set(e, ERR_UNSUPPORTED, "Split behavior is \"%s\"%s, expected \"Isolated\"",
            shown_text(behavior).text, is_true(step, "invert") ? " inverted" : "");
    if (b->n_pattern == PRETOKENIZE_MAX_PATTERN)
        return err_set(e, ERR_UNSUPPORTED, "more than %d Split steps", PRETOKENIZE_MAX_PATTERN);
    b->patterns[b->n_pattern++] = json_text_string(regex);
    return 0;
}

static int read_step(struct builder *b, struct json_object *step, int is_last, struct err *e)
{
    if (!is_last)
        return has_type(step, "Split")
                   ? read_split(b, step, e)
                   : err_set(e, ERR_UNSUPPORTED, "pre-tokenizer step \"%s\", expected \"Split\"",
                         shown_text(json_text_string(json_text_member(step, "type"))).text);
    struct json_object *use_regex = json_text_member(step, "use_regex"); /* default: true */
    if (!has_type(step, "ByteLevel") || !use_regex || json_object_get_boolean(use_regex) ||
        is_true(step, "add_prefix_space"))
        return err_set(e, ERR_UNSUPPORTED,
            "the last pre-tokenizer step must be ByteLevel without regex and prefix space");
    return 0;
}

static int read_pre_tokenizer(struct builder *b, struct json_object *pre, struct err *e)
{
    struct json_object *steps = json_text_member(pre, "pretokenizers");
    size_t n = json_object_is_type(steps, json_type_array) ? json_object_array_length(steps) : 0;
    if (!has_type(pre, "Sequence") || n < 2)
        return err_set(e, ERR_UNSUPPORTED,
            "pre_tokenizer \"%s\", expected a Sequence of Split and ByteLevel",
            shown_text(json_text_string(json_text_member(pre, "type"))).text);
    for (size_t i = 0; i < n; i++)
        if (read_step(b, json_object_array_get_idx(steps, i), i + 1 == n, e))
            return -1;
    return 0;
}

/* ---- tokens ---- */

/* The id of a token, or -1. */
static int32_t token_id(
    const struct builder *b, struct json_object *id, struct text spelling, struct err *e)
{
    int64_t value = json_object_is_type(id, json_type_int) ? json_object_get_int64(id) : -1;
    if (value < 0 || value >= b->n_max)
        return err_set(e, ERR_FORMAT, "token \"%s\" has id %s, expected 0 to %d",
            shown_text(spelling).text,
            shown_text(text_of(id ? json_object_get_string(id) : "null")).text, (int)b->n_max - 1);
    return (int32_t)value;
}

static int read_vocab(struct builder *b, struct json_object *vocab, struct err *e)
{
    json_object_object_foreach(vocab, key, number)
    {
        struct text spelling = text_of(key);
        int32_t id = token_id(b, number, spelling, e);
        if (id < 0)
            return -1;
        if (b->types[id])
            return err_set(e, ERR_FORMAT, "tokens \"%s\" and \"%s\" have the same id %d",
                shown_text(b->tokens[id]).text, shown_text(spelling).text, (int)id);
        b->tokens[id] = spelling;
        b->types[id] = TOKEN_NORMAL;
        b->n_token = id >= b->n_token ? id + 1 : b->n_token;
    }
    return 0;
}

static int read_added(struct builder *b, struct json_object *added, struct err *e)
{
    struct text content = json_text_string(json_text_member(added, "content"));
    int32_t id = token_id(b, json_text_member(added, "id"), content, e);
    if (id < 0)
        return -1;
    if (is_true(added, "single_word") || is_true(added, "lstrip") || is_true(added, "rstrip"))
        return err_set(e, ERR_UNSUPPORTED,
            "added token %d \"%s\" uses single_word, lstrip or rstrip", (int)id,
            shown_text(content).text);
    if (b->types[id] && (b->types[id] != TOKEN_NORMAL || !text_equal(b->tokens[id], content)))
        return err_set(e, ERR_FORMAT, "tokens \"%s\" and \"%s\" have the same id %d",
            shown_text(b->tokens[id]).text, shown_text(content).text, (int)id);
    b->tokens[id] = content;
    b->types[id] = is_true(added, "special") ? TOKEN_CONTROL : TOKEN_USER_DEFINED;
    b->n_token = id >= b->n_token ? id + 1 : b->n_token;
    return 0;
}

static int read_tokens(struct builder *b, struct json_object *root, struct err *e)
{
    struct json_object *vocab = json_text_member(json_text_member(root, "model"), "vocab");
    struct json_object *added = json_text_member(root, "added_tokens");
    if (!json_object_is_type(vocab, json_type_object) ||
        (added && !json_object_is_type(added, json_type_array)))
        return err_set(e, ERR_FORMAT, "model.vocab must be an object and added_tokens an array");
    size_t n_max =
        (size_t)json_object_object_length(vocab) + (added ? json_object_array_length(added) : 0);
    if (n_max > VOCAB_MAX_TOKEN)
        return err_set(e, ERR_FORMAT, "%zu tokens, expected at most %d", n_max, VOCAB_MAX_TOKEN);
    b->n_max = (int32_t)n_max;
    b->tokens = ARENA_NEW(&b->arena, struct text, n_max);
    b->types = ARENA_NEW(&b->arena, uint8_t, n_max);
    if (!b->tokens || !b->types)
        return err_set(e, ERR_MEMORY, "no memory to read tokens");
    if (read_vocab(b, vocab, e))
        return -1;
    for (size_t i = 0; added && i < json_object_array_length(added); i++)
        if (read_added(b, json_object_array_get_idx(added, i), e))
            return -1;
    for (int32_t id = 0; id < b->n_token; id++)
        if (!b->types[id])
            return err_set(e, ERR_FORMAT, "no token has the id %d, but ids go up to %d", (int)id,
                (int)b->n_token - 1);
    return 0;
}

/* ---- merges ---- */

static int read_merge(struct builder *b, struct json_object *merge, struct err *e)
{
    struct text text = json_text_string(merge);
    if (json_object_is_type(merge, json_type_array) && json_object_array_length(merge) == 2) {
        struct text left = json_text_string(json_object_array_get_idx(merge, 0));
        struct text right = json_text_string(json_object_array_get_idx(merge, 1));
        text.data = arena_print(&b->arena, "%s %s", left.data, right.data);
        if (!text.data)
            return err_set(e, ERR_MEMORY, "no memory for merge %d", (int)b->n_merge);
        text.n_byte = strlen(text.data);
    }
    if (!text.n_byte)
        return err_set(e, ERR_FORMAT, "merge %d is %s, expected \"a b\" or [\"a\", \"b\"]",
            (int)b->n_merge, shown_text(text_of(json_object_to_json_string(merge))).text);
    b->merges[b->n_merge++] = text;
    return 0;
}

static int read_merges(struct builder *b, struct json_object *merges, struct err *e)
{
    size_t n =
        json_object_is_type(merges, json_type_array) ? json_object_array_length(merges) : SIZE_MAX;
    if (n > BPE_MAX_MERGE)
        return err_set(e, ERR_FORMAT, "model.merges must be an array of at most %d", BPE_MAX_MERGE);
    b->merges = ARENA_NEW(&b->arena, struct text, n);
    if (!b->merges)
        return err_set(e, ERR_MEMORY, "no memory for %zu merges", n);
    for (size_t i = 0; i < n; i++)
        if (read_merge(b, json_object_array_get_idx(merges, i), e))
            return -1;
    return 0;
}

/* ---- opening ---- */

static int32_t find_control(const struct builder *b, const char *literal)
{
    for (int32_t id = 0; id < b->n_token; id++)
        if (b->types[id] != TOKEN_NORMAL && text_is(b->tokens[id], literal))
            return id;
    return -1;
}

static int build(struct tokenizer **t, struct builder *b, struct json_object *root, struct err *e)
{
    if (refuse_features(root, e) ||
        read_pre_tokenizer(b, json_text_member(root, "pre_tokenizer"), e) ||
        read_tokens(b, root, e) ||
        read_merges(b, json_text_member(json_text_member(root, "model"), "merges"), e))
        return -1;
    struct tokenizer_source source = {
        .n_token = b->n_token,
        .n_merge = b->n_merge,
        .n_pattern = b->n_pattern,
        .tokens = b->tokens,
        .types = b->types,
        .merges = b->merges,
        .patterns = b->patterns,
        .bos = find_control(b, CONTROL_BOS),
        .eos = find_control(b, CONTROL_EOS),
        .pad = find_control(b, CONTROL_PAD),
    };
    return tokenizer_open(t, &source, e);
}

int tokenizer_open_json_text(struct tokenizer **t, struct text json, struct err *e)
{
    struct json_object *root;
    struct builder b = {.n_token = 0};
    *t = NULL;
    if (json_text_read(&root, json, e))
        return -1;
    int rc = build(t, &b, root, e);
    arena_free(&b.arena);
    json_object_put(root);
    return rc;
}

int tokenizer_open_json(struct tokenizer **t, const char *path, struct err *e)
{
    struct file_map map;
    *t = NULL;
    if (file_map_open(&map, path, e))
        return -1;
    int rc = map.n_byte > JSON_TEXT_MAX_BYTES
                 ? err_set(e, ERR_FORMAT, "%llu bytes are too many", (unsigned long long)map.n_byte)
                 : tokenizer_open_json_text(
                       t, (struct text){(const char *)map.data, (size_t)map.n_byte}, e);
    file_map_close(&map);
    return rc ? err_wrap(e, "%s", path) : 0;
}
