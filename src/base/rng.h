/* rng.h: reproducible random numbers: SplitMix64. The whole state is one integer, so it can be
 * stored and restored. */
#ifndef HADAL_BASE_RNG_H
#define HADAL_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state; /* any seed */
};

uint64_t rng_next(struct rng *r);
/* Uniform in [0, 1): 24 bits, and 53 bits. */
float rng_float(struct rng *r);
double rng_double(struct rng *r);
/* Uniform in [0, n), n > 0, without bias. */
uint64_t rng_below(struct rng *r, uint64_t n);
/* A generator of its own for item `index` of a seed: the same whatever was drawn before. */
struct rng rng_of(uint64_t seed, uint64_t index);

#endif
