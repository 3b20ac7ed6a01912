/* harness.h: a backend, sequence state, scratch and the forward pass over a model that is already
 * in memory.
 *
 * What an engine sets up behind hadal.h, without files, sessions or a tokenizer, so that a test can
 * look inside. Failures end the test through cmocka.
 */
#ifndef TESTS_MODEL_HARNESS_H
#define TESTS_MODEL_HARNESS_H

#include "backend/backend.h"
#include "model/draft.h"
#include "model/forward.h"

enum { HARNESS_MAX_SLOT = 8 };

struct harness_options {
    const char *backend, *level; /* level NULL: the best */
    int n_thread;                /* 0: 1 */
    int n_chunk;                 /* rows of the largest batch; 0: FORWARD_MAX_OUT */
    int n_slot, n_context;       /* 0: 1 and 512 */
    int skips_kv_rounding, keeps_taps;
};

struct harness {
    struct arena arena;
    struct backend *be;
    struct backend_buffer kv_memory, scratch_memory;
    struct kv_state kv;
    struct forward forward;
    int n_chunk, n_context;
    int n[HARNESS_MAX_SLOT];        /* rows of every sequence */
    int32_t *ids[HARNESS_MAX_SLOT]; /* [n_context] */
};

/* A row to run: token id of sequence `slot`, behind what that sequence has. */
struct harness_row {
    int slot;
    int32_t id;
};

/* Returns -1 when this machine has no such backend or level. */
int harness_open(struct harness *h, const struct model_config *c, const struct plan *p,
    const struct model_weights *w, const struct harness_options *o);
void harness_close(struct harness *h);
/* Appends n <= n_chunk rows of any sequences in one batch; logits: [n, n_vocab] or NULL, then n may
 * exceed FORWARD_MAX_OUT. */
void harness_run(struct harness *h, const struct harness_row *rows, int n, float *logits);
/* Appends to one sequence in as many batches as it takes. */
void harness_append(struct harness *h, int slot, const int32_t *ids, int n, float *logits);

int32_t harness_argmax(const float *logits, int n_vocab);

#endif
