/* toy_model.c: see toy_model.h. */
#include "support/toy_model.h"

#include "model/weights_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Values ---- */

static int ends_with(const char *name, const char *tail)
{
    size_t n = strlen(name), n_tail = strlen(tail);
    return n >= n_tail && !strcmp(name + n - n_tail, tail);
}

/* w = base + factor * v */
struct rule {
    double base, factor;
};

static struct rule rule_of(const char *name, int64_t n_col)
{
    if (strstr(name, "norm") || ends_with(name, "q_weight") || ends_with(name, "k_weight"))
        return (struct rule){1, 0.3};
    if (ends_with(name, "_scale"))
        return (struct rule){0.7, 0.3};
    static const char *const whole[] = {"ape", "bias", "bias_vl", "_base", "sink"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (ends_with(name, whole[i]))
            return (struct rule){0, 1};
    int is_large = strstr(name, "experts") || ends_with(name, ".gate.weight");
    return (struct rule){0, (is_large ? 6 : 2.5) / sqrt((double)n_col)};
}

void toy_values(const char *name, int64_t n, int64_t n_col, float *out)
{
    uint64_t b = 0xcbf29ce484222325u;
    for (const char *c = name; *c; c++)
        b = (b ^ (unsigned char)*c) * 0x100000001b3u;
    struct rule rule = rule_of(name, n_col);
    for (int64_t i = 0; i < n; i++) {
        uint64_t z = b + (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        double v = 2 * ((double)(z >> 11) * 0x1p-53) - 1;
        out[i] = (float)(rule.base + rule.factor * v);
    }
}

/* ---- Configurations ---- */

static void set_common(struct model_config *c)
{
    *c = (struct model_config){.n_context = 1048576,
        .eos_id = 1,
        .pad_id = 2,
        .hc_mult = 4,
        .hc_iters = 20,
        .hc_eps = 1e-6f,
        .rope_theta = 10000,
        .compress_rope_theta = 160000,
        .yarn_factor = 16,
        .yarn_beta_fast = 32,
        .yarn_beta_slow = 1,
        .yarn_original_context = 65536,
        .swiglu_limit = 10,
        .routed_scale = 1.5f,
        .candidate_source = -1,
        .temperature = 1,
        .top_p = 1};
    for (int i = 0; i < 16; i++)
        c->draft_temperature[i] = 1;
}

static void set_text(char *to, size_t n, const char *text)
{
    snprintf(to, n, "%s", text);
}

void toy_v4_config(struct model_config *c)
{
    static const int ratio[7] = {0, 0, 4, 128, 4, 128, 4};
    set_common(c);
    set_text(c->name, sizeof c->name, "toy v4");
    set_text(c->architecture, sizeof c->architecture, "deepseek4");
    set_text(c->dialect, sizeof c->dialect, "v4");
    c->n_vocab = 101;
    c->hidden = 64;
    c->n_layer = 7;
    c->norm_eps = 1e-6f;
    c->n_head = 8;
    c->head_dim = 128;
    c->rope_dim = 64;
    c->q_lora = 32;
    c->o_lora = 16;
    c->o_groups = 4;
    c->window = 128;
    c->has_q_head_norm = 1;
    c->window_rounding = c->compressed_rounding = KV_ROUND_FP8_HEAD;
    memcpy(c->compress_ratio, ratio, sizeof ratio);
    c->index_n_head = 4;
    c->index_head_dim = 128;
    c->index_topk = 16;
    c->has_index_hadamard = 1;
    c->n_expert = 16;
    c->n_expert_used = 3;
    c->expert_ff = 32;
    c->n_hash_layer = 3;
}

static void set_v41_attention(struct model_config *c)
{
    static const int ratio[10] = {0, 0, 2, 2, 2, 1, 1, 1, 1, 1};
    c->n_head = 4;
    c->head_dim = 64;
    c->rope_dim = 16;
    c->q_lora = 32;
    c->o_lora = 32;
    c->o_groups = 2;
    c->window = 16;
    c->window_rounding = KV_ROUND_FP8_ALL;
    c->compressed_rounding = KV_ROUND_FP4_E4M3;
    memcpy(c->compress_ratio, ratio, sizeof ratio);
    c->has_shared_sources = 1;
    c->is_kv_source[2] = c->is_kv_source[4] = c->is_kv_source[5] = 1;
    c->is_index_source[2] = c->is_index_source[4] = c->is_index_source[5] = 1;
    c->is_index_source[7] = c->is_index_source[9] = 1;
    c->index_n_head = 4;
    c->index_head_dim = 32;
    c->index_topk = 12;
    c->candidate_source = 5;
    c->candidate_blocks = 6;
    c->candidate_block_size = 4;
}

static int set_v41_engram(struct model_config *c, struct arena *arena, struct err *e)
{
    int32_t *map = ARENA_NEW(arena, int32_t, c->n_vocab);
    if (!map)
        return err_set(e, ERR_MEMORY, "no memory for the toy's token map");
    for (int t = 0; t < c->n_vocab; t++)
        map[t] = t / 2;
    c->n_engram = 2;
    c->engram_max_ngram = 4;
    c->engram_n_head = 2;
    c->engram_head_dim = 32;
    c->engram_vocab = 60;
    c->engram_map = map;
    c->engram_pad = map[2];
    c->engram[0].layer = 1;
    c->engram[0].n_row = 384;
    c->engram[1].layer = 4;
    c->engram[1].n_row = 552;
    return config_engram_constants(c, 50, e);
}

int toy_v41_config(struct model_config *c, struct arena *arena, struct err *e)
{
    set_common(c);
    set_text(c->name, sizeof c->name, "toy v41");
    set_text(c->architecture, sizeof c->architecture, "deepseek41");
    set_text(c->dialect, sizeof c->dialect, "v41");
    c->n_vocab = 120;
    c->hidden = 64;
    c->n_layer = 10;
    c->norm_eps = 1e-20f;
    set_v41_attention(c);
    c->n_expert = 8;
    c->n_expert_used = 3;
    c->expert_ff = 32;
    c->has_lagged_mix = 1;
    c->n_stage = 3;
    c->draft_block = 5;
    c->draft_noise_id = 119;
    c->markov_rank = 16;
    c->draft_n_expert = 6;
    c->draft_n_expert_used = 2;
    c->n_tap = 3;
    for (int i = 0; i < 3; i++)
        c->tap_layer[i] = 7 + i;
    c->taps_inputs = 1;
    return set_v41_engram(c, arena, e);
}

/* ---- Weights ---- */

struct filling {
    struct arena *arena;
    struct model_weights *weights;
};

/* tid2eid[t][k] = (5 t + 7 k) mod 16 */
static void fill_expert_ids(const struct tensor *t)
{
    int32_t *id = t->data;
    for (int64_t token = 0; token < t->dim[0]; token++)
        for (int64_t k = 0; k < t->dim[1]; k++)
            id[token * t->dim[1] + k] = (int32_t)((5 * token + 7 * k) % 16);
}

static int fill_slot(void *context, const struct weight_slot *slot)
{
    struct filling *f = context;
    struct tensor *t = weight_slot_tensor(f->weights, slot);
    int64_t d[3] = {
        slot->dim[0], slot->n_dim > 1 ? slot->dim[1] : 0, slot->n_dim > 2 ? slot->dim[2] : 0};
    *t = tensor_of(slot->klass == CLASS_IDS ? DT_I32 : DT_F32, NULL, d[0], d[1], d[2], 0);
    int64_t n = tensor_n_value(t), n_part = weight_slot_is_stacked(slot) ? d[0] : 1;
    char name[WEIGHT_MAX_NAME];
    weight_slot_gguf_name(slot, 0, name);
    t->data = ARENA_NEW(f->arena, float, (size_t)n);
    t->name = arena_copy(f->arena, name, strlen(name));
    if (!t->data || !t->name)
        return -1;
    if (slot->klass == CLASS_IDS) {
        fill_expert_ids(t);
        return 0;
    }
    for (int64_t part = 0; part < n_part; part++) {
        weight_slot_checkpoint_name(slot, 0, (int)part, name);
        toy_values(name, n / n_part, tensor_n_col(t), (float *)t->data + part * (n / n_part));
    }
    return 0;
}

static struct toy_model *fill(struct toy_model *m, struct arena *arena, struct err *e)
{
    if (config_check(&m->config, e) || plan_make(&m->plan, &m->config, e))
        return NULL;
    struct filling f = {arena, &m->weights};
    if (weights_each_slot(&m->config, &m->plan, fill_slot, &f)) {
        err_set(e, ERR_MEMORY, "no memory for the toy's weights");
        return NULL;
    }
    return m;
}

struct toy_model *toy_v4(struct arena *arena, struct err *e)
{
    struct toy_model *m = ARENA_NEW(arena, struct toy_model, 1);
    if (!m)
        return NULL;
    toy_v4_config(&m->config);
    return fill(m, arena, e);
}

struct toy_model *toy_v41(struct arena *arena, struct err *e)
{
    struct toy_model *m = ARENA_NEW(arena, struct toy_model, 1);
    if (!m || toy_v41_config(&m->config, arena, e))
        return NULL;
    return fill(m, arena, e);
}
