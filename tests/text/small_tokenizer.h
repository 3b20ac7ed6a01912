/* small_tokenizer.h: tokenizers for tests, made in memory. */
#ifndef HADAL_TEST_SMALL_TOKENIZER_H
#define HADAL_TEST_SMALL_TOKENIZER_H

#include "text/tokenizer.h"

enum {
    SMALL_MAX = 1024,
    SMALL_FIRST_MERGE = 256,
};

/* A source that a test may change before it opens it. Ids 0..255 are the bytes, merged tokens
 * follow, specials last. */
struct small_tokenizer {
    struct tokenizer_source source;
    struct text tokens[SMALL_MAX], merges[SMALL_MAX];
    uint8_t types[SMALL_MAX];
    char bytes[256][4];
    char joined[SMALL_MAX][64];
};

/* Merges "a b" in order, then special tokens; each list ends with NULL. */
void small_tokenizer_make(
    struct small_tokenizer *s, const char *const *merges, const char *const *specials);

/* Opens one with a few English merges and the DeepSeek control tokens; fails the test if that does
 * not work. */
struct tokenizer *small_tokenizer_open(void);

#endif
