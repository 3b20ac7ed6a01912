/* encode.h: the encoders behind tensor_encode, and those of the formats whose scales lie in a
 * second array. All are deterministic; none is on a path that has to be fast. */
#ifndef HADAL_TENSOR_ENCODE_H
#define HADAL_TENSOR_ENCODE_H

#include <stdint.h>

/* n values, a multiple of the format's block, into contiguous blocks. */
void plain_encode_f32(const float *values, int64_t n, uint8_t *out);
void plain_encode_f16(const float *values, int64_t n, uint8_t *out);
void plain_encode_bf16(const float *values, int64_t n, uint8_t *out);
void q8_0_encode(const float *values, int64_t n, uint8_t *out);
void fp4_encode_mxfp4(const float *values, int64_t n, uint8_t *out);
void kquants_encode_q2_k(const float *values, int64_t n, uint8_t *out);
void kquants_encode_q4_k(const float *values, int64_t n, uint8_t *out);

/* One row of n values (a multiple of 32): n / 2 bytes of codes and n / 32 scale bytes. */
void fp4_encode_row(const float *values, int64_t n, uint8_t *codes, uint8_t *scales);
/* One row: n E4M3 bytes and n / 32 scale bytes, each the smallest power of two that keeps its
 * values below 448. */
void fp8_encode_row32(const float *values, int64_t n, uint8_t *out, uint8_t *scales);
/* A whole matrix [n_row, n_col], one scale per tile x tile values: scales [ceil(n_row / tile),
 * ceil(n_col / tile)]. */
struct fp8_matrix {
    const float *values;
    int64_t n_row, n_col;
    int tile;
    uint8_t *out, *scales;
};
void fp8_encode_tiles(const struct fp8_matrix *m);

/* The same values in the other packing of E2M1: 16 bytes of a row's codes (element 2j low in byte
 * j) and their scale byte become a 17-byte MXFP4 block (element j low, j + 16 high). Lossless. */
void fp4_repack_mxfp4(const uint8_t *codes, const uint8_t *scales, int64_t n_block, uint8_t *out);

#endif
