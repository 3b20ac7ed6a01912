/* stored_tensor.h: tensors of GGUF files and of checkpoints as bind.h takes them. */
#ifndef HADAL_MODEL_STORED_TENSOR_H
#define HADAL_MODEL_STORED_TENSOR_H

#include "format/gguf.h"
#include "format/safetensors.h"
#include "model/bind.h"

/* 1; 0 when there is no such tensor (NULL). */
int stored_tensor_of_gguf(struct stored_tensor *t, const struct gguf_tensor *found);
int stored_tensor_of_checkpoint(struct stored_tensor *t, const struct safetensors_entry *found);

#endif
