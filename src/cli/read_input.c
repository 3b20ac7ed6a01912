/* read_input.c: see read_input.h. */
#include "cli/read_input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int read_stream(FILE *stream, const char *path, struct buf *out, struct err *e)
{
    char part[16384];
    size_t n;
    while ((n = fread(part, 1, sizeof part, stream)) > 0) {
        buf_append(out, part, n);
        if (out->n_byte > READ_INPUT_MAX_BYTES)
            return err_set(e, ERR_ARGUMENT, "%s: more than %d bytes", path, (int)READ_INPUT_MAX_BYTES);
    }
    if (ferror(stream))
        return err_set(e, ERR_IO, "%s: cannot read: %s", path, strerror(errno));
    if (out->is_broken)
        return err_set(e, ERR_MEMORY, "%s: no memory for it", path);
    return 0;
}

int read_input(const char *path, struct buf *out, struct err *e)
{
    if (!strcmp(path, "-"))
        return read_stream(stdin, "standard input", out, e);
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    int failed = read_stream(stream, path, out, e);
    fclose(stream);
    return failed;
}
