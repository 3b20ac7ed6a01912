/* fuzz_tokenizer_json.c: any bytes as a tokenizer.json; what opens must encode and decode without
 * loss. */
#include "text/tokenizer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte)
{
    struct text text = {(const char *)data, n_byte};
    struct tokenizer *t;
    struct err e = {0};
    if (tokenizer_open_json_text(&t, text, &e))
        return 0;
    struct token_list ids = {0};
    struct buf out = {0};
    if (n_byte > 4096)
        text.n_byte = 4096;
    if (!tokenizer_encode(t, text, TOKENIZER_SPECIALS, &ids, &e)) {
        if (tokenizer_decode(t, ids.ids, ids.n, &out, &e) || out.n_byte != text.n_byte ||
            memcmp(out.data, text.data, text.n_byte))
            abort();
    }
    token_list_free(&ids);
    buf_free(&out);
    tokenizer_close(t);
    return 0;
}
