/* convert.c: `hadal convert`: a checkpoint becomes a GGUF file. The work is in convert/. */
#include "convert/convert.h"

#include "cli/command.h"

struct convert_settings {
    struct option_texts types;
    const char *name;
    int n_thread, verifies, verifies_only;
};

#define AT(field) offsetof(struct convert_settings, field)
static const struct option rows[] = {
    {"type", 0, OPTION_TEXTS, AT(types), "CLASS=FORMAT",
        "store a class of tensors in a format; may be repeated", 0, 0, 0},
    {"name", 0, OPTION_TEXT, AT(name), "NAME",
        "the model's name in the file; default: the checkpoint's", 0, 0, 0},
    {"verify", 0, OPTION_FLAG, AT(verifies), NULL,
        "then compare the file with the checkpoint, value by value", 0, 0, 0},
    {"verify-only", 0, OPTION_FLAG, AT(verifies_only), NULL,
        "only compare; the file is there already", 0, 0, 0},
    {"threads", 't', OPTION_INT, AT(n_thread), "N", "threads; default: one per processor", 1, 1024,
        0},
};

static void show_progress(
    void *context, const char *what, const char *name, uint64_t done, uint64_t total)
{
    (void)name;
    terminal_progress(context, what, done, total);
}

static void show_report(
    struct terminal *t, const struct convert_settings *s, const struct convert_report *r)
{
    if (!s->verifies_only)
        terminal_note(t, "%d tensors, %llu bytes, %d of them kept from an earlier run", r->n_tensor,
            (unsigned long long)r->n_byte, r->n_kept);
    if ((s->verifies || s->verifies_only) && r->largest_error > 0)
        terminal_note(t, "%d tensors are exact; the largest relative error is %.2g, of %s",
            r->n_exact, r->largest_error, r->worst);
    else if (s->verifies || s->verifies_only)
        terminal_note(t, "all %d tensors are exact", r->n_exact);
}

static int run(struct command_call *call, void *settings, struct err *e)
{
    const struct convert_settings *s = settings;
    struct convert_report report;
    if (call->n_rest != 2) {
        err_set(e, ERR_ARGUMENT, "convert takes a MODEL and an OUT.gguf");
        return EXIT_USAGE;
    }
    struct convert_options o = {.input = call->rest[0],
        .output = call->rest[1],
        .name = s->name,
        .n_type = s->types.n,
        .n_thread = s->n_thread,
        .verifies = s->verifies,
        .verifies_only = s->verifies_only,
        .progress = show_progress,
        .progress_context = call->terminal,
        .is_cancelled = &call->interrupt->n};
    for (int i = 0; i < s->types.n; i++)
        o.types[i] = s->types.text[i];
    int failed = convert_run(&o, &report, e);
    terminal_progress_end(call->terminal);
    if (failed)
        return e->code == ERR_CANCELLED ? EXIT_INTERRUPTED : EXIT_FAILED;
    show_report(call->terminal, s, &report);
    return EXIT_OK;
}

const struct command command_convert = {
    .name = "convert",
    .usage = "MODEL OUT.gguf [options]",
    .summary = "make one GGUF file of a checkpoint",
    .details = "MODEL is a checkpoint folder or a GGUF file. Without --type nothing is lost. A "
               "conversion that was stopped\n"
               "goes on when it is started again.\n"
               "Classes: all embed head attn compressor indexer router experts shared mhc norm "
               "engram engram_table draft\n"
               "draft_experts. Formats: keep F32 F16 BF16 Q8_0 Q2_K Q4_K MXFP4.\n",
    .groups = {{"Options", rows, 5, 0}},
    .n_group = 1,
    .settings_bytes = sizeof(struct convert_settings),
    .run = run,
};
