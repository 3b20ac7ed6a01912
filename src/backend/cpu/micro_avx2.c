/* micro_avx2.c: the kernels for x86-64 with AVX2, FMA and F16C. Compiled with -mavx2 -mfma -mf16c;
 * runs after a check. */
#include "backend/cpu/micro.h"

#if defined(__x86_64__)
#include "backend/cpu/vec_avx2.h"

#include "backend/cpu/ladder_arithmetic.h"

#include "backend/cpu/kernel_table.h"

const struct micro micro_avx2 = MICRO_TABLE("avx2");
#endif
