/* propose.h: what is proposed to follow the known token of every sequence of a step, and what came
 * of it. Part of next.c's cycle. */
#ifndef HADAL_ENGINE_PROPOSE_H
#define HADAL_ENGINE_PROPOSE_H

#include "engine/engine.h"

/* One sequence's part in a step. Proposal r is ids[n_start + 1 + r] of the session: first those of
 * the caller or of the draft stages, then copies. */
struct cycle {
    const struct hadal_turn *turn;
    hadal_session *session;
    int n_start;   /* length of the sequence before its known token */
    int limit;     /* proposals that there is room for */
    int n_draft, n_accepted;
    int n_expected, n_stage; /* of the n_draft, the ones that the caller and the stages proposed */
    int32_t replacement;     /* of the first proposal that was not kept, or -1 */
    double draft_seconds;    /* its share of a drafting pass; 0: none was made */
    float probability[DRAFT_MAX_ROWS];
};

/* Fills n_draft and the proposals of the n sequences: at most FORWARD_MAX_OUT rows with the known
 * tokens. */
int propose(hadal_engine *g, struct cycle *y, int n, struct err *e);
/* The step is over, n_accepted is known, it all took so long: for the statistics and for the next
 * proposals. */
void propose_settle(hadal_engine *g, const struct cycle *y, int n, double seconds);

#endif
