/* embedded.c: see embedded.h. The bytes come from embedded.S. */
#include "engine/embedded.h"

extern const unsigned char hadal_embedded_begin[], hadal_embedded_end[];

const unsigned char *hadal_embedded_model(size_t *n_byte)
{
    *n_byte = (size_t)(hadal_embedded_end - hadal_embedded_begin);
    return *n_byte ? hadal_embedded_begin : NULL;
}
