/* next.c: generation: plain steps and propose-and-check cycles, of one sequence or of several in
 * one batch. dspark spec 2 and 4.
 *
 * A cycle knows token T of every sequence (chosen from the logits at hand), collects proposals of
 * what follows (propose.c), and computes T and the proposals of all sequences in one batch. Every
 * row's token is then chosen from that row's own logits by the same pure function as in a plain
 * step; proposals that agree stay, the first that does not is undone: the length ends before it.
 * Rows have the bits of single steps, so the text depends neither on what was proposed nor on who
 * shared the batch.
 *
 * With the rejection rule (reject.h) drafts are kept by chance instead; the token drawn in place of
 * one that was not waits in the session for the next step.
 *
 * A sequence changes only when all of its rows are computed: after an error or a cancelled step it
 * is what it was, and goes on with the same text.
 */
#include "engine/propose.h"

#include "base/clock.h"
#include "generate/reject.h"

#include <string.h>

static int check_turn(const hadal_engine *g, const struct hadal_turn *turn, int i, struct err *e)
{
    const hadal_session *s = turn[i].session;
    if (s->engine != g)
        return err_set(e, ERR_ARGUMENT, "it belongs to another engine");
    if (!s->has_logits)
        return err_set(e, ERR_ARGUMENT, "nothing to go on from: append a token first");
    if (s->n >= g->options.n_context)
        return err_set(e, ERR_ARGUMENT, "the context of %d tokens is full", s->n);
    for (int k = 0; k < i; k++)
        if (turn[k].session == s)
            return err_set(e, ERR_ARGUMENT, "it has two turns in one step");
    return 0;
}

/* Chooses T, which then stands behind the sequence's end. */
static void open_cycle(struct cycle *y, const struct hadal_turn *turn)
{
    hadal_session *s = turn->session;
    *y = (struct cycle){.turn = turn, .session = s, .n_start = s->n, .replacement = -1};
    s->ids[s->n] = s->replacement >= 0
                       ? s->replacement
                       : hadal_sample(turn->sampling, s->logits, s->engine->model.config->n_vocab,
                             s->ids, s->n, s->n);
}

/* Rows of T and of the proposals, sequence behind sequence. Returns how many. */
static int add_rows(hadal_engine *g, const struct cycle *y, int n)
{
    int n_row = 0;
    for (int i = 0; i < n; i++)
        for (int r = 0; r <= y[i].n_draft; r++, n_row++) {
            engine_add_row(g, n_row, y[i].session, y[i].n_start + r);
            g->batch.out_row[n_row] = n_row;
        }
    return n_row;
}

/* Whether the proposal that was made for position pos stays, given next_logits. */
static int keeps(struct cycle *y, int place, int pos)
{
    hadal_session *s = y->session;
    const struct hadal_sampling *o = y->turn->sampling;
    int n_vocab = s->engine->model.config->n_vocab;
    if (!s->check_p)
        return hadal_sample(o, s->next_logits, n_vocab, s->ids, pos, pos) == s->ids[pos];
    const float *q = place >= y->n_expected && place < y->n_expected + y->n_stage
                         ? s->draft_p + (size_t)place * (size_t)n_vocab
                         : NULL;
    sample_probabilities(o, s->next_logits, n_vocab, s->ids, pos, s->check_p);
    if (reject_keeps(s->check_p, q, s->ids[pos], reject_random(o->seed, pos, REJECT_KEEP)))
        return 1;
    y->replacement = reject_replace(
        s->check_p, q, n_vocab, s->ids[pos], reject_random(o->seed, pos, REJECT_REPLACE));
    return 0;
}

/* Keeps the proposals that the model itself chooses; the first of the sequence's rows is
 * first_row. The logits of the last row kept go to next_logits. */
static int accept(struct cycle *y, int first_row, struct err *e)
{
    hadal_session *s = y->session;
    int eos_id = s->engine->model.config->eos_id;
    for (y->n_accepted = 0;; y->n_accepted++) {
        int pos = y->n_start + 1 + y->n_accepted;
        if (engine_read_logits(s->engine, first_row + y->n_accepted, s->next_logits, e))
            return -1;
        if (y->n_accepted == y->n_draft || s->ids[pos - 1] == eos_id ||
            !keeps(y, y->n_accepted, pos))
            return 0;
    }
}

static int check(hadal_engine *g, struct cycle *y, int n, struct err *e)
{
    int n_row = add_rows(g, y, n), first_row = 0;
    double start = clock_seconds();
    for (int i = 0; i < n; i++)
        session_note_rows(y[i].session, y[i].n_start + 1 + y[i].n_draft);
    if (engine_run(g, n_row, n_row, BATCH_WHOLE, e))
        return -1;
    for (int i = 0; i < n; first_row += 1 + y[i++].n_draft)
        if (accept(&y[i], first_row, e))
            return -1;
    step_time_add(&g->check_time, n_row, clock_seconds() - start);
    return 0;
}

static void keep(struct cycle *y)
{
    hadal_session *s = y->session;
    float *logits = s->logits;
    s->n = s->n_valid = y->n_start + 1 + y->n_accepted;
    s->logits = s->next_logits;
    s->next_logits = logits;
    s->replacement = y->replacement;
}

static void give(struct hadal_turn *turn, const struct cycle *y)
{
    turn->n = 1 + y->n_accepted;
    memcpy(turn->ids, y->session->ids + y->n_start, (size_t)turn->n * sizeof *turn->ids);
}

int hadal_engine_next(hadal_engine *g, struct hadal_turn *turn, int n, struct err *e)
{
    struct cycle y[FORWARD_MAX_OUT];
    double start = clock_seconds();
    if (n < 1 || n > FORWARD_MAX_OUT)
        return err_set(
            e, ERR_ARGUMENT, "%d sequences in a step: from 1 to %d are possible", n, FORWARD_MAX_OUT);
    for (int i = 0; i < n; i++)
        if (check_turn(g, turn, i, e))
            return n > 1 ? err_wrap(e, "sequence %d", i) : -1;
    engine_start(g);
    for (int i = 0; i < n; i++)
        open_cycle(&y[i], &turn[i]);
    if (propose(g, y, n, e) || check(g, y, n, e)) {
        for (int i = 0; i < n; i++)
            copies_cut(&y[i].session->copies, y[i].n_start); /* T may be in them already */
        return -1;
    }
    double seconds = clock_seconds() - start;
    for (int i = 0; i < n; i++) {
        keep(&y[i]);
        give(&turn[i], &y[i]);
    }
    propose_settle(g, y, n, seconds);
    return 0;
}

int hadal_session_next(hadal_session *s, const struct hadal_sampling *sampling, int n_draft,
    int32_t *ids, int *n, struct err *e)
{
    struct hadal_turn turn = {.session = s, .sampling = sampling, .n_draft = n_draft};
    if (hadal_engine_next(s->engine, &turn, 1, e))
        return -1;
    *n = turn.n;
    memcpy(ids, turn.ids, (size_t)turn.n * sizeof *ids);
    return 0;
}
