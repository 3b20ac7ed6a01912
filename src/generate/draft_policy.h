/* draft_policy.h: how many proposals are worth checking, and whether to ask for them at all. Only
 * time depends on it, never a token.
 *
 * Checking rows costs time; each accepted proposal saves a whole step. With calibrated
 * probabilities p_j the expected tokens of a step are 1 + sum_j p_1 ... p_j, and the best number of
 * proposals maximises tokens over time. The steps of several sequences are one batch: they compete
 * for its rows. dspark spec 2.4, 2.5.
 *
 * The watchdog is a purse per source of proposals: what a source saves goes in, what it loses comes
 * out, and no more is staked on a check than is in it. An empty purse makes the source rest; it
 * fills slowly with the tokens that go by, ever more slowly while the source keeps losing. So no
 * stretch of text can lose more than a purse and what the wage adds meanwhile.
 */
#ifndef HADAL_GENERATE_DRAFT_POLICY_H
#define HADAL_GENERATE_DRAFT_POLICY_H

#include "generate/step_time.h"

enum { DRAFT_MAX_ROWS = 17 };

/* All in plain steps of one sequence. */
struct draft_purse {
    double credit, start, most;
    double wage, full_wage; /* a token */
    int rests;
};

struct draft_policy {
    struct draft_purse stages, copies;
    double stage_tokens, stage_seconds; /* decaying sums over steps with a drafting pass */
};

/* What one sequence offers to check. */
struct draft_offer {
    const float *probability; /* [n] that proposal j is accepted given all before it were */
    int n;
    double stake; /* seconds that a check without any success may cost beyond a plain step */
    int n_chosen; /* out */
};

/* Seconds of the step under way: paid for already, and still to be paid if any are chosen. */
struct draft_costs {
    double paid, more;
    int ends_at_drop; /* take no account of proposals behind the first that lowers the rate: the
                         rejection rule is exact only if no choice depends on later drafts */
};

struct draft_policy draft_policy_start(void);

/* Fills n_chosen of the sequences' offers. check: seconds by rows. Returns the expected tokens per
 * second of the step. */
double draft_policy_choose(
    const struct step_time *check, struct draft_offer *offer, int n_seq, struct draft_costs costs);

int draft_purse_may_spend(const struct draft_purse *p);
/* n_token went by; the source saved so many plain steps, lost them if negative, or rested (0). */
void draft_purse_settle(struct draft_purse *p, int n_token, double saved);

/* A step with a drafting pass gave n_token tokens in `seconds` all told. */
void draft_policy_drafted(struct draft_policy *p, int n_token, double seconds);

#endif
