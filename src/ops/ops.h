/* ops.h: what op_list.h generates: one argument struct per op, their enum and descriptions, and RUN.
 *
 *   RUN(be, rms_norm, .y = &h, .x = &x, .w = &L->attn_norm, .eps = cfg->norm_eps);
 */
#ifndef HADAL_OPS_OPS_H
#define HADAL_OPS_OPS_H

#include "base/err.h"
#include "ops/op_list.h"
#include "tensor/tensor.h"

#include <stddef.h>

#define OP_STRUCT_T(op, role, name) const struct tensor *name;
#define OP_STRUCT_F(op, name) float name;
#define OP_STRUCT_I(op, name) int name;
#define OP_STRUCT(op)                                                                              \
    struct op_##op {                                                                               \
        OP_FIELDS_##op(op, OP_STRUCT_T, OP_STRUCT_F, OP_STRUCT_I)                                  \
    };
OP_LIST(OP_STRUCT)

#define OP_ENUM(op) OP_##op,
enum op { OP_LIST(OP_ENUM) N_OP };

enum op_role { OP_IN, OP_OUT, OP_IO, OP_OPT, OP_OPT_OUT };
enum op_field_kind { OP_TENSOR, OP_FLOAT, OP_INT };
struct op_field {
    const char *name;
    enum op_field_kind kind;
    enum op_role role; /* of tensors */
    size_t offset;     /* in the argument struct */
};
struct op_info {
    const char *name;
    size_t args_bytes;
    int n_field;
    const struct op_field *field;
};
const struct op_info *op_info(enum op op);

/* Shapes, types and required fields of a call; 0 when it is sound. Called in front of the table in debug builds. */
int op_check(enum op op, const void *args, struct err *e);

struct backend;
/* Runs an op on a backend unless it has failed already; the first failure sticks to the backend. */
void op_run(struct backend *be, enum op op, const void *args);
#define RUN(be, op, ...) op_run((be), OP_##op, &(struct op_##op){__VA_ARGS__})

/* Fused definitions: an op as a composition of base ops on the same backend, for tables that lack their own. */
typedef void (*op_fn)(struct backend *be, const void *args);
op_fn op_definition(enum op op); /* NULL for base ops */

#endif
