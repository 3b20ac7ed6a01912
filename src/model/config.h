/* config.h: everything a model's file says about its own shape and arithmetic. No size is compiled
 * in.
 *
 * Read from GGUF metadata or from a checkpoint's config.json into the same struct. What differs
 * between the models beyond sizes is a trait here (a rounding, a norm, a tap point), set once in
 * config.c; code that computes reads traits and the layer plan, never an architecture name.
 */
#ifndef HADAL_MODEL_CONFIG_H
#define HADAL_MODEL_CONFIG_H

#include "base/arena.h"
#include "base/err.h"

#include <stdint.h>

enum {
    CONFIG_MAX_LAYER = 128,
    CONFIG_MAX_STAGE = 4,  /* draft stages */
    CONFIG_MAX_ENGRAM = 8, /* layers with an n-gram table */
    CONFIG_MAX_NGRAM = 8,  /* longest n-gram */
    CONFIG_MAX_HASH = 128  /* hash columns of one table: (max n-gram - 1) * heads */
};

enum kv_rounding {
    KV_ROUND_FP8_HEAD, /* FP8, groups of 64, all but the rotary tail */
    KV_ROUND_FP8_ALL,  /* FP8, groups of 32, whole row */
    KV_ROUND_FP4_E4M3  /* E2M1 with E4M3 scales, groups of 16, whole row */
};

struct engram_config {
    int layer;
    int64_t n_row;
    uint64_t multiplier[CONFIG_MAX_NGRAM];
    uint64_t prime[CONFIG_MAX_HASH];
    int64_t offset[CONFIG_MAX_HASH]; /* running sums of the primes */
};

struct model_config {
    char name[128];
    char architecture[32]; /* "deepseek4", "deepseek41" as in general.architecture */
    char dialect[16];      /* chat dialect, by its name in text/dialect.h */

    int n_vocab, hidden, n_layer, n_context;
    int bos_id, eos_id, pad_id;
    float norm_eps;

    int n_head, head_dim, rope_dim, q_lora, o_lora, o_groups, window;
    int has_q_head_norm; /* weightless norm of every query head */
    enum kv_rounding window_rounding, compressed_rounding;

    float rope_theta, compress_rope_theta;
    float yarn_factor, yarn_beta_fast, yarn_beta_slow;
    int64_t yarn_original_context;

    int compress_ratio[CONFIG_MAX_LAYER + CONFIG_MAX_STAGE]; /* tokens per compressed row a layer
                                                                reads; 0: window only */
    int is_kv_source[CONFIG_MAX_LAYER], is_index_source[CONFIG_MAX_LAYER];
    int has_shared_sources; /* owners are listed; otherwise every compressing layer owns its rows,
                               ratio-4 ones overlap */
    int index_n_head, index_head_dim, index_topk;
    int has_index_hadamard; /* and the index keys have a compressor of their own; otherwise they
                               come from the latent */
    int candidate_source, candidate_blocks,
        candidate_block_size; /* source -1: no candidate level */

    int n_expert, n_expert_used, expert_ff, n_hash_layer;
    float swiglu_limit, routed_scale;

    int hc_mult, hc_iters;
    float hc_eps;
    int has_lagged_mix; /* a sub-layer collapses with the pre-mix of the one before; otherwise own
                           mix and a head mix */

    int n_engram, engram_max_ngram, engram_n_head, engram_head_dim;
    int64_t engram_vocab; /* distinct compressed token ids */
    int engram_pad;       /* in compressed ids */
    const int32_t
        *engram_map; /* [n_vocab] token id -> compressed id; NULL: build it from the tokenizer */
    struct engram_config engram[CONFIG_MAX_ENGRAM];

    int n_stage, draft_block, draft_noise_id, markov_rank; /* n_stage 0: no draft stages */
    int draft_n_expert, draft_n_expert_used;
    int tap_layer[CONFIG_MAX_STAGE], n_tap;
    int taps_inputs;             /* 1: streams entering the tapped layers, 0: leaving them */
    float draft_temperature[16]; /* calibration of the confidences by position; 1 where the file has
                                    none */

    float temperature, top_p, min_p; /* sampling defaults of the checkpoint */
    int top_k;
};

struct gguf;
/* A GGUF file's metadata, in any of the dialects of v4 spec 8.3, 8.4 and v41 spec 12 and our own.
 * Arrays live in `arena`. */
int config_from_gguf(
    struct model_config *c, const struct gguf *file, struct arena *arena, struct err *e);
/* A checkpoint folder's config.json (and generation_config.json when there). */
int config_from_folder(
    struct model_config *c, const char *folder, struct arena *arena, struct err *e);
/* Internal consistency and bounds; both readers end with it. */
int config_check(const struct model_config *c, struct err *e);
/* Fills engram[].multiplier, prime, offset from layer numbers, engram_vocab and the release's rule
 * (v41 spec 9.2, app. A) where a file does not carry them. first_prime: the file's
 * engram_vocab_size. */
int config_engram_constants(struct model_config *c, uint64_t first_prime, struct err *e);

#endif
