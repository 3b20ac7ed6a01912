/* pool.h: a fixed number of equal slots of memory that hold what was used last.
 *
 * Slots are found by a key. One that is pinned (in use, or still being read) is never given away; among
 * the others the one goes that was used longest ago. What was needed by a pass over more than the pool
 * can hold goes first: it would push out everything and be gone itself before it is wanted again. One
 * thread at a time.
 */
#ifndef HADAL_STORE_POOL_H
#define HADAL_STORE_POOL_H

#include "base/arena.h"

#include <stdint.h>

struct pool_slot {
    uint64_t key;
    int32_t next;         /* of the same hash; of the empty ones */
    int32_t older, newer; /* neighbours in order of use */
    int32_t n_pin;
    int is_used; /* has a key */
};

struct pool {
    int n_slot;
    uint64_t slot_bytes; /* multiple of DISK_ALIGN, or what the caller likes */
    uint8_t *memory;     /* [n_slot, slot_bytes], the caller's */
    struct pool_slot *slot;
    int32_t *bucket; /* [n_bucket] first slot of a hash, -1: none */
    uint32_t n_bucket; /* power of two */
    int32_t oldest, newest, empty; /* slots with and without a key; -1: none */
};

/* Lists in the arena; -1 when there is no memory for them. memory: n_slot x slot_bytes. */
int pool_place(struct pool *p, struct arena *arena, int n_slot, uint64_t slot_bytes, void *memory);
/* Bytes of those lists. */
uint64_t pool_list_bytes(int n_slot);

/* -1 when there is none. */
int pool_find(const struct pool *p, uint64_t key);
/* A slot for a key that has none, pinned once: an empty one, else the oldest; -1 when all are pinned. */
int pool_take(struct pool *p, uint64_t key);
void pool_pin(struct pool *p, int slot);
/* goes_first: it is the next to be given away, otherwise the last. */
void pool_unpin(struct pool *p, int slot, int goes_first);
/* Takes the key from a slot without pins. */
void pool_drop(struct pool *p, int slot);
int pool_n_pin(const struct pool *p, int slot);
void *pool_memory(const struct pool *p, int slot);

#endif
