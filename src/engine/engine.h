/* engine.h: inside of the objects behind hadal.h. */
#ifndef HADAL_ENGINE_ENGINE_H
#define HADAL_ENGINE_ENGINE_H

#include "hadal.h"

#include "base/arena.h"
#include "base/err.h"
#include "generate/copies.h"
#include "generate/draft_policy.h"
#include "model/forward.h"
#include "model/stored.h"

#include <stdatomic.h>

struct hadal_engine {
    struct arena arena;
    struct hadal_engine_options options; /* defaults filled in; strings are copies */
    struct model_file *file;
    struct model_file_info model;
    struct err draft_problem; /* text empty: none */
    struct backend *be;
    struct stored *stored;         /* NULL: all weights are in memory */
    const struct disk_calls *disk; /* NULL: the system's */
    struct backend_buffer kv_memory, scratch_memory;
    struct kv_state kv;
    struct forward forward;
    hadal_session **slot; /* [n_session] who holds a slot; NULL: free */
    struct {              /* a batch under construction, each [n_chunk] */
        int32_t *id, *slot, *pos, *history, *out_row, *first;
    } batch;
    struct step_time check_time, head_time; /* of steps by rows; of the vocabulary's part of a
                                               drafting pass, by sequences */
    atomic_int is_cancelled;
};

/* ids[0..n) is the sequence; rows [0, n_valid) of it are in the state. n_valid < n after a deep rewind. */
struct hadal_session {
    hadal_engine *engine;
    struct arena arena;
    int slot;
    int n, n_valid;
    int first;  /* with bounded replay: where the decoder's windows begin */
    int is_cut; /* with bounded replay: shortened since, so that the decoder's windows must be made anew */
    int high; /* longest the state has been since its last reset: what lies below high - ring rows is overwritten */
    int32_t *ids;  /* [n_context] */
    float *logits; /* [n_vocab] */
    int has_logits;
    float *next_logits; /* [n_vocab] of a step under way */
    float *draft_p, *check_p; /* [draft_block, n_vocab], [n_vocab]: distributions, for the rejection rule only */
    int32_t replacement;      /* next token that it has drawn already; -1: none */
    int n_staged;       /* rows before it, back to the window's end, are in the draft stages' rings */
    struct draft_policy policy;
    float expected_share; /* of what callers expect, how much comes true */
    struct {
        int n_token;
        double saved, plain; /* seconds */
    } window;
    struct copies copies; /* unused with has_no_copies */
    struct hadal_draft_stats stats;
};

/* hadal_engine_open with a disk that the caller provides, to make it fail. */
int engine_open(hadal_engine **engine, const struct hadal_engine_options *options, const struct disk_calls *disk, struct err *e);

struct engine_plan {
    uint64_t session_bytes; /* of one sequence, in the backend's memory */
    uint64_t copies_bytes;  /* of one sequence, to find copies; 0 when they are off */
    uint64_t scratch_bytes;
};
/* Measures without allocating. */
void engine_plan(const struct model_config *c, const struct plan *p, int n_context, int n_chunk, struct engine_plan *out);
/* Rows of the batch under construction; then runs it. Row r's logits are wanted when out_row lists r. */
void engine_add_row(hadal_engine *engine, int r, const hadal_session *session, int pos);
/* A call begins that may take long: cancellations from before mean nothing to it. */
void engine_start(hadal_engine *engine);
int engine_run(hadal_engine *engine, int n, int n_out, enum batch_part part, struct err *e);
/* Logits of output row i of the last engine_run. */
int engine_read_logits(hadal_engine *engine, int i, float *logits, struct err *e);
/* Rows [0, end) may be in the state from now on. */
void session_note_rows(hadal_session *session, int end);

#endif
