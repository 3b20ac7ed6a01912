/* toy_folder.c: see toy_folder.h. */
#include "support/toy_folder.h"

#include "base/buf.h"
#include "base/file.h"
#include "model/weights_table.h"
#include "tensor/encode.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_SHARD = 8 };

#define COMMON                                                                                     \
    "\"hidden_act\": \"silu\", \"hc_mult\": 4, \"hc_sinkhorn_iters\": 20, \"hc_eps\": 1e-6, "      \
    "\"swiglu_limit\": 10.0, "                                                                     \
    "\"routed_scaling_factor\": 1.5, \"n_shared_experts\": 1, \"norm_topk_prob\": true, "          \
    "\"scoring_func\": \"sqrtsoftplus\", \"topk_method\": \"noaux_tc\", \"rope_theta\": 10000, "   \
    "\"compress_rope_theta\": 160000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 16, "     \
    "\"beta_fast\": 32, "                                                                          \
    "\"beta_slow\": 1, \"original_max_position_embeddings\": 65536}, \"num_key_value_heads\": 1, " \
    "\"attention_bias\": false, \"tie_word_embeddings\": false, \"max_position_embeddings\": "     \
    "1048576, "

static const char v4_json[] =
    "{\"architectures\": [\"DeepseekV4ForCausalLM\"], \"model_type\": \"deepseek_v4\", " COMMON
    "\"_name_or_path\": \"toy v4\", "
    "\"rms_norm_eps\": 1e-6, \"vocab_size\": 101, \"hidden_size\": 64, \"num_hidden_layers\": 7, "
    "\"compress_ratios\": [0, 0, 4, 128, 4, 128, 4, 0], \"num_attention_heads\": 8, \"head_dim\": "
    "128, "
    "\"qk_rope_head_dim\": 64, \"q_lora_rank\": 32, \"o_groups\": 4, \"o_lora_rank\": 16, "
    "\"sliding_window\": 128, "
    "\"index_n_heads\": 4, \"index_head_dim\": 128, \"index_topk\": 16, \"n_routed_experts\": 16, "
    "\"num_experts_per_tok\": 3, \"moe_intermediate_size\": 32, \"num_hash_layers\": 3, "
    "\"num_nextn_predict_layers\": 1}";

static const char v41_json[] =
    "{\"architectures\": [\"DeepseekV41ForCausalLM\"], \"model_type\": \"deepseek_v41\", "
    "\"bos_token_id\": 0, "
    "\"_name_or_path\": \"toy v41\", "
    "\"text_config\": {\"model_type\": \"deepseek_v41_text\", " COMMON
    "\"rms_norm_eps\": 1e-20, \"vocab_size\": 120, \"hidden_size\": 64, \"moe_intermediate_size\": "
    "32, "
    "\"num_hidden_layers\": 10, \"num_attention_heads\": 4, \"head_dim\": 64, "
    "\"qk_rope_head_dim\": 16, "
    "\"q_lora_rank\": 32, \"o_groups\": 2, \"o_lora_rank\": 32, \"n_routed_experts\": 8, "
    "\"num_experts_per_tok\": 3, "
    "\"sliding_window\": 16, \"compress_ratios\": [0, 0, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0], "
    "\"kv_source_layer_ids\": [2, 4, 5], \"index_source_layer_ids\": [2, 4, 5, 7, 9], "
    "\"index_n_heads\": 4, "
    "\"index_head_dim\": 32, \"index_topk\": 12, \"candidate_source_layer_id\": 5, "
    "\"candidate_topk_blocks\": 6, "
    "\"candidate_block_size\": 4, \"engram_layer_ids\": [1, 4], \"engram_num_embeddings\": [384, "
    "552], "
    "\"engram_max_ngram_size\": 4, \"engram_vocab_size\": 50, \"engram_n_heads\": 2, "
    "\"engram_head_dim\": 32, "
    "\"engram_pad_token_id\": 2, \"engram_compressed_vocab_size\": 60, "
    "\"num_nextn_predict_layers\": 3, "
    "\"dspark_block_size\": 5, \"dspark_noise_token_id\": 119, \"dspark_target_layer_ids\": [7, 8, "
    "9], "
    "\"dspark_markov_rank\": 16, \"dspark_n_routed_experts\": 6, \"dspark_num_experts_per_tok\": "
    "2}}";

const char *toy_config_json(const struct model_config *c)
{
    return c->n_engram ? v41_json : v4_json;
}

/* ---- Shards ---- */

struct folder {
    enum toy_format format;
    int n_shard, next; /* tensors go round */
    struct buf header[MAX_SHARD], data[MAX_SHARD], index;
    const struct model_weights *weights;
    int tile; /* of FP8 */
};

struct piece {
    const char *name, *type;
    int n_dim;
    int64_t dim[3];
    const void *bytes;
    size_t n_byte;
};

static void add_piece(struct folder *f, const struct piece *p)
{
    int shard = f->next++ % f->n_shard;
    struct buf *h = &f->header[shard], *d = &f->data[shard];
    buf_print(
        h, "%s\"%s\": {\"dtype\": \"%s\", \"shape\": [", h->n_byte ? ", " : "{", p->name, p->type);
    for (int i = 0; i < p->n_dim; i++)
        buf_print(h, i ? ", %lld" : "%lld", (long long)p->dim[i]);
    buf_print(h, "], \"data_offsets\": [%zu, %zu]}", d->n_byte, d->n_byte + p->n_byte);
    buf_append(d, p->bytes, p->n_byte);
    buf_print(&f->index, "%s\"%s\": \"model-%d.safetensors\"", f->index.n_byte ? ", " : "", p->name,
        shard);
}

/* ---- Tensors in their stored form ---- */

/* The scales lie behind the data in the same memory. */
static void add_with_scales(
    struct folder *f, struct piece *p, const uint8_t *bytes, int64_t rows, int64_t cols)
{
    char name[WEIGHT_MAX_NAME];
    int n = (int)(strlen(p->name) - strlen(".weight"));
    p->bytes = bytes;
    add_piece(f, p);
    snprintf(name, sizeof name, "%.*s.scale", n, p->name);
    struct piece s = {name, "F8_E8M0", 2, {rows, cols}, bytes + p->n_byte, (size_t)(rows * cols)};
    add_piece(f, &s);
}

static void add_fp4(struct folder *f, struct piece *p, const float *values, uint8_t *room)
{
    int64_t rows = p->dim[0], cols = p->dim[1];
    uint8_t *scales = room + rows * cols / 2;
    for (int64_t r = 0; r < rows; r++)
        fp4_encode_row(values + r * cols, cols, room + r * cols / 2, scales + r * cols / 32);
    p->dim[1] = cols / 2;
    p->n_byte = (size_t)(rows * cols / 2);
    p->type = "I8";
    add_with_scales(f, p, room, rows, cols / 32);
}

static void add_fp8(struct folder *f, struct piece *p, const float *values, uint8_t *room)
{
    int64_t rows = p->dim[0], cols = p->dim[1], tile = f->tile;
    uint8_t *scales = room + rows * cols;
    struct fp8_matrix m = {values, rows, cols, f->tile, room, scales};
    fp8_encode_tiles(&m);
    p->n_byte = (size_t)(rows * cols);
    p->type = "F8_E4M3";
    add_with_scales(f, p, room, (rows + tile - 1) / tile, (cols + tile - 1) / tile);
}

static void add_rows8(struct folder *f, struct piece *p, const float *values, uint8_t *room)
{
    int64_t rows = p->dim[0], cols = p->dim[1];
    uint8_t *scales = room + rows * cols;
    for (int64_t r = 0; r < rows; r++)
        fp8_encode_row32(values + r * cols, cols, room + r * cols, scales + r * cols / 32);
    p->n_byte = (size_t)(rows * cols);
    p->type = "F8_E4M3";
    add_with_scales(f, p, room, rows, cols / 32);
}

static void add_bf16(
    struct folder *f, struct piece *p, const float *values, int64_t n, uint8_t *room)
{
    plain_encode_bf16(values, n, room);
    p->type = "BF16";
    p->bytes = room;
    p->n_byte = (size_t)n * 2;
    add_piece(f, p);
}

static int is_fp8(enum weight_class klass)
{
    return klass == CLASS_ATTN || klass == CLASS_SHARED || klass == CLASS_ENGRAM;
}

/* One tensor of the checkpoint; room: 4 bytes per value. */
static void add_values(struct folder *f, const struct weight_slot *slot, struct piece *p,
    const float *values, uint8_t *room)
{
    int64_t n = 1;
    int is_indexer_q = strstr(p->name, "indexer.wq_b") != NULL,
        is_main_proj = strstr(p->name, "main_proj") != NULL;
    enum weight_class klass = (enum weight_class)slot->field->klass;
    for (int i = 0; i < p->n_dim; i++)
        n *= p->dim[i];
    p->type = "F32";
    p->bytes = values;
    p->n_byte = (size_t)n * 4;
    int is_plain = strstr(p->name, "hc_") || strstr(p->name, ".ape") ||
                   strstr(p->name, "gate.bias") || strstr(p->name, "_sink");
    if (f->format == TOY_F32 || is_plain)
        add_piece(f, p);
    else if (klass == CLASS_EXPERTS)
        add_fp4(f, p, values, room);
    else if (klass == CLASS_ENGRAM_TABLE)
        add_rows8(f, p, values, room);
    else if (is_fp8(klass) || is_indexer_q || is_main_proj)
        add_fp8(f, p, values, room);
    else
        add_bf16(f, p, values, n, room);
}

static void add_ids(struct folder *f, struct piece *p, const int32_t *ids, int64_t n, uint8_t *room)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t id = ids[i];
        memcpy(room + 8 * i, &id, 8);
    }
    p->type = "I64";
    p->bytes = room;
    p->n_byte = (size_t)n * 8;
    add_piece(f, p);
}

static int add_slot(void *context, const struct weight_slot *slot)
{
    struct folder *f = context;
    const struct tensor *t =
        weight_slot_tensor((struct model_weights *)(uintptr_t)f->weights, slot);
    int is_stacked = weight_slot_is_stacked(slot);
    int64_t n_part = is_stacked ? t->dim[0] : 1, n = tensor_n_value(t) / n_part;
    uint8_t *room = mem_resize(NULL, (size_t)n * 8 + 64);
    char name[WEIGHT_MAX_NAME];
    for (int64_t part = 0; room && part < n_part; part++) {
        weight_slot_checkpoint_name(slot, 0, (int)part, name);
        struct piece p = {.name = name, .n_dim = t->n_dim - is_stacked};
        for (int i = 0; i < p.n_dim; i++)
            p.dim[i] = t->dim[i + is_stacked];
        if (slot->klass == CLASS_IDS)
            add_ids(f, &p, t->data, n, room);
        else
            add_values(f, slot, &p, (const float *)t->data + part * n, room);
    }
    mem_free(room);
    return room ? 0 : -1;
}

/* ---- Files ---- */

static int write_file(const char *folder, const char *name, const struct buf *first,
    const struct buf *second, struct err *e)
{
    char path[4096];
    struct file_writer w;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (first->is_broken || (second && second->is_broken))
        return err_set(e, ERR_MEMORY, "no memory for %s", path);
    if (file_writer_open(&w, path, e) || file_writer_write(&w, first->data, first->n_byte, e) ||
        (second && file_writer_write(&w, second->data, second->n_byte, e)))
        return -1;
    return file_writer_commit(&w, e);
}

static int write_shard(struct folder *f, const char *folder, int shard, struct err *e)
{
    struct buf head = {0};
    char name[64];
    buf_text(&f->header[shard], "}");
    uint64_t n = f->header[shard].n_byte;
    buf_append(&head, &n, 8);
    buf_append(&head, f->header[shard].data, (size_t)n);
    snprintf(
        name, sizeof name, f->n_shard == 1 ? "model.safetensors" : "model-%d.safetensors", shard);
    int failed = write_file(folder, name, &head, &f->data[shard], e);
    buf_free(&head);
    return failed;
}

static int write_texts(
    struct folder *f, const struct toy_model *m, const char *folder, struct err *e)
{
    struct buf config = {0}, map = {0}, index = {0};
    buf_text(&config, toy_config_json(&m->config));
    buf_print(&index, "{\"weight_map\": {%s}}", f->index.data);
    for (int i = 0; m->config.engram_map && i < m->config.n_vocab; i++)
        buf_print(&map, "%c%d", i ? ',' : '[', m->config.engram_map[i]);
    buf_text(&map, "]");
    int failed = write_file(folder, "config.json", &config, NULL, e);
    if (!failed && m->config.engram_map)
        failed = write_file(folder, "engram_token_map.json", &map, NULL, e);
    if (!failed && f->n_shard > 1)
        failed = write_file(folder, "model.safetensors.index.json", &index, NULL, e);
    buf_free(&config);
    buf_free(&index);
    buf_free(&map);
    return failed;
}

int toy_folder_write(const struct toy_model *m, const char *folder, enum toy_format format,
    int n_shard, struct err *e)
{
    struct folder f = {.format = format,
        .n_shard = n_shard,
        .weights = &m->weights,
        .tile = m->config.n_engram ? 32 : 128};
    mkdir(folder, 0777);
    int failed = weights_each_slot(&m->config, &m->plan, add_slot, &f);
    if (failed)
        err_set(e, ERR_MEMORY, "no memory for the toy's folder");
    for (int i = 0; i < n_shard && !failed; i++)
        failed = write_shard(&f, folder, i, e);
    if (!failed)
        failed = write_texts(&f, m, folder, e);
    for (int i = 0; i < n_shard; i++) {
        buf_free(&f.header[i]);
        buf_free(&f.data[i]);
    }
    buf_free(&f.index);
    return failed;
}
