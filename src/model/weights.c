/* weights.c: opening a model: its file or folder, configuration, plan, tensors and tokenizer. See
 * weights.h. */
#include "model/weights.h"

#include "base/file.h"
#include "format/json_file.h"
#include "model/draft_file.h"
#include "model/stored_tensor.h"
#include "model/tokenizer_gguf.h"
#include "text/dialect.h"
#include "text/token_map.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

struct model_file {
    struct arena arena;
    struct gguf *gguf;
    struct safetensors *checkpoint;
    struct draft_file *drafts;
    struct tokenizer *tokenizer;
    struct model_config config;
    struct plan plan;
    struct model_weights weights;
    uint64_t weight_bytes;
};

/* ---- The two kinds of files as sources of tensors ---- */

static int find_in_gguf(const void *context, const char *name, struct stored_tensor *t)
{
    return stored_tensor_of_gguf(t, gguf_find_tensor(context, name));
}

static int find_in_checkpoint(const void *context, const char *name, struct stored_tensor *t)
{
    return stored_tensor_of_checkpoint(t, safetensors_find(context, name));
}

/* ---- Engram's token map ---- */

/* A list of numbers beside a checkpoint whose tokenizer cannot give the map (toy models). */
static int read_map_list(struct model_file *f, const char *folder, struct err *e)
{
    char path[4096];
    struct file_map m;
    snprintf(path, sizeof path, "%s/engram_token_map.json", folder);
    if (!file_exists(path))
        return 0;
    if (file_map_open(&m, path, e))
        return -1;
    struct json_object *list = NULL;
    int32_t *map = ARENA_NEW(&f->arena, int32_t, (size_t)f->config.n_vocab);
    int failed = !map || json_file_parse_list(&list, m.data, (size_t)m.n_byte, path, e);
    file_map_close(&m);
    if (!failed && json_object_array_length(list) != (size_t)f->config.n_vocab)
        failed = err_set(e, ERR_FORMAT, "%s: %zu entries for %d tokens", path,
            json_object_array_length(list), f->config.n_vocab);
    for (int i = 0; !failed && i < f->config.n_vocab; i++)
        map[i] = json_object_get_int(json_object_array_get_idx(list, (size_t)i));
    json_object_put(list);
    f->config.engram_map = failed ? NULL : map;
    return failed ? -1 : 0;
}

static int build_map(struct model_file *f, struct err *e)
{
    struct token_map built = {0};
    struct model_config *c = &f->config;
    if (!f->tokenizer)
        return err_set(e, ERR_FORMAT,
            "the model has n-gram tables, but neither a token map nor a tokenizer to build it "
            "from");
    if (token_map_build(&built, f->tokenizer, e))
        return -1;
    int32_t *map = ARENA_NEW(&f->arena, int32_t, (size_t)c->n_vocab);
    int failed = 0;
    if (!map)
        failed = err_set(e, ERR_MEMORY, "no memory for the token map");
    else if (built.n_token != c->n_vocab || built.n_compressed != c->engram_vocab)
        failed = err_set(e, ERR_FORMAT,
            "the tokenizer's %d tokens have %d compressed ids, expected %d and %lld", built.n_token,
            built.n_compressed, c->n_vocab, (long long)c->engram_vocab);
    else
        memcpy(map, built.compressed, (size_t)c->n_vocab * sizeof *map);
    token_map_free(&built);
    c->engram_map = map;
    return failed;
}

/* After it engram_map is there and engram_pad a compressed id. */
static int complete_engram(struct model_file *f, const char *folder, struct err *e)
{
    struct model_config *c = &f->config;
    if (!c->n_engram || c->engram_map)
        return 0;
    int pad_token = c->engram_pad;
    if (folder && read_map_list(f, folder, e))
        return -1;
    if (!c->engram_map && build_map(f, e))
        return -1;
    if (!f->gguf && pad_token < c->n_vocab)
        c->engram_pad = c->engram_map[pad_token];
    return config_check(c, e);
}

/* ---- Opening ---- */

static int bind(struct model_file *f, const struct tensor_source *source, struct err *e)
{
    if (!dialect_find(f->config.dialect))
        return err_set(e, ERR_UNSUPPORTED, "%s: chat dialect %s is not known", source->path,
            f->config.dialect);
    if (plan_make(&f->plan, &f->config, e))
        return err_wrap(e, "%s", source->path);
    struct bind_target target = {&f->config, &f->plan, &f->weights, &f->arena, 0};
    int failed = bind_weights(&target, source, e);
    f->weight_bytes = target.n_byte;
    return failed;
}

static int open_folder(struct model_file *f, const char *folder, struct err *e)
{
    char path[4096];
    struct tensor_source source = {
        .path = folder, .has_expert_parts = 1, .find = find_in_checkpoint};
    if (config_from_folder(&f->config, folder, &f->arena, e))
        return -1;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (file_exists(path) && tokenizer_open_json(&f->tokenizer, path, e))
        return -1;
    if (complete_engram(f, folder, e))
        return err_wrap(e, "%s", folder);
    if (safetensors_open(&f->checkpoint, folder, e))
        return -1;
    source.context = f->checkpoint;
    return bind(f, &source, e);
}

static int open_gguf(struct model_file *f, const char *path, struct err *e)
{
    struct tensor_source source = {.context = f->gguf, .path = path, .find = find_in_gguf};
    if (config_from_gguf(&f->config, f->gguf, &f->arena, e) ||
        tokenizer_open_gguf(&f->tokenizer, f->gguf, e) || complete_engram(f, NULL, e))
        return err_wrap(e, "%s", path);
    return bind(f, &source, e);
}

static int open_any(struct model_file *f, const char *path, struct err *e)
{
    if (file_is_directory(path))
        return open_folder(f, path, e);
    return gguf_open(&f->gguf, path, e) || open_gguf(f, path, e);
}

int model_file_open(
    struct model_file **file, const char *path, const void *bytes, uint64_t n_byte, struct err *e)
{
    *file = NULL;
    struct model_file *f = mem_resize(NULL, sizeof *f);
    if (!f)
        return err_set(e, ERR_MEMORY, "no memory to open a model");
    memset(f, 0, sizeof *f);
    int failed =
        path ? open_any(f, path, e)
             : gguf_open_bytes(&f->gguf, bytes, n_byte, e) || open_gguf(f, "embedded model", e);
    if (failed) {
        model_file_close(f);
        return -1;
    }
    *file = f;
    return 0;
}

int model_file_add_drafts(struct model_file *f, const char *path, struct err *e)
{
    struct gguf_string revision = {0};
    if (f->gguf)
        revision = gguf_text(gguf_find_key(f->gguf, "general.source.revision"));
    const char *text = revision.n_byte ? arena_copy(&f->arena, revision.data, revision.n_byte) : NULL;
    struct draft_host host = {&f->config, &f->plan, &f->weights, &f->arena, &f->weight_bytes, text};
    return draft_file_open(&f->drafts, path, &host, e);
}

void model_file_info(const struct model_file *f, struct model_file_info *info)
{
    *info =
        (struct model_file_info){&f->config, &f->plan, &f->weights, f->tokenizer, f->weight_bytes};
}

static int own_part(const struct model_file *f, int i, struct file_part *part)
{
    return f->gguf ? gguf_part(f->gguf, i, part) : safetensors_part(f->checkpoint, i, part);
}

int model_file_part(const struct model_file *f, int i, struct file_part *part)
{
    int n = 0;
    if (own_part(f, i, part))
        return 1;
    while (own_part(f, n, part))
        n++;
    return f->drafts ? draft_file_part(f->drafts, i - n, part) : 0;
}

void model_file_close(struct model_file *f)
{
    if (!f)
        return;
    draft_file_close(f->drafts);
    tokenizer_close(f->tokenizer);
    safetensors_close(f->checkpoint);
    gguf_close(f->gguf);
    arena_free(&f->arena);
    mem_free(f);
}

struct each {
    const struct model_file *file;
    model_tensor_fn fn;
    void *context;
};

static int visit_slot(void *context, const struct weight_slot *slot)
{
    const struct each *each = context;
    const struct tensor *t =
        weight_slot_tensor((struct model_weights *)(uintptr_t)&each->file->weights, slot);
    return each->fn(each->context, t->name, t);
}

int model_file_each(const struct model_file *f, model_tensor_fn fn, void *context)
{
    struct each each = {f, fn, context};
    return weights_each_slot(&f->config, &f->plan, visit_slot, &each);
}

struct move {
    struct model_file *file;
    model_move_fn fn;
    void *context;
    struct err *e;
};

static int move_slot(void *context, const struct weight_slot *slot)
{
    const struct move *m = context;
    return m->fn(m->context, weight_slot_tensor(&m->file->weights, slot), m->e);
}

int model_file_move(struct model_file *f, model_move_fn fn, void *context, struct err *e)
{
    struct move move = {f, fn, context, e};
    return weights_each_slot(&f->config, &f->plan, move_slot, &move);
}
