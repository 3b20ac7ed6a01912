/* state.h: what sequences remember. Slack rings and append-only rows, addressed by absolute position.
 *
 *   ring     [slot, ring_rows, d]    row of token t at t mod ring_rows;  ring_rows = window + slack
 *   group    [slot, group_rows, w]   unpooled compressor rows of token t at t mod group_rows
 *   rows     [slot, cap, d]          compressed row j = tokens j ratio .. j ratio + ratio - 1, written when they close
 *   keys     [slot, cap, d_index]    index key of compressed row j
 *   taps     [slot, ring_rows, taps]  tapped streams of token t, of which the draft stages' rings are made when drafts are wanted
 *   streams  [slot, ring_rows, S d]   input of the decoder's first layer, and mix [.., S], for bounded replay only
 *
 *      ... | x x x x x x x x | s s s s |      x: window of the newest token   s: slack, rows that were undone or are
 *            oldest ... newest             being written; undoing <= slack rows is setting the length back
 *
 * slack = max(chunk, 32): a chunk of rows is written before its first query reads, and 32 rows can be undone.
 * Nothing is cleared on rewind: rows past the length are rewritten before anyone may see them.
 */
#ifndef HADAL_KV_STATE_H
#define HADAL_KV_STATE_H

#include "backend/backend.h"
#include "model/plan.h"
#include "tensor/layout.h"

enum { KV_UNDO_ROWS = 32 };

struct kv_layer {
    struct tensor ring;
    struct tensor rows, keys;                        /* owners only */
    struct tensor group_kv, group_score;             /* owners that pool */
    struct tensor index_group_kv, index_group_score; /* owners whose index keys are pooled too */
};

struct kv_state {
    int n_slot, n_context, slack;
    int keeps_taps;    /* 0: no draft will be asked for, and nothing of the draft stages is kept */
    struct tensor taps;
    int keeps_streams; /* for bounded replay, v41 spec 14.3 */
    struct tensor streams, mix;
    struct kv_layer layer[CONFIG_MAX_LAYER + CONFIG_MAX_STAGE];
};

/* Shapes and places everything; slack as above from the largest chunk. */
void kv_place(struct kv_state *kv, struct layout *l, const struct model_config *c, const struct plan *p);
/* Whether a sequence that has been `high` tokens long can go on from length n without recomputing. */
int kv_can_rewind(const struct kv_state *kv, const struct model_config *c, const struct plan *p, int high, int n);

#endif
