/* tokenizer_gguf.c: see tokenizer_gguf.h. */
#include "model/tokenizer_gguf.h"

#include <stdio.h>
#include <string.h>

/* An array of strings as texts in the arena; n 0 when the key is absent. */
static int read_strings(const struct gguf *file, const char *name, const struct text **texts,
    int32_t *n, struct arena *arena, struct err *e)
{
    const struct gguf_key *key = gguf_find_key(file, name);
    *n = 0;
    *texts = NULL;
    if (!key)
        return 0;
    if (!key->is_array || key->type != GGUF_STRING || key->n > INT32_MAX)
        return err_set(e, ERR_FORMAT, "key %s is no list of strings", name);
    struct text *list = ARENA_NEW(arena, struct text, key->n);
    if (!list)
        return err_set(e, ERR_MEMORY, "no memory for %s", name);
    const uint8_t *next = key->payload;
    for (uint64_t i = 0; i < key->n; i++) {
        struct gguf_string s = gguf_next_string(&next);
        list[i] = (struct text){s.data, (size_t)s.n_byte};
    }
    *n = (int32_t)key->n;
    *texts = list;
    return 0;
}

static int read_types(
    const struct gguf *file, struct tokenizer_source *source, struct arena *arena, struct err *e)
{
    const struct gguf_key *key = gguf_find_key(file, "tokenizer.ggml.token_type");
    uint8_t *types = ARENA_NEW(arena, uint8_t, (size_t)source->n_token);
    if (!types)
        return err_set(e, ERR_MEMORY, "no memory for token types");
    if (key && (!key->is_array || key->type == GGUF_STRING || key->n != (uint64_t)source->n_token))
        return err_set(e, ERR_FORMAT, "key tokenizer.ggml.token_type is no list of %d numbers",
            source->n_token);
    for (int32_t i = 0; i < source->n_token; i++) {
        struct gguf_number n = {.i = TOKEN_NORMAL};
        if (key)
            gguf_number(key, (uint64_t)i, &n);
        types[i] = n.i >= 1 && n.i <= 6 ? (uint8_t)n.i : TOKEN_UNUSED;
    }
    source->types = types;
    return 0;
}

static int32_t read_id(const struct gguf *file, const char *name, int32_t n_token)
{
    const struct gguf_key *key = gguf_find_key(file, name);
    struct gguf_number n;
    if (!key || gguf_number(key, 0, &n) || n.i < 0 || n.i >= n_token)
        return -1;
    return (int32_t)n.i;
}

static int read_source(
    const struct gguf *file, struct tokenizer_source *source, struct arena *arena, struct err *e)
{
    struct gguf_string pre = gguf_text(gguf_find_key(file, "tokenizer.ggml.pre"));
    if (read_types(file, source, arena, e) ||
        read_strings(file, "tokenizer.ggml.merges", &source->merges, &source->n_merge, arena, e) ||
        read_strings(
            file, "hadal.tokenizer.patterns", &source->patterns, &source->n_pattern, arena, e))
        return -1;
    source->pre = pre.data ? arena_copy(arena, pre.data, pre.n_byte) : NULL;
    source->bos = read_id(file, "tokenizer.ggml.bos_token_id", source->n_token);
    source->eos = read_id(file, "tokenizer.ggml.eos_token_id", source->n_token);
    source->pad = read_id(file, "tokenizer.ggml.padding_token_id", source->n_token);
    return 0;
}

int tokenizer_open_gguf(struct tokenizer **t, const struct gguf *file, struct err *e)
{
    struct arena arena = {0};
    struct tokenizer_source source = {0};
    *t = NULL;
    int failed =
        read_strings(file, "tokenizer.ggml.tokens", &source.tokens, &source.n_token, &arena, e);
    if (!failed && source.n_token)
        failed = read_source(file, &source, &arena, e) || tokenizer_open(t, &source, e);
    arena_free(&arena);
    return failed ? -1 : 0;
}
