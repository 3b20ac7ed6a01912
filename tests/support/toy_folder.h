/* toy_folder.h: a toy model as a checkpoint folder: config.json, safetensors, and the token map
 * where it needs one. */
#ifndef TESTS_SUPPORT_TOY_FOLDER_H
#define TESTS_SUPPORT_TOY_FOLDER_H

#include "support/toy_model.h"

enum toy_format {
    TOY_F32,   /* every tensor as it is */
    TOY_NATIVE /* as the releases are stored: FP8 tiles, FP4 experts, BF16; values are rounded */
};

/* n_shard 1: model.safetensors, more: shards and an index. The folder is made; what is in it is
 * overwritten. */
int toy_folder_write(const struct toy_model *m, const char *folder, enum toy_format format,
    int n_shard, struct err *e);

/* The config.json of a toy, by architecture. */
const char *toy_config_json(const struct model_config *c);

#endif
