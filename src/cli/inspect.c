/* inspect.c: `hadal inspect`: a model in words, without running it. */
#include "cli/command.h"

struct inspect_settings {
    const char *model;
    int n_context;
};

#define AT(field) offsetof(struct inspect_settings, field)
static const struct option rows[] = {
    {"model", 'm', OPTION_TEXT, AT(model), "FILE", "GGUF file or checkpoint folder; default: the model in the program", 0, 0, 0},
    {"context", 'c', OPTION_INT, AT(n_context), "N", "tokens of context to plan memory for", 1, 1 << 24, 0},
};

static void print_line(void *context, const char *line)
{
    fprintf(context, "%s\n", line);
}

static int run(struct command_call *call, void *settings, struct err *e)
{
    const struct inspect_settings *s = settings;
    const char *model = s->model ? s->model : call->n_rest ? call->rest[0] : NULL;
    if (call->n_rest > (s->model ? 0 : 1)) {
        err_set(e, ERR_ARGUMENT, "inspect takes one MODEL");
        return EXIT_USAGE;
    }
    return hadal_model_describe(model, s->n_context, print_line, call->terminal->out, e) ? EXIT_FAILED : EXIT_OK;
}

const struct command command_inspect = {
    .name = "inspect",
    .usage = "[MODEL] [options]",
    .summary = "what a model file holds and needs",
    .details = "Prints the configuration, what every layer does, every tensor with its format and size, and the memory\n"
               "that a conversation takes. Weights are not read.\n",
    .groups = {{"Options", rows, 2, 0}},
    .n_group = 1,
    .settings_bytes = sizeof(struct inspect_settings),
    .run = run,
};
