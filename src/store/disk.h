/* disk.h: files that weights are read from, at any place, around the page cache.
 *
 * What is read once in a while and kept here anyway would only push other things out of the system's
 * cache, so files are opened for direct reads; where a file system has none, pages are dropped again
 * after every read. Nothing is mapped and nothing is read ahead.
 *
 * The five calls are a table, so that a test can make any of them fail.
 */
#ifndef HADAL_STORE_DISK_H
#define HADAL_STORE_DISK_H

#include "base/err.h"

#include <stdint.h>

/* Direct reads begin, end and land at multiples of it. */
enum { DISK_ALIGN = 4096 };

/* Called by several threads at once; -1 and errno when something fails. */
struct disk_calls {
    void *context;
    int (*open)(void *context, const char *path, int is_direct);
    int64_t (*size)(void *context, int fd);
    /* Bytes read, 0 at the file's end. */
    int64_t (*read)(void *context, int fd, void *to, uint64_t n_byte, uint64_t at);
    /* These pages of the system's cache are not needed again; n_byte 0: and no read-ahead please. */
    void (*forget)(void *context, int fd, uint64_t at, uint64_t n_byte);
    void (*close)(void *context, int fd);
};
extern const struct disk_calls disk_system;

struct disk_file {
    const struct disk_calls *calls;
    const char *path; /* the caller's */
    uint64_t n_byte;  /* when it was opened */
    int fd, is_direct;
};
int disk_open(
    struct disk_file *f, const char *path, const struct disk_calls *calls, struct err *e);
void disk_close(struct disk_file *f);

/* Bytes [at, at + n_byte) to `to`, all three multiples of DISK_ALIGN; what lies behind the end of the
 * file is left alone. A file that has become shorter is an error. Any number of threads. */
int disk_read(
    const struct disk_file *f, uint64_t at, uint64_t n_byte, void *to, struct err *e);

/* Up and down to multiples of DISK_ALIGN. */
uint64_t disk_above(uint64_t n_byte);
uint64_t disk_below(uint64_t at);

#endif
