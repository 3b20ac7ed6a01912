/* host.h: buffers of backends that compute on the host: anonymous mappings, zero until touched. */
#ifndef HADAL_BACKEND_HOST_H
#define HADAL_BACKEND_HOST_H

#include "backend/backend.h"

int host_buffer_new(struct backend *be, struct backend_buffer *b, uint64_t n_byte, struct err *e);
int host_buffer_wrap(
    struct backend *be, struct backend_buffer *b, const void *host, uint64_t n_byte, struct err *e);
void host_buffer_free(struct backend *be, struct backend_buffer *b);
/* Both copy; write's target and read's source are kernel memory, which here is the host's. */
int host_copy(struct backend *be, void *to, const void *from, uint64_t n_byte, struct err *e);
void host_begin(struct backend *be, uint64_t graph_key);
int host_end(struct backend *be, struct err *e);

#endif
