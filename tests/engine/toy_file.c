/* toy_file.c: stands in for model/weights.c's files, so that the engine runs over the toy models
 * without one.
 *
 *   "toy:v4", "toy:v41"                the models of the specifications
 *   "toy:v4:narrow", "toy:v41:narrow"  the same, but only a few tokens have logits of their own,
 * all others share 0: the untrained draft stages then agree with the model often enough to be
 * tested
 *
 * All functions of model_file are here, so the linker leaves the real ones out. There is no
 * tokenizer.
 */
#include "model/weights_table.h"
#include "support/toy_model.h"

#include <string.h>

struct model_file {
    struct arena arena;
    struct toy_model *toy;
};

static const int32_t kept[] = {3, 41, 77};

static int is_kept(int64_t id)
{
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (kept[i] == id)
            return 1;
    return 0;
}

static void clear_rows(const struct tensor *t)
{
    for (int64_t id = 0; t->n_dim && id < t->dim[0]; id++)
        if (!is_kept(id))
            memset((char *)t->data + id * t->row_bytes, 0, (size_t)t->row_bytes);
}

int model_file_open(
    struct model_file **file, const char *path, const void *bytes, uint64_t n_byte, struct err *e)
{
    struct arena arena = {0};
    struct model_file *f = ARENA_NEW(&arena, struct model_file, 1);
    (void)bytes;
    (void)n_byte;
    f->toy = !strncmp(path, "toy:v41", 7) ? toy_v41(&arena, e) : toy_v4(&arena, e);
    f->arena = arena;
    *file = f;
    if (!f->toy)
        return -1;
    if (strstr(path, ":narrow")) {
        clear_rows(&f->toy->weights.output);
        clear_rows(&f->toy->weights.draft.markov_head);
    }
    return 0;
}

int model_file_add_drafts(struct model_file *f, const char *path, struct err *e)
{
    (void)f;
    return err_set(e, ERR_ARGUMENT, "%s: toys have stages of their own", path);
}

void model_file_info(const struct model_file *file, struct model_file_info *info)
{
    *info = (struct model_file_info){
        .config = &file->toy->config, .plan = &file->toy->plan, .weights = &file->toy->weights};
}

int model_file_part(const struct model_file *f, int i, struct file_part *part)
{
    (void)f, (void)i, (void)part;
    return 0;
}

void model_file_close(struct model_file *file)
{
    struct arena arena = file->arena; /* the file itself lives in it */
    arena_free(&arena);
}

int model_file_each(const struct model_file *file, model_tensor_fn fn, void *context)
{
    return fn(context, "output.weight", &file->toy->weights.output);
}

struct toy_move {
    struct model_file *file;
    model_move_fn fn;
    void *context;
    struct err *e;
};

static int move_slot(void *context, const struct weight_slot *slot)
{
    const struct toy_move *m = context;
    return m->fn(m->context, weight_slot_tensor(&m->file->toy->weights, slot), m->e);
}

int model_file_move(struct model_file *file, model_move_fn fn, void *context, struct err *e)
{
    struct toy_move move = {file, fn, context, e};
    return weights_each_slot(&file->toy->config, &file->toy->plan, move_slot, &move);
}
