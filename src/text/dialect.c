/* dialect.c: the chat formats. See dialect.h.
 *
 * Wording and bytes are those of the vendor's encoders; the tests hold their checksums.
 */
#include "text/dialect.h"

#include "text/shown.h"

#include <stdlib.h>
#include <string.h>

static const char tools_block[] =
    "## Tools\n"
    "\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by "
    "writing a \"<{C}>\" block like the following:\n"
    "\n"
    "<{C}>\n"
    "<{I} name=\"$TOOL_NAME\">\n"
    "<{P} name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</{P}>\n"
    "...\n"
    "</{I}>\n"
    "<{I} name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</{I}>\n"
    "</{C}>\n"
    "\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types "
    "(numbers, booleans, arrays, objects), pass the value in JSON format and set "
    "`string=\"false\"`.\n"
    "\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning "
    "inside <think>...</think> BEFORE any tool calls or final response.\n"
    "\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n"
    "\n"
    "### Available Tool Schemas\n"
    "\n"
    "{S}\n"
    "\n"
    "You MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
    "calls.\n";

static const char absolute_maximum[] =
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to "
    "resolve the root cause, rigorously stress-testing your logic against all potential paths, "
    "edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, "
    "considered alternative, and rejected hypothesis to ensure absolutely no assumption is left "
    "unchecked.\n"
    "\n";

static const char beyond_maximum[] =
    "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.\n"
    "You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: "
    "exhaustively decompose the problem into its most fundamental components, trace every causal "
    "chain to its root, and resolve the underlying cause rather than any surface symptom.\n"
    "Do not stop reasoning until you have independently verified the solution from multiple angles "
    "and are certain that no assumption remains unchecked and no error remains undiscovered.\n"
    "\n";

#define NUMBER_BEFORE "Reasoning Effort: "
#define NUMBER_AFTER  " (range 1-100, the higher the value, the more thorough the reasoning)\n\n"
#define NUMBER(n)     NUMBER_BEFORE n NUMBER_AFTER

static const struct dialect_effort v4_efforts[] = {
    {"none", ""}, {"low", ""}, {"high", ""}, {"max", absolute_maximum}};
static const struct dialect_effort v4_0731_efforts[] = {
    {"none", ""}, {"low", ""}, {"high", absolute_maximum}, {"max", beyond_maximum}};
static const struct dialect_effort v41_efforts[] = {
    {"low", NUMBER("50")}, {"high", NUMBER("75")}, {"max", NUMBER("100")}};

#define EFFORTS(table) .efforts = (table), .n_effort = sizeof(table) / sizeof *(table)

static const struct dialect dialects[] = {
    {
        .name = "v4",
        .calls = "tool_calls",
        .invoke = "invoke",
        .parameter = "parameter",
        .tools = tools_block,
        EFFORTS(v4_efforts),
        .default_effort = "none",
        .has_developer = 1,
    },
    {
        .name = "v4-0731",
        .calls = "tool_calls",
        .invoke = "invoke",
        .parameter = "parameter",
        .tools = tools_block,
        EFFORTS(v4_0731_efforts),
        .default_effort = "low",
        .has_developer = 1,
    },
    {
        .name = "v41",
        .calls = " calls",
        .invoke = " invoke",
        .parameter = " parameter",
        .tools = tools_block,
        EFFORTS(v41_efforts),
        .default_effort = "high",
        .effort_number = {NUMBER_BEFORE, NUMBER_AFTER},
        .has_system_token = 1,
        .keeps_user_tools = 1,
        .reads_arguments_twice = 1,
    },
};
enum { N_DIALECT = sizeof dialects / sizeof *dialects };

const struct dialect *dialect_at(int i)
{
    return i >= 0 && i < N_DIALECT ? &dialects[i] : NULL;
}

const struct dialect *dialect_find(const char *name)
{
    for (int i = 0; i < N_DIALECT; i++)
        if (!strcmp(dialects[i].name, name))
            return &dialects[i];
    return NULL;
}

/* 1 to 100, or 0 when the text is anything else. */
static int effort_number(const char *name)
{
    size_t n = strlen(name);
    int is_number = n >= 1 && n <= 3 && name[0] != '0' && strspn(name, "0123456789") == n;
    int number = is_number ? atoi(name) : 0;
    return number <= 100 ? number : 0;
}

int dialect_effort_text(const struct dialect *d, const char *name, struct buf *out, struct err *e)
{
    name = name ? name : d->default_effort;
    for (int i = 0; i < d->n_effort; i++)
        if (!strcmp(d->efforts[i].name, name)) {
            buf_text(out, d->efforts[i].text);
            return 0;
        }
    int number = d->effort_number[0] ? effort_number(name) : 0;
    if (!number)
        return err_set(e, ERR_ARGUMENT, "reasoning effort is \"%s\", expected %s%s",
            shown_text(text_of(name)).text, d->effort_number[0] ? "1 to 100, " : "none, ",
            "low, high or max");
    buf_print(out, "%s%d%s", d->effort_number[0], number, d->effort_number[1]);
    return 0;
}
