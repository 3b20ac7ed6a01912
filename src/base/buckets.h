/* buckets.h: how large hash tables are. */
#ifndef HADAL_BASE_BUCKETS_H
#define HADAL_BASE_BUCKETS_H

#include <stdint.h>

/* A power of two, so that n_max entries fill half of it at most. */
static inline uint32_t bucket_count(int n_max)
{
    uint32_t n = 16;
    while (n < 2 * (uint32_t)n_max)
        n *= 2;
    return n;
}

#endif
