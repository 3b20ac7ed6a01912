/* propose.c: see propose.h.
 *
 * Sources, in this order: what the caller expects (a grammar knows what must follow); the draft
 * stages, unless copies alone promise more; then earlier text that ended in the same way
 * (copies.h), behind a block that agrees with it or alone. How many are checked is
 * draft_policy.h's.
 */
#include "engine/propose.h"

#include "base/clock.h"
#include "generate/reject.h"
#include "model/draft.h"

#include <math.h>
#include <string.h>

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

static int is_auto(const struct cycle *y)
{
    return y->turn->n_draft < 0;
}

/* With a number that the caller demands the rows of a step are shared evenly. */
static void set_limits(const hadal_engine *g, struct cycle *y, int n)
{
    int most = DRAFT_MAX_ROWS - 1;
    for (int i = 0; i < n; i++)
        if (!is_auto(&y[i]))
            most = min_int(most, FORWARD_MAX_OUT / n - 1);
    for (int i = 0; i < n; i++) {
        int room = min_int(most, g->options.n_context - y[i].n_start - 1);
        y[i].limit = is_auto(&y[i]) ? room : min_int(y[i].turn->n_draft, room);
        if (y[i].session->ids[y[i].n_start] == g->model.config->eos_id)
            y[i].limit = 0;
    }
}

/* ---- The caller ---- */

static void take_expected(struct cycle *y)
{
    const struct hadal_turn *turn = y->turn;
    int32_t *ids = y->session->ids + y->n_start;
    if (turn->n_expected < 2 || turn->expected[0] != ids[0])
        return;
    y->n_draft = y->n_expected = min_int(turn->n_expected - 1, y->limit);
    memcpy(ids + 1, turn->expected + 1, (size_t)y->n_expected * sizeof *ids);
    for (int r = 0; r < y->n_expected; r++)
        y->probability[r] = y->session->expected_share;
}

/* ---- Copies ---- */

/* Copies behind the n_ahead proposals that are there. Returns how many. */
static int copy(struct cycle *y, int n_ahead)
{
    hadal_session *s = y->session;
    if (s->engine->options.has_no_copies)
        return 0;
    return copies_propose(&s->copies, s->ids, n_ahead, y->limit, y->probability);
}

static void follow(struct cycle *y)
{
    hadal_session *s = y->session;
    if (!s->engine->options.has_no_copies)
        copies_follow(&s->copies, s->ids, y->n_start + 1);
    y->n_draft += copy(y, y->n_draft);
}

/* ---- Draft stages ---- */

struct drafting {
    hadal_engine *engine;
    struct cycle *cycle[FORWARD_MAX_OUT];
    int n, n_place;
    double start, worth_seconds; /* until is_worth was asked; 0: it was not */
};

static double stake_of(const hadal_engine *g, const struct draft_purse *p)
{
    return p->credit * step_time_of(&g->check_time, 1);
}

/* How the copies at hand compare with what stages have given lately. */
static int copies_promise_more(const hadal_engine *g, const struct cycle *y)
{
    const struct draft_policy *p = &y->session->policy;
    struct draft_offer offer = {y->probability, y->n_draft, stake_of(g, &p->copies), 0};
    if (!draft_purse_may_spend(&p->copies) || p->stage_seconds <= 0)
        return 0;
    double rate = draft_policy_choose(&g->check_time, &offer, 1, (struct draft_costs){.paid = 0});
    return offer.n_chosen && rate * p->stage_seconds >= p->stage_tokens;
}

static int wants_stages(const hadal_engine *g, const struct cycle *y)
{
    if (!g->kv.keeps_taps || y->n_expected || y->limit < 1)
        return 0;
    return !is_auto(y) ||
           (draft_purse_may_spend(&y->session->policy.stages) && !copies_promise_more(g, y));
}

static int32_t choose_draft(void *context, int i, int r, const float *logits)
{
    const struct drafting *d = context;
    const struct cycle *y = d->cycle[i];
    hadal_session *s = y->session;
    struct hadal_sampling o = *y->turn->sampling;
    int pos = y->n_start + 1 + r, n_vocab = d->engine->model.config->n_vocab;
    if (d->engine->options.draft_rule == HADAL_DRAFT_GREEDY)
        o.temperature = 0;
    if (s->draft_p) {
        float *q = s->draft_p + (size_t)r * (size_t)n_vocab;
        sample_probabilities(&o, logits, n_vocab, s->ids, pos, q);
        s->ids[pos] = reject_draw(q, n_vocab, reject_random(o.seed, pos, REJECT_DRAW));
    } else {
        s->ids[pos] = hadal_sample(&o, logits, n_vocab, s->ids, pos, pos);
    }
    return s->ids[pos]; /* beyond the length: history of the next choice */
}

static float probability_of(const hadal_engine *g, float confidence, int place)
{
    return 1 / (1 + expf(-confidence / g->model.config->draft_temperature[place]));
}

/* No, when not even certain drafts behind the first ones would pay for the rest of the pass. */
static int is_worth(void *context, const float *confidence)
{
    struct drafting *d = context;
    float best[FORWARD_MAX_OUT][DRAFT_MAX_ROWS];
    struct draft_offer offer[FORWARD_MAX_OUT];
    struct draft_costs costs = {.more = step_time_of(&d->engine->head_time, d->n)};
    int n_chosen = 0;
    costs.paid = d->worth_seconds = clock_seconds() - d->start;
    for (int i = 0; i < d->n; i++) {
        const struct cycle *y = d->cycle[i];
        if (!is_auto(y))
            return 1;
        best[i][0] = probability_of(d->engine, confidence[i], 0);
        for (int r = 1; r < d->n_place; r++)
            best[i][r] = 1;
        offer[i] = (struct draft_offer){
            best[i], d->n_place, stake_of(d->engine, &y->session->policy.stages), 0};
    }
    draft_policy_choose(&d->engine->check_time, offer, d->n, costs);
    for (int i = 0; i < d->n; i++)
        n_chosen += offer[i].n_chosen;
    return n_chosen > 0;
}

/* Puts the block of every sequence behind its known token. */
static void take_block(struct drafting *d, const int32_t *id, const float *confidence)
{
    for (int i = 0; i < d->n; i++) {
        struct cycle *y = d->cycle[i];
        memcpy(y->session->ids + y->n_start + 1, id + i * d->n_place,
            (size_t)d->n_place * sizeof *id);
        for (int r = 0; r < d->n_place; r++)
            y->probability[r] = probability_of(d->engine, confidence[i * d->n_place + r], r);
        y->n_stage = d->n_place;
        y->n_draft = d->n_place + copy(y, d->n_place);
    }
}

static void note_times(struct drafting *d, int has_block)
{
    hadal_engine *g = d->engine;
    double seconds = clock_seconds() - d->start;
    if (d->worth_seconds > 0 && has_block)
        step_time_add(&g->head_time, d->n, seconds - d->worth_seconds);
    for (int i = 0; i < d->n; i++) {
        d->cycle[i]->session->n_staged = d->cycle[i]->n_start;
        d->cycle[i]->draft_seconds = seconds / d->n;
    }
}

static int draft(struct drafting *d, struct err *e)
{
    hadal_engine *g = d->engine;
    int32_t slot[FORWARD_MAX_OUT], last[FORWARD_MAX_OUT], first[FORWARD_MAX_OUT], filled[FORWARD_MAX_OUT];
    int32_t anchor[FORWARD_MAX_OUT], id[FORWARD_MAX_OUT];
    float confidence[FORWARD_MAX_OUT];
    int n_filled = 0;
    struct draft_request q = {.n_seq = d->n,
        .slot = slot,
        .last = last,
        .first = first,
        .filled = filled,
        .anchor = anchor,
        .n_draft = d->n_place,
        .choose = choose_draft,
        .is_worth = is_worth,
        .context = d,
        .logits = d->cycle[0]->session->next_logits,
        .id = id,
        .confidence = confidence,
        .n_filled = &n_filled};
    for (int i = 0; i < d->n; i++) {
        const hadal_session *s = d->cycle[i]->session;
        slot[i] = s->slot;
        last[i] = d->cycle[i]->n_start - 1;
        first[i] = s->first;
        filled[i] = s->n_staged;
        anchor[i] = s->ids[d->cycle[i]->n_start];
    }
    d->start = clock_seconds();
    d->worth_seconds = 0;
    if (draft_run(&g->forward, &q, e))
        return -1;
    note_times(d, n_filled > 0);
    if (n_filled)
        take_block(d, id, confidence);
    return 0;
}

/* Drafts for all that want it, as many sequences in a pass as fit. */
static int draft_all(hadal_engine *g, struct cycle *y, int n, struct err *e)
{
    int block = g->model.config->draft_block;
    struct drafting d = {.engine = g, .n_place = block};
    for (int i = 0; i < n; i++) {
        if (wants_stages(g, &y[i])) {
            d.cycle[d.n++] = &y[i];
            d.n_place = min_int(d.n_place, y[i].limit);
        }
        if (!d.n || (i + 1 < n && (d.n + 1) * block <= FORWARD_MAX_OUT))
            continue;
        if (draft(&d, e))
            return -1;
        d.n = 0;
        d.n_place = block;
    }
    return 0;
}

/* ---- How many are checked ---- */

static void choose_lengths(hadal_engine *g, struct cycle *y, int n)
{
    struct draft_offer offer[FORWARD_MAX_OUT];
    struct cycle *of[FORWARD_MAX_OUT];
    struct draft_costs costs = {.ends_at_drop = g->options.draft_rule == HADAL_DRAFT_REJECTION};
    int n_auto = 0;
    for (int i = 0; i < n; i++) {
        const struct draft_policy *p = &y[i].session->policy;
        const struct draft_purse *purse = y[i].draft_seconds > 0 ? &p->stages : &p->copies;
        costs.paid += y[i].draft_seconds;
        if (!is_auto(&y[i]))
            continue;
        of[n_auto] = &y[i];
        offer[n_auto++] = (struct draft_offer){y[i].probability,
            draft_purse_may_spend(purse) ? y[i].n_draft : 0, stake_of(g, purse), 0};
    }
    draft_policy_choose(&g->check_time, offer, n_auto, costs);
    for (int i = 0; i < n_auto; i++)
        of[i]->n_draft = offer[i].n_chosen;
}

int propose(hadal_engine *g, struct cycle *y, int n, struct err *e)
{
    set_limits(g, y, n);
    for (int i = 0; i < n; i++) {
        take_expected(&y[i]);
        follow(&y[i]);
    }
    if (draft_all(g, y, n, e))
        return -1;
    choose_lengths(g, y, n);
    for (int i = 0; i < n; i++) {
        y[i].n_expected = min_int(y[i].n_expected, y[i].n_draft);
        y[i].n_stage = min_int(y[i].n_stage, y[i].n_draft);
    }
    return 0;
}

/* ---- What came of it ---- */

static void count(struct hadal_draft_stats *t, const struct cycle *y)
{
    int n_others = y->n_expected + y->n_stage;
    t->n_cycle++;
    t->n_token += (uint64_t)(1 + y->n_accepted);
    t->n_row += (uint64_t)(1 + y->n_draft);
    t->n_expected += (uint64_t)y->n_expected;
    t->n_expected_accepted += (uint64_t)min_int(y->n_expected, y->n_accepted);
    for (int r = 0; r < y->n_draft && r < HADAL_DRAFT_PLACES; r++) {
        t->n_proposed[r]++;
        t->n_accepted[r] += r < y->n_accepted;
        t->n_copied += r >= n_others;
        t->n_copied_accepted += r >= n_others && r < y->n_accepted;
    }
}

/* Windows of HADAL_DRAFT_WINDOW tokens, one behind the other. */
static void watch(hadal_session *s, int n_token, double saved, double plain)
{
    struct hadal_draft_stats *t = &s->stats;
    t->saved_seconds += saved;
    s->window.n_token += n_token;
    s->window.saved += saved;
    s->window.plain += plain;
    if (s->window.n_token < HADAL_DRAFT_WINDOW)
        return;
    t->latest_saved = s->window.saved / s->window.plain;
    if (!t->n_window++ || t->latest_saved < t->least_saved)
        t->least_saved = t->latest_saved;
    memset(&s->window, 0, sizeof s->window);
}

static void learn_expected(struct cycle const *y)
{
    for (int r = 0; r < y->n_expected && r <= y->n_accepted; r++)
        y->session->expected_share += ((float)(r < y->n_accepted) - y->session->expected_share) / 16;
}

void propose_settle(hadal_engine *g, const struct cycle *y, int n, double seconds)
{
    double step = step_time_of(&g->check_time, 1), plain = step_time_of(&g->check_time, n) / n;
    double check_seconds = seconds;
    int n_row = n;
    for (int i = 0; i < n; i++) {
        check_seconds -= y[i].draft_seconds;
        n_row += y[i].n_draft;
    }
    for (int i = 0; i < n; i++) {
        struct draft_policy *p = &y[i].session->policy;
        int n_token = 1 + y[i].n_accepted, has_drafted = y[i].draft_seconds > 0;
        double took = y[i].draft_seconds + check_seconds * (1 + y[i].n_draft) / n_row;
        double saved = has_drafted || y[i].n_draft ? n_token * plain - took : 0;
        draft_purse_settle(&p->stages, n_token, has_drafted ? saved / step : 0);
        draft_purse_settle(&p->copies, n_token, has_drafted ? 0 : saved / step);
        if (has_drafted)
            draft_policy_drafted(p, n_token, took);
        y[i].session->stats.seconds += took;
        count(&y[i].session->stats, &y[i]);
        watch(y[i].session, n_token, saved, n_token * plain);
        learn_expected(&y[i]);
    }
}

void hadal_session_draft_stats(const hadal_session *session, struct hadal_draft_stats *stats)
{
    *stats = session->stats;
    stats->step_seconds = step_time_of(&session->engine->check_time, 1);
}
