/* config_gguf.c: a GGUF file's metadata, in every dialect: ours and llama.cpp's
 * ("attention.head_count"), and the one that keeps the checkpoint's own field names
 * ("num_attention_heads"). What a dialect leaves out follows from the tensors. v4 spec 8.3, 8.4,
 * v41 spec 12.
 */
#include "model/config.h"

#include "format/gguf.h"
#include "model/config_read.h"

#include <stdio.h>
#include <string.h>

/* Counts and sizes that some dialects have no key for. */
struct gguf_context {
    const struct gguf *file;
    const char *architecture;
};

static const struct gguf_tensor *layer_tensor(const struct gguf *file, int layer, const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "blk.%d.%s", layer, name);
    return gguf_find_tensor(file, text);
}

/* Files that carry the older draft layer as the last block count it in block_count. */
static int64_t without_draft_layers(const struct gguf *file, int64_t n_block)
{
    while (n_block > 0 && n_block <= CONFIG_MAX_LAYER + CONFIG_MAX_STAGE &&
           layer_tensor(file, (int)n_block - 1, "nextn.eh_proj.weight"))
        n_block--;
    return n_block;
}

static int64_t count_tokens(const struct gguf *file)
{
    const struct gguf_key *tokens = gguf_find_key(file, "tokenizer.ggml.tokens");
    const struct gguf_tensor *embed = gguf_find_tensor(file, "token_embd.weight");
    if (tokens && tokens->is_array && tokens->n <= INT32_MAX)
        return (int64_t)tokens->n;
    return embed && embed->n_dim == 2 ? embed->dim[0] : 0;
}

static int set_integer(struct config_value *v, int64_t i)
{
    *v = (struct config_value){.n = 1, .is_integer = 1, .i = i, .f = (double)i};
    return i > 0;
}

static void set_number(struct config_value *v, const struct gguf_number *n)
{
    *v = (struct config_value){.n = 1, .is_integer = n->is_integer, .i = n->i, .f = n->f};
}

/* "deepseek4.KEY", or KEY alone for the draft keys, which some files write without prefix. */
static const struct gguf_key *find_prefixed(const struct gguf_context *g, const char *key)
{
    char name[160];
    snprintf(name, sizeof name, "%s.%s", g->architecture, key);
    const struct gguf_key *found = gguf_find_key(g->file, name);
    return found || strncmp(key, "dspark.", 7) ? found : gguf_find_key(g->file, key);
}

static int find(const void *context, const char *key, struct config_value *v, struct err *e)
{
    const struct gguf_context *g = context;
    const struct gguf_key *found = find_prefixed(g, key);
    struct gguf_number n;
    if (!found)
        return strcmp(key, "vocab_size") ? 0 : set_integer(v, count_tokens(g->file));
    if (found->type == GGUF_STRING)
        return err_set(e, ERR_FORMAT, "config: %s is text, expected numbers", key);
    if (found->is_array) {
        *v = (struct config_value){.is_array = 1, .n = found->n, .handle = found};
        return 1;
    }
    gguf_number(found, 0, &n);
    set_number(v, &n);
    if (!strcmp(key, "block_count"))
        set_integer(v, without_draft_layers(g->file, v->i));
    return 1;
}

static void at(
    const void *context, const struct config_value *array, uint64_t i, struct config_value *element)
{
    (void)context;
    struct gguf_number n = {0};
    gguf_number(array->handle, i, &n);
    set_number(element, &n);
}

/* ---- What follows from the tensors ---- */

/* Which layers own rows and choices, where no key says so: those that have the tensors. The
 * candidate level then is that of the release: made by the first source of single-token rows, 2048
 * blocks of 8. */
static void infer_sources(struct model_config *c, const struct gguf *file)
{
    int n = 0;
    for (int i = 0; i < c->n_layer; i++)
        n += c->is_kv_source[i] + c->is_index_source[i];
    if (!c->has_shared_sources || n)
        return;
    for (int i = 0; i < c->n_layer && i < CONFIG_MAX_LAYER; i++) {
        c->is_kv_source[i] = layer_tensor(file, i, "attn_compressor_kv.weight") != NULL;
        c->is_index_source[i] = layer_tensor(file, i, "indexer.proj.weight") != NULL;
        if (c->candidate_source < 0 && c->is_kv_source[i] && c->compress_ratio[i] == 1)
            c->candidate_source = i;
    }
    if (!c->candidate_blocks)
        c->candidate_blocks = 2048;
    if (!c->candidate_block_size)
        c->candidate_block_size = 8;
}

/* Width of a table row: the projection that reads all columns of a token, shared among them. */
static void infer_table_width(struct model_config *c, const struct gguf *file)
{
    if (!c->n_engram || c->engram_head_dim)
        return;
    const struct gguf_tensor *t = layer_tensor(file, c->engram[0].layer, "engram_kv.weight");
    if (!t)
        t = layer_tensor(file, c->engram[0].layer, "engram_wkv.weight");
    int n_column = (c->engram_max_ngram - 1) * c->engram_n_head;
    if (t && t->n_dim == 2 && t->dim[1] <= INT32_MAX && n_column > 0)
        c->engram_head_dim = (int)t->dim[1] / n_column;
}

/* Keys of draft stages without their tensors: files that were cut down keep the keys. */
static void infer_draft(struct model_config *c, const struct gguf *file)
{
    if (c->n_stage && !gguf_find_tensor(file, "mtp.0.attn_q_a.weight")) {
        c->n_stage = c->n_tap = c->draft_block = c->draft_noise_id = c->markov_rank = 0;
        c->draft_n_expert = c->draft_n_expert_used = 0;
    }
}

/* ---- Keys outside the architecture's own ---- */

static int read_id(const struct gguf *file, const char *key, int fallback)
{
    const struct gguf_key *found = gguf_find_key(file, key);
    struct gguf_number n;
    if (!found || found->is_array || gguf_number(found, 0, &n))
        return fallback;
    return n.is_integer && n.i >= -1 && n.i <= INT32_MAX
               ? (int)n.i
               : INT32_MAX; /* config_check refuses INT32_MAX */
}

static void read_sampling(struct model_config *c, const struct gguf *file)
{
    static const struct {
        const char *key;
        size_t offset;
    } floats[] = {{"general.sampling.temp", offsetof(struct model_config, temperature)},
        {"general.sampling.top_p", offsetof(struct model_config, top_p)},
        {"general.sampling.min_p", offsetof(struct model_config, min_p)}};
    struct gguf_number n;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        const struct gguf_key *key = gguf_find_key(file, floats[i].key);
        if (key && !gguf_number(key, 0, &n))
            *(float *)(void *)((char *)c + floats[i].offset) = (float)n.f;
    }
    c->top_k = read_id(file, "general.sampling.top_k", 0);
    if (c->top_k < 0)
        c->top_k = 0;
}

static void copy_text(const struct gguf *file, const char *key, char *to, size_t n_to)
{
    struct gguf_string text = gguf_text(gguf_find_key(file, key));
    if (text.n_byte && text.n_byte < n_to)
        snprintf(to, n_to, "%.*s", (int)text.n_byte, text.data);
}

int config_from_gguf(
    struct model_config *c, const struct gguf *file, struct arena *arena, struct err *e)
{
    char architecture[32] = "missing";
    *c = (struct model_config){.temperature = 1, .top_p = 1, .name = "model"};
    copy_text(file, "general.architecture", architecture, sizeof architecture);
    if (config_set_architecture(c, architecture, e))
        return -1;
    struct gguf_context context = {file, architecture};
    struct config_source source = {
        .context = &context, .reads_gguf_names = 1, .find = find, .at = at};
    copy_text(file, "general.name", c->name, sizeof c->name);
    c->bos_id = read_id(file, "tokenizer.ggml.bos_token_id", 0);
    c->eos_id = read_id(file, "tokenizer.ggml.eos_token_id", 1);
    c->pad_id = read_id(file, "tokenizer.ggml.padding_token_id", 2);
    read_sampling(c, file);
    if (config_read(c, &source, arena, e))
        return -1;
    if (c->n_engram && !c->has_shared_sources)
        return err_set(e, ERR_FORMAT,
            "config: %s has no n-gram tables, but the file has; it was converted under a wrong "
            "name",
            architecture);
    infer_sources(c, file);
    infer_table_width(c, file);
    infer_draft(c, file);
    if (config_finish(c, e))
        return -1;
    copy_text(file, "hadal.chat_dialect", c->dialect, sizeof c->dialect);
    return 0;
}
