/* stored.h: a model whose routed experts and n-gram tables stay on disk.
 *
 * Everything else is read into memory once. Between a layer's router and its experts the chosen ones are
 * read (store/demand.h); rows of n-gram tables are asked for when a batch's tokens are known
 * (store/rows.h). expert_mlp gets tensors whose parts are where the experts happen to be, so results
 * have the bits of the mapped model:
 *
 *   all there   one call, as ever
 *   not yet     a (row, choice) is a row of its own with one choice; calls take them expert by expert as
 *               these arrive; then every row's choices are added in their order, which is the op's sum
 *
 * A read that fails fails the step, and nothing else: the next one reads again.
 * For backends that compute in the host's memory.
 */
#ifndef HADAL_MODEL_STORED_H
#define HADAL_MODEL_STORED_H

#include "model/forward.h"
#include "store/demand.h"
#include "store/resident.h"
#include "store/rows.h"

struct stored;
struct stored_options {
    const struct model_file *file; /* stays open; its mapping is not read behind the headers */
    struct backend *be;
    const struct disk_calls *calls;
    int n_row; /* largest batch */
};
/* Looks where everything is; reads nothing. */
int stored_open(struct stored **s, const struct stored_options *o, struct err *e);
void stored_close(struct stored *s); /* before the backend and the file; NULL is fine */

struct stored_need {
    uint64_t resident_bytes; /* weights that are always in memory */
    uint64_t disk_bytes;     /* the others */
    uint64_t work_bytes;     /* buffers and lists */
    uint64_t least_bytes;    /* cache with which every layer can run */
    uint64_t whole_bytes;    /* cache that holds everything */
};
struct stored_need stored_need(const struct stored *s);
/* Reads what is always in memory. cache_bytes: from least_bytes on. */
int stored_load(struct stored *s, uint64_t cache_bytes, const struct resident_progress *progress,
    struct err *e);
/* After stored_load, for struct forward. */
const struct model_weights *stored_weights(const struct stored *s);

struct stored_stats {
    struct reader_stats reads;
    struct demand_stats experts;
    struct rows_stats rows;
};
uint64_t stored_cache_bytes(const struct stored *s);
struct stored_stats stored_stats(const struct stored *s);

/* ---- In a forward pass, with f->stored set. Failures stick to the backend. ---- */

/* The batch's rows of all tables from `layer` on. */
void stored_want_rows(struct forward *f, int layer);
int stored_has_rows(const struct stored *s, int table);
/* y [n, columns x dim] = the rows, as the op gather would give them. */
void stored_gather(struct forward *f, int table, const struct tensor *y);

int stored_has_experts(const struct stored *s, int layer);
/* The router has spoken: idx [n, k]. */
void stored_want_experts(struct forward *f, int layer, const struct tensor *idx);
/* expert_mlp over them; gate, up, down of the call are not looked at. */
void stored_run_experts(struct forward *f, int layer, const struct op_expert_mlp *call);

#endif
