/* tokenizer.c: see tokenizer.h. Reading of tokenizer.json is in tokenizer_json.c. */
#include "text/tokenizer.h"

#include "text/bpe.h"
#include "text/pretokenize.h"
#include "text/shown.h"
#include "text/vocab.h"

struct tokenizer {
    struct arena arena;
    struct tokenizer_source source; /* a copy, in the arena */
    struct vocab vocab;
    struct bpe bpe;
    struct pretokenizer pretokenizer;
};

/* ---- opening ---- */

/* All bytes of the copies in one block, because an arena rounds every request up. */
static struct text *copy_texts(struct arena *arena, const struct text *texts, int32_t n)
{
    size_t n_byte = 0;
    for (int32_t i = 0; i < n; i++)
        n_byte += texts[i].n_byte;
    struct text *copies = ARENA_NEW(arena, struct text, (size_t)n);
    char *bytes = arena_alloc(arena, n_byte);
    if (!copies || !bytes)
        return NULL;
    for (int32_t i = 0; i < n; i++) {
        if (texts[i].n_byte)
            memcpy(bytes, texts[i].data, texts[i].n_byte);
        copies[i] = (struct text){bytes, texts[i].n_byte};
        bytes += texts[i].n_byte;
    }
    return copies;
}

static int check_counts(const struct tokenizer_source *s, struct err *e)
{
    if (s->n_token < 0 || s->n_token > VOCAB_MAX_TOKEN)
        return err_set(
            e, ERR_FORMAT, "%d tokens, expected at most %d", (int)s->n_token, VOCAB_MAX_TOKEN);
    if (s->n_merge < 0 || s->n_merge > BPE_MAX_MERGE)
        return err_set(
            e, ERR_FORMAT, "%d merges, expected at most %d", (int)s->n_merge, BPE_MAX_MERGE);
    if (s->n_pattern < 0 || s->n_pattern > PRETOKENIZE_MAX_PATTERN)
        return err_set(e, ERR_FORMAT, "%d pre-tokenizer patterns, expected at most %d",
            (int)s->n_pattern, PRETOKENIZE_MAX_PATTERN);
    const int32_t ids[] = {s->bos, s->eos, s->pad};
    const char *const names[] = {"bos", "eos", "pad"};
    for (int i = 0; i < 3; i++)
        if (ids[i] < -1 || ids[i] >= s->n_token)
            return err_set(e, ERR_FORMAT, "%s token is %d, expected an id below %d", names[i],
                (int)ids[i], (int)s->n_token);
    return 0;
}

/* Fills in patterns from a name or a name from patterns. */
static int resolve_patterns(struct tokenizer_source *s, struct err *e)
{
    if (s->n_pattern) {
        s->pre = pretokenize_name(s->patterns, s->n_pattern);
        return 0;
    }
    const char *name = s->pre ? s->pre : "(none)";
    s->n_pattern = pretokenize_named(name, &s->patterns);
    if (!s->n_pattern)
        return err_set(
            e, ERR_UNSUPPORTED, "unknown pre-tokenizer \"%s\"", shown_text(text_of(name)).text);
    return 0;
}

static int copy_source(struct tokenizer *t, const struct tokenizer_source *source, struct err *e)
{
    struct tokenizer_source *s = &t->source;
    *s = *source;
    if (check_counts(s, e) || resolve_patterns(s, e))
        return -1;
    s->tokens = copy_texts(&t->arena, source->tokens, s->n_token);
    s->merges = copy_texts(&t->arena, source->merges, s->n_merge);
    s->patterns = copy_texts(&t->arena, s->patterns, s->n_pattern);
    s->types = (const uint8_t *)arena_copy(&t->arena, source->types, (size_t)s->n_token);
    if (s->pre)
        s->pre = arena_copy(&t->arena, s->pre, strlen(s->pre));
    if (!s->tokens || !s->merges || !s->patterns || !s->types ||
        (source->pre && !s->pre && !source->n_pattern))
        return err_set(e, ERR_MEMORY, "no memory for a tokenizer of %d tokens", (int)s->n_token);
    return 0;
}

int tokenizer_open(struct tokenizer **out, const struct tokenizer_source *source, struct err *e)
{
    *out = NULL;
    struct tokenizer *t = mem_resize(NULL, sizeof *t);
    if (!t)
        return err_set(e, ERR_MEMORY, "no memory for a tokenizer");
    *t = (struct tokenizer){{0}, {0}, {0}, {0}, {{0}, 0, NULL}};
    if (copy_source(t, source, e) || vocab_open(&t->vocab, &t->arena, &t->source, e) ||
        bpe_open(&t->bpe, &t->arena, &t->vocab, &t->source, e) ||
        pretokenizer_open(&t->pretokenizer, t->source.patterns, t->source.n_pattern, e)) {
        tokenizer_close(t);
        return -1;
    }
    *out = t;
    return 0;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t)
        return;
    pretokenizer_close(&t->pretokenizer);
    arena_free(&t->arena);
    mem_free(t);
}

/* ---- looking ---- */

const struct tokenizer_source *tokenizer_describe(const struct tokenizer *t)
{
    return &t->source;
}

int32_t tokenizer_n_token(const struct tokenizer *t)
{
    return t->vocab.n_token;
}

struct text tokenizer_bytes(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocab.n_token ? t->vocab.bytes[id] : (struct text){"", 0};
}

int tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    return vocab_is_special(&t->vocab, id);
}

int32_t tokenizer_special(const struct tokenizer *t, struct text literal)
{
    return vocab_find_special(&t->vocab, literal);
}

/* ---- lists ---- */

int token_list_append(struct token_list *list, int32_t id, struct err *e)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        int32_t *ids = capacity > SIZE_MAX / sizeof *ids
                           ? NULL
                           : mem_resize(list->ids, capacity * sizeof *ids);
        if (!ids)
            return err_set(e, ERR_MEMORY, "no memory for %zu tokens", capacity);
        list->ids = ids;
        list->capacity = capacity;
    }
    list->ids[list->n++] = id;
    return 0;
}

void token_list_free(struct token_list *list)
{
    mem_free(list->ids);
    *list = (struct token_list){0};
}

/* ---- encoding ---- */

struct encoder {
    const struct tokenizer *t;
    struct bpe_scratch scratch;
    struct token_list *out;
};

static int take_piece(void *user, struct text piece, struct err *e)
{
    struct encoder *c = user;
    return bpe_encode(&c->t->bpe, &c->scratch, piece, c->out, e);
}

static int encode_plain(struct encoder *c, struct text text, struct err *e)
{
    return text.n_byte ? pretokenize(&c->t->pretokenizer, text, take_piece, c, e) : 0;
}

/* Encodes up to the next special token within [*at, end) and that token; *at moves behind it. Plain
 * text begins at *begin. Returns 1 when a token was found, 0 when there is none, -1 on error. */
static int encode_special(
    struct encoder *c, const char *text, size_t *begin, struct text_span *span, struct err *e)
{
    const struct vocab *v = &c->t->vocab;
    for (size_t i = span->begin; i < span->end; i++) {
        int32_t id = vocab_match_special(v, (struct text){text + i, span->end - i});
        if (id < 0)
            continue;
        if (encode_plain(c, (struct text){text + *begin, i - *begin}, e) ||
            token_list_append(c->out, id, e))
            return -1;
        *begin = span->begin = i + v->bytes[id].n_byte;
        return 1;
    }
    return 0;
}

static int encode_all(struct encoder *c, struct text text, struct text_spans allowed, struct err *e)
{
    size_t begin = 0;
    for (size_t i = 0; i < allowed.n; i++) {
        struct text_span span = allowed.spans[i];
        if (span.end > text.n_byte || span.begin > span.end ||
            (i && span.begin < allowed.spans[i - 1].end))
            return err_set(e, ERR_ARGUMENT, "span %zu is [%zu, %zu) in a text of %zu bytes", i,
                span.begin, span.end, text.n_byte);
        int rc;
        while ((rc = encode_special(c, text.data, &begin, &span, e)) > 0)
            ;
        if (rc)
            return -1;
    }
    return encode_plain(c, (struct text){text.data + begin, text.n_byte - begin}, e);
}

int tokenizer_encode_spans(const struct tokenizer *t, struct text text, struct text_spans allowed,
    struct token_list *out, struct err *e)
{
    struct encoder c = {.t = t, .out = out};
    text.data = text.n_byte ? text.data : "";
    int rc = encode_all(&c, text, allowed, e);
    bpe_scratch_free(&c.scratch);
    return rc;
}

int tokenizer_encode(
    const struct tokenizer *t, struct text text, int flags, struct token_list *out, struct err *e)
{
    struct text_span whole = {0, text.n_byte};
    struct text_spans allowed = {&whole, flags & TOKENIZER_SPECIALS ? 1 : 0};
    return tokenizer_encode_spans(t, text, allowed, out, e);
}

int tokenizer_decode(
    const struct tokenizer *t, const int32_t *ids, size_t n_id, struct buf *out, struct err *e)
{
    for (size_t i = 0; i < n_id; i++) {
        if (ids[i] < 0 || ids[i] >= t->vocab.n_token)
            return err_set(e, ERR_ARGUMENT, "token id %d, expected 0 to %d", (int)ids[i],
                (int)t->vocab.n_token - 1);
        buf_append(out, t->vocab.bytes[ids[i]].data, t->vocab.bytes[ids[i]].n_byte);
    }
    return out->is_broken ? err_set(e, ERR_MEMORY, "no memory to decode %zu tokens", n_id) : 0;
}
