/* micro_avx512.c: the kernels for x86-64 with AVX-512 F, BW, VL and DQ. Compiled with those flags;
 * runs after a check. */
#include "backend/cpu/micro.h"

#if defined(__x86_64__)
#include "backend/cpu/vec_avx512.h"

#include "backend/cpu/ladder_tables.h"

#include "backend/cpu/kernel_table.h"

const struct micro micro_avx512 = MICRO_TABLE("avx512");
#endif
