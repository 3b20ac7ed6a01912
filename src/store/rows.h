/* rows.h: rows of big tables that stay on disk (n-gram memories), read one by one.
 *
 * A batch names the rows that it will need of every table as soon as its tokens are known; each is read
 * once, however often it is named, with many reads under way. What was read before is kept in a pool of
 * rows. Rows of the batch at hand are never given away. One thread at a time.
 */
#ifndef HADAL_STORE_ROWS_H
#define HADAL_STORE_ROWS_H

#include "store/pool.h"
#include "store/reader.h"

/* Row r is row_bytes at `at + r * row_bytes`, and scale_bytes likewise where the format has scales. */
struct rows_table {
    int64_t n_row;
    uint64_t row_bytes, at, scale_bytes, scale_at;
    const struct disk_file *file, *scale_file;
};

struct rows_stats {
    uint64_t n_wanted, n_there; /* different rows of a batch, and those of them that were in memory */
};

struct rows;
struct rows_options {
    struct reader *reader;
    const struct rows_table *table; /* [n_table] */
    int n_table;
    int max_id;   /* rows named by a batch, per table */
    int n_slot;   /* rows kept, at least n_table x max_id or all there are */
    void *memory; /* n_slot x rows_slot_bytes */
};
uint64_t rows_slot_bytes(const struct rows_table *table, int n_table);
/* Memory for lists. */
uint64_t rows_list_bytes(int n_table, int max_id, int n_slot);
int rows_open(struct rows **rows, const struct rows_options *o, struct err *e);
/* After the reader. NULL is fine. */
void rows_close(struct rows *rows);

/* A batch begins: the one before lets go of its rows. */
void rows_begin(struct rows *rows);
/* Names the batch's rows of a table, once per batch, and starts reading. */
int rows_want(struct rows *rows, int table, const int32_t *id, int n, struct err *e);
/* Until the named rows of the table are there. */
int rows_wait(struct rows *rows, int table, struct err *e);
/* A named row, its scales row_bytes behind it; aligned to 64 bytes. */
const uint8_t *rows_find(const struct rows *rows, int table, int32_t id);

struct rows_stats rows_stats(const struct rows *rows);

#endif
