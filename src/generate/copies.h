/* copies.h: proposals from the sequence itself: what followed the last time that it ended like
 * this.
 *
 * Nothing has to be computed for a copy, only checked. How likely its next token is depends most on
 * how long the match is, so a running share of right guesses is kept per length of match; every
 * token that the model chooses tells, whether or not its copy was checked. Only time depends on all
 * this, never a token. dspark spec 7.3.
 */
#ifndef HADAL_GENERATE_COPIES_H
#define HADAL_GENERATE_COPIES_H

#include "generate/suffix.h"

enum { COPIES_N_CLASS = 8 }; /* matches of 1, 2-3, 4-7, ..., 128 and more tokens */

struct copies {
    struct suffix suffix;
    int is_stale; /* the sequence went back behind what the automaton holds */
    float share[COPIES_N_CLASS];
};

/* For a sequence of at most n_max tokens. -1: no memory. */
int copies_open(struct copies *c, struct arena *a, int n_max);
/* The sequence has been cut to `length` tokens. */
void copies_cut(struct copies *c, int length);
/* The sequence now is ids[0..n). Takes in what is new; after a cut everything. */
void copies_follow(struct copies *c, const int32_t *ids, int n);
/* ids[0..n) is the sequence followed, ids[n .. n + n_ahead) are others' proposals. If the copy
 * begins with those, it goes on after them: ids[n + j] and probability[j] are filled for j < limit.
 * Returns how many were added. */
int copies_propose(
    const struct copies *c, int32_t *ids, int n_ahead, int limit, float *probability);

#endif
