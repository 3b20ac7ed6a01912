/* tensor.h: a typed view of memory. It owns nothing.
 *
 * Dimensions are outermost first: a weight is dim = {rows, cols} with cols contiguous, stacked
 * experts are {n_expert, rows, cols}. A flat row index r counts over all outer dimensions: r in [0,
 * tensor_n_row).
 *
 *   data        first byte of row 0; rows are row_bytes apart
 *   scale       second array of the formats that have one (dtype.h), laid out as if each dim[0]
 * slice of a 3-d tensor had its own [scale rows, scale cols] array, one after another part when the
 * dim[0] slices of a 3-d tensor are not contiguous (experts of a checkpoint folder): one address
 *               per slice, replacing data; scale_part likewise
 *
 * All of it may live on a device; only the backend that owns the memory may look inside.
 */
#ifndef HADAL_TENSOR_TENSOR_H
#define HADAL_TENSOR_TENSOR_H

#include "base/err.h"
#include "tensor/dtype.h"

#include <stdint.h>

enum { TENSOR_MAX_DIM = 4 };

struct tensor {
    enum dtype type;
    int n_dim;
    int64_t dim[TENSOR_MAX_DIM]; /* outermost first; unused ones are 1 */
    int64_t row_bytes;
    void *data;
    const void *scale;
    const void *const *part, *const *scale_part;
    const char *name; /* for messages; may be NULL */
};

/* A contiguous tensor over memory that the caller provides. Trailing zero dims are left out:
 * tensor_of(DT_F32, p, n, d, 0, 0). */
struct tensor tensor_of(
    enum dtype type, void *data, int64_t d0, int64_t d1, int64_t d2, int64_t d3);
/* The first dim[0] = n entries starting at `first` along the outermost dimension (formats with tile
 * scales: not for 2-d). */
struct tensor tensor_slice(const struct tensor *t, int64_t first, int64_t n);
/* Slice e of a 3-d tensor as a 2-d tensor, whether parts, scales or neither are present. */
struct tensor tensor_matrix(const struct tensor *t, int64_t e);

int64_t tensor_n_row(const struct tensor *t); /* product of all dimensions but the last */
int64_t tensor_n_col(const struct tensor *t); /* last dimension */
int64_t tensor_n_value(const struct tensor *t);
/* Bytes of data (scales not counted); -1 on overflow or when the inner dimension is no multiple of
 * the block. */
int64_t tensor_data_bytes(enum dtype type, int n_dim, const int64_t *dim);
int64_t tensor_scale_bytes(enum dtype type, int n_dim, const int64_t *dim);
/* "F32 [3, 64, 32]" into a caller's buffer, for messages. */
const char *tensor_describe(const struct tensor *t, char *text, int n_text);

/* Decodes values [first, first + n) of flat row `row` to float. first and n are multiples of the
 * block. */
void tensor_decode(const struct tensor *t, int64_t row, int64_t first, int64_t n, float *out);
/* Encodes n float values (a multiple of the block) into one row; for formats without scale tensor
 * that convert writes: F32, F16, BF16, Q8_0, Q4_K, Q2_K, MXFP4. -1 when the format has no encoder.
 */
int tensor_encode(enum dtype type, const float *values, int64_t n, void *out);

#endif
