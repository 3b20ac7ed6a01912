/* byte_alphabet.c: see byte_alphabet.h. */
#include "text/byte_alphabet.h"

#include "text/utf8.h"

static uint32_t code_of(uint8_t b)
{
    if (b <= 32)
        return 256u + b;
    if (b >= 127 && b <= 160)
        return 256u + 33 + (b - 127u);
    return b == 173 ? 256 + 67 : b;
}

static int byte_of(uint32_t code)
{
    if (code < 256)
        return code_of((uint8_t)code) == code ? (int)code : -1;
    if (code < 256 + 33)
        return (int)(code - 256);
    if (code < 256 + 67)
        return (int)(code - 256 - 33 + 127);
    return code == 256 + 67 ? 173 : -1;
}

long byte_alphabet_decode(struct text spelled, char *out)
{
    long n_out = 0;
    uint32_t code;
    for (size_t at = 0; at < spelled.n_byte;) {
        int n = utf8_read(spelled.data + at, spelled.n_byte - at, &code);
        int byte = n > 0 ? byte_of(code) : -1;
        if (byte < 0)
            return -1;
        out[n_out++] = (char)byte;
        at += (size_t)n;
    }
    return n_out;
}

void byte_alphabet_encode(struct text bytes, struct buf *out)
{
    for (size_t i = 0; i < bytes.n_byte; i++)
        utf8_append(out, code_of((uint8_t)bytes.data[i]));
}
