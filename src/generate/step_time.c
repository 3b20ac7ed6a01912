/* step_time.c: see step_time.h. */
#include "generate/step_time.h"

/* A mean goes back over about MEMORY steps; one slow step, when the machine did something else,
 * counts as OUTLIER times the mean at most. */
enum { MEMORY = 10, COLD = 3, OLDEST = 512 };
static const double OUTLIER = 2, DRIFT = 0.25, ROW_SHARE = 0.6;

static void age_others(struct step_time *t, int but, double factor)
{
    for (int n = 1; n <= STEP_TIME_MAX; n++) {
        if (n == but)
            continue;
        t->seconds[n] *= factor;
        if (++t->age[n] > OLDEST)
            t->n_seen[n] = 0;
    }
}

void step_time_add(struct step_time *t, int n, double seconds)
{
    double before = t->seconds[n], now = seconds;
    int n_seen = t->n_seen[n];
    if (n_seen && n_seen < COLD)
        now = seconds < before ? seconds : before;
    else if (n_seen)
        now = before + ((seconds < OUTLIER * before ? seconds : OUTLIER * before) - before) / n_seen;
    age_others(t, n, n_seen >= COLD ? 1 + DRIFT * (now - before) / before : 1);
    t->n_seen[n] = n_seen < MEMORY ? n_seen + 1 : MEMORY;
    t->seconds[n] = now;
    t->age[n] = 0;
}

static double law(int n)
{
    return 1 + ROW_SHARE * (n - 1);
}

double step_time_of(const struct step_time *t, int n)
{
    int below = n, above = n;
    while (below >= 1 && !t->n_seen[below])
        below--;
    while (above <= STEP_TIME_MAX && !t->n_seen[above])
        above++;
    if (below < 1 && above > STEP_TIME_MAX)
        return 0;
    if (below == above)
        return t->seconds[n];
    if (below >= 1 && above <= STEP_TIME_MAX)
        return t->seconds[below] +
               (t->seconds[above] - t->seconds[below]) * (n - below) / (above - below);
    int seen = below >= 1 ? below : above;
    return t->seconds[seen] * law(n) / law(seen);
}
