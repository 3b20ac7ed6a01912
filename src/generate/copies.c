/* copies.c: see copies.h. */
#include "generate/copies.h"

#include <string.h>

/* More tokens at once than a cycle can give are a prompt, which is not the model's own choice. */
enum { CYCLE_TOKENS = 17 };

int copies_open(struct copies *c, struct arena *a, int n_max)
{
    static const float first[COPIES_N_CLASS] = {0.2f, 0.4f, 0.6f, 0.75f, 0.85f, 0.9f, 0.95f, 0.95f};
    *c = (struct copies){.is_stale = 0};
    memcpy(c->share, first, sizeof first);
    return suffix_open(&c->suffix, a, n_max);
}

void copies_cut(struct copies *c, int length)
{
    if (length < c->suffix.n)
        c->is_stale = 1;
}

static int class_of(int match_len)
{
    int k = 0;
    while (k < COPIES_N_CLASS - 1 && match_len >> (k + 1))
        k++;
    return k;
}

static void learn(struct copies *c, const int32_t *ids, int32_t chosen)
{
    int end, len = suffix_match(&c->suffix, &end);
    if (len)
        c->share[class_of(len)] += ((ids[end] == chosen) - c->share[class_of(len)]) / 32;
}

void copies_follow(struct copies *c, const int32_t *ids, int n)
{
    if (c->is_stale)
        suffix_clear(&c->suffix);
    c->is_stale = 0;
    int learns = n - c->suffix.n <= CYCLE_TOKENS;
    for (int i = c->suffix.n; i < n; i++) {
        if (learns)
            learn(c, ids, ids[i]);
        suffix_push(&c->suffix, ids[i]);
    }
}

int copies_propose(const struct copies *c, int32_t *ids, int n_ahead, int limit, float *probability)
{
    int end, len = suffix_match(&c->suffix, &end), n = c->suffix.n, n_added = 0;
    if (!len || memcmp(ids + end, ids + n, (size_t)n_ahead * sizeof *ids))
        return 0;
    for (int j = n_ahead; j < limit;
         j++, n_added++) { /* what it copies may be what it has just proposed */
        ids[n + j] = ids[end + j];
        probability[j] = c->share[class_of(len + j)];
    }
    return n_added;
}
