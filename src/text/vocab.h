/* vocab.h: the token table: id to bytes, bytes to id, and special tokens within a text.
 *
 * Normal tokens are kept as the bytes they stand for, all others as their literal text. Normal and
 * special tokens are separate name spaces: only a normal token can come out of merging, only a
 * special one out of matching.
 */
#ifndef HADAL_TEXT_VOCAB_H
#define HADAL_TEXT_VOCAB_H

#include "base/arena.h"
#include "text/tokenizer.h"

enum {
    VOCAB_MAX_TOKEN = 1 << 21,       /* tokens in a table */
    VOCAB_MAX_TOKEN_BYTES = 1 << 16, /* bytes in one spelling */
};

struct vocab {
    int32_t n_token;
    struct text *bytes;   /* n_token */
    const uint8_t *types; /* n_token */
    int32_t *slots;       /* open addressing: id of a normal token, or -1 */
    uint32_t slot_mask;
    int32_t byte_ids[256]; /* the token of a single byte; every one exists */
    int32_t *specials;     /* ids of control and user-defined tokens, sorted by their bytes */
    int32_t n_special;
    int32_t first[257]; /* specials that begin with byte b: [first[b], first[b + 1]) */
};

/* `source` must live as long as the vocab. */
int vocab_open(
    struct vocab *v, struct arena *arena, const struct tokenizer_source *source, struct err *e);
/* The normal token with these bytes, or -1. */
int32_t vocab_find(const struct vocab *v, struct text bytes);
/* The special token with this text, or -1. */
int32_t vocab_find_special(const struct vocab *v, struct text literal);
/* The longest special token at the front of `text`, or -1. */
int32_t vocab_match_special(const struct vocab *v, struct text text);
int vocab_is_special(const struct vocab *v, int32_t id);

#endif
