/* fused.h: fused ops as compositions of base ops. They read no tensor data, so they run on devices
 * too. */
#ifndef HADAL_OPS_FUSED_H
#define HADAL_OPS_FUSED_H

#include "ops/ops.h"

#define FUSED_DECLARE(op) void fused_##op(struct backend *be, const void *args);
OP_LIST_FUSED(FUSED_DECLARE)

/* The products of a call that are given, as lists. Returns how many. */
enum { MATMUL_EACH_MAX = 7 };
int matmul_each_list(const struct op_matmul_each *a, const struct tensor *y[MATMUL_EACH_MAX],
    const struct tensor *w[MATMUL_EACH_MAX]);

#endif
