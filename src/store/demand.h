/* demand.h: what one layer needs now: the experts that a router has chosen, given out as they come.
 *
 * As soon as the router has spoken all missing experts are asked for, as far as there is room. Those that
 * are there are given out first, the others when their reads are done, in any order; what was given is
 * let go at the next call, which makes room for more. So a batch may touch more experts than memory
 * holds, and whoever computes does it while the disk reads.
 */
#ifndef HADAL_STORE_DEMAND_H
#define HADAL_STORE_DEMAND_H

#include "store/experts.h"

struct demand_stats {
    uint64_t n_wanted, n_there; /* experts asked for by layers, and those of them that were in memory */
};

struct demand {
    struct experts *experts;
    int max_expert, layer;
    int n_wanted, n_given;   /* distinct experts, and how many were let go or are in `given` */
    int n_held, room;        /* slots with new experts, and how many there may be at a time */
    int32_t *wanted;         /* [n_wanted] ascending */
    int32_t *first;          /* [n_expert + 1] of an expert's places in `pair` */
    int32_t *pair;           /* [n_pair] places in the router's list, sorted by expert, then ascending */
    int32_t *slot;           /* [n_wanted] */
    unsigned char *state;    /* [n_wanted] */
    unsigned char *was_there; /* [n_wanted] no read was needed */
    int32_t *given, n_now;   /* places in `wanted` */
    struct read_group **group;
    struct demand_stats stats;
};

/* For layers of at most max_expert experts and lists of at most max_pair. -1: no memory. */
int demand_place(struct demand *d, struct arena *arena, struct experts *x, int max_expert,
    int64_t max_pair);

/* A router's list: idx[0..n_pair), each below the layer's number of experts. Starts reading. */
void demand_begin(struct demand *d, int layer, const int32_t *idx, int64_t n_pair);
/* d->given[0..n_now) are in memory now; n_now 0: all were given. -1: one could not be read. */
int demand_next(struct demand *d, struct err *e);
/* Whether the first demand_next will give all of them. */
int demand_has_all(const struct demand *d);
/* Lets go of everything, wherever it stands. */
void demand_end(struct demand *d);

#endif
