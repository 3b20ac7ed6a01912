/* stored_tensor.c: see stored_tensor.h. */
#include "model/stored_tensor.h"

#include <string.h>

int stored_tensor_of_gguf(struct stored_tensor *t, const struct gguf_tensor *found)
{
    if (!found)
        return 0;
    *t = (struct stored_tensor){.type = found->type, .n_dim = found->n_dim, .data = found->data};
    memcpy(t->dim, found->dim, sizeof t->dim);
    t->type_name = gguf_type_name(found->ggml_type, t->type_text);
    return 1;
}

int stored_tensor_of_checkpoint(struct stored_tensor *t, const struct safetensors_entry *found)
{
    static const int type[N_SAFETENSORS_TYPE] = {
        [ST_F64] = -1,
        [ST_F32] = DT_F32,
        [ST_F16] = DT_F16,
        [ST_BF16] = DT_BF16,
        [ST_I64] = DT_I64,
        [ST_I32] = DT_I32,
        [ST_I16] = -1,
        [ST_I8] = DT_I8,
        [ST_U8] = DT_I8,
        [ST_BOOL] = -1,
        [ST_F8_E4M3] = DT_I8,
        [ST_F8_E8M0] = DT_I8,
    };
    if (!found)
        return 0;
    int is_flat = found->n_dim >= 1 && found->n_dim <= TENSOR_MAX_DIM;
    *t = (struct stored_tensor){
        .type = type[found->type], .n_dim = is_flat ? found->n_dim : 0, .data = found->data};
    t->type_name = safetensors_type_name(found->type);
    for (int i = 0; i < t->n_dim; i++)
        t->dim[i] = found->dim[i];
    return 1;
}
