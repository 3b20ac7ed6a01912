/* bpe.h: merges the bytes of one piece into tokens.
 *
 * Starts from single bytes and always joins the adjacent pair with the best (lowest) rank, the
 * leftmost among equals. A linked list of symbols and a heap of candidate pairs make a piece of n
 * bytes cost n log n.
 */
#ifndef HADAL_TEXT_BPE_H
#define HADAL_TEXT_BPE_H

#include "text/vocab.h"

enum { BPE_MAX_MERGE = 1 << 21 };

struct bpe_pair;
struct bpe {
    const struct vocab *vocab;
    struct bpe_pair *pairs; /* open addressing: pair of ids to rank */
    uint32_t pair_mask;
    int32_t *merged; /* by rank: the id of the joined token */
};

int bpe_open(struct bpe *b, struct arena *arena, const struct vocab *vocab,
    const struct tokenizer_source *source, struct err *e);

/* Working memory of one encode call; starts as all zeros and grows to the longest piece. */
struct bpe_symbol;
struct bpe_scratch {
    struct bpe_symbol *symbols;
    uint64_t *heap; /* rank << 32 | position of the left symbol */
    size_t n_heap, capacity;
};
void bpe_scratch_free(struct bpe_scratch *s);

int bpe_encode(const struct bpe *b, struct bpe_scratch *s, struct text piece,
    struct token_list *out, struct err *e);

#endif
