/* step_time.h: how long a step of so many rows takes here: moving means, and guesses for sizes that
 * were not seen.
 *
 * Times of steps drift together (context grows, the machine is shared), so a new time moves the
 * other sizes too, a quarter as far. The first steps of a size may find everything cold: of those
 * the fastest counts. What was not seen for long is forgotten, or a size that once was slow would
 * never be tried again. Only time depends on this, never a token.
 */
#ifndef HADAL_GENERATE_STEP_TIME_H
#define HADAL_GENERATE_STEP_TIME_H

enum { STEP_TIME_MAX = 32 };

struct step_time {
    double seconds[STEP_TIME_MAX + 1]; /* by size; 0: not yet seen */
    int n_seen[STEP_TIME_MAX + 1];     /* up to those that a mean goes back */
    int age[STEP_TIME_MAX + 1];        /* steps of any size since it was seen */
};

/* A step of size n, 1 <= n <= STEP_TIME_MAX, took so long. */
void step_time_add(struct step_time *t, int n, double seconds);
/* Seen, between the nearest sizes seen, or from the nearest one by a law on the safe side: a row
 * more costs 0.6 of the first. 0 before anything was seen. */
double step_time_of(const struct step_time *t, int n);

#endif
