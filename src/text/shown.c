/* shown.c: see shown.h. */
#include "text/shown.h"

#include "text/utf8.h"

struct shown shown_text(struct text s)
{
    struct shown shown = {{0}};
    size_t n = s.n_byte < SHOWN_MAX_BYTES ? s.n_byte : SHOWN_MAX_BYTES;
    size_t n_valid = utf8_valid_prefix(s.data, n);
    for (size_t i = 0; i < n_valid; i++) {
        unsigned char c = (unsigned char)s.data[i];
        shown.text[i] = (char)(c < 0x20 || c == 0x7F ? '?' : c);
    }
    return shown;
}
