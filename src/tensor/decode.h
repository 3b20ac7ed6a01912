/* decode.h: the decoders behind tensor_decode, one per format, and block functions that backends
 * may share.
 *
 * Every decoder performs the float operations that its file's header comment writes down, in that
 * order, each rounded to float. A faster version must produce the same bits.
 */
#ifndef HADAL_TENSOR_DECODE_H
#define HADAL_TENSOR_DECODE_H

#include <stdint.h>

/* Values [first, first + n) of one row. */
struct decode_run {
    const uint8_t *row;   /* first byte of the row */
    const uint8_t *scale; /* first E8M0 byte of the row's scales; NULL for formats without */
    int64_t n_col;        /* values in the whole row */
    int64_t first, n;     /* multiples of the format's block */
    float *out;           /* n values */
};

void plain_decode_f32(const struct decode_run *r);
void plain_decode_f16(const struct decode_run *r);
void plain_decode_bf16(const struct decode_run *r);
void plain_decode_i32(const struct decode_run *r);
void plain_decode_i64(const struct decode_run *r);
void plain_decode_i8(const struct decode_run *r);
void q8_0_decode(const struct decode_run *r);
void kquants_decode_q2_k(const struct decode_run *r);
void kquants_decode_q3_k(const struct decode_run *r);
void kquants_decode_q4_k(const struct decode_run *r);
void kquants_decode_q5_k(const struct decode_run *r);
void kquants_decode_q6_k(const struct decode_run *r);
void iquants_decode_iq2_xxs(const struct decode_run *r);
void iquants_decode_iq3_xxs(const struct decode_run *r);
void iquants_decode_iq4_xs(const struct decode_run *r);
void fp4_decode_mxfp4(const struct decode_run *r);
void fp4_decode_row(const struct decode_run *r);
void fp8_decode_tile32(const struct decode_run *r);
void fp8_decode_tile128(const struct decode_run *r);
void fp8_decode_row32(const struct decode_run *r);
void fp8_decode_pack32(const struct decode_run *r);

/* Scale (0..63) and minimum (0..63) of sub-block b (0..7), from the 12 packed bytes of Q4_K and
 * Q5_K. */
void kquants_scale_min(const uint8_t *packed, int b, int *scale, int *minimum);

/* Codebooks: 256 rows of 8 magnitudes (IQ2_XXS) and of 4 (IQ3_XXS), and the 16 values of IQ4_XS. */
extern const float iquants_grid2[256][8]; /* magnitudes */
extern const float iquants_grid3[256][4];
extern const float iquants_signs[128][8]; /* by the seven bits that are stored; 1 or -1 */
extern const int8_t iquants_value4[16];

/* Little-endian loads from any address. */
static inline uint16_t load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif
