/* resident.h: what is always needed, read from files into memory once: neighbours in one go.
 *
 *   wanted   |--a--|   |-b-|                        |---c---|
 *   read     [=============]                        [=======]      whole pages, small gaps included
 */
#ifndef HADAL_STORE_RESIDENT_H
#define HADAL_STORE_RESIDENT_H

#include "store/reader.h"

/* A run of bytes; `place` is where it is in the memory that it is read to. */
struct resident_span {
    const struct disk_file *file;
    uint64_t at, n_byte;
    uint64_t place; /* set by resident_plan */
    void *owner;    /* the caller's */
};

/* Sorts the spans and gives each its place. Bytes of memory that resident_read needs. */
uint64_t resident_plan(struct resident_span *span, int n);
typedef void (*resident_progress_fn)(void *context, uint64_t done, uint64_t total);
struct resident_progress {
    resident_progress_fn fn; /* or NULL */
    void *context;
};
/* Planned spans to memory, which is aligned to DISK_ALIGN. */
int resident_read(struct reader *reader, const struct resident_span *span, int n, void *memory,
    const struct resident_progress *progress, struct err *e);

#endif
