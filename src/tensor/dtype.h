/* dtype.h: the storage formats, one table row each.
 *
 * A format says how a run of `block` consecutive values along the inner dimension is stored. Values
 * decode to float exactly as their definition says, in a fixed order of operations, so that every
 * processor gets the same bits. Two families keep their scales in a second tensor (tensor.scale):
 * FP8 tiles (one scale per tile x tile values) and native FP4 (one scale per row per 32 values).
 * See spec deepseek-v41.md 3, deepseek-v4.md 6.6, 6.7 and appendix C.
 */
#ifndef HADAL_TENSOR_DTYPE_H
#define HADAL_TENSOR_DTYPE_H

#include <stdint.h>

enum dtype {
    DT_F32,
    DT_F16,
    DT_BF16,
    DT_I32,
    DT_I64,
    DT_I8,
    DT_Q8_0,
    DT_Q2_K,
    DT_Q3_K,
    DT_Q4_K,
    DT_Q5_K,
    DT_Q6_K,
    DT_IQ2_XXS,
    DT_IQ3_XXS,
    DT_IQ4_XS,
    DT_MXFP4,   /* 17-byte blocks of 32: scale byte, then element j low and j + 16 high in byte j */
    DT_FP4_ROW, /* HF: two codes a byte, element 2j low; tensor.scale holds [rows, cols / 32] E8M0
                   bytes */
    DT_FP8_TILE32,  /* HF V4.1: E4M3; tensor.scale holds [ceil(rows / 32), ceil(cols / 32)] E8M0
                       bytes */
    DT_FP8_TILE128, /* HF V4: the same with 128 x 128 tiles */
    DT_FP8_ROW32, /* Engram rows: E4M3 with one E8M0 scale per row per 32 values, in tensor.scale */
    DT_FP8_PACK32, /* the same in one row: cols E4M3 bytes, then cols / 32 E8M0 bytes (ds4's
                      264-byte rows) */
    N_DTYPE
};

struct dtype_info {
    const char *name; /* as printed and as accepted by --type: "Q8_0" */
    int block;        /* values per block along the inner dimension */
    int block_bytes;  /* bytes per block; scales in tensor.scale not counted */
    int scale_rows;   /* tensor.scale: values of dim[n-2] one scale covers; 0: no scale tensor */
    int scale_cols;   /* and of the inner dimension */
    int ggml_type;    /* number in a GGUF file, or -1 when GGUF has no such type */
};

const struct dtype_info *dtype_info(enum dtype type);
/* Finds a format by name, upper or lower case; -1 when unknown. */
int dtype_by_name(const char *name);
int dtype_by_ggml(uint32_t ggml_type);

#endif
