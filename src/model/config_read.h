/* config_read.h: one list of configuration keys, read from any kind of file.
 *
 * A source answers questions about keys; config_read asks for every field under each of its
 * spellings. So a field is described once, whatever the dialect.
 */
#ifndef HADAL_MODEL_CONFIG_READ_H
#define HADAL_MODEL_CONFIG_READ_H

#include "model/config.h"

enum config_spelling {
    SPELLING_GGUF,       /* "attention.head_count", without the architecture's prefix */
    SPELLING_CHECKPOINT, /* "num_attention_heads", as in config.json; one GGUF dialect uses these,
                            too */
    SPELLING_OTHER,      /* a third name seen in some GGUF files */
    N_SPELLING
};

/* A value found: a number, or an array of numbers that `at` reads. Integers keep all 64 bits. */
struct config_value {
    int is_array;
    uint64_t n;     /* elements; 1 for a plain number */
    int is_integer; /* i holds the value of a plain number, otherwise only f */
    int64_t i;
    double f;
    const void *handle; /* of the source, for arrays */
};

struct config_source {
    const void *context;
    int reads_gguf_names; /* asks for SPELLING_GGUF and SPELLING_OTHER as well */
    /* 1 found, 0 absent, -1 there but neither number nor array of numbers (*e filled) */
    int (*find)(const void *context, const char *key, struct config_value *v, struct err *e);
    /* Element i of an array, as a plain number. */
    void (*at)(const void *context, const struct config_value *array, uint64_t i,
        struct config_value *element);
};

/* Chooses the chat dialect and ends in config_check. */
int config_finish(struct model_config *c, struct err *e);
/* A config.json in memory. */
int config_from_json(
    struct model_config *c, const void *text, size_t n_byte, struct arena *arena, struct err *e);

/* Sets architecture, dialect and traits from any of its names. */
int config_set_architecture(struct model_config *c, const char *name, struct err *e);
/* Fills every field that has a key; those that are absent get their default or are an error. Array
 * fields included; engram constants that the source lacks are derived. Does not call config_check.
 */
int config_read(
    struct model_config *c, const struct config_source *source, struct arena *arena, struct err *e);
/* The way back: every plain number of the list under its GGUF spelling, those left out that a
 * reader would fill in. */
typedef void (*config_number_fn)(void *context, const char *key, const struct config_value *v);
void config_each_number(const struct model_config *c, config_number_fn fn, void *context);
/* The value under the first spelling that is there. */
int config_find(const struct config_source *source, const char *const spelling[N_SPELLING],
    struct config_value *v, struct err *e);

#endif
