/* ops.c: the tables that op_list.h describes. */
#include "ops/ops.h"

#include "ops/fused.h"

#include <string.h>

#define FIELD_T(op, role_, type_, name_, shape_)                                                   \
    {.name = #name_,                                                                               \
        .shape = shape_,                                                                           \
        .offset = offsetof(struct op_##op, name_),                                                 \
        .kind = OP_TENSOR,                                                                         \
        .role = OP_##role_,                                                                        \
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
#define FITS(op)                                                                                   \
    _Static_assert(sizeof(struct op_##op) <= OP_MAX_ARGS, #op);                                    \
    _Static_assert(sizeof fields_##op / sizeof *fields_##op <= OP_MAX_FIELD, #op);
OP_LIST(FITS)

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

static int is_batched(const struct op_field *f)
{
    return f->kind == OP_TENSOR && (*f->shape == 'n' || *f->shape == 'm' || *f->shape == '*');
}

void op_cut_rows(struct op_cut *cut, enum op op, const void *args, int64_t first, int64_t n)
{
    memcpy(cut->args, args, infos[op].args_bytes);
    for (int i = 0; i < infos[op].n_field; i++) {
        const struct op_field *f = &infos[op].field[i];
        const struct tensor *t = f->kind == OP_TENSOR ? op_tensor(args, f) : NULL,
                            *view = &cut->view[i];
        if (!t || !is_batched(f))
            continue;
        cut->view[i] = tensor_slice(t, first, n);
        memcpy(cut->args + f->offset, &view, sizeof view);
    }
}

int64_t op_n_row(enum op op, const void *args)
{
    for (int i = 0; i < infos[op].n_field; i++)
        if (is_batched(&infos[op].field[i]) && op_tensor(args, &infos[op].field[i]))
            return op_tensor(args, &infos[op].field[i])->dim[0];
    return 0;
}

int64_t op_row_values(enum op op, const void *args)
{
    int64_t n = 0, n_row = op_n_row(op, args);
    for (int i = 0; i < infos[op].n_field; i++)
        if (is_batched(&infos[op].field[i]) && op_tensor(args, &infos[op].field[i]))
            n += tensor_n_value(op_tensor(args, &infos[op].field[i]));
    return n_row ? n / n_row : 0;
}

op_fn op_definition(enum op op)
{
    return definitions[op];
}
