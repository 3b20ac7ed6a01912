/* tokenizer.h: byte-level BPE with DeepSeek's pre-tokenizer; text to token ids and back.
 *
 * Encoding: special tokens are found in the raw text where the caller allows it (leftmost, then
 * longest), the text between them is cut into pieces (pretokenize.h) and every piece is merged
 * (bpe.h). The ids are those of the Hugging Face `tokenizers` library. Text that is not UTF-8 is
 * legal: ill-formed bytes become pieces of their own and are encoded as the bytes they are. (The
 * Hugging Face library never sees such bytes, Python strings replace them first.)
 *
 * A tokenizer never changes after it was opened; any number of threads may use it.
 */
#ifndef HADAL_TEXT_TOKENIZER_H
#define HADAL_TEXT_TOKENIZER_H

#include "base/buf.h"
#include "base/err.h"
#include "text/text.h"

#include <stdint.h>

/* What a token is, with the numbers that GGUF files use. */
enum token_type {
    TOKEN_NORMAL = 1,       /* text spelled in the byte alphabet, made by merging */
    TOKEN_CONTROL = 3,      /* literal text that steers the model */
    TOKEN_USER_DEFINED = 4, /* literal text that is one token */
    TOKEN_UNUSED = 5        /* a place in the table; never produced by encoding */
};

/* A tokenizer as plain data: what a tokenizer.json or the tokenizer.ggml.* keys of a GGUF file
 * hold. */
struct tokenizer_source {
    int32_t n_token, n_merge, n_pattern;
    const struct text *tokens; /* n_token spellings */
    const uint8_t *types;      /* n_token of enum token_type */
    const struct text *merges; /* n_merge, "left right", best first */
    const struct text
        *patterns;   /* n_pattern regular expressions, used one after the other; or none, then: */
    const char *pre; /* name of a known set of patterns; NULL when the patterns have no name */
    int32_t bos, eos, pad; /* token ids, -1 when there is none */
};

struct tokenizer;

/* Copies what it needs. `*t` is NULL after an error; tokenizer_close(NULL) is fine. */
int tokenizer_open(struct tokenizer **t, const struct tokenizer_source *source, struct err *e);
/* Reads a Hugging Face tokenizer.json, from a file or from memory. */
int tokenizer_open_json(struct tokenizer **t, const char *path, struct err *e);
int tokenizer_open_json_text(struct tokenizer **t, struct text json, struct err *e);
void tokenizer_close(struct tokenizer *t);

/* The data that would open the same tokenizer again; it belongs to the tokenizer. */
const struct tokenizer_source *tokenizer_describe(const struct tokenizer *t);

struct token_list {
    int32_t *ids; /* owned by the list */
    size_t n, capacity;
};
int token_list_append(struct token_list *list, int32_t id, struct err *e);
void token_list_free(struct token_list *list);

/* A range of bytes [begin, end) of a text. */
struct text_span {
    size_t begin, end;
};

enum tokenizer_flags {
    TOKENIZER_PLAIN = 0,   /* every byte is ordinary text: for what users and tools wrote */
    TOKENIZER_SPECIALS = 1 /* texts of control and user-defined tokens become those tokens */
};

/* Appends the ids of `text` to `out`. */
int tokenizer_encode(
    const struct tokenizer *t, struct text text, int flags, struct token_list *out, struct err *e);
/* The same, with special tokens recognised only where they lie within one of the spans (in order,
 * not overlapping). Text around a span is not cut there: only a recognised token separates pieces.
 */
struct text_spans {
    const struct text_span *spans;
    size_t n;
};
int tokenizer_encode_spans(const struct tokenizer *t, struct text text, struct text_spans allowed,
    struct token_list *out, struct err *e);

int32_t tokenizer_n_token(const struct tokenizer *t);
/* The bytes of a token, specials as their literal text; empty for an id out of range. */
struct text tokenizer_bytes(const struct tokenizer *t, int32_t id);
/* A control or user-defined token: one that plain text never produces. */
int tokenizer_is_special(const struct tokenizer *t, int32_t id);
/* The special token with this literal text, or -1. */
int32_t tokenizer_special(const struct tokenizer *t, struct text literal);
/* Appends the bytes of all ids; an id out of range is an error. For streams see utf8.h. */
int tokenizer_decode(
    const struct tokenizer *t, const int32_t *ids, size_t n_id, struct buf *out, struct err *e);

#endif
