/* plan.c: from sizes and traits to one row per layer. v4 spec 1.2, v41 spec 2. */
#include "model/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int engram_of(const struct model_config *c, int layer)
{
    for (int i = 0; i < c->n_engram; i++)
        if (c->engram[i].layer == layer)
            return i;
    return -1;
}

static int tap_of(const struct model_config *c, int layer)
{
    for (int i = 0; c->n_stage && i < c->n_tap; i++)
        if (c->tap_layer[i] == layer)
            return i;
    return -1;
}

static int last_source(const int *is_source, int layer)
{
    while (layer >= 0 && !is_source[layer])
        layer--;
    return layer;
}

/* V4: every compressing layer owns its rows; groups of 4 overlap and are chosen from, groups of 128
 * are read whole. */
static void own_rows(struct layer_plan *row, int layer)
{
    row->kv_owner = layer;
    row->overlap = row->ratio == 4;
    row->topk_owner = row->overlap ? layer : -1;
}

/* V4.1: rows and choices come from the nearest source at or before the layer. */
static int shared_rows(
    struct layer_plan *row, int layer, const struct model_config *c, struct err *e)
{
    row->kv_owner = last_source(c->is_kv_source, layer);
    row->topk_owner = last_source(c->is_index_source, layer);
    if (row->kv_owner < 0 || row->topk_owner < row->kv_owner)
        return err_set(
            e, ERR_FORMAT, "layer %d reads compressed rows but no source stands before it", layer);
    if (c->compress_ratio[row->kv_owner] != row->ratio)
        return err_set(e, ERR_FORMAT,
            "layer %d reads rows of ratio %d but its source, layer %d, makes ratio %d", layer,
            row->ratio, row->kv_owner, c->compress_ratio[row->kv_owner]);
    if (c->candidate_source < 0 || row->topk_owner != layer || layer < c->candidate_source)
        return 0;
    row->candidates = layer == c->candidate_source ? CANDIDATES_MAKE : CANDIDATES_USE;
    if (c->is_kv_source[layer] && layer > c->candidate_source)
        return err_set(e, ERR_FORMAT,
            "layer %d has its own rows but takes candidates from layer %d", layer,
            c->candidate_source);
    return 0;
}

static int make_row(struct layer_plan *row, int layer, const struct model_config *c, struct err *e)
{
    *row = (struct layer_plan){.ratio = c->compress_ratio[layer], .kv_owner = -1, .topk_owner = -1};
    row->router = layer < c->n_hash_layer ? ROUTER_BY_TOKEN : ROUTER_BY_SCORE;
    row->engram = engram_of(c, layer);
    row->tap = tap_of(c, layer);
    row->rope = row->ratio ? ROPE_COMPRESSED : ROPE_PLAIN;
    row->has_gate = row->ratio > 1;
    if (!row->ratio)
        return 0;
    if (c->has_shared_sources)
        return shared_rows(row, layer, c, e);
    own_rows(row, layer);
    return 0;
}

/* Everything from the last source of rows on, if that one pools nothing and no tap is taken before. */
static int decoder_of(const struct plan *p, const struct model_config *c)
{
    int first = c->has_shared_sources ? last_source(c->is_kv_source, c->n_layer - 1) : -1;
    if (first < 0 || p->row[first].has_gate)
        return -1;
    for (int layer = 0; layer < c->n_layer; layer++)
        if (layer < first ? p->row[layer].tap >= 0 : p->row[layer].kv_owner != first)
            return -1;
    return first;
}

int plan_make(struct plan *p, const struct model_config *c, struct err *e)
{
    *p = (struct plan){.n_layer = c->n_layer, .n_stage = c->n_stage};
    for (int layer = 0; layer < c->n_layer; layer++)
        if (make_row(&p->row[layer], layer, c, e))
            return -1;
    for (int stage = 0; stage < c->n_stage; stage++) {
        struct layer_plan *row = &p->row[c->n_layer + stage];
        *row = (struct layer_plan){
            .kv_owner = -1, .topk_owner = -1, .engram = -1, .tap = -1, .rope = ROPE_PLAIN};
    }
    p->decoder = decoder_of(p, c);
    return 0;
}

static const char *number_or_dash(int number, char *text, size_t n_text)
{
    snprintf(text, n_text, number < 0 ? "-" : "%d", number);
    return text;
}

void plan_print_row(const struct plan *p, int row, char *text, int n_text)
{
    static const char *const candidates[] = {"-", "make", "use"},
                             *const router[] = {"score", "token"},
                             *const rope[] = {"plain", "compressed"};
    if (row < 0) {
        snprintf(text, (size_t)n_text, "%-9s %5s %7s %8s %10s %-10s %-6s %6s %3s %s", "layer",
            "ratio", "overlap", "kv owner", "top-k from", "candidates", "router", "engram", "tap",
            "rope");
        return;
    }
    const struct layer_plan *r = &p->row[row];
    char name[24], kv[16], topk[16], engram[16], tap[16];
    if (row < p->n_layer)
        snprintf(name, sizeof name, "%d", row);
    else
        snprintf(name, sizeof name, "draft %d", row - p->n_layer);
    snprintf(text, (size_t)n_text, "%-9s %5d %7s %8s %10s %-10s %-6s %6s %3s %s", name, r->ratio,
        r->overlap ? "yes" : "-", number_or_dash(r->kv_owner, kv, sizeof kv),
        number_or_dash(r->topk_owner, topk, sizeof topk), candidates[r->candidates],
        router[r->router], number_or_dash(r->engram, engram, sizeof engram),
        number_or_dash(r->tap, tap, sizeof tap), rope[r->rope]);
}

/* The pair index at which a frequency turns `turns` times within the original context. */
static double yarn_bound(const struct model_config *c, double turns)
{
    static const double two_pi = 6.283185307179586;
    double log_base = log((double)c->compress_rope_theta);
    return c->rope_dim * log((double)c->yarn_original_context / (two_pi * turns)) / (2 * log_base);
}

/* f = g (1 - ramp) + (g / factor) ramp, in double, rounded once. v4 spec 3.2 */
void plan_rope_frequencies(const struct model_config *c, enum plan_rope table, float *freq)
{
    double base = (double)(table == ROPE_PLAIN ? c->rope_theta : c->compress_rope_theta);
    int is_scaled = table == ROPE_COMPRESSED && c->yarn_factor > 1;
    double low = 0, high = 1;
    if (is_scaled) {
        low = fmax(floor(yarn_bound(c, (double)c->yarn_beta_fast)), 0);
        high = fmin(ceil(yarn_bound(c, (double)c->yarn_beta_slow)), c->rope_dim - 1);
        high = high > low ? high : low + 0.001;
    }
    for (int i = 0; i < c->rope_dim / 2; i++) {
        double g = pow(base, -2.0 * i / c->rope_dim);
        double ramp = is_scaled ? fmin(fmax((i - low) / (high - low), 0), 1) : 0;
        freq[i] = (float)(g * (1 - ramp) + (is_scaled ? g / (double)c->yarn_factor : g) * ramp);
    }
}
