/* suffix.h: the longest end of a sequence that has occurred before, after every token. A suffix
 * automaton built online.
 *
 * A state stands for all substrings that end at the same set of positions; len is the longest of
 * them, link the state of the longest shorter one that ends elsewhere too. The whole sequence is
 * one state, and the link of that state is the answer. A sequence of n tokens has at most 2n states
 * and 3n edges, made in O(n) all told; edges are found by hashing. Memory is taken once, about 100
 * bytes a token of n_max. Tokens cannot be taken back: clear and push again.
 */
#ifndef HADAL_GENERATE_SUFFIX_H
#define HADAL_GENERATE_SUFFIX_H

#include "base/arena.h"

#include <stdint.h>

struct suffix_state {
    int32_t len, link, edge; /* edge: first of its list; state 0: none */
    int32_t end; /* position after an occurrence, the latest that was the longest match when it was
                    pushed */
};

struct suffix_edge {
    int32_t from, token, to;
    int32_t next_of_state, next_of_bucket; /* edge 0: none */
};

struct suffix {
    int n_max, n; /* tokens */
    int n_state, n_edge;
    int32_t last; /* state of the whole sequence */
    int match_len, match_end;
    uint32_t bucket_mask;
    struct suffix_state *state; /* [2 n_max + 2], from 1 */
    struct suffix_edge *edge;   /* [3 n_max + 2], from 1 */
    int32_t *bucket;            /* [bucket_mask + 1] */
};

/* An empty sequence with room for n_max tokens. -1: no memory. */
int suffix_open(struct suffix *x, struct arena *a, int n_max);
/* What suffix_open takes. */
uint64_t suffix_bytes(int n_max);
void suffix_clear(struct suffix *x);
/* At most n_max tokens. */
void suffix_push(struct suffix *x, int32_t token);
/* Length of the longest end of the sequence that also ends earlier, 0 if there is none; *end:
 * position after one such occurrence, so that ids[*end] is what followed it. */
int suffix_match(const struct suffix *x, int *end);

#endif
