/* read_input.h: whole inputs of a command. */
#ifndef HADAL_CLI_READ_INPUT_H
#define HADAL_CLI_READ_INPUT_H

#include "base/buf.h"
#include "base/err.h"

enum { READ_INPUT_MAX_BYTES = 1 << 28 };

/* Appends a file, or standard input for "-". At most READ_INPUT_MAX_BYTES. */
int read_input(const char *path, struct buf *out, struct err *e);

#endif
