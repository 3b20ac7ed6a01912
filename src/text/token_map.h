/* token_map.h: numbers tokens by what they say, for the n-gram memory (Engram).
 *
 * Tokens whose texts differ only in case, accents, width or white space get the same compressed id.
 * The multipliers of the hash depend on the number of compressed ids, so the map must be the one
 * that the model was trained with.
 *
 * Key of a token: its text, NFKC, NFD, without combining marks, lower case, every run of space,
 * tab, CR, LF as one space, trimmed; a text that is one space stays one space. Empty: the text
 * itself. A token that is not UTF-8 by itself: its spelling in the vocabulary. Keys are numbered in
 * the order of the ids that have them first.
 */
#ifndef HADAL_TEXT_TOKEN_MAP_H
#define HADAL_TEXT_TOKEN_MAP_H

#include "text/tokenizer.h"

struct token_map {
    int32_t *compressed; /* n_token ids below n_compressed */
    int32_t n_token, n_compressed;
};
int token_map_build(struct token_map *map, const struct tokenizer *t, struct err *e);
void token_map_free(struct token_map *map);

/* Appends the key of a text that is UTF-8, before the rule for empty keys. */
int token_map_normalize(struct text text, struct buf *out, struct err *e);

#endif
