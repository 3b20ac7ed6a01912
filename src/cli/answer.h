/* answer.h: one answer of the model, from a prompt in tokens to text on the terminal. */
#ifndef HADAL_CLI_ANSWER_H
#define HADAL_CLI_ANSWER_H

#include "base/buf.h"
#include "cli/command.h"
#include "text/tokenizer.h"

struct answer_request {
    hadal_engine *engine;
    hadal_session *session;
    const struct tokenizer *tokenizer;
    const struct hadal_engine_info *info;
    const struct hadal_sampling *sampling;
    const struct option_texts *stops;
    const int32_t *prompt; /* n_prompt */
    int n_prompt;
    int max_token;   /* -1: as many as the context holds */
    int is_thinking; /* the answer begins within the reasoning */
    int n_draft;     /* of hadal_session_next */
};

enum answer_end { ANSWER_COMPLETE, ANSWER_STOP_STRING, ANSWER_LENGTH, ANSWER_CONTEXT_FULL, ANSWER_CANCELLED };

/* Starts as all zeros. */
struct answer {
    struct buf reasoning, content;
    enum answer_end end;
    int n_prompt, n_kept; /* prompt tokens, and how many of them the session held already */
    int n_token, n_step;  /* generated, and the steps it took */
    double prefill_seconds, decode_seconds;
};

/* Streams the answer: content to out, reasoning dimmed to out or, if that is no terminal, to note. Ctrl-C, also one
 * that came before, ends it early (ANSWER_CANCELLED), which is no error. */
int answer_run(const struct answer_request *q, struct command_call *call, struct answer *a, struct err *e);
/* One line for people: speeds, context, seed, and how it ended when that is not the usual way. */
void answer_note(const struct answer_request *q, const struct answer *a, struct terminal *t);
void answer_free(struct answer *a);

#endif
