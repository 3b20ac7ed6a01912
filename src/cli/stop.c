/* stop.c: see stop.h. */
#include "cli/stop.h"

#include <string.h>

static int ends_with(const struct buf *b, const char *text, size_t n)
{
    return b->n_byte >= n && !memcmp(b->data + b->n_byte - n, text, n);
}

/* Length of the longest stop string that `held` ends with. */
static size_t complete_stop(const struct stop_scan *s)
{
    size_t longest = 0;
    for (int i = 0; i < s->stops->n; i++) {
        size_t n = strlen(s->stops->text[i]);
        if (n > longest && ends_with(&s->held, s->stops->text[i], n))
            longest = n;
    }
    return longest;
}

/* Length of the longest end of `held` that begins a stop string. */
static size_t begun_stop(const struct stop_scan *s)
{
    size_t longest = 0;
    for (int i = 0; i < s->stops->n; i++)
        for (size_t n = strlen(s->stops->text[i]); n > longest; n--)
            if (ends_with(&s->held, s->stops->text[i], n))
                longest = n;
    return longest;
}

static void release(struct stop_scan *s, size_t n_kept, struct buf *out)
{
    size_t n = s->held.n_byte - n_kept;
    buf_append(out, s->held.data, n);
    memmove(s->held.data, s->held.data + n, n_kept);
    s->held.n_byte = n_kept;
}

int stop_push(struct stop_scan *s, const char *text, size_t n_byte, struct buf *out)
{
    if (!s->stops->n) {
        buf_append(out, text, n_byte);
        return 0;
    }
    for (size_t i = 0; i < n_byte; i++) {
        buf_append(&s->held, text + i, 1);
        size_t found = complete_stop(s);
        if (found) {
            release(s, found, out);
            buf_clear(&s->held);
            return 1;
        }
        release(s, begun_stop(s), out);
    }
    return 0;
}

void stop_finish(struct stop_scan *s, struct buf *out)
{
    if (s->held.n_byte)
        buf_append(out, s->held.data, s->held.n_byte);
    buf_clear(&s->held);
}

void stop_free(struct stop_scan *s)
{
    buf_free(&s->held);
}
