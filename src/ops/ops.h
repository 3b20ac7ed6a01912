/* ops.h: what op_list.h generates: one argument struct per op, their enum and descriptions, and
 * RUN.
 *
 *   RUN(be, rms_norm, .y = &h, .x = &x, .w = &L->attn_norm, .eps = cfg->norm_eps);
 */
#ifndef HADAL_OPS_OPS_H
#define HADAL_OPS_OPS_H

#include "base/err.h"
#include "ops/op_list.h"
#include "tensor/tensor.h"

#include <stdalign.h>
#include <stddef.h>

#define OP_STRUCT_T(op, role, type, name, shape) const struct tensor *name;
#define OP_STRUCT_F(op, name)                    float name;
#define OP_STRUCT_I(op, name, letter)            int name;
#define OP_STRUCT(op)                                                                              \
    struct op_##op {                                                                               \
        OP_FIELDS_##op(op, OP_STRUCT_T, OP_STRUCT_F, OP_STRUCT_I)                                  \
    };
OP_LIST(OP_STRUCT)

#define OP_ENUM(op) OP_##op,
enum op { OP_LIST(OP_ENUM) N_OP };

enum op_role { OP_IN, OP_OUT, OP_IO, OP_OPT, OP_OPT_OUT };
enum op_type { OP_F32, OP_I32, OP_WEIGHT, OP_CACHE, OP_IDS };
enum op_field_kind { OP_TENSOR, OP_FLOAT, OP_INT };
struct op_field {
    const char *name;
    const char *shape; /* of tensors: "n h d"; of integers: a letter or "" */
    size_t offset;     /* in the argument struct */
    enum op_field_kind kind;
    enum op_role role; /* of tensors */
    enum op_type type; /* of tensors */
};
struct op_info {
    const char *name;
    size_t args_bytes;
    int n_field;
    const struct op_field *field;
};
const struct op_info *op_info(enum op op);
/* Tensor field f of an argument struct; NULL when it is not given. */
const struct tensor *op_tensor(const void *args, const struct op_field *f);

/* Argument `rounding` of ops that end with one; NONE: block and n_col mean nothing. */
enum op_rounding { ROUND_NONE, ROUND_FP8, ROUND_FP4, ROUND_FP4_E4M3 };

/* The part of a call that concerns batch rows [first, first + n): tensors whose shape begins with
 * n, m or * are cut. The cut call is made of what is in *cut and valid as long as that is. */
enum { OP_MAX_FIELD = 16, OP_MAX_ARGS = 256 };
struct op_cut {
    alignas(16) unsigned char args[OP_MAX_ARGS];
    struct tensor view[OP_MAX_FIELD];
};
void op_cut_rows(struct op_cut *cut, enum op op, const void *args, int64_t first, int64_t n);
int64_t op_n_row(enum op op, const void *args); /* batch rows of a call */
int64_t op_row_values(
    enum op op, const void *args); /* values of all batched tensors, per batch row */

/* Shapes, types and required fields of a call; 0 when it is sound. Called in front of the table in
 * debug builds. */
int op_check(enum op op, const void *args, struct err *e);

struct backend;
typedef void (*op_fn)(struct backend *be, const void *args);

/* Runs an op on a backend unless it has failed already; the first failure sticks to the backend. */
void op_run(struct backend *be, enum op op, const void *args);
#define RUN(be, op, ...) op_run((be), OP_##op, &(struct op_##op){__VA_ARGS__})

/* Fused definitions: an op as a composition of base ops on the same backend, for tables that lack
 * their own. */
op_fn op_definition(enum op op); /* NULL for base ops */

/* For use inside an op, implemented by the backend: memory until the op returns, aligned to 64
 * bytes and not cleared, as kernels see it (NULL: the failure is recorded, return); and a failure,
 * of which the first one stays. */
void *backend_scratch(struct backend *be, size_t n_byte);
void backend_fail(struct backend *be, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
