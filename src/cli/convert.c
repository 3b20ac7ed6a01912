/* convert.c: `hadal convert`: a thin front of convert/convert.h. */
#include "convert/convert.h"

#include "cli/command.h"

#include <string.h>

struct convert_settings {
    const char *output, *name;
    struct option_texts types;
    int n_thread, verifies, verifies_only, is_quiet;
};

#define AT(field) offsetof(struct convert_settings, field)
static const struct option rows[] = {
    {"output", 'o', OPTION_TEXT, AT(output), "FILE", "the GGUF file to write", 0, 0, 0},
    {"type", 0, OPTION_TEXTS, AT(types), "CLASS=FORMAT", "format of a class of tensors, or of all; keep: as it is; may be repeated", 0,
        0, 0},
    {"name", 0, OPTION_TEXT, AT(name), "TEXT", "name of the model in the file; default: the input's", 0, 0, 0},
    {"threads", 't', OPTION_INT, AT(n_thread), "N", "worker threads; default: one per processor", 1, 4096, 0},
    {"verify", 0, OPTION_FLAG, AT(verifies), NULL, "read the result again and compare its values with the input", 0, 0, 0},
    {"verify-only", 0, OPTION_FLAG, AT(verifies_only), NULL, "compare a file that is there already", 0, 0, 0},
    {"quiet", 'q', OPTION_FLAG, AT(is_quiet), NULL, "no progress", 0, 0, 0},
};

static void show_progress(void *context, const char *what, const char *name, uint64_t done, uint64_t total)
{
    (void)name;
    terminal_progress(context, what, done, total);
}

static void print_report(const struct convert_settings *s, const struct convert_report *r, FILE *out)
{
    fprintf(out, "%s: %d tensors, %llu bytes", s->output, r->n_tensor, (unsigned long long)r->n_byte);
    if (r->n_kept)
        fprintf(out, ", %d of them from an earlier run", r->n_kept);
    if (s->verifies || s->verifies_only) {
        fprintf(out, "; %d equal the input exactly", r->n_exact);
        if (r->n_exact < r->n_tensor)
            fprintf(out, ", largest relative error %.3g in %s", r->largest_error, r->worst);
    }
    fputc('\n', out);
}

static int run(struct command_call *call, void *settings, struct err *e)
{
    const struct convert_settings *s = settings;
    struct convert_report report = {0};
    if (call->n_rest != 1 || !s->output) {
        err_set(e, ERR_ARGUMENT, "convert needs one INPUT and --output FILE");
        return EXIT_USAGE;
    }
    struct convert_options o = {.input = call->rest[0], .output = s->output, .name = s->name, .n_type = s->types.n,
        .n_thread = s->n_thread, .verifies = s->verifies, .verifies_only = s->verifies_only, .progress = show_progress,
        .progress_context = call->terminal, .is_cancelled = &call->interrupt->n};
    memcpy(o.types, s->types.text, (size_t)s->types.n * sizeof *o.types);
    call->terminal->is_quiet = s->is_quiet;
    int failed = convert_run(&o, &report, e);
    terminal_progress_end(call->terminal);
    if (failed && e->code == ERR_CANCELLED) {
        terminal_note(call->terminal, "stopped; the same command goes on from here");
        return EXIT_INTERRUPTED;
    }
    if (failed)
        return EXIT_FAILED;
    print_report(s, &report, call->terminal->out);
    return EXIT_OK;
}

const struct command command_convert = {
    .name = "convert",
    .usage = "INPUT --output FILE [options]",
    .summary = "a checkpoint folder or GGUF file into one GGUF file",
    .details = "Nothing is lost unless --type says so. A conversion that was interrupted goes on where it stopped when the\n"
               "same command is given again.\n\n"
               "Classes: embed head attn compressor indexer router experts shared mhc norm engram engram_table draft\n"
               "draft_experts, and all for every matrix. Formats: keep F32 F16 BF16 Q8_0 Q2_K Q4_K MXFP4. docs/format.md\n",
    .groups = {{"Options", rows, sizeof rows / sizeof *rows, 0}},
    .n_group = 1,
    .settings_bytes = sizeof(struct convert_settings),
    .run = run,
};
