/* select.h: choosing the k best of many scores in linear time. */
#ifndef HADAL_BACKEND_CPU_SELECT_H
#define HADAL_BACKEND_CPU_SELECT_H

#include <stdint.h>

/* Writes the places of the k largest of n scores in ascending order (all n when n <= k) and returns
 * how many; equal scores: the lower place first. place: the place of score i, NULL: i itself;
 * ascending. */
int32_t select_largest(
    const float *score, int64_t n, int64_t k, const int32_t *place, int32_t *out);

#endif
