/* weights_table.c: see weights_table.h. Names and shapes: v4 spec 8.1, 8.2, v41 spec 11, 12, dspark
 * spec 1.3, 1.7. */
#include "model/weights_table.h"

#include <stdio.h>
#include <string.h>

/* When a tensor exists. */
enum need {
    ALWAYS,
    HEAD_MIX,       /* the head has a mix of its own */
    MAKES_ROWS,     /* the layer owns compressed rows */
    POOLS,          /* and weighs the tokens of a group */
    POOLS_BY_POS,   /* and adds a bias by position to the weights */
    CHOOSES,        /* the layer runs an indexer */
    KEYS_OF_LATENT, /* its index keys are projected from the compressed rows */
    KEYS_POOLED,    /* its index keys have a compressor of their own */
    ROUTES_BY_SCORE,
    ROUTES_BY_TOKEN,
    HAS_ENGRAM
};

/* A dimension. NONE ends a shape. */
enum size {
    NONE,
    ONE,
    THREE,
    VOCAB,
    HIDDEN,
    STREAMS,
    MIXES, /* (2 + streams) streams */
    FLAT,  /* streams x hidden */
    Q_LORA,
    HEADS,
    HEAD_DIM,
    Q_OUT,    /* heads x head_dim */
    GROUP_IN, /* heads x head_dim / groups */
    O_LOW,    /* groups x o_lora */
    RATIO,
    POOLED, /* head_dim, doubled when pooling looks one group back */
    INDEX_HEADS,
    INDEX_DIM,
    INDEX_OUT, /* index heads x index head_dim */
    INDEX_POOLED,
    EXPERTS,
    USED,
    WIDTH, /* of an expert */
    TABLE_ROWS,
    TABLE_DIM,
    TABLE_OUT,  /* hash columns x table dim */
    KEYS_VALUE, /* (streams + 1) hidden */
    TAPS,       /* taps x hidden */
    RANK,
    CONFIDENCE, /* hidden + rank */
    N_SIZE
};

#define AT(type, field) offsetof(struct type, field)
#define GLOBAL(f, gguf, hf, need, klass, ...)                                                      \
    {{gguf}, {hf}, AT(model_weights, f), need, klass, {__VA_ARGS__}},
#define LAYER(f, gguf, hf, need, klass, ...)                                                       \
    {{gguf}, {hf}, AT(layer_weights, f), need, klass, {__VA_ARGS__}},
#define DRAFT(f, gguf, hf, need, klass, ...)                                                       \
    {{gguf}, {hf}, AT(draft_weights, f), need, klass, {__VA_ARGS__}},
#define OR , /* between spellings of one name */

/* clang-format off */
static const struct weight_field global_fields[] = {
    GLOBAL(token_embd, "token_embd.weight", "embed.weight", ALWAYS, CLASS_EMBED, VOCAB, HIDDEN)
    GLOBAL(output, "output.weight", "head.weight", ALWAYS, CLASS_HEAD, VOCAB, HIDDEN)
    GLOBAL(output_norm, "output_norm.weight", "norm.weight", ALWAYS, CLASS_NORM, HIDDEN)
    GLOBAL(output_hc_fn, "output_hc_fn.weight", "hc_head_fn", HEAD_MIX, CLASS_MHC, STREAMS, FLAT)
    GLOBAL(output_hc_scale, "output_hc_scale.weight", "hc_head_scale", HEAD_MIX, CLASS_NORM, ONE)
    GLOBAL(output_hc_base, "output_hc_base.weight", "hc_head_base", HEAD_MIX, CLASS_NORM, STREAMS)
};

static const struct weight_field layer_fields[] = {
    LAYER(hc_attn_fn, "hc_attn_fn.weight", "hc_attn_fn", ALWAYS, CLASS_MHC, MIXES, FLAT)
    LAYER(hc_attn_scale, "hc_attn_scale.weight", "hc_attn_scale", ALWAYS, CLASS_NORM, THREE)
    LAYER(hc_attn_base, "hc_attn_base.weight", "hc_attn_base", ALWAYS, CLASS_NORM, MIXES)
    LAYER(hc_ffn_fn, "hc_ffn_fn.weight", "hc_ffn_fn", ALWAYS, CLASS_MHC, MIXES, FLAT)
    LAYER(hc_ffn_scale, "hc_ffn_scale.weight", "hc_ffn_scale", ALWAYS, CLASS_NORM, THREE)
    LAYER(hc_ffn_base, "hc_ffn_base.weight", "hc_ffn_base", ALWAYS, CLASS_NORM, MIXES)
    LAYER(attn_norm, "attn_norm.weight", "attn_norm.weight", ALWAYS, CLASS_NORM, HIDDEN)
    LAYER(ffn_norm, "ffn_norm.weight", "ffn_norm.weight", ALWAYS, CLASS_NORM, HIDDEN)
    LAYER(attn_q_a, "attn_q_a.weight", "attn.wq_a.weight", ALWAYS, CLASS_ATTN, Q_LORA, HIDDEN)
    LAYER(attn_q_a_norm, "attn_q_a_norm.weight", "attn.q_norm.weight", ALWAYS, CLASS_NORM, Q_LORA)
    LAYER(attn_q_b, "attn_q_b.weight", "attn.wq_b.weight", ALWAYS, CLASS_ATTN, Q_OUT, Q_LORA)
    LAYER(attn_kv, "attn_kv.weight", "attn.wkv.weight", ALWAYS, CLASS_ATTN, HEAD_DIM, HIDDEN)
    LAYER(attn_kv_a_norm, "attn_kv_a_norm.weight", "attn.kv_norm.weight", ALWAYS, CLASS_NORM, HEAD_DIM)
    LAYER(attn_sinks, "attn_sinks.weight", "attn.attn_sink", ALWAYS, CLASS_NORM, HEADS)
    LAYER(attn_output_a, "attn_output_a.weight", "attn.wo_a.weight", ALWAYS, CLASS_ATTN, O_LOW, GROUP_IN)
    LAYER(attn_output_b, "attn_output_b.weight", "attn.wo_b.weight", ALWAYS, CLASS_ATTN, HIDDEN, O_LOW)
    LAYER(attn_compressor_kv, "attn_compressor_kv.weight", "attn.compressor.wkv.weight",
        MAKES_ROWS, CLASS_COMPRESSOR, POOLED, HIDDEN)
    LAYER(attn_compressor_gate, "attn_compressor_gate.weight", "attn.compressor.wgate.weight",
        POOLS, CLASS_COMPRESSOR, POOLED, HIDDEN)
    LAYER(attn_compressor_ape, "attn_compressor_ape.weight", "attn.compressor.ape",
        POOLS_BY_POS, CLASS_NORM, RATIO, POOLED)
    LAYER(attn_compressor_norm, "attn_compressor_norm.weight", "attn.compressor.norm.weight",
        MAKES_ROWS, CLASS_NORM, HEAD_DIM)
    LAYER(indexer_attn_q_b, "indexer.attn_q_b.weight", "attn.indexer.wq_b.weight",
        CHOOSES, CLASS_INDEXER, INDEX_OUT, Q_LORA)
    LAYER(indexer_proj, "indexer.proj.weight", "attn.indexer.weights_proj.weight",
        CHOOSES, CLASS_INDEXER, INDEX_HEADS, HIDDEN)
    LAYER(indexer_attn_k, "indexer.attn_k.weight" OR "indexer_compressor_kv.weight", "attn.indexer.wk.weight",
        KEYS_OF_LATENT, CLASS_INDEXER, INDEX_DIM, HEAD_DIM)
    LAYER(indexer_k_norm, "indexer.k_norm.weight" OR "indexer_compressor_norm.weight", "attn.indexer.k_norm.weight",
        KEYS_OF_LATENT, CLASS_NORM, INDEX_DIM)
    LAYER(indexer_compressor_kv, "indexer_compressor_kv.weight", "attn.indexer.compressor.wkv.weight",
        KEYS_POOLED, CLASS_COMPRESSOR, INDEX_POOLED, HIDDEN)
    LAYER(indexer_compressor_gate, "indexer_compressor_gate.weight", "attn.indexer.compressor.wgate.weight",
        KEYS_POOLED, CLASS_COMPRESSOR, INDEX_POOLED, HIDDEN)
    LAYER(indexer_compressor_ape, "indexer_compressor_ape.weight", "attn.indexer.compressor.ape",
        KEYS_POOLED, CLASS_NORM, RATIO, INDEX_POOLED)
    LAYER(indexer_compressor_norm, "indexer_compressor_norm.weight", "attn.indexer.compressor.norm.weight",
        KEYS_POOLED, CLASS_NORM, INDEX_DIM)
    LAYER(ffn_gate_inp, "ffn_gate_inp.weight", "ffn.gate.weight", ALWAYS, CLASS_ROUTER, EXPERTS, HIDDEN)
    LAYER(exp_probs_b, "exp_probs_b.bias" OR "exp_probs_b.weight", "ffn.gate.bias", ROUTES_BY_SCORE, CLASS_NORM, EXPERTS)
    LAYER(ffn_gate_tid2eid, "ffn_gate_tid2eid.weight", "ffn.gate.tid2eid", ROUTES_BY_TOKEN, CLASS_IDS, VOCAB, USED)
    LAYER(ffn_gate_exps, "ffn_gate_exps.weight", "ffn.experts.*.w1.weight", ALWAYS, CLASS_EXPERTS, EXPERTS, WIDTH, HIDDEN)
    LAYER(ffn_up_exps, "ffn_up_exps.weight", "ffn.experts.*.w3.weight", ALWAYS, CLASS_EXPERTS, EXPERTS, WIDTH, HIDDEN)
    LAYER(ffn_down_exps, "ffn_down_exps.weight", "ffn.experts.*.w2.weight", ALWAYS, CLASS_EXPERTS, EXPERTS, HIDDEN, WIDTH)
    LAYER(ffn_gate_shexp, "ffn_gate_shexp.weight", "ffn.shared_experts.w1.weight", ALWAYS, CLASS_SHARED, WIDTH, HIDDEN)
    LAYER(ffn_up_shexp, "ffn_up_shexp.weight", "ffn.shared_experts.w3.weight", ALWAYS, CLASS_SHARED, WIDTH, HIDDEN)
    LAYER(ffn_down_shexp, "ffn_down_shexp.weight", "ffn.shared_experts.w2.weight", ALWAYS, CLASS_SHARED, HIDDEN, WIDTH)
    LAYER(engram_embd, "engram_embd.weight" OR "engram_embed.weight", "engram.embed.weight",
        HAS_ENGRAM, CLASS_ENGRAM_TABLE, TABLE_ROWS, TABLE_DIM)
    LAYER(engram_kv, "engram_kv.weight" OR "engram_wkv.weight", "engram.wkv.weight",
        HAS_ENGRAM, CLASS_ENGRAM, KEYS_VALUE, TABLE_OUT)
    LAYER(engram_q, "engram_q.weight" OR "engram_q_norm.weight", "engram.q_weight", HAS_ENGRAM, CLASS_NORM, STREAMS, HIDDEN)
    LAYER(engram_k, "engram_k.weight" OR "engram_k_norm.weight", "engram.k_weight", HAS_ENGRAM, CLASS_NORM, STREAMS, HIDDEN)
};

/* Of the first draft stage, and of the last one. */
static const struct weight_field draft_first_fields[] = {
    DRAFT(main_proj, "main_proj.weight", "main_proj.weight", ALWAYS, CLASS_DRAFT, HIDDEN, TAPS)
    DRAFT(main_norm, "main_norm.weight", "main_norm.weight", ALWAYS, CLASS_NORM, HIDDEN)
};

static const struct weight_field draft_last_fields[] = {
    DRAFT(norm, "norm.weight", "norm.weight", ALWAYS, CLASS_NORM, HIDDEN)
    DRAFT(hc_head_fn, "hc_head_fn.weight", "hc_head_fn", HEAD_MIX, CLASS_MHC, STREAMS, FLAT)
    DRAFT(hc_head_scale, "hc_head_scale.weight", "hc_head_scale", HEAD_MIX, CLASS_NORM, ONE)
    DRAFT(hc_head_base, "hc_head_base.weight", "hc_head_base", HEAD_MIX, CLASS_NORM, STREAMS)
    DRAFT(markov_embed, "markov_embed.weight" OR "markov_head.markov_w1.weight" OR "markov_head.embed.weight",
        "markov_head.embed.weight" OR "markov_head.markov_w1.weight", ALWAYS, CLASS_DRAFT, VOCAB, RANK)
    DRAFT(markov_head, "markov_head.weight" OR "markov_head.markov_w2.weight" OR "markov_head.head.weight",
        "markov_head.head.weight" OR "markov_head.markov_w2.weight", ALWAYS, CLASS_DRAFT, VOCAB, RANK)
    DRAFT(confidence, "confidence.weight" OR "confidence_head.proj.weight", "confidence_head.proj.weight",
        ALWAYS, CLASS_NORM, ONE, CONFIDENCE)
};
/* clang-format on */

static const char *const class_name[N_WEIGHT_CLASS] = {
    [CLASS_EMBED] = "embed",
    [CLASS_HEAD] = "head",
    [CLASS_ATTN] = "attn",
    [CLASS_COMPRESSOR] = "compressor",
    [CLASS_INDEXER] = "indexer",
    [CLASS_ROUTER] = "router",
    [CLASS_EXPERTS] = "experts",
    [CLASS_SHARED] = "shared",
    [CLASS_MHC] = "mhc",
    [CLASS_NORM] = "norm",
    [CLASS_IDS] = "ids",
    [CLASS_ENGRAM] = "engram",
    [CLASS_ENGRAM_TABLE] = "engram_table",
    [CLASS_DRAFT] = "draft",
    [CLASS_DRAFT_EXPERTS] = "draft_experts",
};

const char *weight_class_name(enum weight_class klass)
{
    return class_name[klass];
}

int weight_class_by_name(const char *name)
{
    for (int i = 0; i < N_WEIGHT_CLASS; i++)
        if (!strcmp(name, class_name[i]))
            return i;
    return -1;
}

/* What the fields of one layer (or of no layer) are asked about. */
struct place {
    const struct model_config *config;
    const struct layer_plan *plan; /* NULL outside layers */
    int layer, stage, is_draft;
    int64_t size[N_SIZE];
};

static int is_needed(const struct place *at, enum need need)
{
    const struct layer_plan *p = at->plan;
    const struct model_config *c = at->config;
    if (need == ALWAYS)
        return 1;
    if (need == HEAD_MIX)
        return !c->has_lagged_mix;
    int makes_rows = p->ratio && p->kv_owner == at->layer,
        chooses = p->ratio && p->topk_owner == at->layer;
    switch (need) {
    case MAKES_ROWS:
        return makes_rows;
    case POOLS:
        return makes_rows && p->has_gate;
    case POOLS_BY_POS:
        return makes_rows && !c->has_shared_sources;
    case CHOOSES:
        return chooses;
    case KEYS_OF_LATENT:
        return makes_rows && chooses && !c->has_index_hadamard;
    case KEYS_POOLED:
        return chooses && c->has_index_hadamard;
    case ROUTES_BY_SCORE:
        return p->router == ROUTER_BY_SCORE;
    case ROUTES_BY_TOKEN:
        return p->router == ROUTER_BY_TOKEN;
    default:
        return p->engram >= 0;
    }
}

static void measure_model(struct place *at)
{
    const struct model_config *c = at->config;
    int64_t heads = c->n_head, head_dim = c->head_dim, streams = c->hc_mult, hidden = c->hidden,
            *n = at->size;
    n[ONE] = 1;
    n[THREE] = 3;
    n[VOCAB] = c->n_vocab;
    n[HIDDEN] = hidden;
    n[STREAMS] = streams;
    n[MIXES] = (2 + streams) * streams;
    n[FLAT] = streams * hidden;
    n[Q_LORA] = c->q_lora;
    n[HEADS] = heads;
    n[HEAD_DIM] = head_dim;
    n[Q_OUT] = heads * head_dim;
    n[GROUP_IN] = c->o_groups ? heads * head_dim / c->o_groups : 0;
    n[O_LOW] = (int64_t)c->o_groups * c->o_lora;
    n[INDEX_HEADS] = c->index_n_head;
    n[INDEX_DIM] = c->index_head_dim;
    n[INDEX_OUT] = (int64_t)c->index_n_head * c->index_head_dim;
    n[WIDTH] = c->expert_ff;
    n[TABLE_DIM] = c->engram_head_dim;
    n[TABLE_OUT] = (int64_t)(c->engram_max_ngram - 1) * c->engram_n_head * c->engram_head_dim;
    n[KEYS_VALUE] = (streams + 1) * hidden;
    n[TAPS] = c->n_tap * hidden;
    n[RANK] = c->markov_rank;
    n[CONFIDENCE] = hidden + c->markov_rank;
}

static void measure_layer(struct place *at)
{
    const struct model_config *c = at->config;
    int is_stage = at->stage >= 0;
    at->size[RATIO] = at->plan->ratio;
    at->size[POOLED] = (int64_t)c->head_dim * (1 + at->plan->overlap);
    at->size[INDEX_POOLED] = (int64_t)c->index_head_dim * (1 + at->plan->overlap);
    at->size[EXPERTS] = is_stage ? c->draft_n_expert : c->n_expert;
    at->size[USED] = is_stage ? c->draft_n_expert_used : c->n_expert_used;
    at->size[TABLE_ROWS] = at->plan->engram >= 0 ? c->engram[at->plan->engram].n_row : 0;
}

static enum weight_class class_of(const struct place *at, const struct weight_field *field)
{
    enum weight_class klass = (enum weight_class)field->klass;
    if (at->stage < 0)
        return klass;
    if (klass == CLASS_EXPERTS)
        return CLASS_DRAFT_EXPERTS;
    return klass == CLASS_ATTN || klass == CLASS_SHARED ? CLASS_DRAFT : klass;
}

struct visit {
    weight_slot_fn fn;
    void *context;
};

static int each_field(
    const struct place *at, const struct weight_field *fields, size_t n, const struct visit *visit)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_needed(at, (enum need)fields[i].need))
            continue;
        struct weight_slot slot = {
            &fields[i], class_of(at, &fields[i]), at->layer, at->stage, at->is_draft, 0, {0}};
        for (; slot.n_dim < 3 && fields[i].size[slot.n_dim] != NONE; slot.n_dim++)
            slot.dim[slot.n_dim] = at->size[fields[i].size[slot.n_dim]];
        int result = visit->fn(visit->context, &slot);
        if (result)
            return result;
    }
    return 0;
}

#define COUNT(table) (sizeof(table) / sizeof *(table))

static int each_of_layers(struct place *at, const struct plan *p, const struct visit *visit)
{
    for (int i = 0; i < p->n_layer + p->n_stage; i++) {
        at->layer = i;
        at->stage = i < p->n_layer ? -1 : i - p->n_layer;
        at->plan = &p->row[i];
        measure_layer(at);
        int result = each_field(at, layer_fields, COUNT(layer_fields), visit);
        if (result)
            return result;
    }
    return 0;
}

static int each_of_draft(struct place *at, int n_stage, const struct visit *visit)
{
    if (!n_stage)
        return 0;
    at->layer = -1;
    at->plan = NULL;
    at->is_draft = 1;
    at->stage = 0;
    int result = each_field(at, draft_first_fields, COUNT(draft_first_fields), visit);
    at->stage = n_stage - 1;
    return result ? result : each_field(at, draft_last_fields, COUNT(draft_last_fields), visit);
}

int weights_each_slot(
    const struct model_config *c, const struct plan *p, weight_slot_fn fn, void *context)
{
    struct place at = {.config = c, .layer = -1, .stage = -1};
    struct visit visit = {fn, context};
    measure_model(&at);
    int result = each_field(&at, global_fields, COUNT(global_fields), &visit);
    if (!result)
        result = each_of_layers(&at, p, &visit);
    return result ? result : each_of_draft(&at, p->n_stage, &visit);
}

struct tensor *weight_slot_tensor(struct model_weights *w, const struct weight_slot *slot)
{
    char *base = (char *)w;
    if (slot->is_draft)
        base = (char *)&w->draft;
    else if (slot->layer >= 0)
        base = (char *)&w->layer[slot->layer];
    return (struct tensor *)(void *)(base + slot->field->offset);
}

/* "blk.3." or "layers.3.", "mtp.0.", or nothing. */
static int print_prefix(const struct weight_slot *slot, const char *layers, char *name)
{
    name[0] = 0;
    if (slot->stage >= 0)
        return snprintf(name, WEIGHT_MAX_NAME, "mtp.%d.", slot->stage);
    if (slot->layer >= 0)
        return snprintf(name, WEIGHT_MAX_NAME, "%s.%d.", layers, slot->layer);
    return 0;
}

void weight_slot_gguf_name(const struct weight_slot *slot, int alias, char name[WEIGHT_MAX_NAME])
{
    int n = print_prefix(slot, "blk", name);
    const char *own = alias < WEIGHT_MAX_ALIAS ? slot->field->gguf[alias] : NULL;
    if (own)
        snprintf(name + n, WEIGHT_MAX_NAME - (size_t)n, "%s", own);
    else
        name[0] = 0;
}

void weight_slot_checkpoint_name(
    const struct weight_slot *slot, int alias, int expert, char name[WEIGHT_MAX_NAME])
{
    int n = print_prefix(slot, "layers", name);
    const char *own = alias < 2 ? slot->field->checkpoint[alias] : NULL,
               *star = own ? strchr(own, '*') : NULL;
    if (!own)
        name[0] = 0;
    else if (star)
        snprintf(name + n, WEIGHT_MAX_NAME - (size_t)n, "%.*s%d%s", (int)(star - own), own, expert,
            star + 1);
    else
        snprintf(name + n, WEIGHT_MAX_NAME - (size_t)n, "%s", own);
}

int weight_slot_is_stacked(const struct weight_slot *slot)
{
    return strchr(slot->field->checkpoint[0], '*') != NULL;
}
