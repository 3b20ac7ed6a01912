/* memory.c: see memory.h. Linux: /proc, and control groups of both versions. */
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

/* A version of control groups: where its memory files are and what they are called. */
struct group_kind {
    const char *root, *controller, *limit, *usage, *stat, *reclaimable;
};
static const struct group_kind kinds[] = {
    {"/sys/fs/cgroup", "", "memory.max", "memory.current", "memory.stat", "inactive_file"},
    {"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
        "memory.stat", "total_inactive_file"},
};

/* The first number of a file; UINT64_MAX when there is none, as for "max". */
static uint64_t read_number(const char *folder, const char *name)
{
    char path[MAX_PATH + 64];
    uint64_t value;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%" SCNu64, &value) != 1)
        value = UINT64_MAX;
    if (f)
        fclose(f);
    return value;
}

/* The number behind a word at the beginning of a line; 0 when there is none. */
static uint64_t read_entry(const char *path, const char *word)
{
    char line[256];
    uint64_t value = 0;
    size_t n = strlen(word);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, word, n) && strchr(" :\t", line[n]) &&
            sscanf(line + n + 1, "%" SCNu64, &value) == 1)
            break;
    if (f)
        fclose(f);
    return value;
}

/* This process's group within the kind's tree: "/a/b"; "" for the root. */
static void find_group(const struct group_kind *k, char group[MAX_PATH])
{
    char line[MAX_PATH];
    FILE *f = fopen("/proc/self/cgroup", "r"); /* lines "4:memory:/a/b" and "0::/a/b" */
    group[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        char *name = strchr(line, ':'), *path = name ? strchr(name + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        if (!strcmp(name + 1, k->controller) && path[1])
            snprintf(group, MAX_PATH, "%s", path);
    }
    if (f)
        fclose(f);
}

struct bounds {
    uint64_t limit, free;
};

/* The tightest of the group's own limit and those of the groups that it is in. */
static void bound_by(const struct group_kind *k, struct bounds *b)
{
    char group[MAX_PATH], folder[2 * MAX_PATH], stat[2 * MAX_PATH + 64];
    find_group(k, group);
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", k->root, group);
        uint64_t limit = read_number(folder, k->limit), used = read_number(folder, k->usage);
        snprintf(stat, sizeof stat, "%s/%s", folder, k->stat);
        if (limit < b->limit)
            b->limit = limit;
        if (limit != UINT64_MAX && used != UINT64_MAX) {
            uint64_t left = (limit > used ? limit - used : 0) + read_entry(stat, k->reclaimable);
            b->free = left < b->free ? left : b->free;
        }
        char *slash = strrchr(group, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

static struct bounds find_bounds(void)
{
    struct bounds b = {UINT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        bound_by(&kinds[i], &b);
    return b;
}

uint64_t memory_physical(void)
{
    long n_page = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (n_page <= 0 || page_bytes <= 0)
        return 0;
    uint64_t physical = (uint64_t)n_page * (uint64_t)page_bytes, limit = find_bounds().limit;
    return limit < physical ? limit : physical;
}

uint64_t memory_free(void)
{
    uint64_t available = 1024 * read_entry("/proc/meminfo", "MemAvailable");
    uint64_t left = find_bounds().free;
    if (!available)
        return left == UINT64_MAX ? 0 : left;
    return left < available ? left : available;
}
