/* small_tokenizer.c: see small_tokenizer.h. */
#include "small_tokenizer.h"

#include "base/buf.h"
#include "text/byte_alphabet.h"
#include "text/control_tokens.h"

#include <stdlib.h>
#include <string.h>

void small_tokenizer_make(
    struct small_tokenizer *s, const char *const *merges, const char *const *specials)
{
    struct tokenizer_source *source = &s->source;
    memset(s, 0, sizeof *s);
    *source = (struct tokenizer_source){
        0, 0, 0, s->tokens, s->types, s->merges, NULL, "hadal", -1, -1, -1};
    for (int b = 0; b < 256; b++) {
        struct buf spelled = {0};
        char byte = (char)b;
        byte_alphabet_encode((struct text){&byte, 1}, &spelled);
        memcpy(s->bytes[b], spelled.data, spelled.n_byte);
        buf_free(&spelled);
        s->tokens[source->n_token] = text_of(s->bytes[b]);
        s->types[source->n_token++] = TOKEN_NORMAL;
    }
    for (; merges && *merges; merges++) {
        char *joined = s->joined[source->n_merge], *space;
        strncpy(joined, *merges, sizeof s->joined[0] - 1);
        s->merges[source->n_merge++] = text_of(*merges);
        if ((space = strchr(joined, ' ')))
            memmove(space, space + 1, strlen(space));
        s->tokens[source->n_token] = text_of(joined);
        s->types[source->n_token++] = TOKEN_NORMAL;
    }
    for (; specials && *specials; specials++) {
        s->tokens[source->n_token] = text_of(*specials);
        s->types[source->n_token++] = **specials == '<' ? TOKEN_CONTROL : TOKEN_USER_DEFINED;
    }
}

struct tokenizer *small_tokenizer_open(void)
{
    static const char *const merges[] = {
        "h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", NULL};
    static const char *const specials[] = {CONTROL_BOS, CONTROL_EOS, CONTROL_PAD, CONTROL_SYSTEM,
        CONTROL_USER, CONTROL_ASSISTANT, CONTROL_REMINDER, CONTROL_THINK, CONTROL_END_THINK,
        CONTROL_DSML, "<｜action｜>", NULL};
    struct small_tokenizer *s = malloc(sizeof *s);
    struct tokenizer *t = NULL;
    struct err e;
    if (!s)
        abort();
    small_tokenizer_make(s, merges, specials);
    if (tokenizer_open(&t, &s->source, &e))
        abort();
    free(s);
    return t;
}
