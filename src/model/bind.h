/* bind.h: from a stored tensor (name, type, shape, bytes) to a field of the model, with every shape
 * checked. Knows nothing of the kinds of files; they are sources. */
#ifndef HADAL_MODEL_BIND_H
#define HADAL_MODEL_BIND_H

#include "model/weights_table.h"

/* A tensor as a file holds it. */
struct stored_tensor {
    int type; /* enum dtype; DT_I8 for any format made of bytes: FP8, FP4, scales; -1: no format of
                 ours */
    const char *type_name; /* the file's word for it */
    char type_text[24];    /* where that word may be */
    int n_dim;
    int64_t dim[TENSOR_MAX_DIM]; /* outermost first */
    const void *data;
};

struct tensor_source {
    const void *context;
    const char *path;     /* for messages */
    int has_expert_parts; /* one tensor per expert, checkpoint names; otherwise stacked ones, GGUF
                             names */
    /* 1 found, 0 absent */
    int (*find)(const void *context, const char *name, struct stored_tensor *t);
};

/* What is bound, and into what. */
struct bind_target {
    const struct model_config *config;
    const struct plan *plan;
    struct model_weights *weights;
    struct arena *arena; /* for arrays of addresses and for copies of misaligned data */
    uint64_t n_byte;     /* receives the bytes of all tensors, scales included */
};
/* Binds every tensor that the model must have. */
int bind_weights(struct bind_target *target, const struct tensor_source *source, struct err *e);
/* Binds the tensors of the draft stages only; the rest of *target->weights stays. */
int bind_draft_weights(struct bind_target *target, const struct tensor_source *source, struct err *e);

#endif
