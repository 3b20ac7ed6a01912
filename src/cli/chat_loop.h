/* chat_loop.h: a conversation with the model: what `hadal run` keeps between a question and the next. */
#ifndef HADAL_CLI_CHAT_LOOP_H
#define HADAL_CLI_CHAT_LOOP_H

#include "base/arena.h"
#include "cli/answer.h"
#include "cli/draft_report.h"
#include "cli/line_editor.h"
#include "cli/settings.h"
#include "cli/transcript.h"

struct generation_settings {
    int max_token;           /* -1: as many as the context holds */
    struct option_texts stops;
    const char *think;       /* "off", "on", or an effort of the dialect */
    const char *draft;       /* "auto", "off" or a number */
};
enum { N_GENERATION_OPTION = 4 };
extern const struct option generation_option_rows[N_GENERATION_OPTION];

struct chat {
    struct command_call *call;
    struct terminal *terminal;
    hadal_engine *engine;
    hadal_session *session;
    struct hadal_engine_info info;
    struct chat_options options;
    struct sampling_settings sampling_settings;
    struct generation_settings generation;
    struct hadal_sampling sampling; /* of the latest answer */
    uint64_t n_retry;               /* answers asked for again: each takes the next seed */
    int n_draft; /* of hadal_session_next */
    struct transcript transcript;
    struct line_editor *editor; /* NULL: lines are read as they come */
    struct arena arena;         /* values that /set was given */
    struct answer latest;
    int is_unanswered; /* the last question was stopped before a word came: the next one takes its place */
    int is_leaving;
};

/* Fills in what the engine, the settings and the dialect say; engine and session are open. */
int chat_open(struct chat *c, struct err *e);
/* Reads "off", "on" or an effort into the chat's options. */
int chat_set_thinking(struct chat *c, const char *think, struct err *e);
/* Lets the model answer the transcript, or prompt ids if given, streams the answer and adds it to the transcript. */
int chat_answer(struct chat *c, const struct token_list *prompt, struct err *e);
void chat_close(struct chat *c);

/* Reads messages and commands until the end. Returns an exit code. */
int chat_loop(struct chat *c, struct err *e);

/* Reads one message of any number of lines (chat_input.c). */
enum line_result chat_read_message(struct chat *c, struct buf *out);

/* Runs a line that begins with "/" (chat_commands.c). Returns 0, 1 when the transcript now asks for an answer, or -1. */
int chat_command(struct chat *c, char *line, struct err *e);
/* Names of all commands, "/" included, NULL at the end. */
const char *const *chat_command_names(void);

#endif
