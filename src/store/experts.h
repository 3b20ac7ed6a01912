/* experts.h: routed experts that live on disk, as many of them in memory as a budget holds.
 *
 * An expert is a few runs of bytes in files: gate, up and down, and their scales where a format has
 * them. In memory it is a slot of a pool, each run at the distance from a page that it has in its file,
 * so that reads need no copy and numbers stay aligned as they were:
 *
 *   slot  |  .. gate ..   | .. gate scales | .. up .. | ...     every part begins a page
 *            ^ file position modulo DISK_ALIGN
 *
 * Layers whose experts have other sizes (formats differ) have pools of their own, which share the budget
 * by what they hold on disk. One thread at a time; demand.h is who calls.
 */
#ifndef HADAL_STORE_EXPERTS_H
#define HADAL_STORE_EXPERTS_H

#include "store/pool.h"
#include "store/reader.h"

enum { EXPERT_MAX_PART = 6 };

/* Part p of expert e of a layer: n_byte[p] bytes at `at[e * n_part + p]` of file[e * n_part + p]. */
struct expert_layer {
    int n_expert, n_part;
    int n_used; /* by a token */
    uint64_t n_byte[EXPERT_MAX_PART];
    const struct disk_file **file;
    uint64_t *at;
    int pool; /* set by experts_measure */
};

struct experts_need {
    uint64_t disk_bytes;  /* of all experts */
    uint64_t least_bytes; /* memory for one token's experts of a layer */
    uint64_t whole_bytes; /* memory for all of them */
};
/* Sorts the layers into pools. Layers without experts on disk have n_expert 0. */
void experts_measure(struct expert_layer *layer, int n_layer, struct experts_need *need);

struct experts;
struct experts_options {
    struct reader *reader;
    const struct expert_layer *layer; /* [n_layer], measured; stays the caller's */
    int n_layer;
    uint64_t memory_bytes; /* from least_bytes on */
    void *memory;          /* that many, aligned to DISK_ALIGN */
};
int experts_open(struct experts **x, const struct experts_options *o, struct err *e);
/* After the reader. NULL is fine. */
void experts_close(struct experts *x);

const struct expert_layer *experts_layer(const struct experts *x, int layer);
/* Slots that a step may hold at a time when every layer wants n experts. Less than the pool when they
 * cannot all be kept until the next step: such a pass would only push out what is there. */
int experts_room(const struct experts *x, int layer, int n);
int experts_n_slot(const struct experts *x, int layer);
/* The slot of an expert that is in memory, pinned; -1: it is not. */
int experts_find(struct experts *x, int layer, int expert);
/* The slot of any other, pinned and being read; -1: no slot is free now. *is_joined: the read was started
 * by a step that gave up since. */
int experts_take(struct experts *x, int layer, int expert, int *is_joined);
/* What fills a slot, for reader_wait_any. */
struct read_group *experts_group(struct experts *x, int layer, int slot);
/* Groups of slots of the layer's pool that are still being read, at most max; how many. */
int experts_list_pending(struct experts *x, int layer, struct read_group **group, int max);
struct reader *experts_reader(const struct experts *x);
/* After its group is done: 0, or the read's failure, and then the slot is let go. */
int experts_settle(struct experts *x, int layer, int slot, struct err *e);
void experts_release(struct experts *x, int layer, int slot, int goes_first);
/* Address of a part of the expert in a slot. */
const void *experts_part(const struct experts *x, int layer, int slot, int part);

#endif
