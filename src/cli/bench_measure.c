/* bench_measure.c: see bench_measure.h.
 *
 * One session grows through a whole repeat: frontier, decoding, next frontier, suffixes. Going back
 * further than a few rows would compute everything again, so what decoding appends stays in the
 * context; only then the whole sequence is forgotten, for the suffixes that are read anew.
 *
 * The tokens are those of sentences made from a word list by a fixed seed: the same on every
 * machine, and near enough to text that drafts have something to guess.
 */
#include "cli/bench_measure.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "cli/read_input.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { WARM_UP_TOKENS = 64, WARM_UP_STEPS = 4 };

struct bench {
    const struct bench_plan *plan;
    struct command_call *call;
    hadal_engine *engine;
    hadal_session *session;
    int has_drafts;
    int repeat;
    struct token_list text; /* as long as the context */
    int32_t *ids;           /* n_context; the sequence to be */
    struct bench_rows *rows;
    int at_row; /* of this repeat */
};

/* ---- Text ---- */

static void make_sentence(struct rng *rng, struct buf *out)
{
    static const char *const who[] = {"The captain", "A small fish", "My sister", "The old lamp",
        "Nobody", "The girl in the boat", "A grey whale", "The teacher"};
    static const char *const does[] = {"looked for", "found", "painted", "was afraid of", "counted",
        "sang about", "carried", "forgot"};
    static const char *const what[] = {"the harbour", "two red stones", "a letter",
        "the deep water", "her brother", "the last train", "a basket of apples",
        "the sound of rain"};
    static const char *const when[] = {"before dinner", "at night", "in the morning",
        "for a long time", "without a word", "again and again", "that summer",
        "because it was cold"};
    static const char *const *const part[] = {who, does, what, when};
    for (int i = 0; i < 4; i++)
        buf_print(out, i < 3 ? "%s " : "%s. ", part[i][rng_below(rng, 8)]);
}

/* Tokens of `text`, or of new sentences when it is empty. */
static int add_text(struct bench *b, struct rng *rng, const struct buf *text, struct err *e)
{
    const struct tokenizer *t = hadal_engine_tokenizer(b->engine);
    struct buf made = {0};
    size_t n_before = b->text.n;
    for (int i = 0; !text->n_byte && i < 64; i++)
        make_sentence(rng, &made);
    const struct buf *from = text->n_byte ? text : &made;
    int failed = from->is_broken ? err_set(e, ERR_MEMORY, "no memory for a text")
                                 : tokenizer_encode(t, (struct text){from->data, from->n_byte},
                                       TOKENIZER_PLAIN, &b->text, e);
    buf_free(&made);
    if (!failed && b->text.n == n_before)
        return err_set(e, ERR_FORMAT, "the tokenizer makes no tokens of the text");
    return failed;
}

static int make_text(struct bench *b, size_t n_token, struct err *e)
{
    struct rng rng = rng_of(1, 0);
    struct buf text = {0};
    const char *path = b->plan->text_file;
    int failed = path && read_input(path, &text, e);
    if (!failed && path && !text.n_byte)
        failed = err_set(e, ERR_ARGUMENT, "%s: the text is empty", path);
    while (!failed && b->text.n < n_token)
        failed = add_text(b, &rng, &text, e);
    buf_free(&text);
    return failed ? -1 : 0;
}

/* ---- Steps ---- */

static int check_interrupt(const struct bench *b, struct err *e)
{
    return b->call->interrupt->n ? err_set(e, ERR_CANCELLED, "stopped") : 0;
}

static int length(const struct bench *b)
{
    int n;
    hadal_session_ids(b->session, &n);
    return n;
}

/* Makes the sequence n tokens long: what is there, then text. */
static int grow_to(struct bench *b, int n, struct err *e)
{
    int n_old;
    const int32_t *old = hadal_session_ids(b->session, &n_old);
    if (n_old)
        memcpy(b->ids, old, (size_t)n_old * sizeof *old);
    memcpy(b->ids + n_old, b->text.ids + n_old, (size_t)(n - n_old) * sizeof *b->ids);
    return hadal_session_sync(b->session, b->ids, n, NULL, e);
}

/* At least n tokens; with drafts the last step may give a few more. */
static int decode(struct bench *b, int n, int n_draft, int *n_given, int *n_step, struct err *e)
{
    struct hadal_sampling greedy = {.top_p = 1.0f, .repetition_penalty = 1.0f};
    int32_t ids[HADAL_NEXT_MAX];
    *n_given = *n_step = 0;
    while (*n_given < n) {
        int n_now;
        if (check_interrupt(b, e) ||
            hadal_session_next(b->session, &greedy, n_draft, ids, &n_now, e))
            return -1;
        *n_given += n_now;
        ++*n_step;
    }
    return 0;
}

static struct bench_row *take_row(struct bench *b, enum bench_kind kind, int depth)
{
    struct bench_row *row = &b->rows->row[b->at_row++];
    if (b->at_row > b->rows->n) {
        *row = (struct bench_row){.kind = kind, .depth = depth};
        b->rows->n = b->at_row;
    }
    return row;
}

/* The beginning of a measurement. */
struct start {
    double seconds;
    struct hadal_store_stats disk;
};

static struct start start_now(const struct bench *b)
{
    struct start start;
    hadal_engine_store_stats(b->engine, &start.disk);
    start.seconds = clock_seconds();
    return start;
}

/* A sample of n_token tokens that ends now: seconds, or tokens in a second. */
static void add_sample(
    struct bench *b, struct bench_row *row, int n_token, const struct start *start)
{
    double seconds = clock_seconds() - start->seconds;
    struct hadal_store_stats now;
    hadal_engine_store_stats(b->engine, &now);
    int is_time = row->kind == BENCH_LIVE || row->kind == BENCH_COLD;
    row->n_token = n_token;
    row->sample[row->n_sample++] = is_time ? seconds : n_token / seconds;
    row->disk.seconds += seconds;
    row->disk.wait_seconds += now.wait_seconds - start->disk.wait_seconds;
    row->disk.n_byte += (double)(now.read_bytes - start->disk.read_bytes);
    row->disk.n_expert += (double)(now.n_expert - start->disk.n_expert);
    row->disk.n_expert_hit += (double)(now.n_expert_hit - start->disk.n_expert_hit);
}

static int measure_prefill(struct bench *b, int depth, struct err *e)
{
    struct bench_row *row = take_row(b, BENCH_PREFILL, depth);
    int n_token = depth - length(b);
    struct start start = start_now(b);
    if (check_interrupt(b, e) || grow_to(b, depth, e))
        return -1;
    add_sample(b, row, n_token, &start);
    return 0;
}

static int measure_decode(struct bench *b, struct bench_row *row, struct err *e)
{
    int n_given, n_step, n_draft = row->kind == BENCH_DRAFTS ? -1 : 0;
    struct start start = start_now(b);
    if (decode(b, b->plan->n_decode, n_draft, &n_given, &n_step, e))
        return -1;
    add_sample(b, row, n_given, &start);
    row->n_per_step = (double)n_given / n_step;
    return 0;
}

static int measure_frontier(struct bench *b, int depth, struct err *e)
{
    if (measure_prefill(b, depth, e))
        return -1;
    if (!b->plan->n_decode)
        return 0;
    struct bench_row *plain = take_row(b, BENCH_DECODE, depth);
    struct bench_row *drafts = b->has_drafts ? take_row(b, BENCH_DRAFTS, depth) : NULL;
    int drafts_go_first = drafts && b->repeat % 2;
    if (drafts_go_first && measure_decode(b, drafts, e))
        return -1;
    if (measure_decode(b, plain, e))
        return -1;
    return drafts && !drafts_go_first ? measure_decode(b, drafts, e) : 0;
}

/* n tokens behind what is there (anew: after forgetting it), and one answer token. */
static int measure_suffix(struct bench *b, enum bench_kind kind, int depth, int n, struct err *e)
{
    struct bench_row *row = take_row(b, kind, depth);
    int n_given, n_step;
    if (check_interrupt(b, e) || (kind == BENCH_COLD && hadal_session_rewind(b->session, 0, e)))
        return -1;
    struct start start = start_now(b);
    if (grow_to(b, depth + n, e) || decode(b, 1, 0, &n_given, &n_step, e))
        return -1;
    add_sample(b, row, n, &start);
    return 0;
}

static int measure_suffixes(struct bench *b, struct err *e)
{
    const struct bench_sizes *s = &b->plan->suffixes;
    int depth = b->plan->depths.size[b->plan->depths.n - 1];
    for (int i = 0; i < s->n; i++)
        if (measure_suffix(b, BENCH_LIVE, length(b), s->size[i], e))
            return -1;
    for (int i = 0; i < s->n; i++)
        if (measure_suffix(b, BENCH_COLD, depth, s->size[i], e))
            return -1;
    return 0;
}

static int measure_once(struct bench *b, struct err *e)
{
    const struct bench_sizes *d = &b->plan->depths;
    b->at_row = 0;
    if (hadal_session_rewind(b->session, 0, e))
        return -1;
    for (int i = 0; i < d->n; i++) {
        int n_unit = b->plan->n_repeat * d->n;
        if (measure_frontier(b, d->size[i], e))
            return -1;
        terminal_progress(
            b->call->terminal, "bench", (uint64_t)(b->repeat * d->n + i + 1), (uint64_t)n_unit + 1);
    }
    return measure_suffixes(b, e);
}

static int warm_up(struct bench *b, struct err *e)
{
    int n_given, n_step;
    return grow_to(b, WARM_UP_TOKENS, e) || decode(b, WARM_UP_STEPS, 0, &n_given, &n_step, e) ? -1
                                                                                              : 0;
}

/* What decoding may append at one frontier. */
static int decode_room(const struct bench_plan *plan)
{
    return plan->n_decode ? 2 * (plan->n_decode + HADAL_NEXT_MAX) : 0;
}

int bench_n_context(const struct bench_plan *plan)
{
    int n = plan->depths.size[plan->depths.n - 1] + decode_room(plan);
    for (int i = 0; i < plan->suffixes.n; i++)
        n += plan->suffixes.size[i] + 1;
    return n < WARM_UP_TOKENS + WARM_UP_STEPS ? WARM_UP_TOKENS + WARM_UP_STEPS : n;
}

static int check_plan(
    const struct bench_plan *plan, const struct hadal_engine_info *info, struct err *e)
{
    const struct bench_sizes *d = &plan->depths;
    for (int i = 1; i < d->n; i++)
        if (d->size[i] - d->size[i - 1] <= decode_room(plan))
            return err_set(e, ERR_ARGUMENT,
                "--depths: decoding takes up to %d tokens, more than there are from %d to %d",
                decode_room(plan), d->size[i - 1], d->size[i]);
    if (bench_n_context(plan) > info->n_context)
        return err_set(e, ERR_ARGUMENT,
            "these depths and suffixes need a context of %d tokens, this one has %d",
            bench_n_context(plan), info->n_context);
    return 0;
}

int bench_measure(const struct bench_plan *plan, hadal_engine *engine, struct command_call *call,
    struct bench_rows *rows, struct err *e)
{
    struct bench b = {.plan = plan, .call = call, .engine = engine, .rows = rows};
    struct hadal_engine_info info;
    struct arena arena = {0};
    hadal_engine_info(engine, &info);
    b.has_drafts = info.n_draft > 0 && !plan->has_no_drafts;
    b.ids = ARENA_NEW(&arena, int32_t, (size_t)info.n_context);
    rows->n = 0;
    int failed = b.ids ? check_plan(plan, &info, e) || make_text(&b, (size_t)info.n_context, e) ||
                             hadal_session_open(&b.session, engine, e) || warm_up(&b, e)
                       : err_set(e, ERR_MEMORY, "no memory for %d tokens", info.n_context);
    for (b.repeat = 0; !failed && b.repeat < plan->n_repeat; b.repeat++)
        failed = measure_once(&b, e);
    terminal_progress_end(call->terminal);
    hadal_session_close(b.session);
    token_list_free(&b.text);
    arena_free(&arena);
    return failed ? -1 : 0;
}

/* ---- Samples ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_summary(const struct bench_row *row, double summary[3])
{
    double sorted[BENCH_MAX_REPEAT];
    int n = row->n_sample;
    memcpy(sorted, row->sample, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    summary[0] = sorted[0];
    summary[1] = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    summary[2] = sorted[n - 1];
}
