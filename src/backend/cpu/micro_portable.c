/* micro_portable.c: the kernels in plain C. As fast as fmaf is: an instruction on ARM, a call
 * elsewhere. */
#include "backend/cpu/vec_portable.h"

#include "backend/cpu/ladder_arithmetic.h"

#include "backend/cpu/kernel_table.h"

const struct micro micro_portable = MICRO_TABLE("portable");
