/* config_read.c: the list of configuration keys. v4 spec 1.1, 8.3, 8.4, v41 spec 1.1, 12, dspark
 * spec 1.2, 1.7. */
#include "model/config_read.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

/* Every key in its three spellings. NULL: has none. */
#define KEY(gguf, checkpoint, other)                                                               \
    {                                                                                              \
        gguf, checkpoint, other                                                                    \
    }

enum kind { INT, INT64, FLOAT };

struct key {
    const char *spelling[N_SPELLING];
    size_t offset;
    enum kind kind;
    int is_required;
    double fallback; /* of those that are not */
};
#define AT(field)   offsetof(struct model_config, field)
#define NEEDED      1, 0
#define ELSE(value) 0, value

static const struct key keys[] = {
    {KEY("vocab_size", "vocab_size", NULL), AT(n_vocab), INT, ELSE(0)},
    {KEY("embedding_length", "hidden_size", NULL), AT(hidden), INT, NEEDED},
    {KEY("block_count", "num_hidden_layers", NULL), AT(n_layer), INT, NEEDED},
    {KEY("context_length", "max_position_embeddings", NULL), AT(n_context), INT, NEEDED},
    {KEY("attention.layer_norm_rms_epsilon", "rms_norm_eps", NULL), AT(norm_eps), FLOAT, NEEDED},
    {KEY("attention.head_count", "num_attention_heads", NULL), AT(n_head), INT, NEEDED},
    {KEY("attention.key_length", "head_dim", NULL), AT(head_dim), INT, NEEDED},
    {KEY("rope.dimension_count", "qk_rope_head_dim", NULL), AT(rope_dim), INT, NEEDED},
    {KEY("attention.q_lora_rank", "q_lora_rank", NULL), AT(q_lora), INT, NEEDED},
    {KEY("attention.output_lora_rank", "o_lora_rank", NULL), AT(o_lora), INT, NEEDED},
    {KEY("attention.output_group_count", "o_groups", NULL), AT(o_groups), INT, NEEDED},
    {KEY("attention.sliding_window", "sliding_window", NULL), AT(window), INT, NEEDED},
    {KEY("rope.freq_base", "rope_theta", NULL), AT(rope_theta), FLOAT, NEEDED},
    {KEY("attention.compress_rope_freq_base", "compress_rope_theta", NULL), AT(compress_rope_theta),
        FLOAT, NEEDED},
    {KEY("rope.scaling.factor", "rope_scaling.factor", NULL), AT(yarn_factor), FLOAT, NEEDED},
    {KEY("rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast", NULL), AT(yarn_beta_fast), FLOAT,
        ELSE(32)},
    {KEY("rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow", NULL), AT(yarn_beta_slow), FLOAT,
        ELSE(1)},
    {KEY("rope.scaling.original_context_length", "rope_scaling.original_max_position_embeddings",
         NULL),
        AT(yarn_original_context), INT64, NEEDED},
    {KEY("attention.indexer.head_count", "index_n_heads", NULL), AT(index_n_head), INT, NEEDED},
    {KEY("attention.indexer.key_length", "index_head_dim", NULL), AT(index_head_dim), INT, NEEDED},
    {KEY("attention.indexer.top_k", "index_topk", NULL), AT(index_topk), INT, NEEDED},
    {KEY("attention.candidate_topk_blocks", "candidate_topk_blocks", NULL), AT(candidate_blocks),
        INT, ELSE(0)},
    {KEY("attention.candidate_block_size", "candidate_block_size", NULL), AT(candidate_block_size),
        INT, ELSE(0)},
    {KEY("expert_count", "n_routed_experts", NULL), AT(n_expert), INT, NEEDED},
    {KEY("expert_used_count", "num_experts_per_tok", NULL), AT(n_expert_used), INT, NEEDED},
    {KEY("expert_feed_forward_length", "moe_intermediate_size", NULL), AT(expert_ff), INT, NEEDED},
    {KEY("hash_layer_count", "num_hash_layers", NULL), AT(n_hash_layer), INT, ELSE(0)},
    {KEY("expert_weights_scale", "routed_scaling_factor", NULL), AT(routed_scale), FLOAT, NEEDED},
    {KEY("hyper_connection.count", "hc_mult", NULL), AT(hc_mult), INT, NEEDED},
    {KEY("hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters", NULL), AT(hc_iters), INT,
        NEEDED},
    {KEY("hyper_connection.epsilon", "hc_eps", NULL), AT(hc_eps), FLOAT, NEEDED},
    {KEY("engram.max_ngram_size", "engram_max_ngram_size", NULL), AT(engram_max_ngram), INT,
        ELSE(0)},
    {KEY("engram.head_count", "engram_n_heads", "engram.n_heads"), AT(engram_n_head), INT, ELSE(0)},
    {KEY("engram.key_length", "engram_head_dim", "engram.head_dim"), AT(engram_head_dim), INT,
        ELSE(0)},
    {KEY("engram.compressed_vocab_size", "engram_compressed_vocab_size", NULL), AT(engram_vocab),
        INT64, ELSE(0)},
    {KEY("dspark.block_size", "dspark_block_size", NULL), AT(draft_block), INT, ELSE(0)},
    {KEY("dspark.noise_token_id", "dspark_noise_token_id", NULL), AT(draft_noise_id), INT, ELSE(0)},
    {KEY("dspark.markov_rank", "dspark_markov_rank", NULL), AT(markov_rank), INT, ELSE(0)},
    {KEY("dspark.expert_count", "dspark_n_routed_experts", NULL), AT(draft_n_expert), INT, ELSE(0)},
    {KEY("dspark.expert_used_count", "dspark_num_experts_per_tok", NULL), AT(draft_n_expert_used),
        INT, ELSE(0)},
};

/* Facts that the forward pass has built in: a file that says otherwise is another model. */
static const struct fixed {
    const char *spelling[N_SPELLING];
    double min, max;
} fixed[] = {
    {KEY("attention.head_count_kv", "num_key_value_heads", NULL), 1, 1},
    {KEY("expert_shared_count", "n_shared_experts", NULL), 1, 1},
    {KEY("expert_gating_func", NULL, NULL), 4, 4}, /* sqrt(softplus) */
    {KEY("expert_weights_norm", "norm_topk_prob", NULL), 1, 1},
    {KEY("expert_group_count", "n_group", NULL), 0, 1}, /* no groups */
};

static const char *spelling_of(const char *const spelling[N_SPELLING])
{
    return spelling[SPELLING_GGUF] ? spelling[SPELLING_GGUF] : spelling[SPELLING_CHECKPOINT];
}

int config_find(const struct config_source *source, const char *const spelling[N_SPELLING],
    struct config_value *v, struct err *e)
{
    for (int i = 0; i < N_SPELLING; i++) {
        if (!spelling[i] || (i != SPELLING_CHECKPOINT && !source->reads_gguf_names))
            continue;
        int found = source->find(source->context, spelling[i], v, e);
        if (found)
            return found;
    }
    return 0;
}

/* One of the spellings that this kind of file uses, for messages. */
static const char *expected_name(
    const struct config_source *source, const char *const spelling[N_SPELLING])
{
    const char *checkpoint = spelling[SPELLING_CHECKPOINT];
    return source->reads_gguf_names || !checkpoint ? spelling_of(spelling) : checkpoint;
}

static int to_int(const struct config_value *v, int *out)
{
    if (!v->is_integer && !(v->f >= INT_MIN && v->f <= INT_MAX && v->f == (double)(int)v->f))
        return -1;
    if (v->is_integer && (v->i < INT_MIN || v->i > INT_MAX))
        return -1;
    *out = v->is_integer ? (int)v->i : (int)v->f;
    return 0;
}

static int store(struct model_config *c, const struct key *key, const struct config_value *v,
    const char *name, struct err *e)
{
    char *field = (char *)c + key->offset;
    int number = 0;
    if (v->is_array)
        return err_set(e, ERR_FORMAT, "config: %s is a list, expected a number", name);
    if (key->kind == FLOAT) {
        *(float *)(void *)field = (float)v->f;
        return 0;
    }
    if (to_int(v, &number))
        return err_set(
            e, ERR_FORMAT, "config: %s is %.17g, expected a whole number below 2^31", name, v->f);
    if (key->kind == INT64)
        *(int64_t *)(void *)field = number;
    else
        *(int *)(void *)field = number;
    return 0;
}

static int read_keys(struct model_config *c, const struct config_source *source, struct err *e)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct key *key = &keys[i];
        const char *name = expected_name(source, key->spelling);
        struct config_value v = {.is_integer = 1, .i = (int64_t)key->fallback, .f = key->fallback};
        int found = config_find(source, key->spelling, &v, e);
        if (found < 0)
            return -1;
        if (!found && key->is_required)
            return err_set(e, ERR_FORMAT, "config: key %s is missing", name);
        if (store(c, key, &v, name, e))
            return -1;
    }
    return 0;
}

static void load(const struct model_config *c, const struct key *key, struct config_value *v)
{
    const char *field = (const char *)c + key->offset;
    *v = (struct config_value){.n = 1, .is_integer = key->kind != FLOAT};
    if (key->kind == FLOAT)
        v->f = (double)*(const float *)(const void *)field;
    else
        v->i = key->kind == INT ? *(const int *)(const void *)field
                                : *(const int64_t *)(const void *)field;
    if (v->is_integer)
        v->f = (double)v->i;
}

void config_each_number(const struct model_config *c, config_number_fn fn, void *context)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct config_value v;
        load(c, &keys[i], &v);
        if (keys[i].is_required || v.f != keys[i].fallback)
            fn(context, keys[i].spelling[SPELLING_GGUF], &v);
    }
}

static int check_fixed(const struct config_source *source, struct err *e)
{
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        struct config_value v;
        int found = config_find(source, fixed[i].spelling, &v, e);
        if (found < 0)
            return -1;
        if (found && (v.is_array || !(v.f >= fixed[i].min && v.f <= fixed[i].max)))
            return err_set(e, ERR_UNSUPPORTED, "config: %s is %g, expected %g",
                expected_name(source, fixed[i].spelling), v.f, fixed[i].max);
    }
    return 0;
}

/* ---- Lists ---- */

struct list {
    const struct config_source *source;
    struct config_value value;
    const char *name;
    uint64_t n; /* 0 when absent */
};

static int find_list(struct list *l, const struct config_source *source,
    const char *const spelling[N_SPELLING], struct err *e)
{
    *l = (struct list){.source = source, .name = expected_name(source, spelling)};
    int found = config_find(source, spelling, &l->value, e);
    if (found < 0)
        return -1;
    if (found && !l->value.is_array)
        return err_set(e, ERR_FORMAT, "config: %s is a number, expected a list", l->name);
    l->n = found ? l->value.n : 0;
    return 0;
}

static int list_int(const struct list *l, uint64_t i, int *out, struct err *e)
{
    struct config_value v;
    l->source->at(l->source->context, &l->value, i, &v);
    if (to_int(&v, out))
        return err_set(e, ERR_FORMAT,
            "config: %s[%llu] is %.17g, expected a whole number below 2^31", l->name,
            (unsigned long long)i, v.f);
    return 0;
}

static uint64_t list_u64(const struct list *l, uint64_t i)
{
    struct config_value v;
    l->source->at(l->source->context, &l->value, i, &v);
    return v.is_integer ? (uint64_t)v.i : v.f >= 0 && v.f < 0x1p63 ? (uint64_t)v.f : 0;
}

static int list_too_long(const struct list *l, uint64_t max, struct err *e)
{
    return l->n <= max
               ? 0
               : err_set(e, ERR_FORMAT, "config: %s has %llu entries, expected at most %llu",
                     l->name, (unsigned long long)l->n, (unsigned long long)max);
}

/* Marks the layers that a list names. */
static int read_marks(const struct config_source *source, const char *const spelling[N_SPELLING],
    int *marks, struct err *e)
{
    struct list l;
    if (find_list(&l, source, spelling, e) || list_too_long(&l, CONFIG_MAX_LAYER, e))
        return -1;
    for (uint64_t i = 0; i < l.n; i++) {
        int layer;
        if (list_int(&l, i, &layer, e))
            return -1;
        if (layer < 0 || layer >= CONFIG_MAX_LAYER)
            return err_set(e, ERR_FORMAT, "config: %s[%llu] is %d, expected a layer", l.name,
                (unsigned long long)i, layer);
        marks[layer] = 1;
    }
    return 0;
}

/* The list has an entry for every layer; entries behind them belong to draft stages. */
static int read_ratios(
    struct model_config *c, const struct config_source *source, int *n_ratio, struct err *e)
{
    static const char *const spelling[] = KEY("attention.compress_ratios", "compress_ratios", NULL);
    struct list l;
    if (find_list(&l, source, spelling, e) ||
        list_too_long(&l, CONFIG_MAX_LAYER + CONFIG_MAX_STAGE, e))
        return -1;
    if (c->n_layer < 1 || l.n < (uint64_t)c->n_layer)
        return err_set(e, ERR_FORMAT, "config: %s has %llu entries for %d layers", l.name,
            (unsigned long long)l.n, c->n_layer);
    for (uint64_t i = 0; i < l.n; i++)
        if (list_int(&l, i, &c->compress_ratio[i], e))
            return -1;
    *n_ratio = (int)l.n;
    return 0;
}

static int read_sources(struct model_config *c, const struct config_source *source, struct err *e)
{
    static const char *const kv[] =
        KEY("attention.kv_source_layer_ids", "kv_source_layer_ids", NULL);
    static const char *const index[] =
        KEY("attention.index_source_layer_ids", "index_source_layer_ids", NULL);
    static const char *const candidate[] =
        KEY("attention.candidate_source_layer_id", "candidate_source_layer_id", NULL);
    if (read_marks(source, kv, c->is_kv_source, e) ||
        read_marks(source, index, c->is_index_source, e))
        return -1;
    struct config_value v;
    int found = config_find(source, candidate, &v, e);
    c->candidate_source = -1;
    if (found > 0 && to_int(&v, &c->candidate_source))
        return err_set(e, ERR_FORMAT, "config: %s is %.17g, expected a layer", candidate[0], v.f);
    return found < 0 ? -1 : 0;
}

/* A number, or one per layer that must all be equal. */
static int read_swiglu_limit(
    struct model_config *c, const struct config_source *source, struct err *e)
{
    static const char *const spelling[][N_SPELLING] = {
        KEY("swiglu_clamp_exp", "swiglu_limit", NULL), KEY("swiglu_clamp_shexp", NULL, NULL)};
    for (int k = 0; k < 2; k++) {
        struct config_value v;
        int found = config_find(source, spelling[k], &v, e);
        if (found < 0 || (!found && k))
            return found;
        if (!found || !v.n)
            return err_set(
                e, ERR_FORMAT, "config: key %s is missing", expected_name(source, spelling[k]));
        for (uint64_t i = 0; i < v.n; i++) {
            struct config_value element = v;
            if (v.is_array)
                source->at(source->context, &v, i, &element);
            if (!i && !k)
                c->swiglu_limit = (float)element.f;
            if ((float)element.f != c->swiglu_limit)
                return err_set(e, ERR_UNSUPPORTED,
                    "config: %s[%llu] is %g, expected %g in every layer",
                    expected_name(source, spelling[k]), (unsigned long long)i, element.f,
                    (double)c->swiglu_limit);
        }
    }
    return 0;
}

/* ---- Engram ---- */

static int read_token_map(
    struct model_config *c, const struct config_source *source, struct arena *arena, struct err *e)
{
    static const char *const spelling[] = KEY("engram.token_map", "engram_token_map", NULL);
    struct list l;
    if (find_list(&l, source, spelling, e))
        return -1;
    if (!l.n)
        return 0;
    if (c->n_vocab < 1 || l.n != (uint64_t)c->n_vocab)
        return err_set(e, ERR_FORMAT, "config: %s has %llu entries for %d tokens", l.name,
            (unsigned long long)l.n, c->n_vocab);
    int32_t *map = ARENA_NEW(arena, int32_t, l.n), largest = 0;
    if (!map)
        return err_set(e, ERR_MEMORY, "no memory for %s", l.name);
    for (uint64_t i = 0; i < l.n; i++) {
        if (list_int(&l, i, &map[i], e))
            return -1;
        largest = map[i] > largest ? map[i] : largest;
    }
    c->engram_map = map;
    if (!c->engram_vocab)
        c->engram_vocab = (int64_t)largest + 1;
    return 0;
}

/* pad_id is a compressed id; pad_token_id a token id, which the map translates. Without a map, ids
 * 0, 1 and 2 stand for themselves (v41 spec 9.1), and model_file_open translates once it has built
 * the map. */
static int read_pad(struct model_config *c, const struct config_source *source, struct err *e)
{
    static const char *const spelling[][N_SPELLING] = {
        KEY("engram.pad_id", NULL, NULL), KEY(NULL, "engram_pad_token_id", "engram.pad_token_id")};
    for (int is_token = 0; is_token < 2; is_token++) {
        struct config_value v;
        int found = config_find(source, spelling[is_token], &v, e);
        if (found < 0)
            return -1;
        if (!found)
            continue;
        if (to_int(&v, &c->engram_pad) || c->engram_pad < 0 || c->engram_pad >= c->n_vocab)
            return err_set(
                e, ERR_FORMAT, "config: engram pad id is %.17g, expected a token id", v.f);
        if (is_token && c->engram_map)
            c->engram_pad = c->engram_map[c->engram_pad];
        return 0;
    }
    return err_set(e, ERR_FORMAT, "config: key %s is missing",
        expected_name(source, spelling[source->reads_gguf_names ? 0 : 1]));
}

static int read_tables(struct model_config *c, const struct config_source *source, struct err *e)
{
    static const char *const layers[] = KEY("engram.layer_ids", "engram_layer_ids", NULL);
    static const char *const rows[] =
        KEY("engram.rows", "engram_num_embeddings", "engram.num_embeddings");
    struct list layer, row;
    if (find_list(&layer, source, layers, e) || list_too_long(&layer, CONFIG_MAX_ENGRAM, e) ||
        find_list(&row, source, rows, e))
        return -1;
    if (row.n && row.n != layer.n)
        return err_set(e, ERR_FORMAT, "config: %s has %llu entries for %llu tables", row.name,
            (unsigned long long)row.n, (unsigned long long)layer.n);
    c->n_engram = (int)layer.n;
    for (uint64_t i = 0; i < layer.n; i++) {
        if (list_int(&layer, i, &c->engram[i].layer, e))
            return -1;
        c->engram[i].n_row = row.n ? (int64_t)(list_u64(&row, i) & INT64_MAX) : 0;
    }
    return 0;
}

/* Sizes that the lists of constants imply where a dialect has no key for them. */
static int infer_sizes(
    struct model_config *c, const struct list *prime, const struct list *multiplier, struct err *e)
{
    uint64_t n = (uint64_t)c->n_engram;
    if (!c->engram_max_ngram && multiplier->n % n == 0 && multiplier->n / n <= CONFIG_MAX_NGRAM)
        c->engram_max_ngram = (int)(multiplier->n / n);
    uint64_t n_gram = c->engram_max_ngram > 1 ? (uint64_t)c->engram_max_ngram - 1 : 1;
    if (!c->engram_n_head && prime->n <= CONFIG_MAX_ENGRAM * CONFIG_MAX_HASH)
        c->engram_n_head = (int)(prime->n / n / n_gram);
    if (c->engram_max_ngram < 2 || c->engram_max_ngram > CONFIG_MAX_NGRAM || c->engram_n_head < 1 ||
        c->engram_n_head > CONFIG_MAX_HASH / (int)n_gram)
        return err_set(e, ERR_FORMAT,
            "config: engram n-grams up to %d with %d heads, expected 2 to %d and %d hash columns",
            c->engram_max_ngram, c->engram_n_head, CONFIG_MAX_NGRAM, CONFIG_MAX_HASH);
    return 0;
}

static int take_constants(
    struct model_config *c, const struct list *prime, const struct list *multiplier, struct err *e)
{
    uint64_t n_gram = (uint64_t)c->engram_max_ngram,
             n_column = (n_gram - 1) * (uint64_t)c->engram_n_head;
    uint64_t n = (uint64_t)c->n_engram, limit = (uint64_t)INT64_MAX;
    if (prime->n != n * n_column || multiplier->n != n * n_gram)
        return err_set(e, ERR_FORMAT,
            "config: %llu engram primes and %llu multipliers, expected %llu and %llu",
            (unsigned long long)prime->n, (unsigned long long)multiplier->n,
            (unsigned long long)(n * n_column), (unsigned long long)(n * n_gram));
    for (uint64_t i = 0; i < n; i++) {
        struct engram_config *t = &c->engram[i];
        uint64_t offset = 0;
        for (uint64_t k = 0; k < n_column; k++) {
            t->prime[k] = list_u64(prime, i * n_column + k);
            if (!t->prime[k] || t->prime[k] > limit - offset)
                return err_set(e, ERR_FORMAT, "config: engram prime %llu is out of range",
                    (unsigned long long)t->prime[k]);
            t->offset[k] = (int64_t)offset;
            offset += t->prime[k];
        }
        for (uint64_t k = 0; k < n_gram; k++)
            t->multiplier[k] = list_u64(multiplier, i * n_gram + k);
        if (!t->n_row)
            t->n_row = (int64_t)offset;
    }
    return 0;
}

static int read_constants(struct model_config *c, const struct config_source *source, struct err *e)
{
    static const char *const primes[] = KEY("engram.primes", NULL, NULL);
    static const char *const multipliers[] = KEY("engram.multipliers", NULL, NULL);
    static const char *const first[] = KEY("engram.vocab_size", "engram_vocab_size", NULL);
    struct list prime, multiplier;
    if (find_list(&prime, source, primes, e) || find_list(&multiplier, source, multipliers, e) ||
        infer_sizes(c, &prime, &multiplier, e))
        return -1;
    if (prime.n || multiplier.n)
        return take_constants(c, &prime, &multiplier, e);
    struct config_value v;
    int number, found = config_find(source, first, &v, e);
    if (found < 0)
        return -1;
    if (!found || to_int(&v, &number) || number < 2)
        return err_set(e, ERR_FORMAT, "config: %s is missing or no number above 1",
            expected_name(source, first));
    return config_engram_constants(c, (uint64_t)number, e);
}

static int read_engram(
    struct model_config *c, const struct config_source *source, struct arena *arena, struct err *e)
{
    if (read_tables(c, source, e))
        return -1;
    if (!c->n_engram)
        return 0;
    return read_token_map(c, source, arena, e) || read_pad(c, source, e) ||
                   read_constants(c, source, e)
               ? -1
               : 0;
}

/* ---- Draft stages ---- */

/* How many: a key of its own, or the entries of compress_ratios behind the layers
 * (num_nextn_predict_layers says 1 in files with three stages, dspark spec 1.2). */
static int read_n_stage(
    struct model_config *c, const struct config_source *source, int n_ratio, struct err *e)
{
    static const char *const spelling[] = KEY("dspark.stage_count", NULL, "dspark.n_layers");
    struct config_value v;
    int found = config_find(source, spelling, &v, e);
    if (found < 0)
        return -1;
    c->n_stage = n_ratio - c->n_layer;
    if (found && to_int(&v, &c->n_stage))
        return err_set(
            e, ERR_FORMAT, "config: %s is %.17g, expected a small number", spelling[0], v.f);
    return 0;
}

static int read_draft(
    struct model_config *c, const struct config_source *source, int n_ratio, struct err *e)
{
    static const char *const taps[] =
        KEY("dspark.target_layer_ids", "dspark_target_layer_ids", NULL);
    static const char *const temperatures[] =
        KEY("dspark.confidence_temperatures", "dspark_confidence_temperatures", NULL);
    for (int i = 0; i < 16; i++)
        c->draft_temperature[i] = 1;
    if (!c->draft_block)
        return 0;
    struct list tap, temperature;
    if (read_n_stage(c, source, n_ratio, e) || find_list(&tap, source, taps, e) ||
        list_too_long(&tap, CONFIG_MAX_STAGE, e) ||
        find_list(&temperature, source, temperatures, e) || list_too_long(&temperature, 16, e))
        return -1;
    c->n_tap = (int)tap.n;
    for (uint64_t i = 0; i < tap.n; i++)
        if (list_int(&tap, i, &c->tap_layer[i], e))
            return -1;
    for (uint64_t i = 0; i < temperature.n; i++) {
        struct config_value v;
        source->at(source->context, &temperature.value, i, &v);
        c->draft_temperature[i] = (float)v.f;
    }
    if (!c->draft_n_expert)
        c->draft_n_expert = c->n_expert;
    if (!c->draft_n_expert_used)
        c->draft_n_expert_used = c->n_expert_used;
    return 0;
}

int config_read(
    struct model_config *c, const struct config_source *source, struct arena *arena, struct err *e)
{
    int n_ratio = 0;
    if (read_keys(c, source, e) || check_fixed(source, e) || read_swiglu_limit(c, source, e))
        return -1;
    if (read_ratios(c, source, &n_ratio, e) || read_sources(c, source, e))
        return -1;
    return read_draft(c, source, n_ratio, e) || read_engram(c, source, arena, e) ? -1 : 0;
}
