/* pool.c: closing a compressed row from the tokens of its group. v4 spec 4.3, v41 spec 7.1 */
#include "base/fmath.h"
#include "ops/ref/ref.h"

/* One call's geometry for one row. */
struct group {
    const struct op_pool *a;
    int64_t slot, first; /* first: position of the oldest token that takes part */
    int n_token;
    int n_before; /* of these, tokens of the group before */
};

/* Value of token j (0: oldest) for channel c. */
static float token_value(const struct group *g, const struct tensor *t, int j, int64_t c)
{
    int64_t ring = t->dim[1], d = g->a->y->dim[1];
    int64_t column = g->a->overlap && j >= g->n_before ? d + c : c;
    return ref_row(t, g->slot * ring + (g->first + j) % ring)[column];
}

static float pool_channel(const struct group *g, int64_t c)
{
    float largest = token_value(g, g->a->score, 0, c);
    for (int j = 1; j < g->n_token; j++) {
        float score = token_value(g, g->a->score, j, c);
        largest = score > largest ? score : largest;
    }
    float numerator = 0, denominator = 0;
    for (int j = 0; j < g->n_token; j++) {
        float e = fmath_exp(token_value(g, g->a->score, j, c) - largest);
        numerator = fmaf(e, token_value(g, g->a->kv, j, c), numerator);
        denominator += e;
    }
    return numerator / denominator;
}

void ref_pool(struct backend *be, const void *args)
{
    const struct op_pool *a = args;
    const int32_t *slot = ref_ints(a->slot, 0), *pos = ref_ints(a->pos, 0);
    for (int64_t r = 0; r < a->y->dim[0]; r++) {
        if (ref_refuse_index(be, "pool: slot", slot[r], a->kv->dim[0]) ||
            ref_refuse_index(be, "pool: position of the group's first token",
                (int64_t)pos[r] - a->ratio + 1, INT32_MAX))
            return;
        struct group g = {
            .a = a, .slot = slot[r], .first = pos[r] - a->ratio + 1, .n_token = a->ratio};
        if (a->overlap && g.first >= a->ratio) {
            g.n_before = a->ratio;
            g.first -= a->ratio;
            g.n_token += a->ratio;
        }
        for (int64_t c = 0; c < a->y->dim[1]; c++)
            ref_row(a->y, r)[c] = pool_channel(&g, c);
    }
}
