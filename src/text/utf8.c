/* utf8.c: see utf8.h. */
#include "text/utf8.h"

#include <string.h>

enum { REPLACEMENT = 0xFFFD };

/* Length by lead byte and the range of the second byte: E0, ED, F0 and F4 are narrower than 80..BF.
 */
static int lead(uint8_t b, uint8_t *low, uint8_t *high)
{
    *low = b == 0xE0 ? 0xA0 : b == 0xF0 ? 0x90 : 0x80;
    *high = b == 0xED ? 0x9F : b == 0xF4 ? 0x8F : 0xBF;
    if (b < 0x80)
        return 1;
    if (b < 0xC2 || b > 0xF4)
        return 0;
    return b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

int utf8_read(const char *data, size_t n_byte, uint32_t *code)
{
    const uint8_t *p = (const uint8_t *)data;
    uint8_t low, high;
    int n = lead(p[0], &low, &high);
    if (!n)
        return -1;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if ((size_t)i == n_byte)
            return 0;
        if (p[i] < low || p[i] > high)
            return -i;
        c = c << 6 | (p[i] & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    *code = c;
    return n;
}

size_t utf8_valid_prefix(const char *data, size_t n_byte)
{
    size_t at = 0;
    uint32_t code;
    while (at < n_byte) {
        int n = utf8_read(data + at, n_byte - at, &code);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    return at;
}

void utf8_append(struct buf *out, uint32_t c)
{
    char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        b[i] = (char)(0x80 | (c & 0x3F));
    b[0] = (char)(n == 1 ? c : c | (0xF00u >> n & 0xF0));
    buf_append(out, b, n);
}

/* The held bytes are always the beginning of a character, so each new byte completes, extends or
 * refutes it. */
static void push_held(struct utf8_stream *s, char byte, struct buf *out)
{
    uint32_t code;
    s->held[s->n_held++] = byte;
    while (s->n_held) {
        int n = utf8_read(s->held, (size_t)s->n_held, &code);
        if (!n)
            return;
        if (n > 0)
            buf_append(out, s->held, (size_t)n);
        else
            utf8_append(out, REPLACEMENT);
        n = n < 0 ? -n : n;
        s->n_held -= n;
        memmove(s->held, s->held + n, (size_t)s->n_held);
    }
}

void utf8_stream_push(struct utf8_stream *s, const char *data, size_t n_byte, struct buf *out)
{
    size_t at = 0;
    while (at < n_byte) {
        size_t n = s->n_held ? 0 : utf8_valid_prefix(data + at, n_byte - at);
        buf_append(out, data + at, n);
        at += n;
        if (at < n_byte)
            push_held(s, data[at++], out);
    }
}

void utf8_stream_finish(struct utf8_stream *s, struct buf *out)
{
    if (s->n_held)
        utf8_append(out, REPLACEMENT);
    s->n_held = 0;
}
