/* output.h: the file being written, OUT.part until it is whole: header first, data at places fixed
 * by it.
 *
 * The header holds one checksum per tensor (xxHash64 of its data, 0: not finished; a hash of 0 is
 * stored as 1). So the part file says itself what it has, and nothing else is kept on disk.
 */
#ifndef HADAL_CONVERT_OUTPUT_H
#define HADAL_CONVERT_OUTPUT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct output {
    int fd;
    char path[4096], part[4104];
    uint64_t sums_at, data_at; /* offsets in the file */
    uint64_t *sums;
    int n_sum;
    int is_resumed; /* an earlier run of the same conversion left this file; sums tell what it
                       finished */
};

/* header: all of it, sums zero. n_byte: of the whole file. Fails while another conversion writes
 * the same file. */
struct output_plan {
    const char *path;
    const struct buf *header;
    uint64_t sums_at, n_byte;
    int n_sum;
};
int output_open(
    struct output *o, const struct output_plan *plan, struct arena *arena, struct err *e);
/* Offsets count from the start of the data. */
int output_write(struct output *o, uint64_t offset, const void *bytes, uint64_t n, struct err *e);
int output_read(struct output *o, uint64_t offset, void *bytes, uint64_t n, struct err *e);
int output_finish_tensor(struct output *o, int i, uint64_t sum, struct err *e);
/* Syncs and gives the file its name. */
int output_commit(struct output *o, struct err *e);
/* Closes; an unfinished part file stays for the next run. */
void output_close(struct output *o);

#endif
