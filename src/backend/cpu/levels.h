/* levels.h: which instruction sets this program has kernels for and this processor runs. */
#ifndef HADAL_BACKEND_CPU_LEVELS_H
#define HADAL_BACKEND_CPU_LEVELS_H

#include "backend/cpu/micro.h"
#include "base/err.h"

/* The kernels of a level by name, or of the best one that runs here for NULL. NULL: failed. */
const struct micro *levels_find(const char *name, struct err *e);

#endif
