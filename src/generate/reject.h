/* reject.h: the classic rule for drafts: drawn from their own distribution q, kept with probability
 * min(1, p / q), replaced from what p has beyond q. Every token then has the target's distribution
 * p, though not the token that plain sampling would have drawn. dspark spec 2.2.
 */
#ifndef HADAL_GENERATE_REJECT_H
#define HADAL_GENERATE_REJECT_H

#include "hadal.h"

/* The distribution [n_vocab] that hadal_sample draws from. */
void sample_probabilities(const struct hadal_sampling *s, const float *logits, int n_vocab,
    const int32_t *history, int n_history, float *p);

/* Numbers in [0, 1) that belong to a seed and a position and to nothing that hadal_sample uses. */
enum reject_use { REJECT_DRAW, REJECT_KEEP, REJECT_REPLACE };
double reject_random(uint64_t seed, int pos, enum reject_use use);

/* Draws from p [n_vocab] with u in [0, 1). */
int32_t reject_draw(const float *p, int n_vocab, double u);
/* q NULL: the draft was certain. */
int reject_keeps(const float *p, const float *q, int32_t draft, double u);
/* What stands in the place of a draft that was not kept. Works in p. */
int32_t reject_replace(float *p, const float *q, int n_vocab, int32_t draft, double u);

#endif
