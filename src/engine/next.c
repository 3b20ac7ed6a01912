/* next.c: generation: plain steps and propose-and-check cycles. dspark spec 2 and 4.
 *
 * A cycle knows token T (chosen from the logits at hand), collects proposals of what follows, and
 * appends T and the proposals in one batch. Proposals come from the draft stages, and from earlier
 * text that ended in the same way: after the stages' block when it agrees, alone when no stage
 * drafts. Every row's token is then chosen from that row's own logits by the same pure function as
 * in a plain step; proposals that agree stay, the first that does not is undone by setting the
 * length back. Rows have the bits of single steps, so the text does not depend on what was
 * proposed.
 */
#include "engine/engine.h"

#include "base/clock.h"
#include "generate/draft_policy.h"
#include "model/draft.h"

#include <math.h>
#include <string.h>

struct cycle {
    hadal_session *session;
    const struct hadal_sampling *sampling;
    int n_start; /* length of the sequence before T; proposal r is ids[n_start + 1 + r] */
    float confidence[DRAFT_MAX_ROWS]; /* probabilities */
    int n_draft, n_stage; /* proposals, and how many of them, the first, are the draft stages' */
    int n_wanted;         /* of the draft stages */
    int has_drafted;
    double draft_seconds;
};

static int32_t choose_draft(void *context, int i, int r, const float *logits)
{
    struct cycle *y = context;
    hadal_session *s = y->session;
    int pos = y->n_start + 1 + r;
    (void)i;
    int32_t id =
        hadal_sample(y->sampling, logits, s->engine->model.config->n_vocab, s->ids, pos, pos);
    s->ids[pos] = id; /* beyond the length: history of the next choice */
    return id;
}

static double probability_of(const struct cycle *y, float confidence, int place)
{
    return 1 / (1 + expf(-confidence / y->session->engine->model.config->draft_temperature[place]));
}

/* No, when not even certain drafts behind the first one would pay. */
static int is_worth(void *context, float confidence)
{
    const struct cycle *y = context;
    float best[DRAFT_MAX_ROWS];
    best[0] = (float)probability_of(y, confidence, 0);
    for (int r = 1; r < y->n_wanted; r++)
        best[r] = 1;
    return draft_policy_length(&y->session->policy, best, y->n_wanted, 1) > 0;
}

/* Proposes up to `limit` tokens after T; with may_stop none when the first confidence is too low.
 */
static int draft(struct cycle *y, int limit, int may_stop, struct err *e)
{
    hadal_session *s = y->session;
    hadal_engine *g = s->engine;
    int32_t slot = s->slot, last = y->n_start - 1, anchor = s->ids[y->n_start];
    double start = clock_seconds();
    struct draft_request q = {.n_seq = 1,
        .slot = &slot,
        .last = &last,
        .first = &s->first,
        .anchor = &anchor,
        .n_draft = limit,
        .choose = choose_draft,
        .is_worth = may_stop ? is_worth : NULL,
        .context = y,
        .logits = s->draft_logits,
        .id = s->ids + y->n_start + 1,
        .confidence = y->confidence,
        .n_filled = &y->n_stage};
    y->n_wanted = limit;
    if (draft_run(&g->forward, &q, e))
        return -1;
    for (int r = 0; r < y->n_stage; r++)
        y->confidence[r] = (float)probability_of(y, y->confidence[r], r);
    y->n_draft = y->n_stage;
    y->has_drafted = 1;
    y->draft_seconds = clock_seconds() - start;
    return 0;
}

/* Appends T and the proposals in one batch, keeps those that the model itself chooses. Returns how
 * many, or -1. */
static int check(struct cycle *y, struct err *e)
{
    hadal_session *s = y->session;
    hadal_engine *g = s->engine;
    int n_vocab = g->model.config->n_vocab, n_row = 1 + y->n_draft, n_accepted = 0;
    int32_t ids[DRAFT_MAX_ROWS];
    memcpy(ids, s->ids + y->n_start, (size_t)n_row * sizeof *ids);
    double start = clock_seconds();
    if (hadal_session_append(s, ids, n_row, s->check_logits, e))
        return -1;
    while (n_accepted < y->n_draft && ids[n_accepted] != g->model.config->eos_id) {
        int pos = y->n_start + 1 + n_accepted;
        const float *logits = s->check_logits + (int64_t)n_accepted * n_vocab;
        if (hadal_sample(y->sampling, logits, n_vocab, s->ids, pos, pos) != ids[1 + n_accepted])
            break;
        n_accepted++;
    }
    if (n_accepted < y->n_draft)
        session_undo(s, y->n_start + 1 + n_accepted);
    memcpy(s->logits, s->check_logits + (int64_t)n_accepted * n_vocab,
        (size_t)n_vocab * sizeof *s->logits);
    s->has_logits = 1;
    draft_policy_checked(&s->policy, n_row, clock_seconds() - start);
    return n_accepted;
}

static void count(hadal_session *s, const struct cycle *y, int n_accepted)
{
    struct hadal_draft_stats *stats = &s->stats;
    stats->n_cycle++;
    stats->n_token += (uint64_t)(1 + n_accepted);
    stats->n_row += (uint64_t)(1 + y->n_draft);
    for (int r = 0; r < y->n_draft && r < HADAL_DRAFT_PLACES; r++) {
        stats->n_proposed[r]++;
        stats->n_accepted[r] += r < n_accepted;
        stats->n_copied += r >= y->n_stage;
        stats->n_copied_accepted += r >= y->n_stage && r < n_accepted;
    }
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Proposals after T, of which the caller allows n_draft, or, -1, as many as pay. */
static int propose(struct cycle *y, int n_draft, struct err *e)
{
    hadal_session *s = y->session;
    const hadal_engine *g = s->engine;
    int limit =
        min_int(n_draft < 0 ? DRAFT_MAX_ROWS - 1 : n_draft, g->options.n_context - s->n - 1);
    int n_stage = g->forward.keeps_taps ? min_int(g->model.config->draft_block, limit) : 0;
    if (limit <= 0 || s->ids[s->n] == g->model.config->eos_id)
        return 0;
    if (n_stage > 0 && (n_draft > 0 || draft_policy_wants(&s->policy)) &&
        draft(y, n_stage, n_draft < 0, e))
        return -1;
    if (!g->options.has_no_copies) {
        copies_follow(&s->copies, s->ids, s->n + 1);
        y->n_draft += copies_propose(
            &s->copies, s->ids, y->n_draft, min_int(limit, DRAFT_MAX_ROWS - 1), y->confidence);
    }
    if (n_draft < 0)
        y->n_draft = draft_policy_length(&s->policy, y->confidence, y->n_draft, y->has_drafted);
    y->n_stage = min_int(y->n_stage, y->n_draft);
    return 0;
}

static int run_cycle(struct cycle *y, int n_draft, struct err *e)
{
    hadal_session *s = y->session;
    double start = clock_seconds();
    int n_accepted = propose(y, n_draft, e) ? -1 : check(y, e);
    if (n_accepted < 0) {
        copies_cut(&s->copies, s->n); /* T may be in them already */
        return -1;
    }
    double seconds = clock_seconds() - start;
    if (y->has_drafted)
        draft_policy_cycled(&s->policy, 1 + n_accepted, seconds, y->draft_seconds);
    s->stats.seconds += seconds;
    count(s, y, n_accepted);
    return n_accepted;
}

int hadal_session_next(hadal_session *s, const struct hadal_sampling *sampling, int n_draft,
    int32_t *ids, int *n, struct err *e)
{
    struct cycle y = {.session = s, .sampling = sampling, .n_start = s->n};
    if (!s->has_logits)
        return err_set(e, ERR_ARGUMENT, "nothing to go on from: append a token first");
    if (s->n >= s->engine->options.n_context)
        return err_set(e, ERR_ARGUMENT, "the context of %d tokens is full", s->n);
    s->ids[s->n] =
        hadal_sample(sampling, s->logits, s->engine->model.config->n_vocab, s->ids, s->n, s->n);
    int n_accepted = run_cycle(&y, n_draft, e);
    if (n_accepted < 0)
        return -1;
    *n = 1 + n_accepted;
    memcpy(ids, s->ids + y.n_start, (size_t)*n * sizeof *ids);
    return 0;
}

void hadal_session_draft_stats(const hadal_session *session, struct hadal_draft_stats *stats)
{
    *stats = session->stats;
    stats->step_seconds = session->policy.check_seconds[1];
}
