/* fake_script.c: the script and the tokenizer of the scripted engine. See fake_engine.h. */
#include "support/fake_engine.h"

#include "base/file.h"
#include "text/byte_alphabet.h"
#include "text/control_tokens.h"

#include <stdlib.h>
#include <string.h>

/* Resolves \n and \\ in place. */
static char *unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        *to++ = *from == '\\' && from[1] ? (*++from == 'n' ? '\n' : *from) : *from;
    *to = 0;
    return text;
}

static int take_line(struct fake_script *s, char *line, const char **when, struct err *e)
{
    size_t n = strcspn(line, " ");
    char *rest = line + n + (line[n] == ' ');
    line[n] = 0;
    struct fake_rule rule = {.when = *when, .text = rest, .n = atoi(rest)};
    int *number = !strcmp(line, "delay") ? &s->delay_ms : !strcmp(line, "prefill") ? &s->prefill_ms
                : !strcmp(line, "step")  ? &s->n_step   : !strcmp(line, "context") ? &s->n_context : NULL;
    if (number) {
        *number = rule.n;
        return 0;
    }
    if (!strcmp(line, "when")) {
        *when = rest;
        return 0;
    }
    if (!strcmp(line, "say"))
        unescape(rest);
    else if (!strcmp(line, "babble"))
        rule.kind = FAKE_BABBLE;
    else if (!strcmp(line, "fail"))
        rule.kind = FAKE_FAIL;
    else
        return err_set(e, ERR_FORMAT, "script: unknown word %s", line);
    if (s->n_rule == FAKE_MAX_RULE)
        return err_set(e, ERR_FORMAT, "script: more than %d rules", FAKE_MAX_RULE);
    s->rules[s->n_rule++] = rule;
    return 0;
}

int fake_script_read(struct fake_script *s, const char *path, struct arena *arena, struct err *e)
{
    struct file_map m = {0};
    const char *when = "";
    *s = (struct fake_script){.n_step = 1, .n_context = 4096};
    if (path && file_map_open(&m, path, e))
        return -1;
    char *text = arena_copy(arena, m.data ? (const void *)m.data : "", m.n_byte);
    file_map_close(&m);
    int failed = text ? 0 : err_set(e, ERR_MEMORY, "no memory for the script");
    for (char *line = text, *end; !failed && line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = 0;
        if (*line && *line != '#')
            failed = take_line(s, line, &when, e);
    }
    return failed;
}

int fake_tokenizer_open(struct tokenizer **t, struct err *e)
{
    static const char *const controls[] = {CONTROL_BOS, CONTROL_EOS, CONTROL_PAD, CONTROL_SYSTEM, CONTROL_USER,
        CONTROL_ASSISTANT, CONTROL_REMINDER, CONTROL_THINK, CONTROL_END_THINK, CONTROL_DSML};
    enum { N_CONTROL = sizeof controls / sizeof *controls, N_TOKEN = 256 + N_CONTROL };
    struct text tokens[N_TOKEN];
    uint8_t types[N_TOKEN];
    struct buf spelled[256];
    memset(spelled, 0, sizeof spelled);
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        byte_alphabet_encode((struct text){&byte, 1}, &spelled[i]);
        tokens[i] = (struct text){spelled[i].data, spelled[i].n_byte};
        types[i] = TOKEN_NORMAL;
    }
    for (int i = 0; i < N_CONTROL; i++) {
        tokens[256 + i] = text_of(controls[i]);
        types[256 + i] = TOKEN_CONTROL;
    }
    struct tokenizer_source source = {.n_token = N_TOKEN, .tokens = tokens, .types = types, .pre = "hadal", .bos = 256,
        .eos = 257, .pad = 258};
    int failed = tokenizer_open(t, &source, e);
    for (int i = 0; i < 256; i++)
        buf_free(&spelled[i]);
    return failed;
}
