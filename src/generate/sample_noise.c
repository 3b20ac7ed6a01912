/* sample_noise.c: see sample_noise.h. */
#include "generate/sample_noise.h"

#include <string.h>

/* SplitMix64 (Steele, Lea, Flood 2014): the increment makes the counter, the finaliser makes it random. */
#define INCREMENT 0x9e3779b97f4a7c15u

static uint64_t finalise(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t sample_noise_stream(uint64_t seed, int pos)
{
    return finalise(finalise(seed + INCREMENT) + INCREMENT * ((uint64_t)(uint32_t)pos + 1));
}

uint64_t sample_noise_bits(uint64_t stream, int32_t id)
{
    return finalise(stream + INCREMENT * ((uint64_t)(uint32_t)id + 1));
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172. */
double sample_noise_log(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    int e = (int)(u >> 52) - 1023;
    u = (u & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &u, sizeof m);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1.0) / (m + 1.0), s2 = s * s, sum = 0.0;
    for (int k = 21; k >= 3; k -= 2)
        sum = (sum + 1.0 / k) * s2;
    return e * 0x1.62e42fefa39efp-1 + 2.0 * (s + s * sum);
}

/* v = (2 k + 1) 2^-53 with k the upper 52 bits, strictly between 0 and 1, so that 1 - v is exact and not 0.
 * -log(1 - v) is exponential, its negated logarithm Gumbel. */
double sample_noise_gumbel(uint64_t bits)
{
    double v = (double)((bits >> 12) * 2 + 1) * 0x1p-53;
    return -sample_noise_log(-sample_noise_log(1.0 - v));
}

/* -log(1 - v) > v >= 2^-(z + 1) for z leading zero bits, so the Gumbel number is below (z + 1) log 2. */
double sample_noise_bound(uint64_t bits)
{
    int n_zero = __builtin_clzll(bits | 0x800);
    return (n_zero + 1) * 0.6931471805599454;
}
