/* config.c: bounds and consistency of a configuration, and the traits that an architecture's name
 * stands for.
 *
 * The readers (config_read.c for the keys, config_json.c and config_gguf.c for the two kinds of
 * file) end with config_check. After it, products of two sizes fit in an int and of three in an
 * int64_t, and no array is indexed outside its bounds by plan.c, weights_table.c or the forward
 * pass.
 */
#include "model/config.h"

#include "model/config_read.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Traits ---- */

static void set_v4(struct model_config *c)
{
    c->has_q_head_norm = 1;
    c->window_rounding = c->compressed_rounding = KV_ROUND_FP8_HEAD;
    c->has_index_hadamard = 1;
}

static void set_v41(struct model_config *c)
{
    c->window_rounding = KV_ROUND_FP8_ALL;
    c->compressed_rounding = KV_ROUND_FP4_E4M3;
    c->has_shared_sources = 1;
    c->has_lagged_mix = 1;
    c->taps_inputs = 1;
}

/* Names of one model: in GGUF files, and in the two levels of a checkpoint's config.json. */
struct architecture {
    const char *gguf, *checkpoint, *checkpoint_text, *dialect;
    void (*set)(struct model_config *c);
};
static const struct architecture architectures[] = {
    {"deepseek4", "deepseek_v4", "deepseek_v4", "v4", set_v4},
    {"deepseek41", "deepseek_v41", "deepseek_v41_text", "v41", set_v41},
};

int config_set_architecture(struct model_config *c, const char *name, struct err *e)
{
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        const struct architecture *a = &architectures[i];
        if (strcmp(name, a->gguf) && strcmp(name, a->checkpoint) &&
            strcmp(name, a->checkpoint_text))
            continue;
        snprintf(c->architecture, sizeof c->architecture, "%s", a->gguf);
        snprintf(c->dialect, sizeof c->dialect, "%s", a->dialect);
        a->set(c);
        return 0;
    }
    return err_set(
        e, ERR_UNSUPPORTED, "architecture is %.60s, expected deepseek4 or deepseek41", name);
}

/* The refresh of V4 that brought draft stages also changed the effort texts (v4 spec 1.3). */
int config_finish(struct model_config *c, struct err *e)
{
    if (!strcmp(c->dialect, "v4") && c->n_stage)
        snprintf(c->dialect, sizeof c->dialect, "v4-0731");
    return config_check(c, e);
}

/* ---- Bounds ---- */

struct int_bound {
    const char *name;
    size_t offset;
    int min, max;
};
#define INT(field, min, max)                                                                       \
    {                                                                                              \
#field, offsetof(struct model_config, field), min, max                                     \
    }

static const struct int_bound int_bounds[] = {
    INT(n_vocab, 1, 1 << 24),
    INT(hidden, 1, 1 << 17),
    INT(n_layer, 1, CONFIG_MAX_LAYER),
    INT(n_context, 1, 1 << 28),
    INT(n_head, 1, 1024),
    INT(head_dim, 2, 4096),
    INT(rope_dim, 2, 4096),
    INT(q_lora, 1, 1 << 16),
    INT(o_lora, 1, 1 << 16),
    INT(o_groups, 1, 1024),
    INT(window, 1, 1 << 16),
    INT(n_expert, 1, 4096),
    INT(n_expert_used, 1, 64),
    INT(expert_ff, 1, 1 << 17),
    INT(n_hash_layer, 0, CONFIG_MAX_LAYER),
    INT(hc_mult, 1, 8),
    INT(hc_iters, 1, 1000),
    INT(n_engram, 0, CONFIG_MAX_ENGRAM),
    INT(n_stage, 0, CONFIG_MAX_STAGE),
    INT(top_k, 0, 1 << 24),
};
static const struct int_bound index_bounds[] = {
    INT(index_n_head, 1, 1024),
    INT(index_head_dim, 2, 4096),
    INT(index_topk, 1, 1 << 20),
};
static const struct int_bound candidate_bounds[] = {
    INT(candidate_source, 0, CONFIG_MAX_LAYER - 1),
    INT(candidate_blocks, 1, 1 << 20),
    INT(candidate_block_size, 1, 1 << 16),
};
static const struct int_bound engram_bounds[] = {
    INT(engram_max_ngram, 2, CONFIG_MAX_NGRAM),
    INT(engram_n_head, 1, CONFIG_MAX_HASH),
    INT(engram_head_dim, 1, 1 << 16),
    INT(engram_pad, 0, 1 << 24),
};
static const struct int_bound draft_bounds[] = {
    INT(draft_block, 1, 15),
    INT(draft_noise_id, 0, 1 << 24),
    INT(markov_rank, 1, 1 << 16),
    INT(draft_n_expert, 1, 4096),
    INT(draft_n_expert_used, 1, 64),
    INT(n_tap, 1, CONFIG_MAX_STAGE),
};

struct float_bound {
    const char *name;
    size_t offset;
    double min, max;
};
#define FLOAT(field, min, max)                                                                     \
    {                                                                                              \
#field, offsetof(struct model_config, field), min, max                                     \
    }

static const struct float_bound float_bounds[] = {
    FLOAT(norm_eps, 0, 1),
    FLOAT(rope_theta, 1, 1e12),
    FLOAT(compress_rope_theta, 1.5, 1e12),
    FLOAT(yarn_factor, 1, 1e6),
    FLOAT(yarn_beta_fast, 1e-6, 1e6),
    FLOAT(yarn_beta_slow, 1e-6, 1e6),
    FLOAT(swiglu_limit, 1e-6, 1e30),
    FLOAT(routed_scale, 1e-6, 1e6),
    FLOAT(hc_eps, 0, 1),
    FLOAT(temperature, 0, 100),
    FLOAT(top_p, 0, 1),
    FLOAT(min_p, 0, 1),
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static int check_ints(
    const struct model_config *c, const struct int_bound *b, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        int value = *(const int *)(const void *)((const char *)c + b[i].offset);
        if (value < b[i].min || value > b[i].max)
            return err_set(e, ERR_FORMAT, "config: %s is %d, expected %d to %d", b[i].name, value,
                b[i].min, b[i].max);
    }
    return 0;
}

static int check_floats(const struct model_config *c, struct err *e)
{
    for (size_t i = 0; i < COUNT(float_bounds); i++) {
        const struct float_bound *b = &float_bounds[i];
        double value = (double)*(const float *)(const void *)((const char *)c + b->offset);
        if (!(value >= b->min && value <= b->max))
            return err_set(e, ERR_FORMAT, "config: %s is %g, expected %g to %g", b->name, value,
                b->min, b->max);
    }
    if (c->yarn_original_context < 1 || c->yarn_original_context > (int64_t)1 << 40)
        return err_set(e, ERR_FORMAT, "config: yarn_original_context is %lld, expected 1 to 2^40",
            (long long)c->yarn_original_context);
    return 0;
}

/* A condition that config must meet, told as "what is X, expected Y". */
static int demand(int holds, struct err *e, const char *what, long long found, const char *expected)
{
    return holds ? 0
                 : err_set(e, ERR_FORMAT, "config: %s is %lld, expected %s", what, found, expected);
}

static int check_attention(const struct model_config *c, struct err *e)
{
    int nope = c->head_dim - c->rope_dim;
    if (demand(c->rope_dim % 2 == 0 && nope >= 0, e, "rope_dim", c->rope_dim,
            "an even number, at most head_dim") ||
        demand(c->n_head % c->o_groups == 0, e, "n_head", c->n_head, "a multiple of o_groups"))
        return -1;
    if (c->window_rounding == KV_ROUND_FP8_HEAD)
        return demand(nope % 64 == 0, e, "head_dim - rope_dim", nope, "a multiple of 64");
    return demand(c->head_dim % 32 == 0, e, "head_dim", c->head_dim, "a multiple of 32");
}

static int check_ratios(const struct model_config *c, struct err *e)
{
    for (int i = 0; i < c->n_layer; i++)
        if (c->compress_ratio[i] < 0 || c->compress_ratio[i] > 4096)
            return err_set(e, ERR_FORMAT, "config: compress_ratios[%d] is %d, expected 0 to 4096",
                i, c->compress_ratio[i]);
    for (int i = 0; i < c->n_layer; i++) {
        if (!c->is_kv_source[i] && !c->is_index_source[i])
            continue;
        if (!c->is_index_source[i] || !c->compress_ratio[i])
            return err_set(e, ERR_FORMAT, "config: layer %d is a source of rows (ratio %d) but %s",
                i, c->compress_ratio[i], c->compress_ratio[i] ? "runs no indexer" : "reads none");
    }
    return 0;
}

static int has_index(const struct model_config *c)
{
    for (int i = 0; i < c->n_layer; i++)
        if (c->compress_ratio[i] && (c->has_shared_sources || c->compress_ratio[i] == 4))
            return 1;
    return 0;
}

static int is_power_of_two(int n)
{
    return n > 0 && !(n & (n - 1));
}

static int check_index(const struct model_config *c, struct err *e)
{
    if (!has_index(c))
        return 0;
    int d = c->index_head_dim;
    if (check_ints(c, index_bounds, COUNT(index_bounds), e) ||
        demand(d % 32 == 0 && d >= c->rope_dim, e, "index_head_dim", d,
            "a multiple of 32, at least rope_dim") ||
        demand(
            !c->has_index_hadamard || is_power_of_two(d), e, "index_head_dim", d, "a power of two"))
        return -1;
    if (c->candidate_source < 0)
        return 0;
    if (check_ints(c, candidate_bounds, COUNT(candidate_bounds), e))
        return -1;
    int source = c->candidate_source;
    return demand(source < c->n_layer && c->is_index_source[source], e, "candidate_source", source,
        "a layer that runs an indexer");
}

static int check_experts(const struct model_config *c, struct err *e)
{
    return demand(c->n_expert_used <= c->n_expert, e, "n_expert_used", c->n_expert_used,
               "at most n_expert") ||
           demand(c->n_hash_layer <= c->n_layer, e, "n_hash_layer", c->n_hash_layer,
               "at most n_layer");
}

static int check_engram_table(
    const struct model_config *c, const struct engram_config *t, int n_column, struct err *e)
{
    if (t->layer < 0 || t->layer >= c->n_layer)
        return err_set(e, ERR_FORMAT,
            "config: an engram table belongs to layer %d, expected 0 to %d", t->layer,
            c->n_layer - 1);
    if (t->n_row < 1 || t->n_row > (int64_t)1 << 40)
        return err_set(e, ERR_FORMAT, "config: engram table of layer %d has %lld rows", t->layer,
            (long long)t->n_row);
    for (int k = 0; k < n_column; k++)
        if (!t->prime[k] || t->offset[k] < 0 || t->offset[k] > t->n_row ||
            t->prime[k] > (uint64_t)(t->n_row - t->offset[k]))
            return err_set(e, ERR_FORMAT,
                "config: engram column %d of layer %d ends at row %lld + %llu of %lld", k, t->layer,
                (long long)t->offset[k], (unsigned long long)t->prime[k], (long long)t->n_row);
    return 0;
}

/* ids in the token map must be below engram_vocab, or hash products could pass 2^63. */
static int check_engram(const struct model_config *c, struct err *e)
{
    if (!c->n_engram)
        return 0;
    if (check_ints(c, engram_bounds, COUNT(engram_bounds), e))
        return -1;
    int n_column = (c->engram_max_ngram - 1) * c->engram_n_head;
    if (demand(n_column <= CONFIG_MAX_HASH, e, "number of engram hash columns", n_column,
            "at most 128") ||
        demand(c->engram_vocab >= 1 && c->engram_vocab <= c->n_vocab, e, "engram_vocab",
            c->engram_vocab, "1 to n_vocab") ||
        demand(c->engram_pad < c->engram_vocab, e, "engram_pad", c->engram_pad, "a compressed id"))
        return -1;
    for (int i = 0; i < c->n_engram; i++) {
        if (check_engram_table(c, &c->engram[i], n_column, e))
            return -1;
        for (int k = 0; k < i; k++)
            if (c->engram[k].layer == c->engram[i].layer)
                return err_set(
                    e, ERR_FORMAT, "config: layer %d has two engram tables", c->engram[i].layer);
    }
    for (int id = 0; c->engram_map && id < c->n_vocab; id++)
        if (c->engram_map[id] < 0 || c->engram_map[id] >= c->engram_vocab)
            return err_set(e, ERR_FORMAT,
                "config: token %d maps to engram id %d, expected 0 to %lld", id, c->engram_map[id],
                (long long)c->engram_vocab - 1);
    return 0;
}

static int check_draft(const struct model_config *c, struct err *e)
{
    if (!c->n_stage)
        return 0;
    if (check_ints(c, draft_bounds, COUNT(draft_bounds), e) ||
        demand(
            c->draft_noise_id < c->n_vocab, e, "draft_noise_id", c->draft_noise_id, "a token id") ||
        demand(c->draft_n_expert_used <= c->draft_n_expert, e, "draft_n_expert_used",
            c->draft_n_expert_used, "at most draft_n_expert"))
        return -1;
    for (int i = 0; i < c->n_tap; i++)
        if (c->tap_layer[i] < 0 || c->tap_layer[i] >= c->n_layer ||
            (i && c->tap_layer[i] <= c->tap_layer[i - 1]))
            return err_set(e, ERR_FORMAT,
                "config: draft tap %d is layer %d, expected ascending layers below %d", i,
                c->tap_layer[i], c->n_layer);
    for (int i = 0; i < 16; i++)
        if (!(c->draft_temperature[i] > 0 && c->draft_temperature[i] < 1e6f))
            return err_set(e, ERR_FORMAT,
                "config: draft_temperature[%d] is %g, expected more than 0", i,
                (double)c->draft_temperature[i]);
    return 0;
}

static int check_ids(const struct model_config *c, struct err *e)
{
    const int id[3] = {c->bos_id, c->eos_id, c->pad_id};
    for (int i = 0; i < 3; i++)
        if (demand(id[i] >= -1 && id[i] < c->n_vocab, e,
                i == 0   ? "bos_id"
                : i == 1 ? "eos_id"
                         : "pad_id",
                id[i], "a token id or -1"))
            return -1;
    return 0;
}

int config_check(const struct model_config *c, struct err *e)
{
    if (check_ints(c, int_bounds, COUNT(int_bounds), e) || check_floats(c, e) || check_ids(c, e))
        return -1;
    if (check_attention(c, e) || check_ratios(c, e) || check_index(c, e))
        return -1;
    return check_experts(c, e) || check_engram(c, e) || check_draft(c, e) ? -1 : 0;
}
