/* memory.h: how much memory there is. */
#ifndef HADAL_BASE_MEMORY_H
#define HADAL_BASE_MEMORY_H

#include <stdint.h>

/* Physical memory in bytes, or what a control group allows this process if that is less; 0 when unknown. */
uint64_t memory_physical(void);
/* What could be taken now without taking it from others; page cache counts as free. 0 when unknown. */
uint64_t memory_free(void);

#endif
