/* bench_content.h: what proposals give on kinds of content, against plain steps in the same run.
 *
 * A kind is a file of prompts, each beginning with the begin-of-sentence token. Behind every prompt
 * the same answer is made twice: one token at a time, and with as many proposals as pay; the order
 * changes from prompt to prompt and from repeat to repeat (A B, B A, ...). Each way has a session
 * of its own for all prompts of the kind. Then once more with whole blocks of the draft stages, for
 * the share that is kept by place.
 *
 * The answers of a kind are one text, whose stretches of HADAL_DRAFT_WINDOW tokens are timed: both
 * ways give the same tokens, so stretches can be compared one by one. Reading prompts is not timed.
 */
#ifndef HADAL_CLI_BENCH_CONTENT_H
#define HADAL_CLI_BENCH_CONTENT_H

#include "cli/command.h"

enum { CONTENT_MAX_KIND = 16, CONTENT_MAX_REPEAT = 20, CONTENT_MAX_STRETCH = 128 };

enum content_way { CONTENT_PLAIN, CONTENT_AUTO, CONTENT_BLOCKS, N_CONTENT_WAY };

struct content_plan {
    const char *files; /* separated by commas; a kind is called like its file, without the ending */
    int n_token;       /* of an answer at most; it may end before */
    int n_repeat;
    struct hadal_sampling sampling;
};

/* One way through the answers of a kind. */
struct content_run {
    int n_token;
    uint64_t hash; /* of all tokens */
    double seconds, stretch[CONTENT_MAX_STRETCH];
    struct hadal_draft_stats stats;
};

struct content_kind {
    char name[32];
    int n_prompt, n_repeat, n_stretch;
    int has_blocks;                                /* the model has draft stages */
    struct content_run run[CONTENT_MAX_REPEAT][2]; /* CONTENT_PLAIN and CONTENT_AUTO */
    struct content_run blocks;
};

struct content_found {
    int n;
    struct content_kind kind[CONTENT_MAX_KIND];
};

enum { CONTENT_N_SESSION = N_CONTENT_WAY };

/* The engine must hold CONTENT_N_SESSION sessions. */
int content_measure(const struct content_plan *plan, hadal_engine *engine,
    struct command_call *call, struct content_found *found, struct err *e);

/* Plain time over time with proposals: [0] least, [1] median, [2] most of the repeats. */
void content_speed_up(const struct content_kind *k, double summary[3]);
/* The same of one stretch, from the medians of both ways. */
double content_stretch_speed_up(const struct content_kind *k, int stretch);
/* Whether every run gave the same tokens. */
int content_is_same_text(const struct content_kind *k);

#endif
