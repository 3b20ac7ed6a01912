/* weights.h: the tensors of a model, bound by name. Views into mapped files; nothing is copied on load.
 *
 * Names are our own GGUF names; the table in weights.c holds, per field, that name, its aliases in the other GGUF dialects,
 * the checkpoint's name and the shape that the config demands. A field that a layer does not have has n_dim 0.
 */
#ifndef HADAL_MODEL_WEIGHTS_H
#define HADAL_MODEL_WEIGHTS_H

#include "base/file.h"
#include "model/config.h"
#include "model/plan.h"
#include "tensor/tensor.h"

struct layer_weights {
    struct tensor hc_attn_fn, hc_attn_scale, hc_attn_base, hc_ffn_fn, hc_ffn_scale, hc_ffn_base;
    struct tensor attn_norm, ffn_norm;
    struct tensor attn_q_a, attn_q_a_norm, attn_q_b, attn_kv, attn_kv_a_norm, attn_sinks, attn_output_a, attn_output_b;
    struct tensor attn_compressor_kv, attn_compressor_gate, attn_compressor_ape, attn_compressor_norm;
    struct tensor indexer_attn_q_b, indexer_proj;                  /* query side */
    struct tensor indexer_attn_k, indexer_k_norm;                  /* keys from the latent */
    struct tensor indexer_compressor_kv, indexer_compressor_gate, indexer_compressor_ape, indexer_compressor_norm;
    struct tensor ffn_gate_inp, exp_probs_b, ffn_gate_tid2eid;
    struct tensor ffn_gate_exps, ffn_up_exps, ffn_down_exps;       /* [n_expert, rows, cols] */
    struct tensor ffn_gate_shexp, ffn_up_shexp, ffn_down_shexp;
    struct tensor engram_embd, engram_kv, engram_q, engram_k;      /* q, k [hc_mult, hidden] */
};

struct draft_weights {
    struct tensor main_proj, main_norm, norm;
    struct tensor hc_head_fn, hc_head_scale, hc_head_base; /* models with a head mix */
    struct tensor markov_embed, markov_head;               /* [n_vocab, rank] each */
    struct tensor confidence;                              /* [1, hidden + rank] */
};

struct model_weights {
    struct tensor token_embd, output, output_norm;
    struct tensor output_hc_fn, output_hc_scale, output_hc_base;
    struct draft_weights draft;
    struct layer_weights layer[CONFIG_MAX_LAYER + CONFIG_MAX_STAGE]; /* layers, then draft stages */
};

/* An opened model file or folder: what format/ and the tokenizer need stays alive with it. */
struct model_file;
struct tokenizer;
struct model_file_info {
    const struct model_config *config;
    const struct plan *plan;
    const struct model_weights *weights;
    const struct tokenizer *tokenizer;
    uint64_t weight_bytes; /* of all bound tensors */
};
/* path: a GGUF (first part of a split one), a checkpoint folder, or NULL for bytes in memory (the embedded model).
 * Everything lives in *file. */
int model_file_open(struct model_file **file, const char *path, const void *bytes, uint64_t n_byte, struct err *e);
/* Takes the draft stages from another file (draft_file.h) instead of the model's own, once. After an error the model is as
 * before. */
int model_file_add_drafts(struct model_file *file, const char *path, struct err *e);
/* Calls fn for every weight, which may point it to other memory that holds the same. Stops at non-zero. */
typedef int (*model_move_fn)(void *context, struct tensor *t, struct err *e);
int model_file_move(struct model_file *file, model_move_fn fn, void *context, struct err *e);
void model_file_info(const struct model_file *file, struct model_file_info *info);
void model_file_close(struct model_file *file);
/* 1 and the i-th of the files that weights are in, draft file included; 0 behind the last, and for bytes in memory. */
int model_file_part(const struct model_file *file, int i, struct file_part *part);
/* Calls fn for every tensor field bound, for inspect and convert: our GGUF name and the tensor. Stops at non-zero. */
typedef int (*model_tensor_fn)(void *context, const char *name, const struct tensor *t);
int model_file_each(const struct model_file *file, model_tensor_fn fn, void *context);

#endif
