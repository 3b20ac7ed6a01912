/* tokenizer_gguf.h: the tokenizer.ggml.* keys of a GGUF file (v4 spec 9.5) as a tokenizer. */
#ifndef HADAL_MODEL_TOKENIZER_GGUF_H
#define HADAL_MODEL_TOKENIZER_GGUF_H

#include "format/gguf.h"
#include "text/tokenizer.h"

/* *t is NULL when the file has no tokenizer, which is no error. */
int tokenizer_open_gguf(struct tokenizer **t, const struct gguf *file, struct err *e);

#endif
