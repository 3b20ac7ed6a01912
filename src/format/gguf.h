/* gguf.h: reading GGUF files, version 2 and 3, whole or split, mapped or in memory. Layout: v4 spec
 * appendix D.
 *
 * The file is not trusted: every count, length and offset is checked against the bytes that are
 * there before it is used, names and keys are unique, tensors lie inside the file, aligned and
 * apart from each other. Memory taken is a small multiple of what the header really holds, whatever
 * its counts claim. Strings are runs of bytes, not terminated.
 */
#ifndef HADAL_FORMAT_GGUF_H
#define HADAL_FORMAT_GGUF_H

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"

#include <stdint.h>

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    N_GGUF_TYPE
};

struct gguf_string {
    const char *data;
    uint64_t n_byte;
};

struct gguf_key {
    struct gguf_string name;
    enum gguf_type type; /* of the value, or of the elements when is_array */
    int is_array;
    uint64_t n;             /* elements; 1 for a plain value */
    const uint8_t *payload; /* first element's bytes in the file, unaligned */
};

enum { GGUF_MAX_DIM = 4 };

struct gguf_tensor {
    const char *name; /* terminated */
    uint32_t ggml_type;
    int type; /* enum dtype, or -1 when this program has no such format */
    int n_dim;
    int64_t dim[GGUF_MAX_DIM]; /* outermost first: the file's order reversed */
    const uint8_t *data;
    uint64_t n_byte; /* 0 when type is -1 */
};

struct gguf;

/* The file at path; of a split model the first part, which brings the others. */
int gguf_open(struct gguf **file, const char *path, struct err *e);
/* Bytes in memory, which must outlive *file and start at an address aligned for the tensors. */
int gguf_open_bytes(struct gguf **file, const void *bytes, uint64_t n_byte, struct err *e);
void gguf_close(struct gguf *file);
/* 1 and the file's part i, counted from 0; 0 behind the last, and for bytes in memory. */
int gguf_part(const struct gguf *file, int i, struct file_part *part);

const struct gguf_tensor *gguf_find_tensor(const struct gguf *file, const char *name);
const struct gguf_tensor *gguf_tensors(
    const struct gguf *file, uint64_t *n); /* in the order of the file */
const struct gguf_key *gguf_find_key(const struct gguf *file, const char *name);
const struct gguf_key *gguf_keys(const struct gguf *file, uint64_t *n);

/* A number of any type, element i of an array or (i = 0) a plain value. Integers beyond int64_t
 * keep their bits. */
struct gguf_number {
    int is_integer;
    int64_t i; /* set for integers and booleans */
    double f;  /* always set */
};
/* -1 when the key does not hold numbers or has no element i. */
int gguf_number(const struct gguf_key *key, uint64_t i, struct gguf_number *out);
/* A plain string value; data NULL when it is something else. */
struct gguf_string gguf_text(const struct gguf_key *key);
/* Walks an array of strings: *next starts as key->payload and moves on. */
struct gguf_string gguf_next_string(const uint8_t **next);

/* "Q4_K", or "type 35" for unknown numbers; static text or `text`. */
const char *gguf_type_name(uint32_t ggml_type, char text[24]);

#endif
