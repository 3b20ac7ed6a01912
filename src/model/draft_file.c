/* draft_file.c: see draft_file.h. */
#include "model/draft_file.h"

#include "base/file.h"
#include "model/stored_tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct draft_file {
    struct gguf *gguf;
    struct safetensors *checkpoint;
    int is_dflash;
};

/* ---- Tensors by our names, in the file's layout ---- */

/* "mtp.2.markov_head.weight" is "markov_w2.weight", "mtp.1.attn_norm.weight" is
 * "blk.1.attn_norm.weight". */
static void dflash_name(const char *own, int which, char name[WEIGHT_MAX_NAME])
{
    static const char *const globals[][3] = {{"main_proj.weight", "fc.weight"},
        {"main_norm.weight", "hidden_norm.weight", "enc.output_norm.weight"},
        {"norm.weight", "output_norm.weight"},
        {"hc_head_fn.weight", "output_hc_fn.weight"},
        {"hc_head_scale.weight", "output_hc_scale.weight"},
        {"hc_head_base.weight", "output_hc_base.weight"},
        {"markov_embed.weight", "markov_w1.weight"},
        {"markov_head.weight", "markov_w2.weight"},
        {"confidence.weight", "conf_proj.weight"}};
    const char *rest = strchr(own + strlen("mtp."), '.') + 1;
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (!strcmp(rest, globals[i][0])) {
            snprintf(name, WEIGHT_MAX_NAME, "%s", globals[i][which] ? globals[i][which] : "");
            return;
        }
    snprintf(name, WEIGHT_MAX_NAME, "blk.%s", own + strlen("mtp."));
}

static const struct gguf_tensor *find_gguf(const struct draft_file *d, const char *own)
{
    char name[WEIGHT_MAX_NAME];
    const struct gguf_tensor *found = NULL;
    if (!d->is_dflash)
        return gguf_find_tensor(d->gguf, own);
    for (int which = 1; which <= 2 && !found; which++) {
        dflash_name(own, which, name);
        found = gguf_find_tensor(d->gguf, name);
    }
    return found;
}

static int find_in_gguf(const void *context, const char *name, struct stored_tensor *t)
{
    return stored_tensor_of_gguf(t, find_gguf(context, name));
}

static int find_in_folder(const void *context, const char *name, struct stored_tensor *t)
{
    const struct draft_file *d = context;
    return stored_tensor_of_checkpoint(t, safetensors_find(d->checkpoint, name));
}

/* ---- What the file says about its stages ---- */

/* The first of the names that is there, each also behind the model's and its family's prefix. */
static const struct gguf_key *find_key(
    const struct draft_file *d, const struct model_config *c, const char *const names[3])
{
    static const char family[] = "deepseek4";
    for (int i = 0; i < 3 && names[i]; i++) {
        const char *prefix[] = {"", c->architecture, family};
        for (int p = 0; p < 3; p++) {
            char name[96];
            snprintf(name, sizeof name, "%s%s%s", prefix[p], *prefix[p] ? "." : "", names[i]);
            const struct gguf_key *key = gguf_find_key(d->gguf, name);
            if (key)
                return key;
        }
    }
    return NULL;
}

static int read_int(const struct draft_file *d, const struct model_config *c,
    const char *const names[3], int fallback, int *out, struct err *e)
{
    const struct gguf_key *key = find_key(d, c, names);
    struct gguf_number n = {.is_integer = 1, .i = fallback};
    if (key ? gguf_number(key, 0, &n) || !n.is_integer : fallback < 0)
        return err_set(e, ERR_FORMAT, "key %s is %s, expected a number", names[0],
            key ? "something else" : "missing");
    *out = n.i >= 0 && n.i <= INT32_MAX ? (int)n.i : INT32_MAX; /* config_check refuses that */
    return 0;
}

/* llama.cpp counts a layer's output as the next one's input, so the last layer's is beyond all. */
static int read_taps(const struct draft_file *d, struct model_config *c, struct err *e)
{
    static const char *const names[3] = {
        "dspark.target_layer_ids", "dflash.target_layers", "dflash.target_layer_ids"};
    const struct gguf_key *key = find_key(d, c, names);
    struct gguf_number n;
    if (!key || !key->is_array || key->n < 1 || key->n > CONFIG_MAX_STAGE)
        return err_set(e, ERR_FORMAT, "key %s: found %s, expected a list of 1 to %d layers",
            names[0], key ? "something else" : "nothing", CONFIG_MAX_STAGE);
    c->n_tap = (int)key->n;
    for (int i = 0; i < c->n_tap; i++) {
        if (gguf_number(key, (uint64_t)i, &n) || n.i < 0 || n.i > c->n_layer)
            return err_set(e, ERR_FORMAT, "tapped layer %d is none of the %d of this model", i,
                c->n_layer);
        c->tap_layer[i] = (int)n.i;
    }
    if (d->is_dflash && !c->taps_inputs && c->tap_layer[c->n_tap - 1] == c->n_layer)
        for (int i = 0; i < c->n_tap; i++)
            c->tap_layer[i]--;
    return 0;
}

static void read_temperatures(const struct draft_file *d, struct model_config *c)
{
    static const char *const names[3] = {"dspark.confidence_temperatures"};
    const struct gguf_key *key = find_key(d, c, names);
    struct gguf_number n;
    for (int i = 0; i < 16; i++)
        c->draft_temperature[i] = key && !gguf_number(key, (uint64_t)i, &n) ? (float)n.f : 1;
}

/* Of a file for the same kind of model. */
static int read_kind(struct draft_file *d, const struct draft_host *host, struct err *e)
{
    const char *wanted = host->config->architecture;
    struct gguf_string found = gguf_text(gguf_find_key(d->gguf, "general.architecture"));
    struct gguf_string revision = gguf_text(gguf_find_key(d->gguf, "general.source.revision"));
    char own[48];
    int n = snprintf(own, sizeof own, "%s-dspark", wanted);
    d->is_dflash = found.n_byte == 6 && !memcmp(found.data, "dflash", 6);
    if (!d->is_dflash && (found.n_byte != (uint64_t)n || memcmp(found.data, own, found.n_byte)))
        return err_set(e, ERR_FORMAT, "architecture is %.*s, expected %s or dflash",
            (int)(found.n_byte < 60 ? found.n_byte : 60), found.data ? found.data : "", own);
    if (revision.n_byte && host->revision &&
        (strlen(host->revision) != revision.n_byte ||
            memcmp(revision.data, host->revision, revision.n_byte)))
        return err_set(e, ERR_FORMAT, "made from revision %.*s, the model from revision %.60s",
            (int)(revision.n_byte < 60 ? revision.n_byte : 60), revision.data, host->revision);
    return 0;
}

/* Counts that follow from tensors: stages, experts of a stage, columns of what is tapped. */
static int read_counts(const struct draft_file *d, struct model_config *c, struct err *e)
{
    static const char *const used[3] = {"dspark.expert_used_count", "dflash.expert_used_count"};
    int model_used = c->draft_n_expert_used ? c->draft_n_expert_used : c->n_expert_used;
    char name[WEIGHT_MAX_NAME];
    for (c->n_stage = 0; c->n_stage <= CONFIG_MAX_STAGE; c->n_stage++) {
        snprintf(name, sizeof name, "mtp.%d.attn_norm.weight", c->n_stage);
        if (!find_gguf(d, name))
            break;
    }
    const struct gguf_tensor *router = find_gguf(d, "mtp.0.ffn_gate_inp.weight");
    const struct gguf_tensor *taps = find_gguf(d, "mtp.0.main_proj.weight");
    if (!c->n_stage || !router || !taps || router->n_dim != 2 || taps->n_dim != 2)
        return err_set(e, ERR_FORMAT, "no draft stages: tensor %s is missing or no matrix",
            !c->n_stage ? "mtp.0.attn_norm.weight"
            : !router   ? "mtp.0.ffn_gate_inp.weight"
                        : "mtp.0.main_proj.weight");
    if (taps->dim[1] != (int64_t)c->n_tap * c->hidden)
        return err_set(e, ERR_SHAPE,
            "%d tapped layers of width %d are listed, but mtp.0.main_proj.weight reads %lld values",
            c->n_tap, c->hidden, (long long)taps->dim[1]);
    c->draft_n_expert = router->dim[0] <= INT32_MAX ? (int)router->dim[0] : INT32_MAX;
    return read_int(d, c, used, model_used, &c->draft_n_expert_used, e);
}

static int read_gguf(struct draft_file *d, const struct draft_host *host, struct model_config *c,
    struct err *e)
{
    static const char *const block[3] = {"dspark.block_size", "dflash.block_size"};
    static const char *const noise[3] = {
        "dspark.noise_token_id", "dflash.mask_token_id", "tokenizer.ggml.mask_token_id"};
    static const char *const rank[3] = {"dspark.markov_rank", "dflash.markov_rank"};
    if (read_kind(d, host, e) || read_int(d, c, block, -1, &c->draft_block, e) ||
        read_int(d, c, noise, -1, &c->draft_noise_id, e) || read_taps(d, c, e) ||
        read_counts(d, c, e))
        return -1;
    const struct gguf_tensor *w1 = gguf_find_tensor(d->gguf, "markov_w1.weight");
    read_temperatures(d, c);
    return read_int(d, c, rank, w1 && w1->n_dim == 2 ? (int)w1->dim[1] : -1, &c->markov_rank, e);
}

/* A folder has a whole model's configuration; the sizes that the stages share must be the same. */
static int take_config(struct model_config *c, const struct model_config *f, struct err *e)
{
    static const struct {
        const char *name;
        size_t offset;
    } shared[] = {{"vocab_size", offsetof(struct model_config, n_vocab)},
        {"hidden_size", offsetof(struct model_config, hidden)},
        {"num_hidden_layers", offsetof(struct model_config, n_layer)},
        {"num_attention_heads", offsetof(struct model_config, n_head)},
        {"head_dim", offsetof(struct model_config, head_dim)},
        {"sliding_window", offsetof(struct model_config, window)},
        {"hc_mult", offsetof(struct model_config, hc_mult)}};
    if (strcmp(c->architecture, f->architecture))
        return err_set(e, ERR_FORMAT, "of a %s model, this one is %s", f->architecture,
            c->architecture);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        int own = *(const int *)(const void *)((const char *)c + shared[i].offset);
        int found = *(const int *)(const void *)((const char *)f + shared[i].offset);
        if (own != found)
            return err_set(
                e, ERR_FORMAT, "%s is %d, that of this model %d", shared[i].name, found, own);
    }
    if (!f->n_stage)
        return err_set(e, ERR_FORMAT, "its configuration has no draft stages");
    c->n_stage = f->n_stage;
    c->draft_block = f->draft_block;
    c->draft_noise_id = f->draft_noise_id;
    c->markov_rank = f->markov_rank;
    c->draft_n_expert = f->draft_n_expert;
    c->draft_n_expert_used = f->draft_n_expert_used;
    c->n_tap = f->n_tap;
    memcpy(c->tap_layer, f->tap_layer, sizeof c->tap_layer);
    memcpy(c->draft_temperature, f->draft_temperature, sizeof c->draft_temperature);
    return 0;
}

/* ---- Numbers ---- */

/* One row at a time, in pieces of whole blocks of any format. */
static int check_row(const struct tensor *t, int64_t row, int *has_value, struct err *e)
{
    enum { PIECE = 1024 };
    float values[PIECE];
    int64_t n_col = tensor_n_col(t);
    for (int64_t at = 0; at < n_col; at += PIECE) {
        int64_t n = n_col - at < PIECE ? n_col - at : PIECE;
        tensor_decode(t, row, at, n, values);
        for (int64_t i = 0; i < n; i++) {
            if (!isfinite(values[i]))
                return err_set(e, ERR_FORMAT, "tensor %s: row %lld has a value that is no number",
                    t->name, (long long)row);
            *has_value |= values[i] != 0;
        }
    }
    return 0;
}

/* No NaN, and not all zero, which is what data read at a wrong offset tends to be. */
static int check_values(void *context, const struct weight_slot *slot, const struct tensor *t)
{
    struct err *e = context;
    int has_value = 0;
    for (int64_t r = 0; r < tensor_n_row(t); r++)
        if (check_row(t, r, &has_value, e))
            return -1;
    if (!has_value && slot->klass != CLASS_NORM) /* biases may be */
        return err_set(e, ERR_FORMAT, "tensor %s is all zero", t->name);
    return 0;
}

struct look {
    struct model_weights *weights;
    struct err *e;
};

static int look_at(void *context, const struct weight_slot *slot)
{
    struct look *l = context;
    return slot->stage < 0 ? 0 : check_values(l->e, slot, weight_slot_tensor(l->weights, slot));
}

/* ---- All together ---- */

static int open_any(struct draft_file *d, const char *path, const struct draft_host *host,
    struct model_config *c, struct err *e)
{
    if (!file_is_directory(path))
        return gguf_open(&d->gguf, path, e) || (read_gguf(d, host, c, e) && err_wrap(e, "%s", path));
    struct model_config *f = ARENA_NEW(host->arena, struct model_config, 1);
    if (!f)
        return err_set(e, ERR_MEMORY, "no memory for a configuration");
    return config_from_folder(f, path, host->arena, e) ||
           safetensors_open(&d->checkpoint, path, e) ||
           (take_config(c, f, e) && err_wrap(e, "%s", path));
}

static int load(struct draft_file *d, const char *path, const struct draft_host *host, struct err *e)
{
    struct model_config *c = ARENA_NEW(host->arena, struct model_config, 1);
    struct model_weights *w = ARENA_NEW(host->arena, struct model_weights, 1);
    struct plan plan;
    if (!c || !w)
        return err_set(e, ERR_MEMORY, "no memory for a configuration");
    *c = *host->config;
    *w = *host->weights;
    if (open_any(d, path, host, c, e))
        return -1;
    for (int i = c->n_layer; i < c->n_layer + CONFIG_MAX_STAGE; i++)
        c->compress_ratio[i] = 0;
    if (config_check(c, e) || plan_make(&plan, c, e))
        return err_wrap(e, "%s", path);
    struct tensor_source source = {.context = d,
        .path = path,
        .has_expert_parts = d->checkpoint != NULL,
        .find = d->checkpoint ? find_in_folder : find_in_gguf};
    struct bind_target target = {c, &plan, w, host->arena, 0};
    struct look look = {w, e};
    if (bind_draft_weights(&target, &source, e))
        return -1;
    if (weights_each_slot(c, &plan, look_at, &look))
        return err_wrap(e, "%s", path);
    *host->config = *c;
    *host->plan = plan;
    *host->weights = *w;
    *host->weight_bytes += target.n_byte;
    return 0;
}

int draft_file_open(
    struct draft_file **file, const char *path, const struct draft_host *host, struct err *e)
{
    struct draft_file *d = mem_resize(NULL, sizeof *d);
    *file = NULL;
    if (!d)
        return err_set(e, ERR_MEMORY, "%s: no memory to open it", path);
    *d = (struct draft_file){.gguf = NULL};
    if (load(d, path, host, e)) {
        draft_file_close(d);
        return -1;
    }
    *file = d;
    return 0;
}

void draft_file_close(struct draft_file *d)
{
    if (!d)
        return;
    gguf_close(d->gguf);
    safetensors_close(d->checkpoint);
    mem_free(d);
}

int draft_file_part(const struct draft_file *d, int i, struct file_part *part)
{
    return d->gguf ? gguf_part(d->gguf, i, part) : safetensors_part(d->checkpoint, i, part);
}
