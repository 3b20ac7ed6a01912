/* draft_policy.c: see draft_policy.h. */
#include "generate/draft_policy.h"

/* Of 256 tokens, two in a hundred are five steps: what both purses hold at first and are paid
 * meanwhile. Copies are soon right again where they were wrong, stages are wrong about a kind of
 * text. */
static const struct draft_purse stage_purse = {
    .credit = 2, .start = 2, .most = 4, .wage = 1.0 / 512, .full_wage = 1.0 / 512};
static const struct draft_purse copy_purse = {
    .credit = 2, .start = 1, .most = 8, .wage = 1.0 / 128, .full_wage = 1.0 / 128};
enum { LONGEST_BACK_OFF = 8 };

struct draft_policy draft_policy_start(void)
{
    return (struct draft_policy){.stages = stage_purse, .copies = copy_purse};
}

/* Proposals whose check, if all fail, costs no more than the stake. */
static int affordable(const struct step_time *check, const struct draft_offer *o, int n_seq)
{
    double plain = step_time_of(check, n_seq);
    int n = 0;
    while (n < o->n && n_seq + n + 1 <= STEP_TIME_MAX &&
           step_time_of(check, n_seq + n + 1) - plain <= o->stake)
        n++;
    return n;
}

struct order {
    double survival[STEP_TIME_MAX]; /* of each sequence up to its next proposal */
    int n[STEP_TIME_MAX], limit[STEP_TIME_MAX];
};

/* The sequence whose next proposal is the likeliest, or -1. */
static int likeliest(const struct order *o, int n_seq)
{
    int best = -1;
    for (int i = 0; i < n_seq; i++)
        if (o->n[i] < o->limit[i] && (best < 0 || o->survival[i] > o->survival[best]))
            best = i;
    return best;
}

static void advance(struct order *o, const struct draft_offer *offer, int i)
{
    o->n[i]++;
    if (o->n[i] < o->limit[i])
        o->survival[i] *= (double)offer[i].probability[o->n[i]];
}

double draft_policy_choose(
    const struct step_time *check, struct draft_offer *offer, int n_seq, struct draft_costs costs)
{
    struct order o = {.n = {0}};
    double plain = step_time_of(check, n_seq), best_rate = n_seq / (plain + costs.paid);
    double tokens = n_seq;
    for (int i = 0; i < n_seq; i++) {
        offer[i].n_chosen = 0;
        o.limit[i] = affordable(check, &offer[i], n_seq);
        o.survival[i] = o.limit[i] ? (double)offer[i].probability[0] : 0;
    }
    for (int i, n_row = n_seq + 1; n_row <= STEP_TIME_MAX && (i = likeliest(&o, n_seq)) >= 0;
         n_row++) {
        tokens += o.survival[i];
        advance(&o, offer, i);
        double seconds = step_time_of(check, n_row) + costs.more;
        double rate = tokens / (seconds + costs.paid);
        if (rate <= best_rate && costs.ends_at_drop)
            break;
        if (rate <= best_rate || tokens * plain <= n_seq * seconds)
            continue;
        best_rate = rate;
        for (int k = 0; k < n_seq; k++)
            offer[k].n_chosen = o.n[k];
    }
    return best_rate;
}

int draft_purse_may_spend(const struct draft_purse *p)
{
    return !p->rests;
}

void draft_purse_settle(struct draft_purse *p, int n_token, double saved)
{
    p->credit += saved + p->wage * n_token;
    if (p->credit >= p->most) {
        p->credit = p->most;
        p->wage = p->full_wage;
    }
    if (p->credit <= 0) {
        p->credit = 0;
        if (!p->rests && p->wage > p->full_wage / LONGEST_BACK_OFF)
            p->wage /= 2;
        p->rests = 1;
    }
    if (p->credit >= p->start)
        p->rests = 0;
}

void draft_policy_drafted(struct draft_policy *p, int n_token, double seconds)
{
    p->stage_tokens = 0.9 * p->stage_tokens + n_token;
    p->stage_seconds = 0.9 * p->stage_seconds + seconds;
}
