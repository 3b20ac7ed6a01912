/* pretokenize.c: see pretokenize.h. */
#include "text/pretokenize.h"

#include "base/arena.h"
#include "text/pattern.h"
#include "text/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Limits for one match, so that a pattern from a file cannot run away. The DeepSeek patterns need a
 * few steps for every byte and no stack, whatever the text: their repeats are of single characters.
 */
enum {
    MATCH_STEPS = 1 << 20,
    MATCH_STEPS_PER_BYTE = 64,
    HEAP_KIB = 65536,
    JIT_STACK_BYTES = 1 << 20
};

/* DeepSeek since V3: digits by threes; Chinese and Japanese runs; words, punctuation, spaces. */
static const struct text deepseek_patterns[] = {
    TEXT("\\p{N}{1,3}"),
    TEXT("[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+"),
    TEXT("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
         "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
         "| ?[\\p{P}\\p{S}]+[\r\n]*"
         "|\\s*[\r\n]+"
         "|\\s+(?!\\S)"
         "|\\s+"),
};
enum { N_DEEPSEEK = sizeof deepseek_patterns / sizeof *deepseek_patterns };

/* The first name is the one that is written. */
static const char *const deepseek_names[] = {"deepseek-v3", "joyai-llm", "hadal"};
enum { N_DEEPSEEK_NAME = sizeof deepseek_names / sizeof *deepseek_names };

int pretokenize_named(const char *name, const struct text **patterns)
{
    for (int i = 0; i < N_DEEPSEEK_NAME; i++)
        if (!strcmp(name, deepseek_names[i])) {
            *patterns = deepseek_patterns;
            return N_DEEPSEEK;
        }
    return 0;
}

const char *pretokenize_name(const struct text *patterns, int n_pattern)
{
    if (n_pattern != N_DEEPSEEK)
        return NULL;
    for (int i = 0; i < N_DEEPSEEK; i++)
        if (!text_equal(patterns[i], deepseek_patterns[i]))
            return NULL;
    return deepseek_names[0];
}

/* ---- opening ---- */

static void *take_memory(PCRE2_SIZE n_byte, void *unused)
{
    (void)unused;
    return mem_resize(NULL, n_byte);
}

static void give_memory(void *block, void *unused)
{
    (void)unused;
    mem_free(block);
}

static int compile(struct pretokenizer *p, struct text pattern, struct err *e)
{
    struct buf rewritten = {0};
    int cause = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code *code = NULL;
    pcre2_compile_context *context = pcre2_compile_context_create(p->memory);
    if (context && !pattern_rewrite(pattern, &rewritten, e)) {
        code = pcre2_compile((PCRE2_SPTR)(rewritten.data ? rewritten.data : ""), rewritten.n_byte,
            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &cause, &offset, context);
        if (!code) {
            PCRE2_UCHAR message[128] = {0};
            pcre2_get_error_message(cause, message, sizeof message);
            err_set(
                e, ERR_FORMAT, "pattern %d: %s at byte %zu", p->n_code, (char *)message, offset);
        }
    } else if (!context) {
        err_set(e, ERR_MEMORY, "no memory for pattern %d", p->n_code);
    }
    pcre2_compile_context_free(context);
    buf_free(&rewritten);
    if (!code)
        return -1;
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* where there is no JIT, pcre2_match interprets */
    p->codes[p->n_code++] = code;
    return 0;
}

int pretokenizer_open(
    struct pretokenizer *p, const struct text *patterns, int n_pattern, struct err *e)
{
    *p = (struct pretokenizer){0};
    if (n_pattern < 0 || n_pattern > PRETOKENIZE_MAX_PATTERN)
        return err_set(e, ERR_FORMAT, "%d pre-tokenizer patterns, expected at most %d", n_pattern,
            PRETOKENIZE_MAX_PATTERN);
    p->memory = pcre2_general_context_create(take_memory, give_memory, NULL);
    if (!p->memory)
        return err_set(e, ERR_MEMORY, "no memory for the pre-tokenizer");
    for (int i = 0; i < n_pattern; i++)
        if (compile(p, patterns[i], e)) {
            pretokenizer_close(p);
            return -1;
        }
    return 0;
}

void pretokenizer_close(struct pretokenizer *p)
{
    for (int i = 0; i < p->n_code; i++)
        pcre2_code_free(p->codes[i]);
    pcre2_general_context_free(p->memory);
    *p = (struct pretokenizer){0};
}

/* ---- cutting ---- */

struct cutter {
    const struct pretokenizer *p;
    pcre2_match_data *matches[PRETOKENIZE_MAX_PATTERN];
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
    pretokenize_take *take;
    void *user;
};

static int cutter_open(struct cutter *c, size_t n_byte, struct err *e)
{
    uint64_t n_step = MATCH_STEPS + (uint64_t)n_byte * MATCH_STEPS_PER_BYTE;
    int is_complete = 1;
    c->limits = pcre2_match_context_create(c->p->memory);
    c->stack = pcre2_jit_stack_create(32 * 1024, JIT_STACK_BYTES, c->p->memory);
    for (int i = 0; i < c->p->n_code; i++) {
        c->matches[i] = pcre2_match_data_create(1, c->p->memory);
        is_complete &= c->matches[i] != NULL;
    }
    if (!c->limits || !is_complete)
        return err_set(e, ERR_MEMORY, "no memory to cut text");
    pcre2_set_match_limit(c->limits, n_step < UINT32_MAX ? (uint32_t)n_step : UINT32_MAX);
    pcre2_set_heap_limit(c->limits, HEAP_KIB);
    if (c->stack)
        pcre2_jit_stack_assign(c->limits, NULL, c->stack);
    return 0;
}

static void cutter_close(struct cutter *c)
{
    for (int i = 0; i < c->p->n_code; i++)
        pcre2_match_data_free(c->matches[i]);
    pcre2_match_context_free(c->limits);
    pcre2_jit_stack_free(c->stack);
}

struct range {
    size_t begin, end;
};

/* The next match that is not empty, at or after `at`. Returns 1 for a match, 0 for none, -1 for an
 * error. */
static int next_match(
    struct cutter *c, int pass, struct text piece, size_t at, struct range *found, struct err *e)
{
    int rc = pcre2_match(c->p->codes[pass], (PCRE2_SPTR)piece.data, piece.n_byte, at,
        PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, c->matches[pass], c->limits);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc < 0)
        return err_set(e, ERR_UNSUPPORTED,
            "pattern %d gives up on a text of %zu bytes (PCRE2 error %d)", pass, piece.n_byte, rc);
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(c->matches[pass]);
    found->begin = range[0] < at ? at : range[0]; /* a look-behind with \K could go back */
    found->end = range[1];
    return found->end > found->begin;
}

/* Cuts well-formed text by the patterns from `pass` on. */
static int cut(struct cutter *c, int pass, struct text piece, struct err *e)
{
    if (!piece.n_byte)
        return 0;
    if (pass == c->p->n_code)
        return c->take(c->user, piece, e);
    size_t at = 0;
    struct range found = {0, 0};
    while (at < piece.n_byte) {
        int rc = next_match(c, pass, piece, at, &found, e);
        if (rc < 0)
            return -1;
        if (!rc)
            break;
        rc = cut(c, pass + 1, (struct text){piece.data + at, found.begin - at}, e);
        if (!rc)
            rc = cut(
                c, pass + 1, (struct text){piece.data + found.begin, found.end - found.begin}, e);
        if (rc)
            return rc;
        at = found.end;
    }
    return cut(c, pass + 1, (struct text){piece.data + at, piece.n_byte - at}, e);
}

static size_t ill_formed_prefix(struct text t)
{
    size_t at = 0;
    uint32_t code;
    while (at < t.n_byte && utf8_read(t.data + at, t.n_byte - at, &code) <= 0)
        at++;
    return at;
}

int pretokenize(const struct pretokenizer *p, struct text text, pretokenize_take *take, void *user,
    struct err *e)
{
    struct cutter c = {.p = p, .take = take, .user = user};
    int rc = cutter_open(&c, text.n_byte, e);
    while (!rc && text.n_byte) {
        size_t n = utf8_valid_prefix(text.data, text.n_byte);
        rc = cut(&c, 0, (struct text){text.data, n}, e);
        text = (struct text){text.data + n, text.n_byte - n};
        n = ill_formed_prefix(text);
        if (!rc && n)
            rc = take(user, (struct text){text.data, n}, e);
        text = (struct text){text.data + n, text.n_byte - n};
    }
    cutter_close(&c);
    return rc;
}
