/* options.c: see options.h. */
#include "cli/options.h"

#include "cli/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct found {
    const struct option *row;
    char *base; /* of its group in the settings */
};

static int fail(const struct option *o, const char *text, const char *expected, struct err *e)
{
    return err_set(e, ERR_ARGUMENT, "--%s: %s is not %s", o->name, text, expected);
}

static int fail_range(const struct option *o, const char *text, struct err *e)
{
    if (o->most >= 1e9)
        return err_set(e, ERR_ARGUMENT, "--%s: %s is not a number from %g on", o->name, text, o->least);
    return err_set(e, ERR_ARGUMENT, "--%s: %s is not a number from %g to %g", o->name, text, o->least, o->most);
}

static int set_number(const struct option *o, void *variable, const char *text, struct err *e)
{
    char *end;
    double x = strtod(text, &end);
    int is_whole = o->kind == OPTION_NUMBER || x == floor(x);
    if (!*text || *end || !is_whole || !(x >= o->least && x <= o->most))
        return fail_range(o, text, e);
    if (o->kind == OPTION_INT)
        *(int *)variable = (int)x;
    else
        *(float *)variable = (float)x;
    return 0;
}

static int set_seed(const struct option *o, void *variable, const char *text, struct err *e)
{
    char *end;
    errno = 0;
    unsigned long long x = strtoull(text, &end, 0);
    if (!*text || *end || *text == '-' || errno)
        return fail(o, text, "a whole number from 0 to 18446744073709551615", e);
    *(uint64_t *)variable = x;
    return 0;
}

static int set_size(const struct option *o, void *variable, const char *text, struct err *e)
{
    static const char letters[] = "KMGT";
    char *end;
    double x = strtod(text, &end);
    const char *unit = *end ? strchr(letters, *end & ~0x20) : NULL;
    if (end != text && unit) {
        x *= (double)((uint64_t)1 << 10 * (unit - letters + 1));
        end++;
        end += *end == 'i'; /* GiB and GB are both 2^30 */
        end += *end == 'B' || *end == 'b';
    }
    if (end == text || *end || !(x >= 1 && x < 0x1p62))
        return fail(o, text, "a size like 500M or 1.5G", e);
    *(uint64_t *)variable = (uint64_t)x;
    return 0;
}

static int set_choice(const struct option *o, void *variable, const char *text, struct err *e)
{
    size_t n = strlen(text);
    for (const char *at = o->value; n && at; at = strchr(at, '|')) {
        at += *at == '|';
        if (!strncmp(at, text, n) && (at[n] == '|' || !at[n])) {
            *(const char **)variable = text;
            return 0;
        }
    }
    return fail(o, text, o->value, e);
}

static int add_text(const struct option *o, struct option_texts *list, const char *text, struct err *e)
{
    if (list->n == OPTION_MAX_TEXTS)
        return err_set(e, ERR_ARGUMENT, "--%s: at most %d times", o->name, OPTION_MAX_TEXTS);
    list->text[list->n++] = text;
    return 0;
}

static int set_value(const struct found *f, const char *text, struct err *e)
{
    const struct option *o = f->row;
    void *variable = f->base + o->offset;
    if (o->given_offset)
        *(int *)(void *)(f->base + o->given_offset) = 1;
    switch (o->kind) {
    case OPTION_FLAG:
        *(int *)variable = 1;
        return 0;
    case OPTION_TEXT:
        *(const char **)variable = text;
        return 0;
    case OPTION_CHOICE:
        return set_choice(o, variable, text, e);
    case OPTION_INT:
    case OPTION_NUMBER:
        return set_number(o, variable, text, e);
    case OPTION_SEED:
        return set_seed(o, variable, text, e);
    case OPTION_SIZE:
        return set_size(o, variable, text, e);
    case OPTION_TEXTS:
        return add_text(o, variable, text, e);
    }
    return 0;
}

static int is_named(const struct option *o, const char *name, size_t n)
{
    return strlen(o->name) == n && !strncmp(o->name, name, n);
}

/* Finds an option by its name, or by its letter when `letter` is not 0. */
static int find(const struct option_group *groups, int n_group, char letter, struct found *f, const char *name, size_t n)
{
    char *settings = f->base;
    for (int g = 0; g < n_group; g++)
        for (int i = 0; i < groups[g].n_row; i++) {
            const struct option *o = &groups[g].rows[i];
            if (letter ? o->letter == letter : is_named(o, name, n)) {
                *f = (struct found){o, settings + groups[g].base};
                return 1;
            }
        }
    return 0;
}

static int fail_unknown(const struct option_group *groups, int n_group, const char *argument, struct err *e)
{
    const char *best = NULL, *name = argument + strspn(argument, "-");
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(name, "="), name);
    for (int g = 0; g < n_group; g++)
        for (int i = 0; i < groups[g].n_row; i++)
            best = suggest_closer(typed, best, groups[g].rows[i].name);
    if (best)
        return err_set(e, ERR_ARGUMENT, "unknown option %s; did you mean --%s?", argument, best);
    return err_set(e, ERR_ARGUMENT, "unknown option %s", argument);
}

static int parse_one(const struct option_group *groups, int n_group, struct option_line *line, int *at, void *settings,
    struct err *e)
{
    const char *argument = line->arguments[*at], *value = NULL;
    struct found f = {.base = settings};
    int is_long = argument[1] == '-';
    if (is_long) {
        const char *name = argument + 2;
        size_t n = strcspn(name, "=");
        if (!find(groups, n_group, 0, &f, name, n))
            return fail_unknown(groups, n_group, argument, e);
        value = name[n] ? name + n + 1 : NULL;
    } else {
        if (!find(groups, n_group, argument[1], &f, NULL, 0))
            return fail_unknown(groups, n_group, argument, e);
        value = argument[2] ? argument + 2 : NULL;
    }
    if (f.row->kind == OPTION_FLAG && value)
        return err_set(e, ERR_ARGUMENT, "%s: --%s takes no value", argument, f.row->name);
    if (f.row->kind != OPTION_FLAG && !value) {
        if (*at + 1 >= line->n)
            return err_set(e, ERR_ARGUMENT, "%s needs a value: %s", argument, f.row->value);
        value = line->arguments[++*at];
    }
    return set_value(&f, value, e);
}

int options_parse(const struct option_group *groups, int n_group, struct option_line *line, void *settings, struct err *e)
{
    int are_options = 1;
    line->n_rest = 0;
    for (int i = 0; i < line->n; i++) {
        char *argument = line->arguments[i];
        if (are_options && !strcmp(argument, "--")) {
            are_options = 0;
        } else if (!are_options || argument[0] != '-' || !argument[1]) {
            line->arguments[line->n_rest++] = argument;
        } else if (parse_one(groups, n_group, line, &i, settings, e)) {
            return -1;
        }
    }
    return 0;
}

int options_set(const struct option_group *group, const char *name, const char *value, void *settings, struct err *e)
{
    struct found f = {.base = settings};
    if (!find(group, 1, 0, &f, name, strlen(name)))
        return fail_unknown(group, 1, name, e);
    return set_value(&f, value, e);
}

void options_help(const struct option_group *groups, int n_group, struct buf *out)
{
    for (int g = 0; g < n_group; g++) {
        buf_print(out, "\n%s\n", groups[g].title);
        for (int i = 0; i < groups[g].n_row; i++) {
            const struct option *o = &groups[g].rows[i];
            char left[64], letter[8] = "    ";
            if (o->letter)
                snprintf(letter, sizeof letter, "-%c, ", o->letter);
            snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
            buf_print(out, "  %-30s %s\n", left, o->help);
        }
    }
}
