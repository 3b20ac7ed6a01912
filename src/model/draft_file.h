/* draft_file.h: draft stages from a file beside the model's. dspark spec 1.7.
 *
 * Three layouts: a checkpoint folder with mtp.* tensors; a GGUF file "deepseek4-dspark" or
 * "deepseek41-dspark" with the same names; llama.cpp's "dflash", where a stage is a block and the
 * projections have names of their own. Embedding and output head are the model's.
 *
 * A file may belong to another model, or be damaged in ways that only make every draft wrong. So
 * everything is compared and every number is looked at; nothing is changed before all is right.
 */
#ifndef HADAL_MODEL_DRAFT_FILE_H
#define HADAL_MODEL_DRAFT_FILE_H

#include "model/bind.h"

/* The model that the stages are for; they replace its own. */
struct draft_host {
    struct model_config *config;
    struct plan *plan;
    struct model_weights *weights;
    struct arena *arena;
    uint64_t *weight_bytes;
    const char *revision; /* of the checkpoint that it was made from, or NULL */
};

struct draft_file; /* keeps the tensors' bytes */
int draft_file_open(
    struct draft_file **file, const char *path, const struct draft_host *host, struct err *e);
void draft_file_close(struct draft_file *file);
/* 1 and the file's part i; 0 behind the last. */
int draft_file_part(const struct draft_file *file, int i, struct file_part *part);

#endif
