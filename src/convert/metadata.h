/* metadata.h: a configuration and a tokenizer as the keys of a GGUF file of ours. docs/format.md */
#ifndef HADAL_CONVERT_METADATA_H
#define HADAL_CONVERT_METADATA_H

#include "format/gguf_write.h"
#include "model/config.h"
#include "text/tokenizer.h"

/* tokenizer may be NULL. */
int metadata_put(struct gguf_header *h, const struct model_config *c,
    const struct tokenizer *tokenizer, struct err *e);

#endif
