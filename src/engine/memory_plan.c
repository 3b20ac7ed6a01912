/* memory_plan.c: see memory_plan.h.
 *
 * Sizes that functions elsewhere measure are exact. What ops take while they run is bounded by the
 * largest of them, expert_mlp with the choices of a whole batch; the program's own memory (tokenizer,
 * names, stacks) is an allowance.
 */
#include "engine/memory_plan.h"

#include "base/memory.h"

#include <stdio.h>

enum { PROGRAM_BYTES = 48 << 20, LANE_BYTES = 2 << 20 };

static int computes_on_host(const struct backend *be)
{
    return !be->kind->take_weight;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of backend_scratch, whose blocks double. */
static uint64_t op_bytes(const hadal_engine *g)
{
    const struct model_config *c = g->model.config;
    uint64_t n_used = (uint64_t)larger((uint64_t)c->n_expert_used, (uint64_t)c->draft_n_expert_used);
    uint64_t n_pair = (uint64_t)g->options.n_chunk * n_used;
    uint64_t pair = (2 * (uint64_t)c->expert_ff + (uint64_t)c->hidden) * sizeof(float);
    return n_pair * pair * 5 / 4 + (uint64_t)g->be->n_thread * LANE_BYTES;
}

static uint64_t total(const struct memory_plan *p)
{
    return p->weights + p->cache + p->sessions + p->scratch + p->work;
}

/* 95 % of what is free: others may want a little. */
static uint64_t find_limit(const hadal_engine *g)
{
    if (g->options.memory_bytes)
        return g->options.memory_bytes;
    return (computes_on_host(g->be) ? memory_free() : g->be->kind->free_bytes(g->be)) / 20 * 19;
}

static double gib(uint64_t n_byte)
{
    return (double)n_byte / 0x1p30;
}

static int refuse(const hadal_engine *g, const struct memory_plan *p, struct err *e)
{
    const char *advice = !computes_on_host(g->be)
                             ? "try a smaller --context or --chunk, a smaller model, or --backend cpu"
                         : !g->options.memory_bytes && total(p) <= memory_physical()
                             ? "close other programs, or say with --memory what may be taken"
                             : "try a larger --memory, a smaller --context or --chunk, or a smaller model";
    return err_set(e, ERR_MEMORY,
        "does not fit: needs at least %.2f GiB (%llu MiB): weights %.2f, cache for weights on disk %.2f, "
        "%d session(s) of %d tokens %.2f, scratch %.2f, work %.2f; %s %.2f GiB; %s",
        gib(total(p)), (unsigned long long)((total(p) + (1 << 20) - 1) >> 20), gib(p->weights),
        gib(p->cache), g->options.n_session, g->options.n_context, gib(p->sessions), gib(p->scratch),
        gib(p->work), g->options.memory_bytes ? "allowed are" : "free are", gib(p->limit), advice);
}

static void tell(const hadal_engine *g, const struct memory_plan *p)
{
    const struct hadal_engine_options *o = &g->options;
    char line[256];
    if (!o->tell_memory || (!o->memory_bytes && !p->on_disk))
        return;
    snprintf(line, sizeof line,
        "memory %.2f of %.2f GiB: weights %.2f, sessions %.2f, scratch %.2f, work %.2f", gib(total(p)),
        gib(p->limit), gib(p->weights), gib(p->sessions), gib(p->scratch), gib(p->work));
    if (p->on_disk)
        snprintf(line, sizeof line,
            "memory %.2f of %.2f GiB: weights %.2f, cache %.2f for %.2f on disk, sessions %.2f, "
            "scratch %.2f, work %.2f",
            gib(total(p)), gib(p->limit), gib(p->weights), gib(p->cache), gib(p->on_disk),
            gib(p->sessions), gib(p->scratch), gib(p->work));
    o->tell_memory(o->tell_memory_context, line);
}

/* Experts and n-gram tables stay on disk; what is left of the limit is their cache. */
static int plan_on_disk(hadal_engine *g, struct memory_plan *p, struct err *e)
{
    struct stored_options o = {g->file, g->be, g->disk ? g->disk : &disk_system, g->options.n_chunk};
    if (stored_open(&g->stored, &o, e))
        return -1;
    struct stored_need need = stored_need(g->stored);
    struct memory_plan mapped = *p;
    p->on_disk = need.disk_bytes;
    p->weights = need.resident_bytes;
    p->work += need.work_bytes;
    p->cache = need.least_bytes;
    if (total(p) > p->limit)
        return refuse(g, total(p) < total(&mapped) ? p : &mapped, e);
    uint64_t spare = p->limit - total(p), could_use = need.whole_bytes - need.least_bytes;
    p->cache += spare < could_use ? spare : could_use;
    return 0;
}

int memory_plan_make(
    hadal_engine *g, const struct engine_plan *sizes, struct memory_plan *p, struct err *e)
{
    *p = (struct memory_plan){.limit = find_limit(g),
        .weights = g->model.weight_bytes,
        .sessions = (sizes->session_bytes + sizes->copies_bytes) * (uint64_t)g->options.n_session,
        .scratch = sizes->scratch_bytes,
        .work = op_bytes(g) + PROGRAM_BYTES};
    if (g->options.memory_bytes && !computes_on_host(g->be))
        return err_set(e, ERR_UNSUPPORTED,
            "a memory limit: the backends cpu and ref keep to one, %s does not", g->be->kind->name);
    if (p->limit && total(p) > p->limit) {
        if (!computes_on_host(g->be))
            return refuse(g, p, e);
        if (plan_on_disk(g, p, e))
            return -1;
    }
    tell(g, p);
    return 0;
}

static void show_load(void *context, uint64_t done, uint64_t all)
{
    const struct hadal_engine_options *o = context;
    if (o->progress)
        o->progress(o->progress_context, "load", done, all);
}

int memory_plan_load(hadal_engine *g, const struct memory_plan *p, struct err *e)
{
    struct resident_progress progress = {show_load, &g->options};
    if (!g->stored)
        return 0;
    if (stored_load(g->stored, p->cache, &progress, e))
        return -1;
    g->forward.stored = g->stored;
    g->forward.weights = stored_weights(g->stored);
    return 0;
}
