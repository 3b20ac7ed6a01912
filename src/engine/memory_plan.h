/* memory_plan.h: what an engine's memory is for, before any of it is taken. */
#ifndef HADAL_ENGINE_MEMORY_PLAN_H
#define HADAL_ENGINE_MEMORY_PLAN_H

#include "engine/engine.h"

/* All of an engine's memory, in bytes. */
struct memory_plan {
    uint64_t limit;    /* what it may take; 0: unknown, then everything fits */
    uint64_t weights;  /* in memory all the time */
    uint64_t on_disk;  /* weights that are read when they are needed; 0: none are */
    uint64_t cache;    /* for those */
    uint64_t sessions, scratch;
    uint64_t work;     /* of ops, reading threads and the program itself */
};

/* Decides whether weights stay on disk (then g->stored is open) and how much of them is kept. Tells the
 * plan line by line when something was asked or something stays on disk. -1: it cannot fit; the message
 * says what would. */
int memory_plan_make(
    hadal_engine *g, const struct engine_plan *sizes, struct memory_plan *plan, struct err *e);
/* Reads weights into memory as planned. */
int memory_plan_load(hadal_engine *g, const struct memory_plan *plan, struct err *e);

#endif
