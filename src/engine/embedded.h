/* embedded.h: the small model that is part of the program itself, so that it answers without any download. */
#ifndef HADAL_ENGINE_EMBEDDED_H
#define HADAL_ENGINE_EMBEDDED_H

#include <stddef.h>

/* The bytes of models/hadal-tiny-v41.gguf, aligned to 64; NULL when the program was built without that file. */
const unsigned char *hadal_embedded_model(size_t *n_byte);

#endif
