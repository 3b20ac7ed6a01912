/* parse_completion.c: what completions mean, for comparison with Python.
 *
 *   parse_completion DIALECT chat|thinking COMPLETIONS
 *
 * Completions and results are separated by NUL bytes. A result is JSON: reasoning, content, calls,
 * malformed.
 */
#include "base/file.h"
#include "text/dsml.h"
#include "text/json_text.h"

#include <stdio.h>

static void write_member(struct buf *out, const char *key, struct text value)
{
    buf_print(out, "\"%s\": ", key);
    json_text_write_string(out, value);
}

static void write_message(struct buf *out, const struct dsml_message *m)
{
    buf_text(out, "{");
    write_member(out, "reasoning", m->reasoning);
    buf_text(out, ", ");
    write_member(out, "content", m->content);
    buf_text(out, ", \"calls\": [");
    for (size_t i = 0; i < m->n_call; i++) {
        buf_text(out, i ? ", {" : "{");
        write_member(out, "name", m->calls[i].name);
        buf_text(out, ", \"arguments\": ");
        buf_append(out, m->calls[i].arguments.data, m->calls[i].arguments.n_byte);
        buf_text(out, "}");
    }
    buf_text(out, "], ");
    write_member(out, "malformed", m->malformed);
    buf_append(out, "}", 2); /* with the NUL byte */
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct file_map map;
    struct buf out = {0};
    const struct dialect *d = argc == 4 ? dialect_find(argv[1]) : NULL;
    if (!d || file_map_open(&map, argv[3], &e))
        return 2;
    for (uint64_t at = 0; at < map.n_byte;) {
        const char *begin = (const char *)map.data + at;
        const char *end = memchr(begin, 0, (size_t)(map.n_byte - at));
        size_t n = end ? (size_t)(end - begin) : (size_t)(map.n_byte - at);
        struct dsml_message m;
        if (dsml_read(&m, d, !strcmp(argv[2], "thinking"), (struct text){begin, n}, &e))
            return 1;
        write_message(&out, &m);
        dsml_message_free(&m);
        at += n + 1;
    }
    fwrite(out.data, 1, out.n_byte, stdout);
    buf_free(&out);
    file_map_close(&map);
    return 0;
}
