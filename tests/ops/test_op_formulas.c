/* test_op_formulas.c: the reference's main ops against their formulas written once more, in double
 * precision and without looking at the reference: what a mistake in the definition itself would
 * need to get past. */
#include "ops/op_case.h"
#include "ops/op_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Value at a flat row and column, of any storage format. */
static double at(const struct tensor *t, int64_t row, int64_t column)
{
    float *values = malloc((size_t)tensor_n_col(t) * sizeof *values);
    tensor_decode(t, row, 0, tensor_n_col(t), values);
    double x = values[column];
    free(values);
    return x;
}

static int64_t int_at(const struct tensor *t, int64_t row, int64_t column)
{
    int32_t x;
    memcpy(&x, (const char *)t->data + row * t->row_bytes + 4 * column, sizeof x);
    return x;
}

struct judge {
    const char *line;
    int n_passed, n_failed;
    double worst; /* of the case: |found - expected| / (scale of the row) */
};

static void compare(struct judge *j, double found, double expected, double scale)
{
    double error = fabs(found - expected) / (scale > 1e-30 ? scale : 1);
    if (!(error <= j->worst))
        j->worst = error;
}

static void judge_rms_norm(struct judge *j, const void *args)
{
    const struct op_rms_norm *a = args;
    int64_t d = tensor_n_col(a->x);
    for (int64_t r = 0; r < tensor_n_row(a->x); r++) {
        double sum = 0;
        for (int64_t i = 0; i < d; i++)
            sum += pow(at(a->x, r, i), 2);
        for (int64_t i = 0; i < d; i++)
            compare(j, at(a->y, r, i),
                at(a->x, r, i) / sqrt(sum / (double)d + (double)a->eps) *
                    (a->w ? at(a->w, 0, i) : 1),
                1);
    }
}

static void judge_matmul(struct judge *j, const void *args)
{
    const struct op_matmul *a = args;
    for (int64_t r = 0; r < a->y->dim[0]; r++) {
        for (int64_t o = 0; o < a->y->dim[1]; o++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < a->x->dim[1]; i++) {
                double product = at(a->w, o, i) * at(a->x, r, i);
                sum += product;
                size += fabs(product);
            }
            compare(j, at(a->y, r, o), sum, size);
        }
    }
}

struct joint {
    double score[2048];
    const struct tensor *cache[2048];
    int64_t row[2048], n;
};

/* All keys of a row, in no order that the formula depends on. */
static void list_keys(const struct op_attend *a, int64_t r, struct joint *k)
{
    int64_t slot = int_at(a->slot, 0, r), last = int_at(a->last, 0, r);
    k->n = 0;
    int64_t first = a->first ? int_at(a->first, 0, r) : 0;
    for (int64_t p = last; p >= first && p > last - a->window; p--) {
        k->cache[k->n] = a->ring;
        k->row[k->n++] = slot * a->ring->dim[1] + p % a->ring->dim[1];
    }
    for (int64_t i = 0; a->comp && i < int_at(a->n_row, 0, r); i++) {
        k->cache[k->n] = a->comp;
        k->row[k->n++] = slot * a->comp->dim[1] + (a->rows ? int_at(a->rows, r, i) : i);
    }
}

static void judge_attend(struct judge *j, const void *args)
{
    const struct op_attend *a = args;
    static struct joint k;
    int64_t n_head = a->q->dim[1], d = a->q->dim[2];
    for (int64_t head = 0; head < a->q->dim[0] * n_head; head++) {
        list_keys(a, head / n_head, &k);
        double denominator = exp(at(a->sink, 0, head % n_head));
        for (int64_t i = 0; i < k.n; i++) {
            k.score[i] = 0;
            for (int64_t c = 0; c < d; c++)
                k.score[i] += at(a->q, head, c) * at(k.cache[i], k.row[i], c);
            k.score[i] = exp(k.score[i] * (double)a->scale);
            denominator += k.score[i];
        }
        for (int64_t c = 0; c < d; c++) {
            double sum = 0;
            for (int64_t i = 0; i < k.n; i++)
                sum += k.score[i] * at(k.cache[i], k.row[i], c);
            compare(j, at(a->o, head, c), sum / denominator, 1);
        }
    }
}

static double pool_channel(const struct op_pool *a, int64_t slot, int64_t pos, int64_t c)
{
    int64_t ring = a->kv->dim[1];
    double sum = 0, weight = 0;
    for (int64_t t = pos - (1 + a->overlap) * a->ratio + 1; t <= pos; t++) {
        int64_t column = a->overlap && t > pos - a->ratio ? a->y->dim[1] + c : c;
        double e = t < 0 ? 0 : exp(at(a->score, slot * ring + t % ring, column));
        sum += t < 0 ? 0 : e * at(a->kv, slot * ring + t % ring, column);
        weight += e;
    }
    return sum / weight;
}

static void judge_pool(struct judge *j, const void *args)
{
    const struct op_pool *a = args;
    for (int64_t r = 0; r < a->y->dim[0]; r++)
        for (int64_t c = 0; c < a->y->dim[1]; c++)
            compare(j, at(a->y, r, c),
                pool_channel(a, int_at(a->slot, 0, r), int_at(a->pos, 0, r), c), 1);
}

static void judge_router(struct judge *j, const void *args)
{
    const struct op_router *a = args;
    int64_t k = a->idx->dim[1], n_expert = a->logits->dim[1];
    for (int64_t r = 0; r < a->idx->dim[0]; r++) {
        double sum = 0, least = INFINITY;
        for (int64_t i = 0; i < k; i++) {
            int64_t e = int_at(a->idx, r, i);
            double p = sqrt(log1p(exp(at(a->logits, r, e))));
            sum += p;
            least = fmin(least, p + (a->bias ? at(a->bias, 0, e) : 0));
        }
        int64_t n_better = 0; /* experts clearly above the last chosen one: at most k - 1 */
        for (int64_t e = 0; e < n_expert; e++)
            n_better += sqrt(log1p(exp(at(a->logits, r, e)))) + (a->bias ? at(a->bias, 0, e) : 0) >
                        least + 1e-5;
        compare(j, n_better < k ? 0 : 1, 0, 1);
        for (int64_t i = 0; i < k; i++) {
            double p = sqrt(log1p(exp(at(a->logits, r, int_at(a->idx, r, i)))));
            compare(j, at(a->weight, r, i), (double)a->scale * p / sum, 1);
        }
    }
}

/* Row and column sums of what came out, and the pre and post weights. */
static void judge_mhc_mix(struct judge *j, const void *args)
{
    const struct op_mhc_mix *a = args;
    int64_t s = a->x->dim[1], d = a->x->dim[2];
    for (int64_t r = 0; r < a->x->dim[0]; r++) {
        double square = 0;
        for (int64_t i = 0; i < s * d; i++)
            square += pow(at(a->x, r * s + i / d, i % d), 2);
        for (int64_t o = 0; o < 2 * s; o++) {
            double m = 0;
            for (int64_t i = 0; i < s * d; i++)
                m += at(a->fn, o, i) * at(a->x, r * s + i / d, i % d);
            m /= sqrt(square / (double)(s * d) + (double)a->norm_eps);
            m = 1 / (1 + exp(-(m * at(a->scale, 0, o / s) + at(a->base, 0, o))));
            compare(j, o < s ? at(a->pre, r, o) : at(a->post, r, o - s),
                o < s ? m + (double)a->eps : 2 * m, 1);
        }
        for (int64_t c = 0; c < s; c++) {
            double column = 0;
            for (int64_t i = 0; i < s; i++)
                column += at(a->comb, r * s + i, c);
            compare(j, column, 1, 1);
        }
    }
}

static const struct {
    enum op op;
    const char *line;
    void (*judge)(struct judge *, const void *args);
    double bound;
} formulas[] = {
    {OP_rms_norm, "*=3 d=100 eps=1e-6", judge_rms_norm, 2e-6},
    {OP_rms_norm, "*=2 d=300 eps=1e-20 w:BF16", judge_rms_norm, 2e-6},
    {OP_matmul, "n=3 O=5 I=512 w:Q4_K", judge_matmul, 2e-7},
    {OP_matmul, "n=2 O=5 I=75", judge_matmul, 2e-7},
    {OP_attend, "n=3 h=2 d=40 S=2 R=24 c=30 k=10 window=16 scale=0.2", judge_attend, 2e-6},
    {OP_attend, "n=4 h=2 d=33 S=1 R=9 c=30 window=8 scale=0.2 -rows -first", judge_attend, 2e-6},
    {OP_attend, "n=3 h=1 d=20 S=1 R=9 window=8 scale=0.2 -comp -rows -n_row", judge_attend, 2e-6},
    {OP_pool, "m=3 d=20 w=20 S=2 R=140 ratio=128 overlap=0", judge_pool, 2e-6},
    {OP_pool, "m=4 d=20 w=40 S=2 R=9 ratio=4 overlap=1", judge_pool, 2e-6},
    {OP_router, "n=6 k=6 E=64 scale=1.5", judge_router, 2e-6},
    {OP_router, "n=4 k=3 E=9 scale=2.5 -bias", judge_router, 2e-6},
    {OP_mhc_mix, "n=2 S=4 D=50 M=24 n_iter=20 eps=1e-6 norm_eps=1e-6", judge_mhc_mix, 3e-6},
};

int main(void)
{
    struct judge j = {.n_passed = 0};
    struct backend *ref = NULL;
    struct err e = {0};
    if (backend_open(&ref, "ref", &(struct backend_options){.checks_shapes = 1}, &e))
        return fprintf(stderr, "%s\n", e.text), 2;
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        struct op_case c;
        struct case_result result = {.seconds = NULL};
        struct tensor tensors[OP_MAX_FIELD];
        _Alignas(16) unsigned char args[OP_MAX_ARGS];
        j.worst = 0;
        if (case_build(&c, formulas[i].op, formulas[i].line, 0, 7) ||
            case_run(&c, ref, NULL, &result, &e)) {
            printf("%s\n", e.text);
            j.worst = INFINITY;
        } else {
            case_args(&c, result.image, tensors, args);
            formulas[i].judge(&j, args);
        }
        int is_good = j.worst <= formulas[i].bound;
        if (!is_good)
            printf("FAIL %s \"%s\": off by %g, at most %g\n", op_info(formulas[i].op)->name,
                formulas[i].line, j.worst, formulas[i].bound);
        is_good ? j.n_passed++ : j.n_failed++;
        case_result_free(&result);
        case_free(&c);
    }
    backend_close(ref);
    printf("%d passed, %d failed\n", j.n_passed, j.n_failed);
    return j.n_failed > 0;
}
