/* demand.c: see demand.h. */
#include "store/demand.h"

#include <string.h>

/* JOINED: an earlier step's read; when it fails the expert is asked for again. */
enum state { WAITING, JOINED, READING, THERE, GIVEN, GONE };

int demand_place(struct demand *d, struct arena *arena, struct experts *x, int max_expert,
    int64_t max_pair)
{
    size_t n = (size_t)max_expert;
    *d = (struct demand){.experts = x, .max_expert = max_expert};
    d->wanted = ARENA_NEW(arena, int32_t, n);
    d->first = ARENA_NEW(arena, int32_t, n + 1);
    d->pair = ARENA_NEW(arena, int32_t, (size_t)max_pair);
    d->slot = ARENA_NEW(arena, int32_t, n);
    d->state = ARENA_NEW(arena, unsigned char, n);
    d->was_there = ARENA_NEW(arena, unsigned char, n);
    d->given = ARENA_NEW(arena, int32_t, n);
    d->group = ARENA_NEW(arena, struct read_group *, n);
    return d->wanted && d->first && d->pair && d->slot && d->state && d->was_there && d->given &&
                   d->group
               ? 0
               : -1;
}

/* Counting sort of the pairs by expert. */
static void sort_pairs(struct demand *d, const int32_t *idx, int64_t n_pair)
{
    int n_expert = experts_layer(d->experts, d->layer)->n_expert;
    int32_t *first = d->first;
    memset(first, 0, ((size_t)n_expert + 1) * sizeof *first);
    for (int64_t i = 0; i < n_pair; i++)
        first[idx[i] + 1]++;
    d->n_wanted = 0;
    for (int32_t e = 0; e < n_expert; e++) {
        if (first[e + 1])
            d->wanted[d->n_wanted++] = e;
        first[e + 1] += first[e];
    }
    for (int64_t i = 0; i < n_pair; i++)
        d->pair[first[idx[i]]++] = (int32_t)i;
    for (int32_t e = n_expert; e > 0; e--)
        first[e] = first[e - 1];
    first[0] = 0;
}

/* Asks for what was not asked for yet, as far as there is room. */
static void take(struct demand *d)
{
    for (int i = 0; i < d->n_wanted && d->n_held < d->room; i++) {
        if (d->state[i] != WAITING)
            continue;
        int is_joined;
        d->slot[i] = experts_take(d->experts, d->layer, d->wanted[i], &is_joined);
        if (d->slot[i] < 0)
            return;
        d->state[i] = is_joined ? JOINED : READING;
        d->n_held++;
    }
}

/* What is in memory is held before anything else may take its place. */
static void hold_residents(struct demand *d)
{
    for (int i = 0; i < d->n_wanted; i++) {
        d->state[i] = WAITING;
        d->slot[i] = experts_find(d->experts, d->layer, d->wanted[i]);
        d->was_there[i] = d->slot[i] >= 0;
        if (d->slot[i] < 0)
            continue;
        d->state[i] = THERE;
        d->stats.n_there++;
    }
    d->stats.n_wanted += (uint64_t)d->n_wanted;
}

void demand_begin(struct demand *d, int layer, const int32_t *idx, int64_t n_pair)
{
    d->layer = layer;
    d->n_given = d->n_now = 0;
    sort_pairs(d, idx, n_pair);
    d->n_held = 0;
    d->room = experts_room(d->experts, layer, d->n_wanted);
    hold_residents(d);
    take(d);
}

int demand_has_all(const struct demand *d)
{
    for (int i = 0; i < d->n_wanted; i++)
        if (d->state[i] != THERE)
            return 0;
    return 1;
}

static void release_given(struct demand *d)
{
    int goes_first = d->room < experts_n_slot(d->experts, d->layer);
    for (int k = 0; k < d->n_now; k++) {
        int i = d->given[k];
        d->state[i] = GONE;
        experts_release(d->experts, d->layer, d->slot[i], goes_first && !d->was_there[i]);
        d->n_held -= !d->was_there[i];
    }
    d->n_now = 0;
}

static int is_reading(const struct demand *d, int i)
{
    return d->state[i] == READING || d->state[i] == JOINED;
}

/* A read that is done. */
static int settle(struct demand *d, int i, struct err *e)
{
    int was_joined = d->state[i] == JOINED;
    d->state[i] = THERE;
    if (!experts_settle(d->experts, d->layer, d->slot[i], e))
        return 0;
    d->state[i] = was_joined ? WAITING : GONE;
    d->n_held--;
    return was_joined ? 0 : -1;
}

/* All experts that are there now. */
static int collect(struct demand *d, struct err *e)
{
    for (int i = 0; i < d->n_wanted; i++) {
        if (is_reading(d, i) &&
            read_group_is_done(experts_group(d->experts, d->layer, d->slot[i])) && settle(d, i, e))
            return -1;
        if (d->state[i] != THERE)
            continue;
        d->state[i] = GIVEN;
        d->given[d->n_now++] = i;
    }
    d->n_given += d->n_now;
    return 0;
}

static int wait_for_one(struct demand *d, struct err *e)
{
    int n = 0;
    for (int i = 0; i < d->n_wanted; i++)
        if (is_reading(d, i))
            d->group[n++] = experts_group(d->experts, d->layer, d->slot[i]);
    if (!n) /* what an earlier step gave up on still holds all slots */
        n = experts_list_pending(d->experts, d->layer, d->group, d->max_expert);
    if (!n)
        return err_set(e, ERR_MEMORY, "layer %d: no room for an expert", d->layer);
    reader_wait_any(experts_reader(d->experts), d->group, n);
    return 0;
}

int demand_next(struct demand *d, struct err *e)
{
    release_given(d);
    while (d->n_given < d->n_wanted) {
        take(d);
        if (collect(d, e))
            return -1;
        if (d->n_now)
            break;
        take(d); /* what an earlier step's read failed for */
        if (wait_for_one(d, e))
            return -1;
    }
    return 0;
}

void demand_end(struct demand *d)
{
    release_given(d);
    for (int i = 0; i < d->n_wanted; i++)
        if (is_reading(d, i) || d->state[i] == THERE || d->state[i] == GIVEN)
            experts_release(d->experts, d->layer, d->slot[i], 0);
    d->n_wanted = d->n_given = 0;
}
