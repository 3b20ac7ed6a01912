/* file.h: files as mapped bytes, and files written whole or not at all. */
#ifndef HADAL_BASE_FILE_H
#define HADAL_BASE_FILE_H

#include "base/err.h"

#include <stdint.h>
#include <stdio.h>

/* A read-only mapping. Pages come in when touched; nothing is copied. An empty file has data NULL and n_byte 0. */
struct file_map {
    const uint8_t *data;
    uint64_t n_byte;
};
int file_map_open(struct file_map *m, const char *path, struct err *e);
void file_map_close(struct file_map *m);

/* One of the files that a model is in, as it is mapped. */
struct file_part {
    const char *path;
    const uint8_t *data;
    uint64_t n_byte;
};

int file_exists(const char *path);
int file_is_directory(const char *path);

/* A file that appears under its name only when everything was written: bytes go to "PATH.part", which
 * file_writer_commit syncs and renames. file_writer_abort removes it. An append mode for resuming is in convert/. */
struct file_writer {
    FILE *stream;
    char path[4096], part[4104];
    uint64_t n_byte; /* written so far */
};
int file_writer_open(struct file_writer *w, const char *path, struct err *e);
int file_writer_write(struct file_writer *w, const void *data, uint64_t n_byte, struct err *e);
int file_writer_commit(struct file_writer *w, struct err *e);
void file_writer_abort(struct file_writer *w);

#endif
