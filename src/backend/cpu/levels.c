/* levels.c: see levels.h. */
#include "backend/cpu/levels.h"

#include <stddef.h>
#include <string.h>

struct level {
    const struct micro *micro;
    int runs_here;
};

enum { MAX_LEVEL = 4 };

/* The one to take unasked comes first. Returns how many. */
static int list_levels(struct level *level)
{
    int n = 0;
#if defined(__x86_64__)
    int has_avx2 = __builtin_cpu_supports("avx2") &&
                   __builtin_cpu_supports("fma"); /* F16C is older than both */
    int has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    level[n++] = (struct level){&micro_avx512, has_avx2 && has_avx512};
    level[n++] = (struct level){&micro_avx2, has_avx2};
#elif defined(__aarch64__)
    level[n++] = (struct level){&micro_neon, 1};
#endif
    level[n++] = (struct level){&micro_portable, 1};
    return n;
}

const struct micro *levels_find(const char *name, struct err *e)
{
    struct level level[MAX_LEVEL];
    int n = list_levels(level);
    for (int i = 0; i < n; i++) {
        if (!name ? !level[i].runs_here : strcmp(name, level[i].micro->name) != 0)
            continue;
        if (level[i].runs_here)
            return level[i].micro;
        err_set(
            e, ERR_UNSUPPORTED, "level %s: this processor does not have its instructions", name);
        return NULL;
    }
    err_set(e, ERR_UNSUPPORTED, "level %s: not built into this program", name ? name : "");
    return NULL;
}
