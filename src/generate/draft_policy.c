/* draft_policy.c: see draft_policy.h. */
#include "generate/draft_policy.h"

/* Of one token a cycle, which is drafting at its worst, the decaying sum of tokens stays below 10.
 */
enum { FIRST_PAUSE = 32, LONGEST_PAUSE = 1024, TRIAL_TOKENS = 8 };

static double mean_in(double mean, double value, double share)
{
    return mean > 0 ? mean + share * (value - mean) : value;
}

/* Time of a check of T rows: measured, or scaled from the nearest measured one (a row more costs a
 * fifth of a step). */
static double check_seconds(const struct draft_policy *p, int n_row)
{
    for (int distance = 0; distance < DRAFT_MAX_ROWS; distance++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            int other = n_row + sign * distance;
            if (other >= 1 && other <= DRAFT_MAX_ROWS && p->check_seconds[other] > 0)
                return p->check_seconds[other] * (4 + n_row) / (4 + other);
        }
    }
    return 4 + n_row;
}

int draft_policy_wants(struct draft_policy *p)
{
    if (p->pause_tokens == 0)
        return 1;
    p->pause_tokens--;
    return 0;
}

int draft_policy_length(
    const struct draft_policy *p, const float *probability, int n, int has_drafted)
{
    double paid = has_drafted ? p->draft_seconds : 0;
    double tokens = 1, survival = 1, best_rate = 1 / (check_seconds(p, 1) + paid);
    int best = 0;
    for (int j = 0; j < n && j + 2 <= DRAFT_MAX_ROWS; j++) {
        survival *= probability[j];
        tokens += survival;
        double rate = tokens / (check_seconds(p, j + 2) + paid);
        if (rate > best_rate) {
            best_rate = rate;
            best = j + 1;
        }
    }
    return best;
}

void draft_policy_checked(struct draft_policy *p, int n_row, double seconds)
{
    if (n_row >= 1 && n_row <= DRAFT_MAX_ROWS)
        p->check_seconds[n_row] = mean_in(p->check_seconds[n_row], seconds, 0.1);
}

void draft_policy_cycled(struct draft_policy *p, int n_token, double seconds, double draft_seconds)
{
    p->draft_seconds = mean_in(p->draft_seconds, draft_seconds, 0.1);
    p->drafted_seconds = p->drafted_seconds * 0.9 + seconds;
    p->drafted_tokens = p->drafted_tokens * 0.9 + n_token;
    if (p->drafted_tokens < TRIAL_TOKENS)
        return;
    if (p->drafted_seconds <= p->drafted_tokens * check_seconds(p, 1)) {
        p->pause_length = 0;
        return;
    }
    p->pause_length = p->pause_length ? p->pause_length * 2 : FIRST_PAUSE;
    if (p->pause_length > LONGEST_PAUSE)
        p->pause_length = LONGEST_PAUSE;
    p->pause_tokens = p->pause_length;
    p->drafted_seconds = p->drafted_tokens = 0;
}
