/* ops.c: the tables that op_list.h describes. */
#include "ops/ops.h"

#include "ops/fused.h"

#include <string.h>

#define FIELD_T(op, role_, type_, name_, shape_)                                                   \
    {.name = #name_,                                                                               \
     .shape = shape_,                                                                              \
     .offset = offsetof(struct op_##op, name_),                                                    \
     .kind = OP_TENSOR,                                                                            \
     .role = OP_##role_,                                                                           \
     .type = OP_##type_},
#define FIELD_F(op, name_)                                                                         \
    {.name = #name_, .shape = "", .offset = offsetof(struct op_##op, name_), .kind = OP_FLOAT},
#define FIELD_I(op, name_, letter_)                                                                \
    {.name = #name_, .shape = letter_, .offset = offsetof(struct op_##op, name_), .kind = OP_INT},

#define FIELDS(op)                                                                                 \
    static const struct op_field fields_##op[] = {OP_FIELDS_##op(op, FIELD_T, FIELD_F, FIELD_I)};
OP_LIST(FIELDS)

#define INFO(op)                                                                                   \
    [OP_##op] = {.name = #op,                                                                      \
        .args_bytes = sizeof(struct op_##op),                                                      \
        .n_field = (int)(sizeof fields_##op / sizeof *fields_##op),                                \
        .field = fields_##op},
static const struct op_info infos[N_OP] = {OP_LIST(INFO)};

#define DEFINITION(op) [OP_##op] = fused_##op,
static const op_fn definitions[N_OP] = {OP_LIST_FUSED(DEFINITION)};

const struct op_info *op_info(enum op op)
{
    return &infos[op];
}

const struct tensor *op_tensor(const void *args, const struct op_field *f)
{
    const struct tensor *t;
    memcpy(&t, (const char *)args + f->offset, sizeof t);
    return t;
}

op_fn op_definition(enum op op)
{
    return definitions[op];
}
