/* bench.c: `hadal bench`: how fast a model reads and writes here. */
#include "cli/bench_content_report.h"

#include "base/arena.h"
#include "base/file.h"
#include "cli/settings.h"

#include <stdlib.h>

enum { LONGEST_SIZE = 1 << 24, CONTENT_CONTEXT = 4096 };

struct bench_settings {
    struct engine_settings engine;
    const char *depths, *suffixes, *text, *content, *json, *csv, *commit;
    int n_decode, n_repeat, is_quiet, has_seed;
    float temperature;
    uint64_t seed;
};

#define AT(field) offsetof(struct bench_settings, field)
static const struct option rows[] = {
    {"depths", 0, OPTION_TEXT, AT(depths), "LIST",
        "context sizes, ascending; default 512,1024,2048,4096, as far as they fit", 0, 0, 0},
    {"decode", 0, OPTION_INT, AT(n_decode), "N",
        "tokens to generate at each depth; 0: none; default 64", 0, 65536, 0},
    {"suffixes", 0, OPTION_TEXT, AT(suffixes), "LIST",
        "new tokens of which the time to the first answer token is measured; 0: none; default "
        "1,32,230,2048",
        0, 0, 0},
    {"text", 0, OPTION_TEXT, AT(text), "FILE",
        "read this over and over instead of made-up sentences", 0, 0, 0},
    {"content", 0, OPTION_TEXT, AT(content), "FILES",
        "instead of all that: what drafts save, by kind of content; a file of prompts each, "
        "separated by commas",
        0, 0, 0},
    {"temperature", 0, OPTION_NUMBER, AT(temperature), "X", "with --content; default 0", 0, 100, 0},
    {"seed", 's', OPTION_SEED, AT(seed), "N", "with --content; default 0", 0, 0, AT(has_seed)},
    {"repeats", 0, OPTION_INT, AT(n_repeat), "N", "times that everything is measured; default 3", 1,
        BENCH_MAX_REPEAT, 0},
    {"json", 0, OPTION_TEXT, AT(json), "FILE",
        "write every sample, the machine and the command to a file", 0, 0, 0},
    {"csv", 0, OPTION_TEXT, AT(csv), "FILE", "write medians to a file", 0, 0, 0},
    {"commit", 0, OPTION_TEXT, AT(commit), "ID", "source revision, for the record in the JSON file",
        0, 0, 0},
    {"quiet", 'q', OPTION_FLAG, AT(is_quiet), NULL, "no progress", 0, 0, 0},
};

static void defaults(void *settings)
{
    struct bench_settings *s = settings;
    s->n_decode = 64;
    s->n_repeat = 3;
}

static int parse_sizes(const char *option, const char *text, struct bench_sizes *to, struct err *e)
{
    to->n = 0;
    while (*text) {
        char *end;
        long size = strtol(text, &end, 10);
        int is_growing = size > (to->n ? to->size[to->n - 1] : 0) && size <= LONGEST_SIZE;
        if (end == text || !is_growing || (*end && *end != ','))
            return err_set(e, ERR_ARGUMENT,
                "--%s: expected growing numbers separated by commas, found %.20s", option, text);
        if (to->n == BENCH_MAX_SIZE)
            return err_set(e, ERR_ARGUMENT, "--%s: at most %d numbers", option, BENCH_MAX_SIZE);
        to->size[to->n++] = (int)size;
        text = *end ? end + 1 : end;
    }
    return to->n ? 0 : err_set(e, ERR_ARGUMENT, "--%s: no numbers", option);
}

static int is_none(const char *text)
{
    return text[0] == '0' && !text[1];
}

static int make_plan(const struct bench_settings *s, struct bench_plan *plan, struct err *e)
{
    plan->n_decode = s->n_decode;
    plan->n_repeat = s->n_repeat;
    if (s->content && s->n_repeat > CONTENT_MAX_REPEAT)
        return err_set(e, ERR_ARGUMENT, "--repeats: with --content at most %d", CONTENT_MAX_REPEAT);
    if (parse_sizes("depths", s->depths ? s->depths : "512,1024,2048,4096", &plan->depths, e))
        return -1;
    const char *suffixes = s->suffixes ? s->suffixes : "1,32,230,2048";
    return is_none(suffixes) ? 0 : parse_sizes("suffixes", suffixes, &plan->suffixes, e);
}

/* Sizes that nobody asked for are left out when the context cannot hold them. */
static void shorten(const struct bench_settings *s, struct bench_plan *plan, int n_context)
{
    while (!s->suffixes && plan->suffixes.n > 1 && bench_n_context(plan) > n_context)
        plan->suffixes.n--;
    while (!s->depths && plan->depths.n > 1 && bench_n_context(plan) > n_context)
        plan->depths.n--;
}

static int write_file(const char *path, const struct buf *text, struct err *e)
{
    struct file_writer w;
    if (!path)
        return 0;
    if (text->is_broken)
        return err_set(e, ERR_MEMORY, "%s: no memory for the report", path);
    if (file_writer_open(&w, path, e))
        return -1;
    if (!file_writer_write(&w, text->data, text->n_byte, e))
        return file_writer_commit(&w, e);
    file_writer_abort(&w);
    return -1;
}

static int write_reports(const struct bench_settings *s, const struct bench_report *r,
    struct command_call *call, struct err *e)
{
    struct buf table = {0}, json = {0}, csv = {0};
    bench_print_table(r, &table);
    bench_print_json(r, &json);
    bench_print_csv(r, &csv);
    terminal_write(
        call->terminal, call->terminal->out, table.is_broken ? "" : table.data, table.n_byte);
    int failed = write_file(s->json, &json, e) || write_file(s->csv, &csv, e);
    buf_free(&table);
    buf_free(&json);
    buf_free(&csv);
    return failed ? -1 : 0;
}

static int bench_content(const struct bench_settings *s, hadal_engine *engine,
    const struct bench_report *report, struct command_call *call, struct err *e)
{
    struct content_plan plan = {s->content, s->n_decode, s->n_repeat,
        {.temperature = s->temperature, .top_p = 1, .repetition_penalty = 1, .seed = s->seed}};
    struct arena arena = {0};
    struct content_found *found = ARENA_NEW(&arena, struct content_found, 1);
    struct buf table = {0}, json = {0};
    int failed = !found ? err_set(e, ERR_MEMORY, "no memory for the samples")
                        : content_measure(&plan, engine, call, found, e);
    if (!failed) {
        content_print_table(found, &table);
        content_print_json(report, &plan, found, &json);
        terminal_write(
            call->terminal, call->terminal->out, table.is_broken ? "" : table.data, table.n_byte);
        failed = write_file(s->json, &json, e);
    }
    buf_free(&table);
    buf_free(&json);
    arena_free(&arena);
    return failed ? -1 : 0;
}

static int bench_engine(const struct bench_settings *s, struct bench_plan *plan,
    hadal_engine *engine, struct command_call *call, struct err *e)
{
    struct hadal_engine_info info;
    struct hadal_store_stats store;
    struct arena arena = {0};
    struct bench_rows *found = ARENA_NEW(&arena, struct bench_rows, 1);
    hadal_engine_info(engine, &info);
    hadal_engine_store_stats(engine, &store);
    shorten(s, plan, info.n_context);
    struct bench_report report = {
        found, &info, &store, s->engine.model, call->program_version, s->commit, s->engine.n_chunk};
    int failed =
        s->content ? bench_content(s, engine, &report, call, e)
        : !found ? err_set(e, ERR_MEMORY, "no memory for the samples")
               : bench_measure(plan, engine, call, found, e) || write_reports(s, &report, call, e);
    arena_free(&arena);
    return failed ? -1 : 0;
}

static int run(struct command_call *call, void *settings, struct err *e)
{
    struct bench_settings *s = settings;
    struct bench_plan plan = {.n_decode = 0};
    hadal_engine *engine;
    if (call->n_rest > (s->engine.model ? 0 : 1)) {
        err_set(e, ERR_ARGUMENT, "bench takes one MODEL");
        return EXIT_USAGE;
    }
    if (call->n_rest)
        s->engine.model = call->rest[0];
    call->terminal->is_quiet = s->is_quiet;
    if (make_plan(s, &plan, e))
        return EXIT_USAGE;
    plan.text_file = s->text;
    plan.has_no_drafts = s->engine.has_no_drafts;
    if (s->content && !s->engine.n_context)
        s->engine.n_context = CONTENT_CONTEXT;
    s->engine.n_session = s->content ? CONTENT_N_SESSION : 1;
    if (s->depths && !s->engine.n_context)
        s->engine.n_context = bench_n_context(&plan);
    if (settings_open_engine(&engine, &s->engine, call, e))
        return EXIT_FAILED;
    int failed = bench_engine(s, &plan, engine, call, e);
    settings_close_engine(engine, call);
    if (failed)
        return e->code == ERR_CANCELLED ? EXIT_INTERRUPTED : EXIT_FAILED;
    return EXIT_OK;
}

const struct command command_bench = {
    .name = "bench",
    .usage = "[-m MODEL] [--depths LIST] [options]",
    .summary = "how fast a model reads and writes here",
    .details = "One conversation grows from depth to depth. At each depth: prefill speed of the "
               "tokens since the depth\n"
               "before, and decoding speed without and with drafts. Behind the last one: the time "
               "to the first answer token\n"
               "after a few new tokens, with the conversation at hand (live) and after reading all "
               "of it anew (cold).\n"
               "Without --text the text is always the same. Printed are medians, and the spread "
               "(most - least) / "
               "median over the repeats.\n"
               "With --content: answers behind every prompt of a file, one token at a time and with as many drafts\n"
               "as pay, in turns; and what whole draft blocks keep, by place.\n",
    .groups = {{"Bench", rows, sizeof rows / sizeof *rows, 0},
        {"Engine", engine_option_rows, N_ENGINE_OPTION, AT(engine)}},
    .n_group = 2,
    .settings_bytes = sizeof(struct bench_settings),
    .defaults = defaults,
    .run = run,
};
