/* stored_inside.h: what stored.c lays out and stored_run.c uses. */
#ifndef HADAL_MODEL_STORED_INSIDE_H
#define HADAL_MODEL_STORED_INSIDE_H

#include "model/stored.h"

enum {
    STORED_MAX_LAYER = CONFIG_MAX_LAYER + CONFIG_MAX_STAGE,
    STORED_SLICE = 512, /* pairs of one call */
    STORED_MAX_KEPT = 1 << 26 /* rows */
};

struct stored {
    struct arena arena;
    struct backend *be;
    struct disk_calls calls;
    struct model_file_info model;
    struct model_weights *weights; /* a copy, pointing into memory */
    struct file_part *part;        /* [n_file] as mapped, and to read from */
    struct disk_file *file;
    int n_file, n_row;
    struct reader *reader;
    uint64_t disk_bytes, cache_bytes;

    struct resident_span *span; /* [n_span] */
    int n_span;
    uint64_t resident_bytes;
    struct backend_buffer residents, pool_memory, buffers;

    struct expert_layer layer[STORED_MAX_LAYER]; /* n_expert 0: not on disk */
    struct experts_need experts_need;
    struct experts *experts;
    struct demand demand;
    int max_expert, max_used;
    int64_t max_pair;
    int has_demand;                       /* between want and run */
    const void **data[3], **scale[3];     /* [max_expert] addresses of gate, up, down */
    struct tensor out, x, weight, idx;    /* [max_pair, D], [slice, D], [slice, 1], [slice, 1] */
    int32_t *place;                       /* [max_pair] row of `out` */

    struct rows_table table[CONFIG_MAX_ENGRAM];
    int n_table, table_of[CONFIG_MAX_ENGRAM]; /* by the model's number; -1: not on disk */
    enum dtype table_type[CONFIG_MAX_ENGRAM];
    struct rows *rows;
    int max_id, least_rows, most_rows;
};

#endif
