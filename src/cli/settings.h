/* settings.h: option groups that several commands share, and what they become. */
#ifndef HADAL_CLI_SETTINGS_H
#define HADAL_CLI_SETTINGS_H

#include "cli/command.h"

struct engine_settings {
    const char *model, *backend, *level, *draft_file, *draft_rule;
    uint64_t memory_bytes;
    int n_session; /* no option: what the command needs; 0: 1 */
    int n_thread, n_context, n_chunk, skips_kv_rounding, has_bounded_replay, has_no_drafts;
};
enum { N_ENGINE_OPTION = 12, N_SAMPLING_OPTION = 8 };
extern const struct option engine_option_rows[N_ENGINE_OPTION];

/* Opens the engine with progress on the terminal and lets Ctrl-C cancel it. */
int settings_open_engine(hadal_engine **engine, const struct engine_settings *s, struct command_call *call, struct err *e);
/* Takes it away from Ctrl-C and closes it. */
void settings_close_engine(hadal_engine *engine, struct command_call *call);

/* Numbers that nobody set are NaN or -1 and become the checkpoint's. */
struct sampling_settings {
    float temperature, top_p, min_p, presence_penalty, frequency_penalty, repetition_penalty;
    int top_k;
    uint64_t seed;
    int has_seed;
};
extern const struct option sampling_option_rows[N_SAMPLING_OPTION];
void sampling_defaults(struct sampling_settings *s);
void sampling_resolve(struct hadal_sampling *to, const struct sampling_settings *s, const struct hadal_engine_info *info);

#endif
