/* settings.c: see settings.h. */
#include "cli/settings.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AT(field) offsetof(struct engine_settings, field)
const struct option engine_option_rows[N_ENGINE_OPTION] = {
    {"model", 'm', OPTION_TEXT, AT(model), "FILE", "GGUF file or checkpoint folder; default: the model in the program", 0, 0, 0},
    {"backend", 0, OPTION_TEXT, AT(backend), "NAME", "what computes: cpu (default), cuda where it is built, or ref, the scalar reference", 0, 0, 0},
    {"level", 0, OPTION_TEXT, AT(level), "NAME", "instruction set of the cpu backend; default: the best here", 0, 0, 0},
    {"threads", 't', OPTION_INT, AT(n_thread), "N", "worker threads; default: one per processor", 1, 4096, 0},
    {"context", 'c', OPTION_INT, AT(n_context), "N", "tokens that a conversation can hold; default: the model's limit, at most 32768", 1,
        1 << 24, 0},
    {"chunk", 0, OPTION_INT, AT(n_chunk), "N", "prompt tokens computed at once; default 256", 1, 65536, 0},
    {"memory", 0, OPTION_SIZE, AT(memory_bytes), "SIZE",
        "all that may be taken, as 12G; default: what is free. A larger model's experts stay on disk", 0, 0, 0},
    {"no-kv-rounding", 0, OPTION_FLAG, AT(skips_kv_rounding), NULL, "leave out the trained roundings of the cache, to compare engines", 0,
        0, 0},
    {"bounded-replay", 0, OPTION_FLAG, AT(has_bounded_replay), NULL, "read prompts about twice as fast but not exactly: only their end passes the decoder half; "
        "for models that have one", 0, 0, 0},
    {"draft-file", 0, OPTION_TEXT, AT(draft_file), "FILE", "draft stages from another file or checkpoint folder; the text is the same", 0, 0, 0},
    {"draft-rule", 0, OPTION_TEXT, AT(draft_rule), "NAME",
        "coupled (default): the text is the same; greedy: too, for comparison; rejection: only its distribution is", 0, 0, 0},
    {"no-drafts", 0, OPTION_FLAG, AT(has_no_drafts), NULL, "compute one token at a time; the text is the same", 0, 0, 0},
};
#undef AT

static void note_draft_problem(const hadal_engine *engine, struct terminal *t)
{
    struct hadal_engine_info info;
    hadal_engine_info(engine, &info);
    if (info.draft_problem)
        terminal_note(t, "going on without drafts: %s", info.draft_problem);
}

static void note_memory(void *terminal, const char *line)
{
    terminal_note(terminal, "%s", line);
}

static int read_rule(const char *name, enum hadal_draft_rule *rule, struct err *e)
{
    static const char *const names[] = {
        [HADAL_DRAFT_COUPLED] = "coupled", [HADAL_DRAFT_GREEDY] = "greedy", [HADAL_DRAFT_REJECTION] = "rejection"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(name ? name : names[0], names[i])) {
            *rule = (enum hadal_draft_rule)i;
            return 0;
        }
    return err_set(e, ERR_ARGUMENT, "--draft-rule: expected coupled, greedy or rejection, found %.40s", name);
}

int settings_open_engine(hadal_engine **engine, const struct engine_settings *s, struct command_call *call, struct err *e)
{
    struct hadal_engine_options options = {.model = s->model, .backend = s->backend, .level = s->level,
        .memory_bytes = s->memory_bytes, .tell_memory = note_memory, .tell_memory_context = call->terminal,
        .n_thread = s->n_thread, .n_context = s->n_context, .n_chunk = s->n_chunk,
        .n_session = s->n_session,
        .skips_kv_rounding = s->skips_kv_rounding, .has_no_drafts = s->has_no_drafts, .draft_file = s->draft_file,
        .has_bounded_replay = s->has_bounded_replay, .progress = terminal_progress,
        .progress_context = call->terminal};
    int failed = read_rule(s->draft_rule, &options.draft_rule, e) || hadal_engine_open(engine, &options, e);
    terminal_progress_end(call->terminal);
    call->interrupt->engine = failed ? NULL : *engine;
    if (!failed)
        note_draft_problem(*engine, call->terminal);
    return failed;
}

void settings_close_engine(hadal_engine *engine, struct command_call *call)
{
    call->interrupt->engine = NULL;
    hadal_engine_close(engine);
}

#define AT(field) offsetof(struct sampling_settings, field)
const struct option sampling_option_rows[N_SAMPLING_OPTION] = {
    {"temperature", 0, OPTION_NUMBER, AT(temperature), "X", "0: always the likeliest token; default: the model's own", 0, 100, 0},
    {"top-k", 0, OPTION_INT, AT(top_k), "N", "only the N likeliest tokens; 0: all", 0, 1 << 24, 0},
    {"top-p", 0, OPTION_NUMBER, AT(top_p), "X", "only the likeliest tokens that together reach probability X; 1: all", 0, 1, 0},
    {"min-p", 0, OPTION_NUMBER, AT(min_p), "X", "only tokens at least X times as likely as the likeliest; 0: all", 0, 1, 0},
    {"presence-penalty", 0, OPTION_NUMBER, AT(presence_penalty), "X", "lowers tokens that have occurred by X", -100, 100, 0},
    {"frequency-penalty", 0, OPTION_NUMBER, AT(frequency_penalty), "X", "lowers tokens by X for each occurrence", -100, 100, 0},
    {"repetition-penalty", 0, OPTION_NUMBER, AT(repetition_penalty), "X", "divides the scores of tokens that have occurred; 1: off", 0.01,
        100, 0},
    {"seed", 's', OPTION_SEED, AT(seed), "N", "same seed, same text; default: another one each time", 0, 0, AT(has_seed)},
};
#undef AT

void sampling_defaults(struct sampling_settings *s)
{
    *s = (struct sampling_settings){.temperature = NAN, .top_p = NAN, .min_p = NAN, .top_k = -1, .repetition_penalty = 1.0f};
}

/* Different for two runs of the same second. */
static uint64_t fresh_seed(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t x = (uint64_t)t.tv_sec * 1000000007u ^ (uint64_t)t.tv_nsec ^ (uint64_t)getpid() << 20;
    return x % 1000000000u; /* short enough to be typed again */
}

void sampling_resolve(struct hadal_sampling *to, const struct sampling_settings *s, const struct hadal_engine_info *info)
{
    *to = (struct hadal_sampling){.temperature = isnan(s->temperature) ? info->temperature : s->temperature,
        .top_k = s->top_k < 0 ? info->top_k : s->top_k,
        .top_p = isnan(s->top_p) ? info->top_p : s->top_p,
        .min_p = isnan(s->min_p) ? info->min_p : s->min_p,
        .presence_penalty = s->presence_penalty,
        .frequency_penalty = s->frequency_penalty,
        .repetition_penalty = s->repetition_penalty,
        .seed = s->has_seed ? s->seed : fresh_seed()};
}
