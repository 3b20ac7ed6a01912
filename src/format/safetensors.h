/* safetensors.h: the tensors of a checkpoint: one .safetensors file, or a folder of shards with an
 * index.
 *
 * A file is  | u64 n | n bytes of JSON {name: {dtype, shape, data_offsets}} | data |, offsets
 * counted from the data's start. Everything is checked on opening: offsets inside the file, sizes
 * equal to shape times type, no overlaps, no name twice. Data stays in the mapped files.
 */
#ifndef HADAL_FORMAT_SAFETENSORS_H
#define HADAL_FORMAT_SAFETENSORS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"

#include <stdint.h>

enum safetensors_type {
    ST_F64,
    ST_F32,
    ST_F16,
    ST_BF16,
    ST_I64,
    ST_I32,
    ST_I16,
    ST_I8,
    ST_U8,
    ST_BOOL,
    ST_F8_E4M3,
    ST_F8_E8M0,
    N_SAFETENSORS_TYPE
};
const char *safetensors_type_name(enum safetensors_type type);

enum { SAFETENSORS_MAX_DIM = 8 };

struct safetensors_entry {
    const char *name;
    enum safetensors_type type;
    int n_dim;
    int64_t dim[SAFETENSORS_MAX_DIM]; /* outermost first */
    const uint8_t *data;
    uint64_t n_byte;
    int file; /* number of its file */
};

struct safetensors;

/* A folder with model.safetensors.index.json or model.safetensors, or the path of one file. */
int safetensors_open(struct safetensors **st, const char *path, struct err *e);
/* One file in memory, which must outlive *st. */
int safetensors_open_bytes(
    struct safetensors **st, const void *bytes, uint64_t n_byte, struct err *e);
void safetensors_close(struct safetensors *st);
/* 1 and file i, counted from 0; 0 behind the last, and for bytes in memory. */
int safetensors_part(const struct safetensors *st, int i, struct file_part *part);

/* NULL when there is no such tensor. */
const struct safetensors_entry *safetensors_find(const struct safetensors *st, const char *name);
/* All tensors, by name. */
const struct safetensors_entry *safetensors_entries(const struct safetensors *st, uint64_t *n);
const char *safetensors_file(const struct safetensors *st, int file);

#endif
