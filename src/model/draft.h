/* draft.h: the draft stages (DSpark). One parallel pass proposes a block of tokens, a small serial
 * pass orders them. dspark spec 1, v41 spec 10.3.
 *
 * What stages remember are rings of rows made from the model's own tapped streams at processed
 * positions. The streams are kept for every token, the rows are made of them only when drafts are
 * asked for, of the window at most: while nobody drafts, stages cost next to nothing. Rows of a
 * block are never kept, so drafting leaves no trace; rows of tokens that are undone lie in the
 * rings' slack like all others.
 */
#ifndef HADAL_MODEL_DRAFT_H
#define HADAL_MODEL_DRAFT_H

#include "model/forward.h"

/* Keeps the tapped streams of the batch at hand; forward_run calls it. */
void draft_keep_taps(struct forward *f);

/* Chooses the draft at place r of sequence i from its logits [n_vocab]. */
typedef int32_t (*draft_choose_fn)(void *context, int i, int r, const float *logits);

/* Whether drafts can be worth checking, from the first place's confidences [n_seq] (logits). */
typedef int (*draft_worth_fn)(void *context, const float *confidence);

struct draft_request {
    int n_seq;             /* at most FORWARD_MAX_OUT / draft_block */
    const int32_t *slot;   /* [n_seq] */
    const int32_t *last;   /* [n_seq] position of the newest processed token */
    const int32_t *first;  /* [n_seq] oldest position in the windows; unused unless kv.keeps_streams */
    const int32_t *filled; /* [n_seq] rows before it are in the stages' rings; NULL: none is */
    const int32_t *anchor; /* [n_seq] token at last + 1, known but not processed */
    int n_draft;           /* how many of the block's places to fill, 1 .. draft_block */
    draft_choose_fn choose;
    draft_worth_fn is_worth; /* may be NULL */
    void *context;
    float *logits;     /* [n_vocab] working space */
    int32_t *id;       /* out [n_seq, n_draft]: draft r stands at last + 2 + r */
    float *confidence; /* out [n_seq, n_draft]: logit of "accepted, given all before were" */
    int *n_filled;     /* out: n_draft, or 0 when is_worth said no; may be NULL */
};
int draft_run(struct forward *f, const struct draft_request *q, struct err *e);

#endif
