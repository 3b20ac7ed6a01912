/* metadata.c: see metadata.h. Numbers that stand in config_read.c's list are written from that
 * list; here are the lists, texts and constants around them. */
#include "convert/metadata.h"

#include "base/arena.h"
#include "model/config_read.h"

#include <stdio.h>
#include <string.h>

struct writer {
    struct gguf_header *header;
    const struct model_config *config;
    struct arena arena;
    char name[160]; /* the key at hand */
};

/* "deepseek41.KEY" */
static const char *own(struct writer *w, const char *key)
{
    snprintf(w->name, sizeof w->name, "%s.%s", w->config->architecture, key);
    return w->name;
}

static void put_number(void *context, const char *key, const struct config_value *v)
{
    struct writer *w = context;
    if (!v->is_integer)
        gguf_put_f32(w->header, own(w, key), (float)v->f);
    else if (v->i >= 0 && v->i <= UINT32_MAX)
        gguf_put_u32(w->header, own(w, key), (uint32_t)v->i);
    else
        gguf_put_u64(w->header, own(w, key), (uint64_t)v->i);
}

static void put_general(struct writer *w)
{
    const struct model_config *c = w->config;
    gguf_put_text(w->header, "general.architecture", c->architecture);
    gguf_put_text(w->header, "general.name", c->name);
    gguf_put_u32(w->header, "general.alignment", GGUF_ALIGNMENT);
    gguf_put_u32(w->header, "general.quantization_version", 2);
    gguf_put_f32(w->header, "general.sampling.temp", c->temperature);
    gguf_put_f32(w->header, "general.sampling.top_p", c->top_p);
    gguf_put_f32(w->header, "general.sampling.min_p", c->min_p);
    gguf_put_i32(w->header, "general.sampling.top_k", c->top_k);
    gguf_put_text(w->header, "hadal.chat_dialect", c->dialect);
}

/* Facts that every model of the family shares and that other readers ask for. */
static void put_constants(struct writer *w)
{
    const struct model_config *c = w->config;
    struct gguf_header *h = w->header;
    float limit[CONFIG_MAX_LAYER];
    for (int i = 0; i < c->n_layer; i++)
        limit[i] = c->swiglu_limit;
    gguf_put_u32(h, own(w, "attention.head_count_kv"), 1);
    gguf_put_u32(h, own(w, "attention.value_length"), (uint32_t)c->head_dim);
    gguf_put_u32(h, own(w, "expert_shared_count"), 1);
    gguf_put_u32(h, own(w, "expert_gating_func"), 4);
    gguf_put_bool(h, own(w, "expert_weights_norm"), 1);
    gguf_put_text(h, own(w, "rope.scaling.type"), "yarn");
    gguf_put_numbers(h, own(w, "swiglu_clamp_exp"), GGUF_F32, limit, (uint64_t)c->n_layer);
    gguf_put_numbers(h, own(w, "swiglu_clamp_shexp"), GGUF_F32, limit, (uint64_t)c->n_layer);
}

static void put_marked(struct writer *w, const char *key, const int *marks)
{
    int32_t layer[CONFIG_MAX_LAYER];
    uint64_t n = 0;
    for (int i = 0; i < w->config->n_layer; i++)
        if (marks[i])
            layer[n++] = i;
    gguf_put_numbers(w->header, own(w, key), GGUF_I32, layer, n);
}

static void put_sources(struct writer *w)
{
    const struct model_config *c = w->config;
    gguf_put_numbers(w->header, own(w, "attention.compress_ratios"), GGUF_I32, c->compress_ratio,
        (uint64_t)(c->n_layer + c->n_stage));
    if (!c->has_shared_sources)
        return;
    put_marked(w, "attention.kv_source_layer_ids", c->is_kv_source);
    put_marked(w, "attention.index_source_layer_ids", c->is_index_source);
    if (c->candidate_source >= 0)
        gguf_put_u32(w->header, own(w, "attention.candidate_source_layer_id"),
            (uint32_t)c->candidate_source);
}

/* Constants of all tables, one after the other. */
static void put_engram(struct writer *w)
{
    const struct model_config *c = w->config;
    struct gguf_header *h = w->header;
    int32_t layer[CONFIG_MAX_ENGRAM];
    uint64_t row[CONFIG_MAX_ENGRAM], prime[CONFIG_MAX_ENGRAM * CONFIG_MAX_HASH], n_prime = 0;
    uint64_t offset[CONFIG_MAX_ENGRAM * CONFIG_MAX_HASH],
        multiplier[CONFIG_MAX_ENGRAM * CONFIG_MAX_NGRAM], n_multiplier = 0;
    uint64_t n = (uint64_t)c->n_engram;
    int n_column = (c->engram_max_ngram - 1) * c->engram_n_head;
    for (uint64_t i = 0; i < n; i++) {
        layer[i] = c->engram[i].layer;
        row[i] = (uint64_t)c->engram[i].n_row;
        for (int k = 0; k < n_column; k++) {
            offset[n_prime] = (uint64_t)c->engram[i].offset[k];
            prime[n_prime++] = c->engram[i].prime[k];
        }
        for (int k = 0; k < c->engram_max_ngram; k++)
            multiplier[n_multiplier++] = c->engram[i].multiplier[k];
    }
    gguf_put_numbers(h, own(w, "engram.layer_ids"), GGUF_I32, layer, n);
    gguf_put_numbers(h, own(w, "engram.rows"), GGUF_U64, row, n);
    gguf_put_numbers(h, own(w, "engram.primes"), GGUF_U64, prime, n_prime);
    gguf_put_numbers(h, own(w, "engram.offsets"), GGUF_U64, offset, n_prime);
    gguf_put_numbers(h, own(w, "engram.multipliers"), GGUF_U64, multiplier, n_multiplier);
    gguf_put_numbers(h, own(w, "engram.token_map"), GGUF_I32, c->engram_map, (uint64_t)c->n_vocab);
    gguf_put_u32(h, own(w, "engram.pad_id"), (uint32_t)c->engram_pad);
}

static void put_draft(struct writer *w)
{
    const struct model_config *c = w->config;
    gguf_put_u32(w->header, own(w, "dspark.stage_count"), (uint32_t)c->n_stage);
    gguf_put_numbers(
        w->header, own(w, "dspark.target_layer_ids"), GGUF_I32, c->tap_layer, (uint64_t)c->n_tap);
    gguf_put_numbers(
        w->header, own(w, "dspark.confidence_temperatures"), GGUF_F32, c->draft_temperature, 16);
}

/* ---- Tokenizer ---- */

static int put_texts(
    struct writer *w, const char *key, const struct text *texts, int32_t n, struct err *e)
{
    struct gguf_string *strings = ARENA_NEW(&w->arena, struct gguf_string, (size_t)n);
    if (!strings)
        return err_set(e, ERR_MEMORY, "no memory for %s", key);
    for (int32_t i = 0; i < n; i++)
        strings[i] = (struct gguf_string){texts[i].data, texts[i].n_byte};
    gguf_put_texts(w->header, key, strings, (uint64_t)n);
    return 0;
}

static void put_id(struct writer *w, const char *key, int id)
{
    if (id >= 0)
        gguf_put_u32(w->header, key, (uint32_t)id);
}

static int put_tokenizer(struct writer *w, const struct tokenizer_source *s, struct err *e)
{
    int32_t *types = ARENA_NEW(&w->arena, int32_t, (size_t)s->n_token);
    if (!types)
        return err_set(e, ERR_MEMORY, "no memory for token types");
    for (int32_t i = 0; i < s->n_token; i++)
        types[i] = s->types[i];
    gguf_put_text(w->header, "tokenizer.ggml.model", "gpt2");
    if (s->pre)
        gguf_put_text(w->header, "tokenizer.ggml.pre", s->pre);
    if (put_texts(w, "tokenizer.ggml.tokens", s->tokens, s->n_token, e) ||
        put_texts(w, "tokenizer.ggml.merges", s->merges, s->n_merge, e))
        return -1;
    if (s->n_pattern && put_texts(w, "hadal.tokenizer.patterns", s->patterns, s->n_pattern, e))
        return -1;
    gguf_put_numbers(w->header, "tokenizer.ggml.token_type", GGUF_I32, types, (uint64_t)s->n_token);
    gguf_put_bool(w->header, "tokenizer.ggml.add_bos_token", 0);
    gguf_put_bool(w->header, "tokenizer.ggml.add_eos_token", 0);
    return 0;
}

int metadata_put(struct gguf_header *h, const struct model_config *c,
    const struct tokenizer *tokenizer, struct err *e)
{
    struct writer w = {.header = h, .config = c};
    put_general(&w);
    config_each_number(c, put_number, &w);
    put_constants(&w);
    put_sources(&w);
    if (c->n_engram)
        put_engram(&w);
    if (c->n_stage)
        put_draft(&w);
    put_id(&w, "tokenizer.ggml.bos_token_id", c->bos_id);
    put_id(&w, "tokenizer.ggml.eos_token_id", c->eos_id);
    put_id(&w, "tokenizer.ggml.padding_token_id", c->pad_id);
    int failed = tokenizer ? put_tokenizer(&w, tokenizer_describe(tokenizer), e) : 0;
    arena_free(&w.arena);
    return failed;
}
