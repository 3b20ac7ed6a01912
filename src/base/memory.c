/* memory.c: see memory.h. */
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* cgroup v2 and v1 limits; absent files and "max" count as no limit. */
static uint64_t control_group_limit(void)
{
    static const char *const path[] = {
        "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    uint64_t limit = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(path[i], "r");
        uint64_t value;
        if (f && fscanf(f, "%" SCNu64, &value) == 1 && value < limit)
            limit = value;
        if (f)
            fclose(f);
    }
    return limit;
}

uint64_t memory_physical(void)
{
    long n_page = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (n_page <= 0 || page_bytes <= 0)
        return 0;
    uint64_t physical = (uint64_t)n_page * (uint64_t)page_bytes, limit = control_group_limit();
    return limit < physical ? limit : physical;
}
