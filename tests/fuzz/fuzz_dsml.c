/* fuzz_dsml.c: any bytes as a completion. The first byte picks dialect, mode and how the rest is
 * cut; the events must be those of the uncut completion. */
#include "text/dsml.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte);

struct log {
    struct buf text;
    int last;
};

static void note(void *user, const struct dsml_event *event)
{
    struct log *log = user;
    int is_run =
        event->kind == DSML_REASONING || event->kind == DSML_CONTENT || event->kind == DSML_VALUE;
    if (!is_run || log->last != (int)event->kind)
        buf_print(&log->text, "|%d %d %zu:", (int)event->kind, event->is_string, event->index);
    log->last = is_run ? (int)event->kind : -1;
    buf_append(&log->text, event->text.data, event->text.n_byte);
}

static struct buf read_events(const uint8_t *data, size_t n_byte, uint8_t mode, size_t step)
{
    struct dsml_parser p;
    struct log log = {.last = -1};
    dsml_open(&p, dialect_at(mode & 1 ? 0 : 2), mode >> 1 & 1);
    p.take = note;
    p.user = &log;
    for (size_t at = 0; at < n_byte; at += step) {
        size_t n = n_byte - at < step ? n_byte - at : step;
        if (dsml_push(&p, (struct text){(const char *)data + at, n}, NULL))
            abort();
    }
    if (dsml_finish(&p, NULL))
        abort();
    dsml_close(&p);
    return log.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte)
{
    if (n_byte < 2)
        return 0;
    struct buf whole = read_events(data + 1, n_byte - 1, data[0], n_byte);
    struct buf cut = read_events(data + 1, n_byte - 1, data[0], 1 + data[0] / 4);
    if (whole.n_byte != cut.n_byte || memcmp(whole.data, cut.data, cut.n_byte))
        abort();
    buf_free(&whole);
    buf_free(&cut);
    return 0;
}
