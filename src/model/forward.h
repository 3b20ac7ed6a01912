/* forward.h: the one forward pass. For every model, backend, row count and mixture of sequences.
 *
 * A batch is n rows; row r is token id[r] of sequence slot[r] at position pos[r]. Rows of one sequence stand in ascending
 * order of position without gaps. Prefill chunks, decoding of many sequences and draft checking are the same call.
 */
#ifndef HADAL_MODEL_FORWARD_H
#define HADAL_MODEL_FORWARD_H

#include "kv/state.h"
#include "model/scratch.h"
#include "model/weights.h"
#include "ops/fused.h"

/* Bounded replay (v41 spec 14.3, optional and not exact): BATCH_ENCODE stops at the decoder's first layer, having made its
 * compressed rows and keys; BATCH_REPLAY runs the decoder over rows that were encoded before. */
enum batch_part { BATCH_WHOLE, BATCH_ENCODE, BATCH_REPLAY };

struct batch {
    int n;
    const int32_t *id, *slot, *pos; /* [n] */
    const int32_t *history;         /* [n, engram_max_ngram - 1] ids before each row, newest first; -1 before the start */
    int n_out;
    const int32_t *out_row;         /* [n_out] ascending rows whose logits are wanted; n_out <= FORWARD_MAX_OUT */
    const int32_t *first;           /* [n] oldest position in the windows of the decoder; unused unless kv.keeps_streams */
    enum batch_part part;
};

struct forward {
    struct backend *be;
    const struct model_config *config;
    const struct plan *plan;
    const struct model_weights *weights;
    struct kv_state *kv;
    int skips_kv_rounding;
    const struct draft_rows *draft; /* set while a draft block runs: its rows see the block, not the window after it */
    struct stored *stored; /* weights on disk (stored.h); NULL: all are in memory */
    struct scratch scratch;
};

/* Where the keys of a draft block are, and what its rows see: the window up to `last`, then all rows of the block. */
struct draft_rows {
    struct tensor last, at, n_row; /* I32 [n] newest position before the block; row's place in the block; block size */
};

/* Runs the batch that was written; f->scratch.logits [n_out, n_vocab] holds the result after backend_end. Errors stick to the backend. */
void forward_run(struct forward *f, const struct batch *b);
/* Writes the batch's index tensors, before forward_run and before backend begin: host work. */
void forward_write_batch(struct forward *f, const struct batch *b);
/* After it: equal for batches whose ops have the same arguments; never 0. */
uint64_t forward_key(const struct forward *f, const struct batch *b);
/* The rotary angles of the batch's positions; the first ops of a run. */
void forward_make_angles(struct forward *f);

/* One layer or draft stage over the batch at hand. */
void forward_run_layer(struct forward *f, int layer);
/* Streams of the batch's tokens, all copies of the embedding. */
void forward_run_embedding(struct forward *f);

/* Products of a sub-layer's normed input, made by one op. */
struct projections {
    int n;
    struct tensor y[MATMUL_EACH_MAX];
    const struct tensor *w[MATMUL_EACH_MAX];
};
void projections_add(struct projections *p, const struct tensor *y, const struct tensor *w);
void projections_run(const struct projections *p, struct backend *be, const struct tensor *x);
/* Adds what compress_run and index_run need of the layer's input. */
void compress_project(const struct forward *f, int layer, struct projections *p);
void index_project(const struct forward *f, int layer, struct projections *p);

/* Pieces, each in a file of its own. x: normed input [n, hidden]; results go to scratch.out, that of the shared expert
 * to scratch.shared. */
void attention_run(struct forward *f, int layer, const struct tensor *x);
void compress_run(struct forward *f, int layer);
void index_run(struct forward *f, int layer, const struct tensor *qr);
void experts_run(struct forward *f, int layer, const struct tensor *x);
void engram_run(struct forward *f, int layer);
/* keep_row with the trained rounding of cached rows (none when they are skipped); the rest of args is the caller's. */
void forward_keep_row(struct forward *f, struct op_keep_row args, enum kv_rounding rounding);
/* Hash rows of a batch into id [n, columns]. v41 spec 9.2 */
void engram_hash(const struct model_config *c, int table, const struct batch *b, int32_t *id);

#endif
