/* op_case.c: parsing, building and running. See op_case.h. Filling is in op_fill.c. */
#include "ops/op_case.h"

#include "ops/op_fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *word_after(const char *line, const char *name, char separator)
{
    size_t n = strlen(name);
    for (const char *p = line; *p; p += strcspn(p, " "), p += *p == ' ')
        if (!strncmp(p, name, n) && p[n] == separator)
            return p + n + 1;
    return NULL;
}

static int has_omission(const char *line, const char *name)
{
    char text[64];
    size_t n = (size_t)snprintf(text, sizeof text, "-%s", name);
    for (const char *p = line; *p; p += strcspn(p, " "), p += *p == ' ')
        if (!strncmp(p, text, n) && (p[n] == ' ' || !p[n]))
            return 1;
    return 0;
}

static void read_sizes(struct op_case *c)
{
    for (int i = 0; i < 128; i++) {
        char name[2] = {(char)i, 0};
        const char *value = i > ' ' ? word_after(c->line, name, '=') : NULL;
        c->size[i] = value ? strtoll(value, NULL, 10) : -1;
        if (i >= '0' && i <= '9')
            c->size[i] = i - '0';
        for (char *end; i == '*' && value && c->n_star < TENSOR_MAX_DIM;
             value = *end == 'x' ? end + 1 : NULL)
            c->star[c->n_star++] = strtoll(value, &end, 10);
    }
}

static int read_number(struct op_case *c, const struct op_field *f)
{
    const char *text = word_after(c->line, f->name, '=');
    if (!text && *f->shape)
        text = word_after(c->line, f->shape, '=');
    if (!text)
        return fprintf(
                   stderr, "%s \"%s\": %s is missing\n", op_info(c->op)->name, c->line, f->name),
               -1;
    float number = strtof(text, NULL);
    int integer = (int)strtol(text, NULL, 10);
    if (f->kind == OP_FLOAT)
        memcpy(c->args + f->offset, &number, sizeof number);
    else
        memcpy(c->args + f->offset, &integer, sizeof integer);
    return 0;
}

static int read_shape(const struct op_case *c, const struct op_field *f, struct tensor *t)
{
    t->n_dim = 0;
    for (const char *p = f->shape; *p; p += *p == ' ') {
        int64_t size = 1;
        if (*p == '*') {
            for (int i = 0; i < c->n_star; i++)
                t->dim[t->n_dim++] = c->star[i];
            p++;
            continue;
        }
        for (; *p && *p != ' '; p++) {
            if (c->size[(int)*p] < 0)
                return fprintf(stderr, "%s \"%s\": size %c is missing\n", op_info(c->op)->name,
                           c->line, *p),
                       -1;
            size *= c->size[(int)*p];
        }
        t->dim[t->n_dim++] = size;
    }
    for (int i = t->n_dim; i < TENSOR_MAX_DIM; i++)
        t->dim[i] = 1;
    return 0;
}

static enum dtype read_type(const struct op_case *c, const struct op_field *f)
{
    char name[32] = "";
    const char *text = word_after(c->line, f->name, ':');
    if (text)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " "), text);
    if (f->type == OP_I32 || (f->type == OP_IDS && !text))
        return DT_I32;
    return text ? (enum dtype)dtype_by_name(name) : DT_F32;
}

static int build_tensor(struct op_case *c, int field, struct rng *rng)
{
    const struct op_field *f = &op_info(c->op)->field[field];
    struct case_tensor *ct = &c->tensor[field];
    ct->is_used = !has_omission(c->line, f->name);
    if (!ct->is_used)
        return 0;
    ct->is_output = f->role != OP_IN && f->role != OP_OPT;
    ct->t.type = read_type(c, f);
    ct->t.name = f->name;
    if (read_shape(c, f, &ct->t))
        return -1;
    const struct dtype_info *type = dtype_info(ct->t.type);
    int is_activation =
        f->type == OP_F32 || f->type == OP_CACHE || (f->type == OP_I32 && ct->t.n_dim > 1);
    ct->t.row_bytes = tensor_n_col(&ct->t) / type->block * type->block_bytes +
                      (is_activation ? c->row_padding : 0);
    ct->data_at = CASE_GUARD;
    ct->data_bytes = tensor_n_row(&ct->t) * ct->t.row_bytes;
    ct->scale_at = ct->data_at + (ct->data_bytes + 2 * CASE_GUARD - 1) / CASE_GUARD * CASE_GUARD;
    int64_t scale_bytes = tensor_scale_bytes(ct->t.type, ct->t.n_dim, ct->t.dim);
    ct->n_byte = ct->scale_at + scale_bytes + CASE_GUARD;
    ct->image = malloc((size_t)ct->n_byte);
    memset(ct->image, 0xa5, (size_t)ct->n_byte);
    fill_tensor(c, f, ct, rng);
    return 0;
}

int case_build(struct op_case *c, enum op op, const char *line, int row_padding, uint64_t seed)
{
    *c = (struct op_case){.op = op, .line = line, .row_padding = row_padding};
    const struct op_info *info = op_info(op);
    struct rng rng = rng_of(seed, (uint64_t)op);
    read_sizes(c);
    for (int f = 0; f < info->n_field; f++)
        if (info->field[f].kind != OP_TENSOR && read_number(c, &info->field[f]))
            return -1;
    for (int f = 0; f < info->n_field; f++)
        if (info->field[f].kind == OP_TENSOR && build_tensor(c, f, &rng))
            return -1;
    return 0;
}

void case_free(struct op_case *c)
{
    for (int f = 0; f < OP_MAX_FIELD; f++)
        free(c->tensor[f].image);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void bind(const struct op_case *c, const struct tensor *tensors, unsigned char *args)
{
    memcpy(args, c->args, OP_MAX_ARGS);
    for (int f = 0; f < op_info(c->op)->n_field; f++) {
        const struct tensor *pointer = &tensors[f];
        if (c->tensor[f].is_used)
            memcpy(args + op_info(c->op)->field[f].offset, &pointer, sizeof pointer);
    }
}

void case_args(const struct op_case *c, uint8_t *const image[OP_MAX_FIELD], struct tensor *tensors,
    unsigned char *args)
{
    for (int f = 0; f < OP_MAX_FIELD; f++) {
        if (!c->tensor[f].is_used)
            continue;
        tensors[f] = c->tensor[f].t;
        tensors[f].data = image[f] + c->tensor[f].data_at;
        tensors[f].scale = image[f] + c->tensor[f].scale_at;
    }
    bind(c, tensors, args);
}

static int run_parts(const struct op_case *c, struct backend *be, const void *args,
    const int64_t *parts, struct err *e)
{
    be->kind->begin(be, 0);
    struct op_cut cut;
    if (!parts) {
        op_run(be, c->op, args);
        return backend_end(be, e);
    }
    op_cut_rows(&cut, c->op, args, 0, 0); /* no rows at all are a call, too */
    op_run(be, c->op, cut.args);
    for (int64_t first = 0; *parts; first += *parts++) {
        op_cut_rows(&cut, c->op, args, first, *parts);
        op_run(be, c->op, cut.args);
    }
    return backend_end(be, e);
}

int case_run(const struct op_case *c, struct backend *be, const int64_t *parts,
    struct case_result *result, struct err *e)
{
    struct backend_buffer buffer[OP_MAX_FIELD] = {{0}};
    struct tensor whole[OP_MAX_FIELD];
    uint8_t *memory[OP_MAX_FIELD] = {0};
    int failed = 0;
    for (int f = 0; f < OP_MAX_FIELD && !failed; f++) {
        const struct case_tensor *ct = &c->tensor[f];
        if (!ct->is_used)
            continue;
        failed = be->kind->buffer_new(be, &buffer[f], (uint64_t)ct->n_byte, e) ||
                 be->kind->write(be, buffer[f].data, ct->image, (uint64_t)ct->n_byte, e);
        memory[f] = buffer[f].data;
    }
    _Alignas(16) unsigned char args[OP_MAX_ARGS];
    if (!failed)
        case_args(c, memory, whole, args);
    for (int i = 0; i < (result->n_repeat ? result->n_repeat : 1) && !failed; i++) {
        double start = now();
        failed = run_parts(c, be, args, parts, e);
        if (result->seconds)
            result->seconds[i] = now() - start;
    }
    for (int f = 0; f < OP_MAX_FIELD; f++) {
        if (!failed && buffer[f].data) {
            result->image[f] = malloc((size_t)c->tensor[f].n_byte);
            failed = be->kind->read(
                be, result->image[f], buffer[f].data, (uint64_t)c->tensor[f].n_byte, e);
        }
        if (buffer[f].data)
            be->kind->buffer_free(be, &buffer[f]);
    }
    return failed ? -1 : 0;
}

void case_result_free(struct case_result *r)
{
    for (int f = 0; f < OP_MAX_FIELD; f++)
        free(r->image[f]);
    *r = (struct case_result){.seconds = NULL};
}
