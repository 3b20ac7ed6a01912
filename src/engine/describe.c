/* describe.c: a model in words, for `hadal inspect`. Reads headers only; weights are not touched. */
#include "engine/engine.h"

#include "engine/embedded.h"

#include <stdarg.h>
#include <stdio.h>

struct report {
    hadal_line_fn fn;
    void *context;
    uint64_t bytes_by_type[N_DTYPE];
    int64_t values_by_type[N_DTYPE];
    int n_tensor;
};

static void say(struct report *r, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    r->fn(r->context, line);
}

static void describe_config(struct report *r, const struct model_config *c)
{
    say(r, "model       %s (%s, chat dialect %s)", c->name, c->architecture, c->dialect);
    say(r, "size        %d layers, hidden %d, vocabulary %d, context %d", c->n_layer, c->hidden, c->n_vocab, c->n_context);
    say(r, "attention   %d heads x %d (rotary %d), query rank %d, output rank %d in %d groups, window %d", c->n_head,
        c->head_dim, c->rope_dim, c->q_lora, c->o_lora, c->o_groups, c->window);
    say(r, "rotary      theta %g (window only), %g with YaRN x%g from %lld tokens", (double)c->rope_theta,
        (double)c->compress_rope_theta, (double)c->yarn_factor, (long long)c->yarn_original_context);
    if (c->index_topk)
        say(r, "indexer     %d heads x %d, keeps %d rows", c->index_n_head, c->index_head_dim, c->index_topk);
    if (c->candidate_source >= 0)
        say(r, "candidates  layer %d picks %d blocks of %d rows", c->candidate_source, c->candidate_blocks,
            c->candidate_block_size);
    say(r, "experts     %d of %d per token plus 1 shared, width %d, scale %g, clamp %g; %d layers routed by token id",
        c->n_expert_used, c->n_expert, c->expert_ff, (double)c->routed_scale, (double)c->swiglu_limit, c->n_hash_layer);
    say(r, "streams     %d, %d Sinkhorn passes, %s mix", c->hc_mult, c->hc_iters, c->has_lagged_mix ? "lagged" : "own");
    for (int i = 0; i < c->n_engram; i++)
        say(r, "n-grams     before layer %d: %lld rows x %d, up to %d tokens, %d heads", c->engram[i].layer,
            (long long)c->engram[i].n_row, c->engram_head_dim, c->engram_max_ngram, c->engram_n_head);
    if (c->n_stage)
        say(r, "drafts      %d stages, block %d, Markov rank %d, %d of %d experts", c->n_stage, c->draft_block,
            c->markov_rank, c->draft_n_expert_used, c->draft_n_expert);
}

static void describe_plan(struct report *r, const struct plan *p)
{
    char line[256];
    for (int i = -1; i < p->n_layer + p->n_stage; i++) {
        plan_print_row(p, i, line, sizeof line);
        say(r, "%s", line);
    }
}

static int describe_tensor(void *context, const char *name, const struct tensor *t)
{
    struct report *r = context;
    char shape[128];
    int64_t data = tensor_data_bytes(t->type, t->n_dim, t->dim), scale = tensor_scale_bytes(t->type, t->n_dim, t->dim);
    r->bytes_by_type[t->type] += (uint64_t)(data + scale);
    r->values_by_type[t->type] += tensor_n_value(t);
    r->n_tensor++;
    say(r, "%-44s %-28s %12lld bytes", name, tensor_describe(t, shape, sizeof shape), (long long)(data + scale));
    return 0;
}

static void describe_totals(struct report *r, const struct model_file_info *info, int n_context)
{
    struct engine_plan plan;
    for (int i = 0; i < N_DTYPE; i++)
        if (r->values_by_type[i])
            say(r, "%-12s %14lld values %14llu bytes", dtype_info((enum dtype)i)->name, (long long)r->values_by_type[i],
                (unsigned long long)r->bytes_by_type[i]);
    engine_plan(info->config, info->plan, n_context, 256, &plan);
    say(r, "weights     %d tensors, %llu bytes", r->n_tensor, (unsigned long long)info->weight_bytes);
    say(r, "session     %llu bytes for %d tokens of context", (unsigned long long)(plan.session_bytes + plan.copies_bytes), n_context);
    say(r, "scratch     %llu bytes for chunks of 256 rows", (unsigned long long)plan.scratch_bytes);
}

int hadal_model_describe(const char *model, int n_context, hadal_line_fn fn, void *fn_context, struct err *e)
{
    struct model_file *file;
    struct model_file_info info;
    struct report r = {.fn = fn, .context = fn_context};
    size_t n_byte = 0;
    const unsigned char *embedded = model ? NULL : hadal_embedded_model(&n_byte);
    if (!model && !embedded)
        return err_set(e, ERR_ARGUMENT, "this build has no embedded model: name one");
    if (model_file_open(&file, model, embedded, n_byte, e))
        return -1;
    model_file_info(file, &info);
    if (!n_context || n_context > info.config->n_context)
        n_context = info.config->n_context < 32768 ? info.config->n_context : 32768;
    describe_config(&r, info.config);
    say(&r, "%s", "");
    describe_plan(&r, info.plan);
    say(&r, "%s", "");
    model_file_each(file, describe_tensor, &r);
    say(&r, "%s", "");
    describe_totals(&r, &info, n_context);
    model_file_close(file);
    return 0;
}
