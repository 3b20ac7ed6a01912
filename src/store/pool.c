/* pool.c: see pool.h. */
#include "store/pool.h"

#include "base/buckets.h"

#include <assert.h>

uint64_t pool_list_bytes(int n_slot)
{
    return (uint64_t)n_slot * sizeof(struct pool_slot) + bucket_count(n_slot) * sizeof(int32_t);
}

static uint32_t bucket_of(const struct pool *p, uint64_t key)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (p->n_bucket - 1);
}

/* ---- The order of use ---- */

static void unlink_slot(struct pool *p, int32_t i)
{
    struct pool_slot *s = &p->slot[i];
    if (s->older >= 0)
        p->slot[s->older].newer = s->newer;
    else
        p->oldest = s->newer;
    if (s->newer >= 0)
        p->slot[s->newer].older = s->older;
    else
        p->newest = s->older;
}

static void link_newest(struct pool *p, int32_t i)
{
    p->slot[i].older = p->newest;
    p->slot[i].newer = -1;
    if (p->newest >= 0)
        p->slot[p->newest].newer = i;
    else
        p->oldest = i;
    p->newest = i;
}

static void link_oldest(struct pool *p, int32_t i)
{
    p->slot[i].newer = p->oldest;
    p->slot[i].older = -1;
    if (p->oldest >= 0)
        p->slot[p->oldest].older = i;
    else
        p->newest = i;
    p->oldest = i;
}

/* ---- Keys ---- */

int pool_find(const struct pool *p, uint64_t key)
{
    int32_t i = p->bucket[bucket_of(p, key)];
    while (i >= 0 && p->slot[i].key != key)
        i = p->slot[i].next;
    return i;
}

void pool_drop(struct pool *p, int slot)
{
    struct pool_slot *s = &p->slot[slot];
    assert(s->is_used && !s->n_pin);
    int32_t *at = &p->bucket[bucket_of(p, s->key)];
    while (*at != slot)
        at = &p->slot[*at].next;
    *at = s->next;
    unlink_slot(p, slot);
    s->is_used = 0;
    s->next = p->empty;
    p->empty = slot;
}

/* Makes an empty slot, if any can be made. */
static void give_up_oldest(struct pool *p)
{
    int32_t i = p->oldest;
    while (i >= 0 && p->slot[i].n_pin)
        i = p->slot[i].newer;
    if (i >= 0)
        pool_drop(p, i);
}

int pool_take(struct pool *p, uint64_t key)
{
    if (p->empty < 0)
        give_up_oldest(p);
    int32_t i = p->empty;
    if (i < 0)
        return -1;
    int32_t *first = &p->bucket[bucket_of(p, key)];
    p->empty = p->slot[i].next;
    p->slot[i] = (struct pool_slot){.key = key, .next = *first, .n_pin = 1, .is_used = 1};
    *first = i;
    link_newest(p, i);
    return i;
}

void pool_pin(struct pool *p, int slot)
{
    p->slot[slot].n_pin++;
    unlink_slot(p, slot);
    link_newest(p, slot);
}

void pool_unpin(struct pool *p, int slot, int goes_first)
{
    p->slot[slot].n_pin--;
    unlink_slot(p, slot);
    if (goes_first)
        link_oldest(p, slot);
    else
        link_newest(p, slot);
}

int pool_n_pin(const struct pool *p, int slot)
{
    return p->slot[slot].n_pin;
}

void *pool_memory(const struct pool *p, int slot)
{
    return p->memory + (uint64_t)slot * p->slot_bytes;
}

int pool_place(struct pool *p, struct arena *arena, int n_slot, uint64_t slot_bytes, void *memory)
{
    *p = (struct pool){.n_slot = n_slot,
        .slot_bytes = slot_bytes,
        .memory = memory,
        .n_bucket = bucket_count(n_slot),
        .oldest = -1,
        .newest = -1,
        .empty = -1};
    p->slot = ARENA_NEW(arena, struct pool_slot, (size_t)n_slot);
    p->bucket = ARENA_NEW(arena, int32_t, p->n_bucket);
    if (!p->slot || !p->bucket)
        return -1;
    for (uint32_t i = 0; i < p->n_bucket; i++)
        p->bucket[i] = -1;
    for (int32_t i = n_slot - 1; i >= 0; i--) {
        p->slot[i].next = p->empty;
        p->empty = i;
    }
    return 0;
}
