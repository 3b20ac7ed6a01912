/* suffix.c: see suffix.h. Blumer et al., "The smallest automaton recognizing the subwords of a
 * text", 1985. */
#include "generate/suffix.h"

#include "base/buckets.h"

#include <assert.h>
#include <string.h>

enum { NONE = 0, ROOT = 1 };

uint64_t suffix_bytes(int n_max)
{
    uint64_t n = (uint64_t)n_max;
    return (2 * n + 2) * sizeof(struct suffix_state) + (3 * n + 2) * sizeof(struct suffix_edge) +
           bucket_count(n_max) * sizeof(int32_t);
}

int suffix_open(struct suffix *x, struct arena *a, int n_max)
{
    uint32_t n_bucket = bucket_count(n_max);
    *x = (struct suffix){.n_max = n_max, .bucket_mask = n_bucket - 1};
    x->state = ARENA_NEW(a, struct suffix_state, 2 * (size_t)n_max + 2);
    x->edge = ARENA_NEW(a, struct suffix_edge, 3 * (size_t)n_max + 2);
    x->bucket = ARENA_NEW(a, int32_t, n_bucket);
    if (!x->state || !x->edge || !x->bucket)
        return -1;
    x->n_state = ROOT;
    x->last = ROOT;
    return 0;
}

void suffix_clear(struct suffix *x)
{
    memset(x->bucket, 0, ((size_t)x->bucket_mask + 1) * sizeof *x->bucket);
    x->state[ROOT] = (struct suffix_state){0};
    x->n_state = ROOT;
    x->last = ROOT;
    x->n = x->n_edge = x->match_len = x->match_end = 0;
}

static int32_t *bucket_of(const struct suffix *x, int32_t from, int32_t token)
{
    uint64_t key = (uint64_t)(uint32_t)from << 32 | (uint32_t)token;
    return x->bucket + ((uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & x->bucket_mask);
}

static struct suffix_edge *find_edge(const struct suffix *x, int32_t from, int32_t token)
{
    int32_t i = *bucket_of(x, from, token);
    while (i != NONE && (x->edge[i].from != from || x->edge[i].token != token))
        i = x->edge[i].next_of_bucket;
    return i == NONE ? NULL : x->edge + i;
}

static void add_edge(struct suffix *x, int32_t from, int32_t token, int32_t to)
{
    int32_t *bucket = bucket_of(x, from, token), i = ++x->n_edge;
    x->edge[i] = (struct suffix_edge){from, token, to, x->state[from].edge, *bucket};
    x->state[from].edge = *bucket = i;
}

static int32_t add_state(struct suffix *x, int32_t len, int32_t link, int32_t end)
{
    x->state[++x->n_state] = (struct suffix_state){.len = len, .link = link, .end = end};
    return x->n_state;
}

/* The substrings of q of at most len tokens become a state of their own: they now end at the new
 * token too, the longer ones do not. Every edge made here is new, so all copying together is within
 * the 3n edges. */
static int32_t split(struct suffix *x, int32_t p, int32_t token, int32_t q)
{
    int32_t clone = add_state(x, x->state[p].len + 1, x->state[q].link, x->state[q].end);
    for (int32_t i = x->state[q].edge; i != NONE; i = x->edge[i].next_of_state)
        add_edge(x, clone, x->edge[i].token, x->edge[i].to);
    x->state[q].link = clone;
    for (struct suffix_edge *edge; p != NONE && (edge = find_edge(x, p, token)) && edge->to == q;
         p = x->state[p].link)
        edge->to = clone;
    return clone;
}

void suffix_push(struct suffix *x, int32_t token)
{
    struct suffix_edge *edge = NULL;
    int32_t p = x->last, link = ROOT;
    assert(x->n < x->n_max);
    x->n++;
    int32_t now = add_state(x, x->n, NONE, x->n);
    while (p != NONE && !(edge = find_edge(x, p, token))) {
        add_edge(x, p, token, now);
        p = x->state[p].link;
    }
    if (p != NONE)
        link =
            x->state[edge->to].len == x->state[p].len + 1 ? edge->to : split(x, p, token, edge->to);
    x->state[now].link = link;
    x->last = now;
    x->match_len = x->state[link].len;
    x->match_end = x->state[link].end;
    x->state[link].end = x->n;
}

int suffix_match(const struct suffix *x, int *end)
{
    *end = x->match_end;
    return x->match_len;
}
