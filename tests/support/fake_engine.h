/* fake_engine.h: what is behind hadal.h when programs are tested without weights.
 *
 * The model "file" is a script, read line by line; without one the engine answers "You said: QUESTION".
 *
 *   when TEXT       the rules below hold for questions that contain TEXT (the last user message); empty: for all
 *   say TEXT        the answer; \n and \\ as in C; "</think>" ends reasoning
 *   babble N        N tokens of letters, drawn from logits that depend on the sequence only
 *   fail TEXT       the first step fails with TEXT
 *   delay MS        for every generated token            prefill MS   for every prompt token
 *   step N          tokens that hadal_session_next gives at once
 *   context N       tokens that a session holds (default 4096)
 *
 * Tokens are bytes (ids 0 to 255) and the control tokens of the chat formats. Logits favour what the script says by 20;
 * greedy decoding, sampling at usual temperatures and hadal_session_next agree on it.
 */
#ifndef TESTS_SUPPORT_FAKE_ENGINE_H
#define TESTS_SUPPORT_FAKE_ENGINE_H

#include "base/arena.h"
#include "hadal.h"
#include "text/tokenizer.h"

enum fake_kind { FAKE_SAY, FAKE_BABBLE, FAKE_FAIL };

struct fake_rule {
    const char *when;
    enum fake_kind kind;
    const char *text;
    int n;
};

enum { FAKE_MAX_RULE = 64 };
struct fake_script {
    struct fake_rule rules[FAKE_MAX_RULE];
    int n_rule;
    int delay_ms, prefill_ms, n_step, n_context;
};
/* Reads a script, everything in the arena; path NULL: the default answer. */
int fake_script_read(struct fake_script *s, const char *path, struct arena *arena, struct err *e);

int fake_tokenizer_open(struct tokenizer **t, struct err *e);

#endif
