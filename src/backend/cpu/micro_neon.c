/* micro_neon.c: the kernels for 64-bit ARM. */
#include "backend/cpu/micro.h"

#if defined(__aarch64__)
#include "backend/cpu/vec_neon.h"

#include "backend/cpu/ladder_arithmetic.h"

#include "backend/cpu/kernel_table.h"

const struct micro micro_neon = MICRO_TABLE("neon");
#endif
