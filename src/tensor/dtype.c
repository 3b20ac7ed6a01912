/* dtype.c: the table of storage formats. See dtype.h. */
#include "tensor/dtype.h"

#include <strings.h>

static const struct dtype_info table[N_DTYPE] = {
    /*                  name      block bytes  scale tile  ggml */
    [DT_F32] = {"F32", 1, 4, 0, 0, 0},
    [DT_F16] = {"F16", 1, 2, 0, 0, 1},
    [DT_BF16] = {"BF16", 1, 2, 0, 0, 30},
    [DT_I32] = {"I32", 1, 4, 0, 0, 26},
    [DT_I64] = {"I64", 1, 8, 0, 0, 27},
    [DT_I8] = {"I8", 1, 1, 0, 0, 24},
    [DT_Q8_0] = {"Q8_0", 32, 34, 0, 0, 8},
    [DT_Q2_K] = {"Q2_K", 256, 84, 0, 0, 10},
    [DT_Q3_K] = {"Q3_K", 256, 110, 0, 0, 11},
    [DT_Q4_K] = {"Q4_K", 256, 144, 0, 0, 12},
    [DT_Q5_K] = {"Q5_K", 256, 176, 0, 0, 13},
    [DT_Q6_K] = {"Q6_K", 256, 210, 0, 0, 14},
    [DT_IQ2_XXS] = {"IQ2_XXS", 256, 66, 0, 0, 16},
    [DT_IQ3_XXS] = {"IQ3_XXS", 256, 98, 0, 0, 18},
    [DT_IQ4_XS] = {"IQ4_XS", 256, 136, 0, 0, 23},
    [DT_MXFP4] = {"MXFP4", 32, 17, 0, 0, 39},
    [DT_FP4_ROW] = {"FP4_ROW", 32, 16, 1, 32, -1},
    [DT_FP8_TILE32] = {"FP8_TILE32", 1, 1, 32, 32, -1},
    [DT_FP8_TILE128] = {"FP8_TILE128", 1, 1, 128, 128, -1},
    [DT_FP8_ROW32] = {"FP8_ROW32", 32, 32, 1, 32, -1},
    [DT_FP8_PACK32] = {"FP8_PACK32", 32, 33, 0, 0, -1},
};

const struct dtype_info *dtype_info(enum dtype type)
{
    return &table[type];
}

int dtype_by_name(const char *name)
{
    for (int i = 0; i < N_DTYPE; i++)
        if (!strcasecmp(name, table[i].name))
            return i;
    return -1;
}

int dtype_by_ggml(uint32_t ggml_type)
{
    for (int i = 0; i < N_DTYPE; i++)
        if (table[i].ggml_type >= 0 && (uint32_t)table[i].ggml_type == ggml_type)
            return i;
    return -1;
}
