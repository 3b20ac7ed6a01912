/* backend.c: opening backends by name and running ops on them. */
#include "backend/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct backend_kind *const kinds[] = {
#ifdef HADAL_HAS_CUDA
    &backend_cuda,
#endif
    &backend_cpu, &backend_ref};

static void fill_table(struct backend *be)
{
    be->kind->fill(be->op);
    for (int op = 0; op < N_OP; op++)
        if (!be->op[op])
            be->op[op] = op_definition(op);
}

int backend_open(
    struct backend **be, const char *name, const struct backend_options *options, struct err *e)
{
    static const struct backend_options defaults = {0};
    *be = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i]->name, name))
            continue;
        if (kinds[i]->open(be, options ? options : &defaults, e))
            return -1;
        (*be)->kind = kinds[i];
        (*be)->checks_shapes = options && options->checks_shapes;
        fill_table(*be);
        return 0;
    }
    return err_set(e, ERR_UNSUPPORTED, "backend \"%s\" is not built into this program", name);
}

void backend_close(struct backend *be)
{
    if (!be)
        return;
    work_memory_free(be);
    be->kind->close(be);
}

int backend_end(struct backend *be, struct err *e)
{
    struct err own = {0};
    if (be->kind->end(be, &own))
        backend_fail(be, own.code, "%s", own.text);
    if (!be->failure.code)
        return 0;
    if (e)
        *e = be->failure;
    be->failure = (struct err){.code = ERR_NONE};
    return -1;
}

void backend_fail(struct backend *be, enum err_code code, const char *format, ...)
{
    if (be->failure.code)
        return;
    be->failure.code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(be->failure.text, sizeof be->failure.text, format, args);
    va_end(args);
}

void *backend_scratch(struct backend *be, size_t n_byte)
{
    struct err e = {0};
    void *p = work_memory_take(be, n_byte, &e);
    if (!p)
        backend_fail(be, e.code, "%s", e.text);
    return p;
}

void op_run(struct backend *be, enum op op, const void *args)
{
    if (be->failure.code)
        return;
    if (be->checks_shapes && op_check(op, args, &be->failure))
        return;
    if (!be->op[op]) {
        backend_fail(be, ERR_UNSUPPORTED, "op %s: backend %s does not have it", op_info(op)->name,
            be->kind->name);
        return;
    }
    struct work_mark mark = work_memory_mark(be);
    be->op[op](be, args);
    work_memory_release(be, mark);
}
