/* resident.c: see resident.h. */
#include "store/resident.h"

#include "base/arena.h"

#include <stdlib.h>

enum { LARGEST_GAP = 1 << 16 };

static int by_position(const void *a, const void *b)
{
    const struct resident_span *x = a, *y = b;
    if (x->file != y->file)
        return (uintptr_t)x->file < (uintptr_t)y->file ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The spans from i on that are read together: *end bytes into the file, *next the first that is not. */
static uint64_t run_from(const struct resident_span *span, int n, int i, int *next, uint64_t *end)
{
    const struct resident_span *first = &span[i];
    *end = first->at + first->n_byte;
    for (i++; i < n && span[i].file == first->file && span[i].at <= *end + LARGEST_GAP; i++)
        if (span[i].at + span[i].n_byte > *end)
            *end = span[i].at + span[i].n_byte;
    *next = i;
    *end = disk_above(*end);
    return disk_below(first->at);
}

uint64_t resident_plan(struct resident_span *span, int n)
{
    uint64_t total = 0, end;
    qsort(span, (size_t)n, sizeof *span, by_position);
    for (int i = 0, next; i < n; i = next) {
        uint64_t from = run_from(span, n, i, &next, &end);
        for (int k = i; k < next; k++)
            span[k].place = total + (span[k].at - from);
        total += end - from;
    }
    return total;
}

/* Waits for all, failed or not: their memory is the caller's. */
static int wait_for_all(struct reader *reader, struct read_group *group, const struct read *read,
    int n, const struct resident_progress *progress, struct err *e)
{
    struct err failure = {0};
    uint64_t done = 0, total = 0;
    for (int i = 0; i < n; i++)
        total += read[i].n_byte;
    for (int i = 0; i < n; i++) {
        struct err own = {0};
        if (reader_wait(reader, &group[i], &own) && !failure.code)
            failure = own;
        done += read[i].n_byte;
        if (progress->fn)
            progress->fn(progress->context, done, total);
    }
    if (failure.code && e)
        *e = failure;
    return failure.code ? -1 : 0;
}

int resident_read(struct reader *reader, const struct resident_span *span, int n, void *memory,
    const struct resident_progress *progress, struct err *e)
{
    struct arena arena = {0};
    struct read *read = ARENA_NEW(&arena, struct read, (size_t)n);
    struct read_group *group = ARENA_NEW(&arena, struct read_group, (size_t)n);
    int n_read = 0, failed;
    uint64_t total = 0, end;
    for (int i = 0, next; read && group && i < n; i = next, n_read++) {
        uint64_t from = run_from(span, n, i, &next, &end);
        read[n_read] = (struct read){.file = span[i].file,
            .at = from,
            .n_byte = end - from,
            .to = (char *)memory + total};
        total += end - from;
        reader_start(reader, &group[n_read], &read[n_read], 1);
    }
    failed = !read || !group ? err_set(e, ERR_MEMORY, "no memory for a list of %d weights", n)
                             : wait_for_all(reader, group, read, n_read, progress, e);
    arena_free(&arena);
    return failed;
}
