/* select.c: see select.h. Scores are read once: what is larger than the k-th largest of those
 * before is kept, and when many are, only the best k of them stay. Of a later score that equals the
 * k-th, the earlier row wins, so it never enters.
 *
 * The k-th largest is found digit by digit: scores become integers that sort alike, and a histogram
 * of 11 bits tells which digit the k-th largest has, from the top down; three passes for 32 bits.
 */
#include "backend/cpu/select.h"

#include "ops/ref/ref.h"

#include <string.h>

enum { DIGIT_BITS = 11, N_DIGIT = 1 << DIGIT_BITS, MAX_KEPT = 4096 };

static uint32_t order_of(float score)
{
    return (uint32_t)ref_order(score) ^ 0x80000000u;
}

/* Of the scores whose bits above `shift + width` are those of `prefix`: the digit at `shift` that
 * the k-th largest has. *k becomes its rank among the scores with that digit. */
static uint32_t find_digit(const float *score, int64_t n, uint32_t prefix, int shift, int64_t *k)
{
    int64_t count[N_DIGIT];
    int width = shift ? DIGIT_BITS : 32 - 2 * DIGIT_BITS;
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = order_of(score[i]);
        if ((uint64_t)x >> (shift + width) == (uint64_t)prefix >> (shift + width))
            count[x >> shift & ((1u << width) - 1)]++;
    }
    uint32_t digit = (1u << width) - 1;
    for (; digit && count[digit] < *k; digit--)
        *k -= count[digit];
    return digit;
}

/* The k-th largest, k < n, and how many equal to it are among the k. */
static uint32_t find_threshold(const float *score, int64_t n, int64_t k, int64_t *n_equal)
{
    static const int shift[3] = {32 - DIGIT_BITS, 32 - 2 * DIGIT_BITS, 0};
    uint32_t threshold = 0;
    *n_equal = k;
    for (int i = 0; i < 3; i++)
        threshold |= find_digit(score, n, threshold, shift[i], n_equal) << shift[i];
    return threshold;
}

struct kept {
    float score[MAX_KEPT];
    int32_t at[MAX_KEPT];
    int64_t n, least; /* order of the k-th largest; -1 before there is one */
};

static void keep_largest(struct kept *kept, int64_t k)
{
    int64_t n_equal, n = 0;
    uint32_t threshold = find_threshold(kept->score, kept->n, k, &n_equal);
    for (int64_t i = 0; i < kept->n; i++) {
        uint32_t x = order_of(kept->score[i]);
        if (x < threshold || (x == threshold && n_equal-- <= 0))
            continue;
        kept->score[n] = kept->score[i];
        kept->at[n++] = kept->at[i];
    }
    kept->n = n;
    kept->least = threshold;
}

static int32_t select_few(
    const float *score, int64_t n, int64_t k, const int32_t *place, int32_t *out)
{
    struct kept kept;
    kept.n = 0;
    kept.least = -1;
    for (int64_t i = 0; i < n; i++) {
        if ((int64_t)order_of(score[i]) <= kept.least)
            continue;
        kept.score[kept.n] = score[i];
        kept.at[kept.n++] = (int32_t)i;
        if (kept.n == MAX_KEPT)
            keep_largest(&kept, k);
    }
    if (kept.n > k)
        keep_largest(&kept, k);
    for (int64_t i = 0; i < kept.n; i++)
        out[i] = place ? place[kept.at[i]] : kept.at[i];
    return (int32_t)kept.n;
}

int32_t select_largest(const float *score, int64_t n, int64_t k, const int32_t *place, int32_t *out)
{
    if (k > 0 && k <= MAX_KEPT / 2)
        return select_few(score, n, k, place, out);
    int64_t n_equal = n;
    uint32_t threshold = k > 0 && k < n ? find_threshold(score, n, k, &n_equal) : 0;
    int32_t n_out = 0;
    for (int64_t i = 0; i < n && n_out < k; i++) {
        uint32_t x = order_of(score[i]);
        if (x > threshold || (x == threshold && n_equal-- > 0))
            out[n_out++] = place ? place[i] : (int32_t)i;
    }
    return n_out;
}
