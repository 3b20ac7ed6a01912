/* experts.c: see experts.h.
 *
 * A slot that is being read has a pin of the read's own, until someone notices that the read is done.
 * So it survives a step that failed half way, and whoever wants the expert next waits for it.
 */
#include "store/experts.h"

/* Of a pool, 1 / PASS_SHARE is for what a pass over more than it can keep goes through. */
enum { MAX_POOL = 8, PASS_SHARE = 8 };

/* What a slot's memory is filled by. */
struct filling {
    struct read read[EXPERT_MAX_PART];
    struct read_group group;
    int is_pending; /* started and not settled */
    uint16_t begin[EXPERT_MAX_PART]; /* of each part, in its first page */
};

struct expert_pool {
    struct pool pool;
    struct filling *filling; /* [n_slot] */
    int n_layer;
};

struct experts {
    struct arena arena;
    struct reader *reader;
    const struct expert_layer *layer;
    struct expert_pool pool[MAX_POOL];
    int n_pool;
};

/* ---- Sizes ---- */

/* Memory for a part wherever it begins in a page. */
static uint64_t part_bytes(const struct expert_layer *l, int part)
{
    return disk_above(l->n_byte[part] + DISK_ALIGN - 1);
}

static uint64_t expert_slot_bytes(const struct expert_layer *l)
{
    uint64_t n = 0;
    for (int p = 0; p < l->n_part; p++)
        n += part_bytes(l, p);
    return n;
}

struct pool_need {
    uint64_t slot_bytes, disk_bytes;
    int n_least, n_whole; /* slots */
    int n_layer;
};

static int find_pool(struct pool_need *pool, int *n_pool, uint64_t slot_bytes)
{
    int i = 0;
    while (i < *n_pool && pool[i].slot_bytes != slot_bytes)
        i++;
    if (i < *n_pool)
        return i;
    if (*n_pool < MAX_POOL)
        return (*n_pool)++;
    return MAX_POOL - 1; /* more sizes than pools: the last takes all others, with the largest slots */
}

static int sort_layers(struct expert_layer *layer, int n_layer, struct pool_need pool[MAX_POOL])
{
    int n_pool = 0;
    for (int i = 0; i < n_layer; i++) {
        struct expert_layer *l = &layer[i];
        uint64_t slot_bytes = expert_slot_bytes(l), disk_bytes = 0;
        if (!l->n_expert)
            continue;
        for (int p = 0; p < l->n_part; p++)
            disk_bytes += l->n_byte[p];
        l->pool = find_pool(pool, &n_pool, slot_bytes);
        struct pool_need *n = &pool[l->pool];
        n->slot_bytes = slot_bytes > n->slot_bytes ? slot_bytes : n->slot_bytes;
        n->disk_bytes += disk_bytes * (uint64_t)l->n_expert;
        n->n_whole += l->n_expert;
        n->n_layer++;
        n->n_least = l->n_used > n->n_least ? l->n_used : n->n_least;
    }
    return n_pool;
}

void experts_measure(struct expert_layer *layer, int n_layer, struct experts_need *need)
{
    struct pool_need pool[MAX_POOL] = {{0}};
    int n_pool = sort_layers(layer, n_layer, pool);
    *need = (struct experts_need){0};
    for (int i = 0; i < n_pool; i++) {
        need->disk_bytes += pool[i].disk_bytes;
        need->least_bytes += pool[i].slot_bytes * (uint64_t)pool[i].n_least;
        need->whole_bytes += pool[i].slot_bytes * (uint64_t)pool[i].n_whole;
    }
}

/* ---- Opening ---- */

/* Beyond the least every pool gets the same share of what it could use. */
static int open_pools(struct experts *x, const struct experts_options *o,
    const struct pool_need *need, struct err *e)
{
    uint64_t spare = o->memory_bytes, could_use = 0;
    uint8_t *memory = o->memory;
    for (int i = 0; i < x->n_pool; i++) {
        spare -= need[i].slot_bytes * (uint64_t)need[i].n_least;
        could_use += need[i].slot_bytes * (uint64_t)(need[i].n_whole - need[i].n_least);
    }
    double share = spare < could_use ? (double)spare / (double)could_use : 1.0;
    for (int i = 0; i < x->n_pool; i++) {
        struct expert_pool *p = &x->pool[i];
        int n_slot = need[i].n_least + (int)(share * (need[i].n_whole - need[i].n_least));
        p->n_layer = need[i].n_layer;
        p->filling = ARENA_NEW(&x->arena, struct filling, (size_t)n_slot);
        if (!p->filling || pool_place(&p->pool, &x->arena, n_slot, need[i].slot_bytes, memory))
            return err_set(e, ERR_MEMORY, "no memory for lists of %d experts", n_slot);
        memory += need[i].slot_bytes * (uint64_t)n_slot;
    }
    return 0;
}

int experts_open(struct experts **out, const struct experts_options *o, struct err *e)
{
    struct arena arena = {0};
    struct experts *x = ARENA_NEW(&arena, struct experts, 1);
    struct expert_layer *layer = ARENA_NEW(&arena, struct expert_layer, (size_t)o->n_layer);
    struct pool_need need[MAX_POOL] = {{0}};
    *out = NULL;
    if (!x || !layer) {
        arena_free(&arena);
        return err_set(e, ERR_MEMORY, "no memory for lists of experts");
    }
    for (int i = 0; i < o->n_layer; i++)
        layer[i] = o->layer[i];
    *x = (struct experts){.arena = arena, .reader = o->reader, .layer = layer};
    x->n_pool = sort_layers(layer, o->n_layer, need);
    if (open_pools(x, o, need, e)) {
        experts_close(x);
        return -1;
    }
    *out = x;
    return 0;
}

void experts_close(struct experts *x)
{
    if (!x)
        return;
    struct arena arena = x->arena; /* it lives there itself */
    arena_free(&arena);
}

/* ---- Taking ---- */

static struct expert_pool *pool_of(struct experts *x, int layer)
{
    return &x->pool[x->layer[layer].pool];
}

const struct expert_layer *experts_layer(const struct experts *x, int layer)
{
    return &x->layer[layer];
}

int experts_room(const struct experts *x, int layer, int n)
{
    const struct expert_layer *l = &x->layer[layer];
    const struct expert_pool *p = &x->pool[l->pool];
    if ((int64_t)n * p->n_layer <= p->pool.n_slot)
        return p->pool.n_slot;
    int room = p->pool.n_slot / PASS_SHARE;
    return room > 2 * l->n_used ? room : 2 * l->n_used;
}

int experts_n_slot(const struct experts *x, int layer)
{
    return x->pool[x->layer[layer].pool].pool.n_slot;
}

/* The whole pages that a part of the expert touches. */
static void start_reads(struct experts *x, int layer, int expert, int slot)
{
    const struct expert_layer *l = &x->layer[layer];
    struct expert_pool *p = pool_of(x, layer);
    struct filling *f = &p->filling[slot];
    uint8_t *to = pool_memory(&p->pool, slot);
    for (int i = 0; i < l->n_part; i++) {
        int64_t at = (int64_t)expert * l->n_part + i;
        uint64_t from = disk_below(l->at[at]);
        f->begin[i] = (uint16_t)(l->at[at] - from);
        f->read[i] = (struct read){.file = l->file[at],
            .at = from,
            .n_byte = disk_above(f->begin[i] + l->n_byte[i]),
            .to = to};
        to += part_bytes(l, i);
    }
    pool_pin(&p->pool, slot);
    f->is_pending = 1;
    reader_start(x->reader, &f->group, f->read, l->n_part);
}

/* Notices a read that is done and that nobody waits for any more. */
static void note_done(struct expert_pool *p, int slot)
{
    struct filling *f = &p->filling[slot];
    if (!f->is_pending || !read_group_is_done(&f->group) || pool_n_pin(&p->pool, slot) > 1)
        return;
    f->is_pending = 0;
    pool_unpin(&p->pool, slot, 0);
    if (f->group.failure.code)
        pool_drop(&p->pool, slot);
}

static uint64_t key_of(int layer, int expert)
{
    return (uint64_t)layer << 32 | (uint32_t)expert;
}

int experts_find(struct experts *x, int layer, int expert)
{
    struct expert_pool *p = pool_of(x, layer);
    int slot = pool_find(&p->pool, key_of(layer, expert));
    if (slot < 0 || p->filling[slot].is_pending)
        return -1;
    pool_pin(&p->pool, slot);
    return slot;
}

int experts_take(struct experts *x, int layer, int expert, int *is_joined)
{
    struct expert_pool *p = pool_of(x, layer);
    uint64_t key = key_of(layer, expert);
    int slot = pool_find(&p->pool, key);
    if (slot >= 0) { /* on its way since a step that failed, or failed itself */
        note_done(p, slot);
        slot = pool_find(&p->pool, key);
    }
    *is_joined = slot >= 0;
    if (slot >= 0) {
        pool_pin(&p->pool, slot);
        return slot;
    }
    slot = pool_take(&p->pool, key);
    for (int i = 0; slot < 0 && i < p->pool.n_slot; i++) {
        note_done(p, i);
        slot = pool_take(&p->pool, key);
    }
    if (slot >= 0)
        start_reads(x, layer, expert, slot);
    return slot;
}

int experts_list_pending(struct experts *x, int layer, struct read_group **group, int max)
{
    struct expert_pool *p = pool_of(x, layer);
    int n = 0;
    for (int i = 0; i < p->pool.n_slot && n < max; i++)
        if (p->filling[i].is_pending)
            group[n++] = &p->filling[i].group;
    return n;
}

struct reader *experts_reader(const struct experts *x)
{
    return x->reader;
}

struct read_group *experts_group(struct experts *x, int layer, int slot)
{
    return &pool_of(x, layer)->filling[slot].group;
}

int experts_settle(struct experts *x, int layer, int slot, struct err *e)
{
    struct expert_pool *p = pool_of(x, layer);
    struct filling *f = &p->filling[slot];
    if (!f->is_pending)
        return 0;
    f->is_pending = 0;
    pool_unpin(&p->pool, slot, 0);
    if (!f->group.failure.code)
        return 0;
    if (e)
        *e = f->group.failure;
    pool_unpin(&p->pool, slot, 0);
    pool_drop(&p->pool, slot);
    return -1;
}

void experts_release(struct experts *x, int layer, int slot, int goes_first)
{
    pool_unpin(&pool_of(x, layer)->pool, slot, goes_first);
}

const void *experts_part(const struct experts *x, int layer, int slot, int part)
{
    const struct expert_layer *l = &x->layer[layer];
    const struct expert_pool *p = &x->pool[l->pool];
    const uint8_t *at = pool_memory(&p->pool, slot);
    for (int i = 0; i < part; i++)
        at += part_bytes(l, i);
    return at + p->filling[slot].begin[part];
}
