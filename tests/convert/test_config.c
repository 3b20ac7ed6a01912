/* test_config.c: configurations of the releases and of every GGUF dialect; the tensor table against
 * the published byte counts of the checkpoints. v4 spec 1, 8, v41 spec 1, 2, 11, 12. */
#include "model/config_read.h"

#include "base/arena.h"
#include "compare_models.h"
#include "format/gguf_write.h"
#include "model/plan.h"
#include "model/weights_table.h"
#include "support/toy_folder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- The releases ---- */

#define COMMON                                                                                     \
    "\"vocab_size\": 129280, \"num_attention_heads\": 64, \"num_key_value_heads\": 1, "            \
    "\"head_dim\": 512, "                                                                          \
    "\"qk_rope_head_dim\": 64, \"o_groups\": 8, \"o_lora_rank\": 1024, \"hidden_act\": \"silu\", " \
    "\"swiglu_limit\": 10.0, \"attention_bias\": false, \"tie_word_embeddings\": false, "          \
    "\"max_position_embeddings\": 1048576, \"rope_theta\": 10000, \"compress_rope_theta\": "       \
    "160000, "                                                                                     \
    "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 16, \"beta_fast\": 32, \"beta_slow\": 1, " \
    "\"original_max_position_embeddings\": 65536}, \"num_experts_per_tok\": 6, "                   \
    "\"n_shared_experts\": 1, "                                                                    \
    "\"scoring_func\": \"sqrtsoftplus\", \"topk_method\": \"noaux_tc\", \"norm_topk_prob\": "      \
    "true, "                                                                                       \
    "\"routed_scaling_factor\": 1.5, \"sliding_window\": 128, \"index_head_dim\": 128, "           \
    "\"index_topk\": 512, "                                                                        \
    "\"hc_mult\": 4, \"hc_sinkhorn_iters\": 20, \"hc_eps\": 1e-6"

/* %s: what differs between April and 0731. */
static const char v4_json[] =
    "{\"model_type\": \"deepseek_v4\", \"bos_token_id\": 0, \"eos_token_id\": 1, \"hidden_size\": "
    "4096, "
    "\"num_hidden_layers\": 43, \"num_hash_layers\": 3, \"q_lora_rank\": 1024, "
    "\"moe_intermediate_size\": 2048, "
    "\"n_routed_experts\": 256, \"index_n_heads\": 64, \"rms_norm_eps\": 1e-6, "
    "\"num_nextn_predict_layers\": 1, "
    "\"compress_ratios\": [0, 0, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, "
    "4, 128, 4, 128, 4, "
    "128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4%s, " COMMON "}";
static const char april[] = ", 0]";
static const char july[] =
    ", 0, 0, 0], \"dspark_block_size\": 5, \"dspark_noise_token_id\": 128799, "
    "\"dspark_target_layer_ids\": [40, 41, 42], \"dspark_markov_rank\": 256";

static const char v41_json[] =
    "{\"model_type\": \"deepseek_v41\", \"bos_token_id\": 0, \"eos_token_id\": 1, "
    "\"pad_token_id\": 2, "
    "\"quantization_config\": {\"weight_block_size\": [32, 32]}, \"text_config\": {\"model_type\": "
    "\"deepseek_v41_text\", \"hidden_size\": 5120, \"moe_intermediate_size\": 2304, "
    "\"num_hidden_layers\": 40, "
    "\"q_lora_rank\": 1280, \"rms_norm_eps\": 1e-20, \"n_routed_experts\": 384, \"index_n_heads\": "
    "32, "
    "\"compress_ratios\": [0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, "
    "1, 1, 1, 1, 1, 1, "
    "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0], \"kv_source_layer_ids\": [2, 8, 14, 20], "
    "\"index_source_layer_ids\": [2, 8, 14, 20, 24, 28, 32, 36], \"candidate_source_layer_id\": "
    "20, "
    "\"candidate_topk_blocks\": 2048, \"candidate_block_size\": 8, \"engram_layer_ids\": [1, 14], "
    "\"engram_num_embeddings\": [384006168, 384016682], \"engram_max_ngram_size\": 4, "
    "\"engram_vocab_size\": 16000000, \"engram_n_heads\": 8, \"engram_head_dim\": 256, "
    "\"engram_pad_token_id\": 2, "
    "\"engram_compressed_vocab_size\": 99092, \"num_nextn_predict_layers\": 3, "
    "\"dspark_block_size\": 5, "
    "\"dspark_noise_token_id\": 128799, \"dspark_target_layer_ids\": [37, 38, 39], "
    "\"dspark_markov_rank\": 256, "
    "\"dspark_n_routed_experts\": 128, \"dspark_num_experts_per_tok\": 3, " COMMON "}}";

static void read_json(struct model_config *c, struct plan *p, const char *json)
{
    struct arena arena = {0};
    struct err e = {0};
    if (config_from_json(c, json, strlen(json), &arena, &e) || plan_make(p, c, &e))
        fail_msg("%s", e.text);
    arena_free(&arena);
}

/* Bytes and number of the checkpoint's tensors, as the releases store them. */
struct inventory {
    uint64_t n_byte[N_WEIGHT_CLASS], n_all;
    int64_t n_tensor;
    int tile;
};

enum storage { PLAIN_F32, PLAIN_BF16, PLAIN_I64, FP8, FP8_ROWS, FP4 };

static enum storage storage_of(const struct weight_slot *slot, const char *name)
{
    if (slot->field->klass == CLASS_EXPERTS)
        return FP4;
    if (slot->klass == CLASS_ENGRAM_TABLE)
        return FP8_ROWS;
    if (slot->klass == CLASS_IDS)
        return PLAIN_I64;
    if (strstr(name, "hc_") || strstr(name, ".ape") || strstr(name, "gate.bias") ||
        strstr(name, "_sink"))
        return PLAIN_F32;
    int is_fp8 = slot->field->klass == CLASS_ATTN || slot->field->klass == CLASS_SHARED ||
                 slot->klass == CLASS_ENGRAM;
    return is_fp8 || strstr(name, "indexer.wq_b") || strstr(name, "main_proj") ? FP8 : PLAIN_BF16;
}

static int count_slot(void *context, const struct weight_slot *slot)
{
    struct inventory *all = context;
    char name[WEIGHT_MAX_NAME];
    int64_t rows = 1, cols = slot->dim[slot->n_dim - 1],
            n_part = weight_slot_is_stacked(slot) ? slot->dim[0] : 1;
    for (int i = 0; i + 1 < slot->n_dim; i++)
        rows *= slot->dim[i];
    weight_slot_checkpoint_name(slot, 0, 0, name);
    enum storage storage = storage_of(slot, name);
    int64_t tile = all->tile, n = 0;
    if (storage == PLAIN_F32 || storage == PLAIN_BF16 || storage == PLAIN_I64)
        n = rows * cols * (storage == PLAIN_F32 ? 4 : storage == PLAIN_BF16 ? 2 : 8);
    else if (storage == FP8)
        n = rows * cols + (rows + tile - 1) / tile * ((cols + tile - 1) / tile);
    else
        n = rows * cols / (storage == FP4 ? 2 : 1) + rows * cols / 32;
    all->n_byte[slot->klass] += (uint64_t)n;
    all->n_all += (uint64_t)n;
    all->n_tensor += n_part * (storage >= FP8 ? 2 : 1);
    return 0;
}

/* 69,187 tensors and 159,609,485,896 bytes with the April draft layer, which has 3,593,787,756 of
 * them. */
static void april_release(void **state)
{
    (void)state;
    char json[8192];
    static struct model_config c;
    static struct plan p;
    snprintf(json, sizeof json, v4_json, april);
    read_json(&c, &p, json);
    assert_string_equal(c.architecture, "deepseek4");
    assert_string_equal(c.dialect, "v4");
    assert_int_equal(c.n_stage, 0);
    assert_int_equal(c.has_q_head_norm + c.has_index_hadamard, 2);
    int n_chosen = 0, n_whole = 0, n_hashed = 0;
    for (int i = 0; i < 43; i++) {
        n_chosen += p.row[i].ratio == 4 && p.row[i].topk_owner == i && p.row[i].overlap;
        n_whole += p.row[i].ratio == 128 && p.row[i].topk_owner < 0 && p.row[i].kv_owner == i;
        n_hashed += p.row[i].router == ROUTER_BY_TOKEN;
    }
    assert_int_equal(n_chosen, 21);
    assert_int_equal(n_whole, 20);
    assert_int_equal(n_hashed, 3);
    struct inventory all = {.tile = 128};
    weights_each_slot(&c, &p, count_slot, &all);
    assert_int_equal(all.n_all, 159609485896 - 3593787756);
    /* a block (22 plain and 8 FP8 tensors with scales, 256 x 3 experts with scales), and 9 around
     * it with 2 scales */
    assert_int_equal(all.n_tensor, 69187 - 1575);
}

static void refresh_of_july(void **state)
{
    (void)state;
    char json[8192];
    static struct model_config c;
    static struct plan p;
    snprintf(json, sizeof json, v4_json, july);
    read_json(&c, &p, json);
    assert_string_equal(c.dialect, "v4-0731");
    assert_int_equal(c.n_stage, 3);
    assert_int_equal(c.draft_n_expert, 256);
    assert_int_equal(c.draft_n_expert_used, 6);
    assert_int_equal(p.row[41].tap, 1);
    assert_int_equal(p.row[44].ratio, 0);
    assert_int_equal(c.taps_inputs, 0);
}

/* 96,085 tensors and 510,286,023,000 bytes; vision, aligner and the biases of image tokens are not
 * read. */
static void release_of_september(void **state)
{
    (void)state;
    static struct model_config c;
    static struct plan p;
    read_json(&c, &p, v41_json);
    assert_string_equal(c.dialect, "v41");
    assert_int_equal(c.n_stage, 3);
    assert_true(c.norm_eps == 1e-20f);
    assert_true(c.engram[1].multiplier[3] == 82619226485591u);
    assert_int_equal(c.engram[0].prime[23], 16000463);
    for (int i = 0; i < 40; i++) {
        const struct layer_plan *r = &p.row[i];
        int kv = i < 2    ? -1
                 : i < 8  ? 2
                 : i < 14 ? 8
                 : i < 20 ? 14
                          : 20,
            topk = i < 24 ? kv : i / 4 * 4;
        assert_int_equal(r->kv_owner, kv);
        assert_int_equal(r->topk_owner, topk);
        assert_int_equal(r->candidates, i == 20               ? CANDIDATES_MAKE
                                        : i > 20 && i == topk ? CANDIDATES_USE
                                                              : CANDIDATES_NONE);
        assert_int_equal(r->engram, i == 1 ? 0 : i == 14 ? 1 : -1);
        assert_int_equal(r->tap, i - 37 < 0 ? -1 : i - 37);
        assert_int_equal(r->rope, i < 2 ? ROPE_PLAIN : ROPE_COMPRESSED);
        assert_int_equal(r->has_gate, r->ratio == 2);
    }
    struct inventory all = {.tile = 32};
    weights_each_slot(&c, &p, count_slot, &all);
    uint64_t image_biases = (40 * 384 + 3 * 128) * 4, vision = 970536960;
    assert_int_equal(all.n_byte[CLASS_EXPERTS], 288777830400);
    assert_int_equal(all.n_byte[CLASS_ENGRAM_TABLE], 202758032400);
    assert_int_equal(all.n_byte[CLASS_EMBED], 1323827200);
    assert_int_equal(all.n_byte[CLASS_SHARED], 1416960000);
    assert_int_equal(all.n_byte[CLASS_DRAFT_EXPERTS], 7219445760);
    assert_int_equal(all.n_all + image_biases + vision, 510286023000);
}

static void rotary_tables(void **state)
{
    (void)state;
    static struct model_config c;
    static struct plan p;
    float f[32];
    read_json(&c, &p, v41_json);
    static const struct {
        int i;
        double f;
    } check[] = {{0, 1}, {1, .687656022}, {8, .05}, {15, .00363553858}, {16, .002265625},
        {20, .000296977778}, {24, 1.953125e-05}, {31, 5.68052904e-07}};
    plan_rope_frequencies(&c, ROPE_COMPRESSED, f);
    for (size_t i = 0; i < sizeof check / sizeof *check; i++)
        assert_true(fabs((double)f[check[i].i] / check[i].f - 1) < 1e-7);
    plan_rope_frequencies(&c, ROPE_PLAIN, f);
    assert_true(fabs((double)f[16] / 0.01 - 1) < 1e-7);
}

/* ---- GGUF dialects: the toy V4.1 as each of them writes it ---- */

struct dialect {
    struct gguf_header header;
    const struct model_config *c;
    char name[128];
};

static const char *key(struct dialect *d, const char *name)
{
    snprintf(d->name, sizeof d->name, "%s.%s", d->c->architecture, name);
    return d->name;
}

static void put_u32(struct dialect *d, const char *name, int value)
{
    gguf_put_u32(&d->header, key(d, name), (uint32_t)value);
}

static void put_f32(struct dialect *d, const char *name, float value)
{
    gguf_put_f32(&d->header, key(d, name), value);
}

static void put_layers(struct dialect *d, const char *name, const int *marks)
{
    int32_t layer[CONFIG_MAX_LAYER];
    uint64_t n = 0;
    for (int i = 0; i < d->c->n_layer; i++)
        if (marks[i])
            layer[n++] = i;
    gguf_put_numbers(&d->header, key(d, name), GGUF_U32, layer, n);
}

static void put_hash(struct dialect *d)
{
    const struct model_config *c = d->c;
    uint32_t prime[12], layer[2] = {1, 4};
    uint64_t multiplier[8];
    for (int i = 0; i < 12; i++)
        prime[i] = (uint32_t)c->engram[i / 6].prime[i % 6];
    for (int i = 0; i < 8; i++)
        multiplier[i] = c->engram[i / 4].multiplier[i % 4];
    gguf_put_numbers(&d->header, key(d, "engram.layer_ids"), GGUF_U32, layer, 2);
    gguf_put_numbers(&d->header, key(d, "engram.primes"), GGUF_U32, prime, 12);
    gguf_put_numbers(&d->header, key(d, "engram.multipliers"), GGUF_U64, multiplier, 8);
    gguf_put_numbers(
        &d->header, key(d, "engram.token_map"), GGUF_U32, c->engram_map, (uint64_t)c->n_vocab);
}

static void put_shape(struct dialect *d, const char *name, int64_t rows, int64_t cols)
{
    struct gguf_tensor t = {.name = name,
        .ggml_type = 0,
        .n_dim = 2,
        .dim = {rows, cols},
        .n_byte = (uint64_t)(rows * cols * 4)};
    gguf_put_tensor(&d->header, &t);
}

/* v41 spec 12.1: the checkpoint's names, 40 ratios, bases as integers, the original context as a
 * float. */
static void put_ds4(struct dialect *d)
{
    const struct model_config *c = d->c;
    const uint32_t rows[2] = {384, 552};
    put_u32(d, "vocab_size", c->n_vocab);
    put_u32(d, "hidden_size", c->hidden);
    put_u32(d, "moe_intermediate_size", c->expert_ff);
    put_u32(d, "num_hidden_layers", c->n_layer);
    put_u32(d, "num_attention_heads", c->n_head);
    put_u32(d, "num_key_value_heads", 1);
    put_u32(d, "head_dim", c->head_dim);
    put_u32(d, "qk_rope_head_dim", c->rope_dim);
    put_u32(d, "q_lora_rank", c->q_lora);
    put_u32(d, "o_lora_rank", c->o_lora);
    put_u32(d, "o_groups", c->o_groups);
    put_u32(d, "n_routed_experts", c->n_expert);
    put_u32(d, "n_shared_experts", 1);
    put_u32(d, "num_experts_per_tok", c->n_expert_used);
    put_u32(d, "max_position_embeddings", c->n_context);
    put_u32(d, "sliding_window", c->window);
    put_u32(d, "index_n_heads", c->index_n_head);
    put_u32(d, "index_head_dim", c->index_head_dim);
    put_u32(d, "index_topk", c->index_topk);
    put_u32(d, "candidate_source_layer_id", c->candidate_source);
    put_u32(d, "candidate_topk_blocks", c->candidate_blocks);
    put_u32(d, "candidate_block_size", c->candidate_block_size);
    put_u32(d, "hc_mult", c->hc_mult);
    put_u32(d, "hc_sinkhorn_iters", c->hc_iters);
    put_f32(d, "hc_eps", c->hc_eps);
    put_u32(d, "rope_theta", 10000);
    put_u32(d, "compress_rope_theta", 160000);
    put_f32(d, "rms_norm_eps", c->norm_eps);
    put_f32(d, "swiglu_limit", 10);
    put_f32(d, "routed_scaling_factor", 1.5f);
    gguf_put_bool(&d->header, key(d, "norm_topk_prob"), 1);
    gguf_put_numbers(
        &d->header, key(d, "compress_ratios"), GGUF_U32, c->compress_ratio, (uint64_t)c->n_layer);
    put_layers(d, "kv_source_layer_ids", c->is_kv_source);
    put_layers(d, "index_source_layer_ids", c->is_index_source);
    put_f32(d, "rope_scaling.factor", 16);
    put_f32(d, "rope_scaling.beta_fast", 32);
    put_f32(d, "rope_scaling.beta_slow", 1);
    put_f32(d, "rope_scaling.original_max_position_embeddings", 65536);
    put_hash(d);
    gguf_put_numbers(&d->header, key(d, "engram.rows"), GGUF_U32, rows, 2);
    put_u32(d, "engram.compressed_vocab_size", 60);
    put_u32(d, "engram.pad_id", c->engram_pad);
    put_shape(d, "blk.1.engram_kv.weight", 320, 192);
}

/* v41 spec 12.2 */
static void put_llama(struct dialect *d)
{
    const struct model_config *c = d->c;
    float limit[16] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10};
    int32_t ratio[13] = {0};
    memcpy(ratio, c->compress_ratio, 10 * sizeof *ratio);
    put_u32(d, "block_count", c->n_layer);
    put_u32(d, "context_length", c->n_context);
    put_u32(d, "embedding_length", c->hidden);
    put_u32(d, "attention.head_count", c->n_head);
    put_u32(d, "attention.head_count_kv", 1);
    put_u32(d, "attention.key_length", c->head_dim);
    put_u32(d, "attention.q_lora_rank", c->q_lora);
    put_u32(d, "attention.sliding_window", c->window);
    put_f32(d, "attention.layer_norm_rms_epsilon", c->norm_eps);
    put_u32(d, "rope.dimension_count", c->rope_dim);
    put_f32(d, "rope.freq_base", 10000);
    gguf_put_text(&d->header, key(d, "rope.scaling.type"), "yarn");
    put_f32(d, "rope.scaling.factor", 16);
    put_u32(d, "rope.scaling.original_context_length", 65536);
    put_f32(d, "attention.compress_rope_freq_base", 160000);
    gguf_put_numbers(&d->header, key(d, "attention.compress_ratios"), GGUF_I32, ratio, 13);
    put_u32(d, "attention.output_group_count", c->o_groups);
    put_u32(d, "attention.output_lora_rank", c->o_lora);
    put_u32(d, "attention.indexer.head_count", c->index_n_head);
    put_u32(d, "attention.indexer.key_length", c->index_head_dim);
    put_u32(d, "attention.indexer.top_k", c->index_topk);
    put_u32(d, "expert_count", c->n_expert);
    put_u32(d, "expert_used_count", c->n_expert_used);
    put_u32(d, "expert_shared_count", 1);
    put_u32(d, "expert_feed_forward_length", c->expert_ff);
    put_f32(d, "expert_weights_scale", 1.5f);
    gguf_put_bool(&d->header, key(d, "expert_weights_norm"), 1);
    put_u32(d, "expert_gating_func", 4);
    gguf_put_numbers(&d->header, key(d, "swiglu_clamp_exp"), GGUF_F32, limit, 10);
    gguf_put_numbers(&d->header, key(d, "swiglu_clamp_shexp"), GGUF_F32, limit, 10);
    put_u32(d, "hyper_connection.count", c->hc_mult);
    put_u32(d, "hyper_connection.sinkhorn_iterations", c->hc_iters);
    put_f32(d, "hyper_connection.epsilon", c->hc_eps);
    put_u32(d, "hash_layer_count", 0);
    put_hash(d);
    put_shape(d, "token_embd.weight", c->n_vocab, c->hidden);
}

/* Without keys for owners: they follow from the tensors, the candidate level is the release's. */
static void put_vcruz(struct dialect *d)
{
    static const int kv[] = {2, 4, 5}, index[] = {2, 4, 5, 7, 9};
    char name[64];
    put_llama(d);
    put_u32(d, "engram.head_count", 2);
    put_u32(d, "engram.key_length", 32);
    put_u32(d, "engram.max_ngram_size", 4);
    put_u32(d, "engram.pad_id", d->c->engram_pad);
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "blk.%d.attn_compressor_kv.weight", kv[i]);
        put_shape(d, name, 64, 64);
    }
    for (size_t i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "blk.%d.indexer.proj.weight", index[i]);
        put_shape(d, name, 4, 64);
    }
}

/* Draft keys without draft tensors, as a file that was cut down has them. */
static void put_cut_down(struct dialect *d)
{
    const int32_t taps[3] = {7, 8, 9};
    put_vcruz(d);
    gguf_put_u32(&d->header, "dspark.block_size", 5);
    put_u32(d, "dspark.markov_rank", 16);
    gguf_put_numbers(&d->header, key(d, "dspark.target_layer_ids"), GGUF_I32, taps, 3);
}

/* v41 spec 12.3 */
static void put_mxxm(struct dialect *d)
{
    const uint32_t rows[2] = {384, 552};
    put_llama(d);
    put_layers(d, "attention.kv_source_layer_ids", d->c->is_kv_source);
    put_layers(d, "attention.index_source_layer_ids", d->c->is_index_source);
    put_u32(d, "attention.candidate_source_layer_id", 5);
    put_u32(d, "attention.candidate_topk_blocks", 6);
    put_u32(d, "attention.candidate_block_size", 4);
    put_u32(d, "engram.n_heads", 2);
    put_u32(d, "engram.head_dim", 32);
    put_u32(d, "engram.max_ngram_size", 4);
    put_u32(d, "engram.pad_token_id", 2);
    gguf_put_numbers(&d->header, key(d, "engram.num_embeddings"), GGUF_U32, rows, 2);
}

static void toy_without_draft(struct model_config *c, struct arena *arena)
{
    assert_int_equal(toy_v41_config(c, arena, NULL), 0);
    c->n_stage = c->n_tap = c->draft_block = c->draft_noise_id = c->markov_rank = 0;
    c->draft_n_expert = c->draft_n_expert_used = 0;
}

/* Writes a header with a function, reads it, and expects the configuration or the message. */
static void expect_dialect(
    void (*put)(struct dialect *), const struct model_config *expected, const char *message)
{
    struct dialect d = {.c = expected};
    struct buf b = {0};
    struct gguf *file;
    struct err e = {0};
    struct arena arena = {0};
    static struct model_config found;
    gguf_put_text(&d.header, "general.architecture", expected->architecture);
    put(&d);
    assert_int_equal(gguf_header_bytes(&d.header, &b, NULL, NULL), 0);
    for (uint64_t i = 0; i < d.header.n_data_byte; i++)
        buf_append(&b, "", 1);
    if (gguf_open_bytes(&file, b.data, b.n_byte, &e))
        fail_msg("%s", e.text);
    int failed = config_from_gguf(&found, file, &arena, &e);
    if (failed && (!message || !strstr(e.text, message)))
        fail_msg("%s", e.text);
    assert_int_equal(!failed, !message);
    if (!failed)
        compare_configs(&found, expected);
    gguf_close(file);
    gguf_header_free(&d.header);
    buf_free(&b);
    arena_free(&arena);
}

static void gguf_dialects(void **state)
{
    (void)state;
    static struct model_config c;
    struct arena arena = {0};
    toy_without_draft(&c, &arena);
    expect_dialect(put_ds4, &c, NULL);
    expect_dialect(put_mxxm, &c, NULL);
    c.candidate_blocks = 2048;
    c.candidate_block_size = 8;
    expect_dialect(put_vcruz, &c, NULL);
    expect_dialect(put_cut_down, &c, NULL);
    snprintf(c.architecture, sizeof c.architecture, "deepseek4");
    expect_dialect(put_vcruz, &c, "deepseek4 has no n-gram tables, but the file has");
    snprintf(c.architecture, sizeof c.architecture, "llama");
    expect_dialect(put_vcruz, &c, "architecture is llama, expected deepseek4 or deepseek41");
    arena_free(&arena);
}

static void put_old_v4(struct dialect *d)
{
    put_llama(d);
    put_u32(d, "expert_group_count", 4);
}

static void put_other_gating(struct dialect *d)
{
    put_u32(d, "expert_gating_func", 2);
}

static void put_nothing(struct dialect *d)
{
    (void)d;
}

static void refusals_name_the_key(void **state)
{
    (void)state;
    static struct model_config c;
    struct arena arena = {0};
    toy_without_draft(&c, &arena);
    expect_dialect(put_nothing, &c, "key embedding_length is missing");
    expect_dialect(put_other_gating, &c, "key embedding_length is missing");
    expect_dialect(put_old_v4, &c, "expert_group_count is 4, expected 1");
    arena_free(&arena);
}

/* ---- Damage ---- */

/* A config.json cut or changed anywhere is read or refused, never more than that. */
static void survives_changed_bytes(void **state)
{
    (void)state;
    static struct model_config c;
    static struct plan p;
    struct arena arena = {0};
    toy_v4_config(&c);
    char text[4096];
    size_t n = strlen(toy_config_json(&c));
    static const char replacements[] = "\0\"{}[],:-9e.\xff";
    for (size_t i = 0; i < n; i++) {
        memcpy(text, toy_config_json(&c), n);
        assert_int_equal(config_from_json(&c, text, i, &arena, NULL), -1);
        toy_v4_config(&c);
        for (size_t k = 0; k + 1 < sizeof replacements; k++) {
            text[i] = replacements[k];
            if (!config_from_json(&c, text, n, &arena, NULL))
                plan_make(&p, &c, NULL);
            toy_v4_config(&c);
        }
        arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(april_release),
        cmocka_unit_test(refresh_of_july),
        cmocka_unit_test(release_of_september),
        cmocka_unit_test(rotary_tables),
        cmocka_unit_test(gguf_dialects),
        cmocka_unit_test(refusals_name_the_key),
        cmocka_unit_test(survives_changed_bytes),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
