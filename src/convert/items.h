/* items.h: the tensors of the output file: where each comes from, what it becomes, and how its rows
 * are made. */
#ifndef HADAL_CONVERT_ITEMS_H
#define HADAL_CONVERT_ITEMS_H

#include "format/gguf_write.h"
#include "model/weights_table.h"

struct item;
/* Makes row r of the item's data. `scratch` holds one row of floats. -1: a value is not a number.
 */
typedef int (*item_row_fn)(const struct item *item, int64_t row, uint8_t *out, float *scratch);

struct item {
    const struct tensor *source;
    const char *name;
    enum dtype target;
    int ggml_type;
    int n_dim;
    int64_t dim[TENSOR_MAX_DIM]; /* of the output, outermost first */
    int64_t n_row, row_bytes;
    int64_t n_scratch; /* floats */
    item_row_fn row;
    int is_scale;    /* of the item before it */
    uint64_t offset; /* of its data, behind the header */
};

struct items {
    struct item *item;
    int n, capacity;
};

/* What to make of a class: a format, or KEEP. */
enum { ITEMS_KEEP = -1 };
struct item_choice {
    int type[N_WEIGHT_CLASS];
};

/* The choice without any wish: vectors as F32, everything else as it is. */
void items_default_choice(struct item_choice *choice);
/* Applies "CLASS=FORMAT"; the class may be "all" (every matrix), the format "keep". */
int items_choose(struct item_choice *choice, const char *text, struct err *e);

/* Whether there is an encoder. */
int items_can_write(enum dtype type);

/* All items of a model, in the order of the table, n-gram tables last. */
int items_plan(struct items *items, const struct model_file_info *model,
    const struct item_choice *choice, struct arena *arena, struct err *e);
uint64_t items_n_byte(const struct item *item);

#endif
