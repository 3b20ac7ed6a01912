/* draft_policy.h: how many drafts are worth checking. Only time depends on it, never a token.
 *
 * Checking 1 + L rows costs more than one row; each accepted draft saves a whole step. With
 * calibrated confidences c_j the expected tokens of a cycle are 1 + sum_j c_1 ... c_j; the best L
 * maximises them over the time measured for it. When drafting as a whole loses against plain steps
 * it is paused, and tried again ever more rarely. dspark spec 2.4, 2.5.
 */
#ifndef HADAL_GENERATE_DRAFT_POLICY_H
#define HADAL_GENERATE_DRAFT_POLICY_H

enum { DRAFT_MAX_ROWS = 17 };

struct draft_policy {
    double
        check_seconds[DRAFT_MAX_ROWS + 1];  /* moving mean of a check of T rows; 0: not yet seen */
    double draft_seconds;                   /* of one drafting pass */
    double drafted_seconds, drafted_tokens; /* decaying sums over cycles with drafts */
    int pause_tokens, pause_length;         /* plain tokens still to go; length of the next pause */
};

/* Whether this cycle should draft; counts one token of a pause. */
int draft_policy_wants(struct draft_policy *p);
/* How many of n proposals to check; probability[j]: proposal j is accepted given all before it
 * were. May be 0. has_drafted: a drafting pass is already paid for in this cycle. */
int draft_policy_length(
    const struct draft_policy *p, const float *probability, int n, int has_drafted);
/* A check of n_row rows took `seconds`. */
void draft_policy_checked(struct draft_policy *p, int n_row, double seconds);
/* A cycle that drafted gave n_token tokens in `seconds` all told, `draft_seconds` of it drafting.
 */
void draft_policy_cycled(struct draft_policy *p, int n_token, double seconds, double draft_seconds);

#endif
