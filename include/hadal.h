/* hadal.h: the public interface of the engine. The command line, a server and an agent see this and nothing else.
 *
 *   hadal_engine    a model on a backend, and the memory of its sequences. Open once.
 *   hadal_session   one sequence of tokens that the engine remembers. Its one verb is hadal_session_sync: "make yourself
 *                   exactly these tokens"; what is already there is never computed again.
 *
 * Every function that can fail returns 0 or -1 and fills *e with one line for people: the thing, what was found, what was
 * expected. A pointer returned belongs to the object that it came from. An engine and its sessions belong to one thread
 * at a time; hadal_engine_cancel alone may be called from anywhere, signal handlers included.
 *
 * Results are exact: the logits of a row are the same bits however the tokens were chunked, whoever shared the batch, and
 * with any number of threads.
 */
#ifndef HADAL_H
#define HADAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct err;
struct tokenizer;
typedef struct hadal_engine hadal_engine;
typedef struct hadal_session hadal_session;

/* ---- Engine ---- */

/* Called now and then during work that can take more than two seconds. what: "load", "prefill". done <= total. */
typedef void (*hadal_progress_fn)(void *context, const char *what, uint64_t done, uint64_t total);
typedef void (*hadal_line_fn)(void *context, const char *line);

/* How drafts are made and kept where the temperature is above 0. */
enum hadal_draft_rule {
    HADAL_DRAFT_COUPLED,  /* stages choose with the noise that the model will choose with: the same text as without drafts */
    HADAL_DRAFT_GREEDY,   /* stages propose their likeliest token: the same text, fewer drafts kept */
    HADAL_DRAFT_REJECTION /* the classic rule: text of the same distribution, but not the text without drafts */
};

struct hadal_engine_options {
    const char *model;    /* GGUF file (first part of a split one) or checkpoint folder; NULL: the embedded model */
    const char *backend;  /* "cpu" (default), "ref" or, where it is built, "cuda" */
    const char *level;    /* instruction set of the cpu backend; NULL: the best that runs here */
    int n_thread;         /* 0: one per processor */
    int n_context;        /* tokens a session can hold; 0: the model's own limit, at most 32768 */
    int n_session;        /* sequences held at once; 0: 1 */
    int n_chunk;          /* rows of one prefill step; 0: 256 */
    int skips_kv_rounding;/* 1: leave out the trained roundings, to compare with engines that lack them */
    int has_no_drafts;    /* 1: leave out the draft stages; their rings are not kept */
    int has_bounded_replay; /* 1: of a prompt only the newest window of tokens goes through the decoder half of a V4.1 model, as
                               its vendor serves it. About twice as fast and not exact: rows depend on where prompts ended */
    const char *draft_file; /* draft stages from here instead of the model's own; NULL: none. What cannot be used is refused
                               in hadal_engine_info.draft_problem, and the engine goes on without drafts */
    enum hadal_draft_rule draft_rule;
    int has_no_copies;    /* 1: never propose what followed the same text before */
    hadal_progress_fn progress;
    void *progress_context;
    uint64_t memory_bytes; /* all that the engine may take; 0: what is free. When weights do not fit in it, routed experts and
                              n-gram tables stay on disk and are read as they are needed. The bits are the same */
    hadal_line_fn tell_memory; /* gets the plan of memory before weights are read, if there is a limit to keep to */
    void *tell_memory_context;
};
int hadal_engine_open(hadal_engine **engine, const struct hadal_engine_options *options, struct err *e);
void hadal_engine_close(hadal_engine *engine);

struct hadal_engine_info {
    const char *model_name, *architecture; /* "hadal-tiny-v41", "deepseek41" */
    const char *dialect;                   /* chat dialect by name, as text/dialect.h lists them */
    const char *backend, *level;
    int n_thread, n_context, n_vocab, n_layer;
    int bos_id, eos_id, pad_id;
    int n_draft; /* draft block size of the model's draft stages; 0: none */
    const char *draft_problem; /* why the draft file is not used, one line; NULL: it is, or there is none */
    uint64_t weight_bytes, session_bytes, scratch_bytes;
    float temperature, top_p, min_p; /* the checkpoint's own defaults */
    int top_k;
};
void hadal_engine_info(const hadal_engine *engine, struct hadal_engine_info *info);
const struct tokenizer *hadal_engine_tokenizer(const hadal_engine *engine);
/* Makes the call under way return -1 with ERR_CANCELLED at its next chunk of rows; when none is, nothing happens. A
 * session that was being synced or appended to keeps what was computed, one that was generating is as before the call
 * and goes on with the same text. */
void hadal_engine_cancel(hadal_engine *engine);

/* Of weights that stay on disk, since the engine was opened; all zeros when none do. */
struct hadal_store_stats {
    uint64_t disk_bytes, cache_bytes; /* what is not always in memory; memory for what of it was needed last */
    uint64_t n_expert, n_expert_hit;  /* experts that layers needed in a step, and those of them that were in memory */
    uint64_t n_row, n_row_hit;        /* different rows of n-gram tables that steps needed, and those in memory */
    uint64_t n_read, read_bytes;
    double wait_seconds;              /* that computing stood still for the disk */
};
void hadal_engine_store_stats(const hadal_engine *engine, struct hadal_store_stats *stats);

/* Describes a model without running it, line by line: config, plan row of every layer, tensors, formats, sizes, and what a
 * session of n_context tokens (0: the default) will take. */
int hadal_model_describe(const char *model, int n_context, hadal_line_fn fn, void *fn_context, struct err *e);

/* ---- Sessions ---- */

int hadal_session_open(hadal_session **session, hadal_engine *engine, struct err *e);
void hadal_session_close(hadal_session *session);

/* What became of a sync: n_kept tokens were already there, n_computed were run. */
struct hadal_sync_result {
    int n_kept, n_computed;
    double seconds;
};
/* Makes the session hold exactly ids[0..n): keeps the longest common prefix that can be kept, computes the rest. At
 * least the last token is always run, so that its logits are there afterwards. result may be NULL. With bounded replay this
 * and hadal_session_append without logits_all read prompts; single steps and rows with logits go through the whole model. */
int hadal_session_sync(hadal_session *session, const int32_t *ids, int n, struct hadal_sync_result *result, struct err *e);
/* Appends tokens. logits_all, if given, receives n x n_vocab floats, one row per appended token. */
int hadal_session_append(hadal_session *session, const int32_t *ids, int n, float *logits_all, struct err *e);
/* Forgets tokens from `length` on. Up to 32 rows back this costs nothing; further back the next sync recomputes. */
int hadal_session_rewind(hadal_session *session, int length, struct err *e);

const int32_t *hadal_session_ids(const hadal_session *session, int *n);
/* n_vocab logits after the last token; NULL before the first. Valid until the session changes. */
const float *hadal_session_logits(const hadal_session *session);

/* One step for several sessions of one engine at once, one token each. Same bits as one by one. */
int hadal_engine_step(hadal_engine *engine, hadal_session *const *sessions, const int32_t *ids, int n, struct err *e);

/* ---- Sampling ---- */

struct hadal_sampling {
    float temperature;    /* 0: greedy */
    int top_k;            /* 0: off */
    float top_p, min_p;   /* 1 and 0: off */
    float presence_penalty, frequency_penalty; /* 0: off; over the tokens of the sequence so far */
    float repetition_penalty;                  /* 1: off */
    uint64_t seed;
};
/* Chooses the token at position `pos` of a sequence from its logits. A pure function: the same seed, position, logits and
 * history always choose the same token (Gumbel noise keyed by seed and position). */
int32_t hadal_sample(const struct hadal_sampling *s, const float *logits, int n_vocab, const int32_t *history,
    int n_history, int pos);

/* ---- Generation ---- */

enum { HADAL_NEXT_MAX = 17, HADAL_DRAFT_PLACES = 16 };

/* Chooses the token after the sequence, appends it, and with it as many drafted tokens as the model itself would have
 * chosen: ids[0..n), 1 <= n <= HADAL_NEXT_MAX. The tokens and all bits are those of one token at a time. Draft stages
 * propose, where the model has them, and earlier text that ends like the sequence does.
 * n_draft: -1 as many as pay, 0 none, else at most that many. Nothing follows an end token in ids. */
int hadal_session_next(hadal_session *session, const struct hadal_sampling *sampling, int n_draft, int32_t *ids, int *n,
    struct err *e);

/* The same for several sessions of one engine in one batch: a turn of each. Every sequence gets the tokens and bits that
 * it would get alone. */
struct hadal_turn {
    hadal_session *session;
    const struct hadal_sampling *sampling;
    int n_draft;             /* as for hadal_session_next; the steps of several share the rows of a batch */
    const int32_t *expected; /* tokens that the caller expects next, as a grammar may know; checked like all proposals */
    int n_expected;          /* 0: none */
    int32_t ids[HADAL_NEXT_MAX]; /* out */
    int n;                       /* out, at least 1 */
};
int hadal_engine_next(hadal_engine *engine, struct hadal_turn *turns, int n, struct err *e);

enum { HADAL_DRAFT_WINDOW = 256 };
struct hadal_draft_stats {
    uint64_t n_cycle, n_token, n_row; /* calls, tokens they gave, rows they computed */
    uint64_t n_proposed[HADAL_DRAFT_PLACES], n_accepted[HADAL_DRAFT_PLACES]; /* by place in the block */
    uint64_t n_copied, n_copied_accepted; /* of those, the ones that earlier text proposed, not the draft stages */
    uint64_t n_expected, n_expected_accepted; /* and the ones that the caller expected */
    double seconds;                       /* of all calls */
    double step_seconds;                  /* of one plain step, as measured or estimated; 0: nothing ran yet */
    double saved_seconds;                 /* against plain steps; negative: lost */
    uint64_t n_window;                    /* windows of HADAL_DRAFT_WINDOW tokens so far ... */
    double least_saved, latest_saved;     /* ... and the share of a plain step's time saved in them */
};
void hadal_session_draft_stats(const hadal_session *session, struct hadal_draft_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
