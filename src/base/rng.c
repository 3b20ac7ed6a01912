/* rng.c: see rng.h. SplitMix64 as published by Steele, Lea and Flood (2014). */
#include "base/rng.h"

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t rng_next(struct rng *r)
{
    return mix(r->state += 0x9e3779b97f4a7c15u);
}

float rng_float(struct rng *r)
{
    return (float)(rng_next(r) >> 40) * 0x1p-24f;
}

double rng_double(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    uint64_t unfair = (0 - n) % n; /* 2^64 mod n: draws below it would favour small results */
    uint64_t x;
    do
        x = rng_next(r);
    while (x < unfair);
    return x % n;
}

struct rng rng_of(uint64_t seed, uint64_t index)
{
    return (struct rng){mix(seed ^ mix(index + 1))};
}
