/* sample_noise.h: Gumbel noise as a pure function of (seed, position, token).
 *
 * argmax over i of x[i] + gumbel(i) is a draw from softmax(x). Because the noise is addressed instead of consumed, a token
 * chosen while checking a draft, after a rewind or on another machine is the same token. 64 hashed bits give a uniform
 * number; logarithms are written out in IEEE double operations, so no C library takes part.
 */
#ifndef HADAL_GENERATE_SAMPLE_NOISE_H
#define HADAL_GENERATE_SAMPLE_NOISE_H

#include <stdint.h>

/* The stream of one position of one sequence. */
uint64_t sample_noise_stream(uint64_t seed, int pos);
/* 64 random bits of a token in that stream; cheap (two multiplications). */
uint64_t sample_noise_bits(uint64_t stream, int32_t id);
/* The Gumbel number that those bits stand for, between -3.6 and 36.8. */
double sample_noise_gumbel(uint64_t bits);
/* At least sample_noise_gumbel(bits), without logarithms: most tokens need no more to be ruled out. */
double sample_noise_bound(uint64_t bits);

/* Natural logarithm of a normal positive number; error below 2^-50 relative to max(1, |log x|). */
double sample_noise_log(double x);

#endif
