/* reader.h: many reads under way at once, by a few threads that do nothing else.
 *
 * A disk reaches its rate only when it always has several reads to do. Large reads are cut into pieces
 * that threads take one by one, so even a single one keeps them all busy; pieces are taken in the order
 * in which reads were started. Nothing is allocated while reading: a read and its group are memory of
 * the caller's, who leaves them alone until the group is done.
 */
#ifndef HADAL_STORE_READER_H
#define HADAL_STORE_READER_H

#include "store/disk.h"

#include <stdatomic.h>

/* Reads that are waited for together. All zeros: nothing was started, nothing failed. */
struct read_group {
    atomic_int n_open;  /* reads not done */
    struct err failure; /* the first; meaningful when n_open is 0 */
};

struct read {
    const struct disk_file *file;
    uint64_t at, n_byte; /* at least one byte, inside the file */
    void *to;            /* exactly n_byte bytes; fastest when at, n_byte and to are multiples of DISK_ALIGN */
    struct read_group *group; /* the reader's from here on */
    struct read *next;
    uint64_t n_taken;
    int n_piece;
};

struct reader;
struct reader_stats {
    uint64_t n_read, read_bytes; /* pieces read and what came from the disk for them */
    double wait_seconds;         /* that callers waited */
};

/* n_thread: how many pieces can be under way. */
int reader_open(struct reader **reader, int n_thread, struct err *e);
/* Reads not begun are dropped, those under way end first. NULL is fine. */
void reader_close(struct reader *reader);
/* Bytes that a reader's own buffers take, per thread. */
uint64_t reader_thread_bytes(void);

/* Starts r[0..n) as a group, in which nothing is under way any more. */
void reader_start(struct reader *reader, struct read_group *group, struct read *r, int n);
int read_group_is_done(const struct read_group *group);
/* Until the group is done; its failure. */
int reader_wait(struct reader *reader, struct read_group *group, struct err *e);
/* Until one of several is done, whether it failed or not. */
void reader_wait_any(struct reader *reader, struct read_group *const *group, int n);

struct reader_stats reader_stats(struct reader *reader);

#endif
