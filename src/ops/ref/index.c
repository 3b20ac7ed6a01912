/* index.c: choosing compressed rows: scores, the k best rows, the best blocks of rows. v4 spec 5,
 * v41 spec 7.3, 7.4
 *
 * Choosing here is the plain definition, quadratic in what is chosen; only its result matters.
 */
#include "ops/ref/ref.h"

/* Row j of a cache as floats. */
static const float *cache_row(const struct tensor *t, int64_t row, float *decoded)
{
    if (t->type == DT_F32)
        return ref_row(t, row);
    tensor_decode(t, row, 0, tensor_n_col(t), decoded);
    return decoded;
}

static float score_key(const struct op_index_score *a, int64_t r, const float *key)
{
    int64_t n_head = a->q->dim[1], d = a->q->dim[2];
    const float *w = ref_row(a->w, r);
    float score = 0;
    for (int64_t h = 0; h < n_head; h++) {
        float dot = ref_dot(ref_row(a->q, r * n_head + h), key, d);
        float weight = w[h] * a->scale;
        score = fmaf(weight, dot > 0 ? dot : 0.0f, score);
    }
    return score;
}

void ref_index_score(struct backend *be, const void *args)
{
    const struct op_index_score *a = args;
    const int32_t *slot = ref_ints(a->slot, 0), *visible = ref_ints(a->visible, 0);
    int64_t capacity = a->keys->dim[1];
    int64_t most = capacity < a->s->dim[1] ? capacity : a->s->dim[1];
    float *decoded = backend_scratch(be, (size_t)a->q->dim[2] * sizeof *decoded);
    for (int64_t r = 0; decoded && r < a->q->dim[0]; r++) {
        if (ref_refuse_index(be, "index_score: slot", slot[r], a->keys->dim[0]) ||
            ref_refuse_index(be, "index_score: visible rows", visible[r], most + 1))
            return;
        for (int64_t j = 0; j < visible[r]; j++)
            ref_row(a->s, r)[j] =
                score_key(a, r, cache_row(a->keys, slot[r] * capacity + j, decoded));
    }
}

/* Marks the n best of the candidates (mark 1) with 2: largest first, ties to the lower index.
 * Returns how many. */
static int mark_best(const float *score, unsigned char *mark, int64_t n_score, int64_t n)
{
    int n_best = 0;
    for (; n_best < n; n_best++) {
        int64_t best = -1;
        for (int64_t j = 0; j < n_score; j++)
            if (mark[j] == 1 && (best < 0 || ref_order(score[j]) > ref_order(score[best])))
                best = j;
        if (best < 0)
            break;
        mark[best] = 2;
    }
    return n_best;
}

static int32_t write_marked(const unsigned char *mark, int64_t n_mark, int32_t *out, int64_t n_out)
{
    int32_t n = 0;
    for (int64_t j = 0; j < n_mark; j++)
        if (mark[j] == 2)
            out[n++] = (int32_t)j;
    for (int64_t i = n; i < n_out; i++)
        out[i] = -1;
    return n;
}

/* Candidate rows of batch row r: all visible ones, or those in the listed blocks. */
static void mark_candidates(
    const struct op_topk *a, int64_t r, int64_t visible, unsigned char *mark)
{
    for (int64_t j = 0; j < visible; j++)
        mark[j] = !a->block;
    if (!a->block)
        return;
    const int32_t *block = ref_ints(a->block, r);
    int64_t size = a->block_size;
    for (int64_t b = 0; b < ref_ints(a->n_block, 0)[r] && b < a->block->dim[1]; b++)
        for (int64_t j = block[b] * size; j >= 0 && j < (block[b] + 1) * size && j < visible; j++)
            mark[j] = 1;
}

void ref_topk(struct backend *be, const void *args)
{
    const struct op_topk *a = args;
    const int32_t *visible = ref_ints(a->visible, 0);
    int64_t k = a->rows->dim[1];
    unsigned char *mark = backend_scratch(be, (size_t)a->s->dim[1]);
    for (int64_t r = 0; mark && r < a->rows->dim[0]; r++) {
        if (ref_refuse_index(be, "topk: visible rows", visible[r], a->s->dim[1] + 1))
            return;
        mark_candidates(a, r, visible[r], mark);
        mark_best(ref_row(a->s, r), mark, visible[r], k);
        ref_ints(a->n_row, 0)[r] = write_marked(mark, visible[r], ref_ints(a->rows, r), k);
    }
}

static float block_best(const float *score, int64_t first, int64_t end)
{
    float best = score[first];
    for (int64_t j = first + 1; j < end; j++)
        best = score[j] > best ? score[j] : best;
    return best;
}

void ref_candidate_blocks(struct backend *be, const void *args)
{
    const struct op_candidate_blocks *a = args;
    const int32_t *visible = ref_ints(a->visible, 0);
    int64_t size = a->block_size, n_most = a->s->dim[1] / size + 1;
    float *best = backend_scratch(be, (size_t)n_most * sizeof *best);
    unsigned char *mark = backend_scratch(be, (size_t)n_most);
    for (int64_t r = 0; best && mark && r < a->block->dim[0]; r++) {
        if (ref_refuse_index(be, "candidate_blocks: visible rows", visible[r], a->s->dim[1] + 1))
            return;
        int64_t n_block = (visible[r] + size - 1) / size;
        for (int64_t b = 0; b < n_block; b++) {
            int64_t end = (b + 1) * size < visible[r] ? (b + 1) * size : visible[r];
            best[b] = block_best(ref_row(a->s, r), b * size, end);
            mark[b] = b + 1 < n_block ? 1 : 2; /* the newest block is in */
        }
        mark_best(best, mark, n_block, a->block->dim[1] - 1);
        ref_ints(a->n_block, 0)[r] =
            write_marked(mark, n_block, ref_ints(a->block, r), a->block->dim[1]);
    }
}
