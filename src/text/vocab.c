/* vocab.c: see vocab.h. */
#include "text/vocab.h"

#include "text/byte_alphabet.h"
#include "text/shown.h"

#include <stdlib.h>

/* The slot that holds `bytes`, or the empty one where they belong. */
static uint32_t slot_of(const struct vocab *v, struct text bytes)
{
    uint32_t slot = text_hash(bytes) & v->slot_mask;
    while (v->slots[slot] >= 0 && !text_equal(v->bytes[v->slots[slot]], bytes))
        slot = (slot + 1) & v->slot_mask;
    return slot;
}

int32_t vocab_find(const struct vocab *v, struct text bytes)
{
    return v->slots[slot_of(v, bytes)];
}

int vocab_is_special(const struct vocab *v, int32_t id)
{
    return id >= 0 && id < v->n_token &&
           (v->types[id] == TOKEN_CONTROL || v->types[id] == TOKEN_USER_DEFINED);
}

/* ---- special tokens: a sorted list, narrowed byte by byte ---- */

static int byte_at(const struct vocab *v, int32_t index, size_t depth)
{
    struct text t = v->bytes[v->specials[index]];
    return depth < t.n_byte ? (uint8_t)t.data[depth] : -1;
}

/* First index in [low, high) whose byte at `depth` is not less than `byte`. */
static int32_t lower_bound(const struct vocab *v, int32_t low, int32_t high, size_t depth, int byte)
{
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (byte_at(v, middle, depth) < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t vocab_match_special(const struct vocab *v, struct text text)
{
    if (!text.n_byte)
        return -1;
    int32_t low = v->first[(uint8_t)text.data[0]], high = v->first[(uint8_t)text.data[0] + 1];
    int32_t found = -1;
    for (size_t depth = 1; low < high; depth++) {
        if (v->bytes[v->specials[low]].n_byte == depth)
            found = v->specials[low++]; /* the shortest of equal beginnings sorts first */
        if (depth == text.n_byte)
            break;
        int byte = (uint8_t)text.data[depth];
        low = lower_bound(v, low, high, depth, byte);
        high = lower_bound(v, low, high, depth, byte + 1);
    }
    return found;
}

int32_t vocab_find_special(const struct vocab *v, struct text literal)
{
    int32_t id = vocab_match_special(v, literal);
    return id >= 0 && v->bytes[id].n_byte == literal.n_byte ? id : -1;
}

struct special_order {
    struct text bytes;
    int32_t id;
};

static int compare_specials(const void *left, const void *right)
{
    const struct special_order *a = left, *b = right;
    size_t n = a->bytes.n_byte < b->bytes.n_byte ? a->bytes.n_byte : b->bytes.n_byte;
    int order = memcmp(a->bytes.data, b->bytes.data, n);
    return order ? order
                 : (a->bytes.n_byte > b->bytes.n_byte) - (a->bytes.n_byte < b->bytes.n_byte);
}

static int index_specials(struct vocab *v, struct arena *arena, struct err *e)
{
    int32_t n = 0;
    for (int32_t id = 0; id < v->n_token; id++)
        n += vocab_is_special(v, id);
    struct special_order *order = ARENA_NEW(arena, struct special_order, (size_t)n);
    v->specials = ARENA_NEW(arena, int32_t, (size_t)n);
    if (!order || !v->specials)
        return err_set(e, ERR_MEMORY, "no memory for %d special tokens", (int)n);
    for (int32_t id = 0; id < v->n_token; id++)
        if (vocab_is_special(v, id))
            order[v->n_special++] = (struct special_order){v->bytes[id], id};
    qsort(order, (size_t)n, sizeof *order, compare_specials);
    for (int32_t i = 0; i < n; i++) {
        v->specials[i] = order[i].id;
        v->first[(uint8_t)order[i].bytes.data[0] + 1] = i + 1;
        if (i && text_equal(order[i].bytes, order[i - 1].bytes))
            return err_set(e, ERR_FORMAT, "special tokens %d and %d are both \"%s\"",
                (int)order[i - 1].id, (int)order[i].id, shown_text(order[i].bytes).text);
    }
    for (int b = 1; b <= 256; b++)
        if (v->first[b] < v->first[b - 1])
            v->first[b] = v->first[b - 1];
    return 0;
}

/* ---- normal tokens ---- */

static int check_spelling(const struct tokenizer_source *s, int32_t id, struct err *e)
{
    struct text spelling = s->tokens[id];
    if (!spelling.n_byte || spelling.n_byte > VOCAB_MAX_TOKEN_BYTES)
        return err_set(e, ERR_FORMAT, "token %d has %zu bytes, expected 1 to %d", (int)id,
            spelling.n_byte, VOCAB_MAX_TOKEN_BYTES);
    switch (s->types[id]) {
    case TOKEN_NORMAL:
    case TOKEN_CONTROL:
    case TOKEN_USER_DEFINED:
    case TOKEN_UNUSED:
        return 0;
    default:
        return err_set(e, ERR_UNSUPPORTED, "token %d \"%s\" has type %d, expected 1, 3, 4 or 5",
            (int)id, shown_text(spelling).text, s->types[id]);
    }
}

static int add_normal(
    struct vocab *v, struct arena *arena, int32_t id, struct text spelling, struct err *e)
{
    char *bytes = arena_copy(arena, spelling.data, spelling.n_byte);
    if (!bytes)
        return err_set(e, ERR_MEMORY, "no memory for token %d", (int)id);
    long n = byte_alphabet_decode(spelling, bytes);
    if (n < 0)
        return err_set(e, ERR_FORMAT, "token %d \"%s\" is not spelled in the byte alphabet",
            (int)id, shown_text(spelling).text);
    v->bytes[id] = (struct text){bytes, (size_t)n};
    uint32_t slot = slot_of(v, v->bytes[id]);
    if (v->slots[slot] >= 0)
        return err_set(e, ERR_FORMAT, "tokens %d and %d are both \"%s\"", (int)v->slots[slot],
            (int)id, shown_text(spelling).text);
    v->slots[slot] = id;
    if (n == 1)
        v->byte_ids[(uint8_t)bytes[0]] = id;
    return 0;
}

static int allocate(struct vocab *v, struct arena *arena, int32_t n_token, struct err *e)
{
    uint32_t n_slot = 64;
    while (n_slot < (uint32_t)n_token * 2)
        n_slot *= 2;
    v->n_token = n_token;
    v->slot_mask = n_slot - 1;
    v->bytes = ARENA_NEW(arena, struct text, (size_t)n_token);
    v->slots = ARENA_NEW(arena, int32_t, n_slot);
    if (!v->bytes || !v->slots)
        return err_set(e, ERR_MEMORY, "no memory for %d tokens", (int)n_token);
    memset(v->slots, 0xFF, n_slot * sizeof *v->slots);
    memset(v->byte_ids, 0xFF, sizeof v->byte_ids);
    return 0;
}

int vocab_open(
    struct vocab *v, struct arena *arena, const struct tokenizer_source *source, struct err *e)
{
    *v = (struct vocab){.types = source->types};
    if (source->n_token < 256 || source->n_token > VOCAB_MAX_TOKEN)
        return err_set(
            e, ERR_FORMAT, "%d tokens, expected 256 to %d", (int)source->n_token, VOCAB_MAX_TOKEN);
    if (allocate(v, arena, source->n_token, e))
        return -1;
    for (int32_t id = 0; id < v->n_token; id++) {
        if (check_spelling(source, id, e))
            return -1;
        if (source->types[id] != TOKEN_NORMAL)
            v->bytes[id] = source->tokens[id];
        else if (add_normal(v, arena, id, source->tokens[id], e))
            return -1;
    }
    for (int b = 0; b < 256; b++)
        if (v->byte_ids[b] < 0)
            return err_set(e, ERR_FORMAT, "no token for the single byte 0x%02X", b);
    return index_specials(v, arena, e);
}
