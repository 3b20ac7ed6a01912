/* experts.c: one mixture-of-experts sub-layer. v4 spec 6, v41 spec 8. */
#include "model/forward.h"
#include "model/stored.h"

static void route(struct forward *f, int layer, const struct tensor *x, const struct tensor *idx,
    const struct tensor *weight)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    struct scratch *s = &f->scratch;
    struct tensor logits = tensor_of(DT_F32, s->router.data, s->n, w->ffn_gate_inp.dim[0], 0, 0);
    struct tensor id = scratch_cut(&s->id, s->n);
    RUN(f->be, matmul, .y = &logits, .x = x, .w = &w->ffn_gate_inp);
    switch (f->plan->row[layer].router) {
    case ROUTER_BY_SCORE:
        RUN(f->be, router, .idx = idx, .weight = weight, .logits = &logits, .bias = &w->exp_probs_b,
            .scale = f->config->routed_scale);
        break;
    case ROUTER_BY_TOKEN:
        RUN(f->be, router_by_token, .idx = idx, .weight = weight, .logits = &logits, .table = &w->ffn_gate_tid2eid,
            .id = &id, .scale = f->config->routed_scale);
        break;
    }
}

static void run_shared(struct forward *f, int layer, const struct tensor *x, const struct tensor *y)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    RUN(f->be, gated_mlp, .y = y, .x = x, .gate = &w->ffn_gate_shexp, .up = &w->ffn_up_shexp,
        .down = &w->ffn_down_shexp, .limit = f->config->swiglu_limit);
}

void experts_run(struct forward *f, int layer, const struct tensor *x)
{
    const struct layer_weights *w = &f->weights->layer[layer];
    struct scratch *s = &f->scratch;
    int64_t n_used = layer < f->config->n_layer ? f->config->n_expert_used : f->config->draft_n_expert_used;
    struct tensor idx = tensor_of(DT_I32, s->expert_idx.data, s->n, n_used, 0, 0);
    struct tensor weight = tensor_of(DT_F32, s->expert_weight.data, s->n, n_used, 0, 0);
    struct tensor out = scratch_cut(&s->out, s->n), shared = scratch_cut(&s->shared, s->n);
    struct op_expert_mlp routed = {.y = &out, .x = x, .idx = &idx, .weight = &weight, .gate = &w->ffn_gate_exps,
        .up = &w->ffn_up_exps, .down = &w->ffn_down_exps, .limit = f->config->swiglu_limit};
    int is_stored = f->stored && stored_has_experts(f->stored, layer);
    route(f, layer, x, &idx, &weight);
    if (is_stored)
        stored_want_experts(f, layer, &idx);
    run_shared(f, layer, x, &shared); /* while the disk reads */
    if (is_stored)
        stored_run_experts(f, layer, &routed);
    else
        op_run(f->be, OP_expert_mlp, &routed);
}
