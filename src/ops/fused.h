/* fused.h: fused ops as compositions of base ops. They read no tensor data, so they run on devices
 * too. */
#ifndef HADAL_OPS_FUSED_H
#define HADAL_OPS_FUSED_H

#include "ops/ops.h"

#define FUSED_DECLARE(op) void fused_##op(struct backend *be, const void *args);
OP_LIST_FUSED(FUSED_DECLARE)

#endif
