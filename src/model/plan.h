/* plan.h: what every layer does, as data. Layer code reads its row and never asks for an architecture.
 * v4 spec 1.2, v41 spec 2. */
#ifndef HADAL_MODEL_PLAN_H
#define HADAL_MODEL_PLAN_H

#include "model/config.h"

enum plan_candidates { CANDIDATES_NONE, CANDIDATES_MAKE, CANDIDATES_USE };
enum plan_router { ROUTER_BY_SCORE, ROUTER_BY_TOKEN };
enum plan_rope { ROPE_PLAIN, ROPE_COMPRESSED, N_ROPE };

struct layer_plan {
    int ratio;       /* tokens per compressed row that this layer reads; 0: window only */
    int overlap;     /* pooling looks one group back */
    int kv_owner;    /* layer whose compressed rows are read; itself: it makes them; -1: none */
    int topk_owner;  /* layer whose chosen rows are read; itself: it runs the indexer; -1: all visible rows are read */
    int has_gate;    /* pooling is weighted (ratio 1 has nothing to weigh) */
    enum plan_candidates candidates;
    enum plan_router router;
    int engram;      /* table number or -1 */
    int tap;         /* draft-head slot or -1 */
    enum plan_rope rope;
};

/* One row per layer, then one per draft stage. */
struct plan {
    int n_layer, n_stage;
    int decoder; /* first of the layers whose only far memory is this layer's own input, so that bounded replay may leave
                    most of the prompt out of them; -1: none. v41 spec 2.1 */
    struct layer_plan row[CONFIG_MAX_LAYER + CONFIG_MAX_STAGE];
};
int plan_make(struct plan *p, const struct model_config *c, struct err *e);
/* One table line for people, without line feed; row -1 gives the heading. */
void plan_print_row(const struct plan *p, int row, char *text, int n_text);
/* Inverse frequencies [rope_dim / 2] of a table, YaRN included where it applies. v4 spec 3.2, v41 spec 6.2 */
void plan_rope_frequencies(const struct model_config *c, enum plan_rope table, float *freq);

#endif
