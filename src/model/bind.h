/* bind.h: from a stored tensor (name, type, shape, bytes) to a field of the model, with every shape checked.
 * Knows nothing of the kinds of files; they are sources. */
#ifndef HADAL_MODEL_BIND_H
#define HADAL_MODEL_BIND_H

#include "model/weights_table.h"

/* A tensor as a file holds it. */
struct stored_tensor {
    int type;              /* enum dtype; DT_I8 for any format made of bytes: FP8, FP4, scales; -1: no format of ours */
    const char *type_name; /* the file's word for it */
    char type_text[24];    /* where that word may be */
    int n_dim;
    int64_t dim[TENSOR_MAX_DIM]; /* outermost first */
    const void *data;
};

struct tensor_source {
    const void *context;
    const char *path;      /* for messages */
    int has_expert_parts;  /* one tensor per expert, checkpoint names; otherwise stacked ones, GGUF names */
    /* 1 found, 0 absent */
    int (*find)(const void *context, const char *name, struct stored_tensor *t);
};

/* Binds every tensor that the model must have. Arrays and copies of misaligned data live in the arena. *n_byte receives
 * the bytes of all of them, scales included. */
int bind_weights(struct model_weights *w, const struct model_config *c, const struct plan *p,
    const struct tensor_source *source, struct arena *arena, uint64_t *n_byte, struct err *e);

#endif
