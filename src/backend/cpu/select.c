/* select.c: see select.h. The k-th largest score is found digit by digit: scores become integers
 * that sort alike, and a histogram of 11 bits tells which digit the k-th largest has, from the top
 * down; three passes for 32 bits. */
#include "backend/cpu/select.h"

#include "ops/ref/ref.h"

#include <string.h>

enum { DIGIT_BITS = 11, N_DIGIT = 1 << DIGIT_BITS };

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

int32_t select_largest(const float *score, int64_t n, int64_t k, const int32_t *place, int32_t *out)
{
    uint32_t threshold = 0;
    int64_t n_equal = n; /* of the scores equal to the threshold, how many are in */
    if (k < n && k > 0) {
        n_equal = k;
        for (int shift = 32 - DIGIT_BITS; shift >= 0; shift = shift > DIGIT_BITS
                                                                  ? shift - DIGIT_BITS
                                                              : shift ? 0
                                                                      : -1)
            threshold |= find_digit(score, n, threshold, shift, &n_equal) << shift;
    }
    int32_t n_out = 0;
    for (int64_t i = 0; i < n && n_out < k; i++) {
        uint32_t x = order_of(score[i]);
        if (x > threshold || (x == threshold && n_equal-- > 0))
            out[n_out++] = place ? place[i] : (int32_t)i;
    }
    return n_out;
}
