/* err.c: formatting of error texts. See err.h. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, enum err_code code, const char *format, ...)
{
    if (!e)
        return -1;
    e->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return -1;
}

int err_wrap(struct err *e, const char *format, ...)
{
    if (!e)
        return -1;
    char context[sizeof e->text], inner[sizeof e->text];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context, format, args);
    va_end(args);
    memcpy(inner, e->text, sizeof inner);
    int n = snprintf(e->text, sizeof e->text, "%.200s: ", context);
    snprintf(e->text + n, sizeof e->text - (size_t)n, "%s", inner);
    return -1;
}
