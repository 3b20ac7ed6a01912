/* weights_table.h: every tensor field of struct model_weights as data: its names, its shape, when a
 * model has it.
 *
 * Binding, conversion, listing and the toy models of the tests all walk this table, so a tensor is
 * described once.
 */
#ifndef HADAL_MODEL_WEIGHTS_TABLE_H
#define HADAL_MODEL_WEIGHTS_TABLE_H

#include "model/weights.h"

#include <stddef.h>

/* What a tensor is for; formats are chosen per class when converting. */
enum weight_class {
    CLASS_EMBED,
    CLASS_HEAD,
    CLASS_ATTN,
    CLASS_COMPRESSOR,
    CLASS_INDEXER,
    CLASS_ROUTER,
    CLASS_EXPERTS,
    CLASS_SHARED,
    CLASS_MHC,
    CLASS_NORM, /* norms, biases, sinks, gate vectors: one-dimensional or as good as */
    CLASS_IDS,  /* integer tables */
    CLASS_ENGRAM,
    CLASS_ENGRAM_TABLE,
    CLASS_DRAFT, /* matrices of draft stages other than experts */
    CLASS_DRAFT_EXPERTS,
    N_WEIGHT_CLASS
};
/* "engram_table"; the word that convert's --type takes. */
const char *weight_class_name(enum weight_class klass);
/* -1 when unknown. */
int weight_class_by_name(const char *name);

enum { WEIGHT_MAX_NAME = 96, WEIGHT_MAX_ALIAS = 3 };

struct weight_field {
    const char
        *gguf[WEIGHT_MAX_ALIAS]; /* without prefix; ours first, then other dialects'; NULL-filled */
    const char
        *checkpoint[2]; /* the checkpoint's name and an alias; "*" stands for the expert number */
    size_t offset;      /* of the struct tensor in its struct */
    unsigned char need, klass, size[3]; /* enums private to weights_table.c, but for klass */
};

/* One tensor that a given model has. */
struct weight_slot {
    const struct weight_field *field;
    enum weight_class klass;
    int layer;    /* index into model_weights.layer, or -1 */
    int stage;    /* draft stage that the names carry, or -1 */
    int is_draft; /* field of model_weights.draft */
    int n_dim;
    int64_t dim[3]; /* outermost first */
};

/* Calls fn for every tensor that the model must have, globals first, then layer by layer, then the
 * draft stages. Stops at the first non-zero result and returns it. */
typedef int (*weight_slot_fn)(void *context, const struct weight_slot *slot);
int weights_each_slot(
    const struct model_config *c, const struct plan *p, weight_slot_fn fn, void *context);

/* Where the slot's tensor lives in *w. */
struct tensor *weight_slot_tensor(struct model_weights *w, const struct weight_slot *slot);
/* Whole names, prefix included; the empty string when the field has no such spelling. */
void weight_slot_gguf_name(const struct weight_slot *slot, int alias, char name[WEIGHT_MAX_NAME]);
/* expert: number for stacked experts, otherwise ignored. */
void weight_slot_checkpoint_name(
    const struct weight_slot *slot, int alias, int expert, char name[WEIGHT_MAX_NAME]);
/* One tensor per expert in a checkpoint folder. */
int weight_slot_is_stacked(const struct weight_slot *slot);

#endif
