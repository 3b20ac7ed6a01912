/* scratch.h: the working tensors of a forward pass, placed once for the largest batch. A step allocates nothing. */
#ifndef HADAL_MODEL_SCRATCH_H
#define HADAL_MODEL_SCRATCH_H

#include "backend/backend.h"
#include "model/plan.h"
#include "tensor/layout.h"

enum { FORWARD_MAX_OUT = 32, FORWARD_MAX_RATIO = 4 };

/* Rows of a batch that close a group of `ratio` tokens, and what every row can see of those groups. */
struct closing {
    int ratio, n;
    struct tensor visible;         /* I32 [N] compressed rows each row may read */
    struct tensor slot, pos, at, first; /* I32 [n] of closing rows: sequence, last token, row number, first token */
    struct tensor cs;              /* [n, P, 2] rotation at `first` */
};

struct scratch {
    int n_row; /* largest batch */
    int n_slot;
    int has_replay;
    int n;     /* rows of the batch under way; all views below are cut to it */
    /* streams */
    struct tensor h;               /* [n, S, D] */
    struct tensor mix[2], post, comb; /* [n, S], [n, S], [n, S, S]; mix: pre-mix of this sub-layer and of the one before */
    int mix_now;
    struct tensor x, norm, out;    /* [n, D] collapsed, normed, sub-layer result */
    /* attention */
    struct tensor qr, q, o, low, kv;
    struct tensor group_kv, group_score, latent, key, index_group_kv, index_group_score;
    struct tensor index_q, index_w;
    struct tensor rows, n_chosen;  /* I32 [n, topk], [n] of the latest indexer */
    struct tensor block, n_block;  /* I32 [n, blocks], [n] of the candidate source */
    /* experts */
    struct tensor router, expert_idx, expert_weight, shared;
    /* n-grams and draft taps */
    struct tensor engram_id[CONFIG_MAX_ENGRAM], engram_rows, engram_kv, taps; /* ids [n, columns], per table */
    /* draft block: rows of all sequences, then one Markov step of each */
    struct tensor block_kv;        /* [slot, block, head_dim] */
    struct tensor draft_last, draft_at, draft_n_row, draft_prev, draft_row; /* I32 [n] */
    struct tensor markov, bias, confidence_in, confidence; /* [m, rank], [m, n_vocab], [m, D + rank], [m, 1] */
    /* per batch */
    struct tensor id, slot, pos, out_row, cs[N_ROPE];
    struct tensor first, stream_row; /* I32 [n] oldest position that decoder windows hold; row of kv.streams; for replay only */
    struct closing closing[FORWARD_MAX_RATIO];
    int n_closing;
    struct tensor head_x, logits;  /* [n_out, D], [n_out, n_vocab] */
    struct tensor freq[N_ROPE];    /* [P] */
    int32_t *host;                 /* staging of index tensors, [n_row * host_columns] */
};

/* Places everything for batches of n_row rows of at most n_slot sequences. */
void scratch_place(struct scratch *s, struct layout *l, const struct model_config *c, const struct plan *p);
/* int32 values of host staging that scratch_place's tensors need. */
int64_t scratch_host_values(const struct scratch *s, const struct model_config *c);
/* The first n entries along the outermost dimension. */
struct tensor scratch_cut(const struct tensor *t, int64_t n);
const struct closing *scratch_closing(const struct scratch *s, int ratio);

#endif
