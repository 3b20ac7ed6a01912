/* attend.c: one softmax over compressed and window rows, with a sink. v4 spec 3.3, 3.4; v41
 * spec 6.3 */
#include "base/fmath.h"
#include "ops/ref/ref.h"

/* The keys of one batch row in their joint order, as floats, and room for their scores. */
struct keys {
    int64_t n;
    const float **key;
    float *score;
};

static int64_t count_window(const struct op_attend *a, int64_t r, int32_t last)
{
    int64_t n = (int64_t)last + 1 - (a->first ? ref_ints(a->first, 0)[r] : 0);
    return n < 0 ? 0 : n < a->window ? n : a->window;
}

/* Cache row as floats; decoded into scratch unless stored so. */
static const float *cache_row(struct backend *be, const struct tensor *t, int64_t row)
{
    return t->type == DT_F32 ? ref_row(t, row) : ref_weight_row(be, t, row);
}

static int collect_keys(struct backend *be, const struct op_attend *a, int64_t r, struct keys *k)
{
    int64_t slot = ref_ints(a->slot, 0)[r], last = ref_ints(a->last, 0)[r];
    int64_t n_comp = a->comp ? ref_ints(a->n_row, 0)[r] : 0,
            n_window = count_window(a, r, (int32_t)last);
    if (ref_refuse_index(be, "attend: slot", slot, a->ring->dim[0]) ||
        (a->comp && ref_refuse_index(be, "attend: compressed rows", n_comp, a->comp->dim[1] + 1)) ||
        (a->rows && ref_refuse_index(be, "attend: chosen rows", n_comp, a->rows->dim[1] + 1)))
        return -1;
    k->n = n_comp + n_window;
    k->key = backend_scratch(be, (size_t)k->n * sizeof *k->key);
    k->score = backend_scratch(be, (size_t)k->n * sizeof *k->score);
    if (!k->key || !k->score)
        return -1;
    for (int64_t j = 0; j < n_comp; j++) {
        int64_t row = a->rows ? ref_ints(a->rows, r)[j] : j;
        if (ref_refuse_index(be, "attend: compressed row", row, a->comp->dim[1]))
            return -1;
        k->key[j] = cache_row(be, a->comp, slot * a->comp->dim[1] + row);
    }
    for (int64_t j = 0; j < n_window; j++) {
        int64_t at = (last - n_window + 1 + j) % a->ring->dim[1];
        k->key[n_comp + j] = cache_row(be, a->ring, slot * a->ring->dim[1] + at);
    }
    for (int64_t j = 0; j < k->n; j++)
        if (!k->key[j])
            return -1;
    return 0;
}

/* One head of one row; head counts over both. */
static void attend_head(const struct op_attend *a, const struct keys *k, int64_t head, float sink)
{
    const float *q = ref_row(a->q, head);
    int64_t d = a->q->dim[2];
    float *o = ref_row(a->o, head), largest = sink;
    for (int64_t j = 0; j < k->n; j++) {
        k->score[j] = ref_dot(q, k->key[j], d) * a->scale;
        largest = k->score[j] > largest ? k->score[j] : largest;
    }
    struct ref_lanes lanes = {{0}};
    for (int64_t j = 0; j < k->n; j++) {
        k->score[j] = fmath_exp(k->score[j] - largest);
        lanes.lane[j % REF_N_LANE] += k->score[j];
    }
    float denominator = ref_fold(&lanes) + fmath_exp(sink - largest);
    for (int64_t i = 0; i < d; i++) {
        float sum = 0;
        for (int64_t j = 0; j < k->n; j++)
            sum = fmaf(k->score[j], k->key[j][i], sum);
        o[i] = sum / denominator;
    }
}

void ref_attend(struct backend *be, const void *args)
{
    const struct op_attend *a = args;
    int64_t n_head = a->q->dim[1];
    const float *sink = ref_weight_row(be, a->sink, 0);
    for (int64_t r = 0; sink && r < a->q->dim[0]; r++) {
        struct keys k;
        if (collect_keys(be, a, r, &k))
            return;
        for (int64_t h = 0; h < n_head; h++)
            attend_head(a, &k, r * n_head + h, sink[h]);
    }
}
