/* bench_content.c: see bench_content.h. */
#include "cli/bench_content.h"

#include "base/clock.h"
#include "cli/forced.h"
#include "cli/read_input.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

struct content {
    const struct content_plan *plan;
    struct command_call *call;
    hadal_engine *engine;
    struct hadal_engine_info info;
    struct token_list ids; /* prompts behind one another */
    hadal_session *session[N_CONTENT_WAY];
    struct content_kind *kind;
};

/* ---- Prompts ---- */

static void name_kind(struct content_kind *k, const char *path, size_t n_path)
{
    size_t begin = n_path, end = n_path;
    while (begin && path[begin - 1] != '/')
        begin--;
    for (size_t i = begin + 1; i < n_path; i++)
        if (path[i] == '.')
            end = i;
    size_t n = end - begin < sizeof k->name ? end - begin : sizeof k->name - 1;
    memcpy(k->name, path + begin, n);
    k->name[n] = 0;
}

static int read_prompts(struct content *c, const char *path, struct err *e)
{
    struct buf text = {0};
    c->ids.n = 0;
    int failed = read_input(path, &text, e) ||
                 tokenizer_encode(hadal_engine_tokenizer(c->engine),
                     (struct text){text.data, text.n_byte}, TOKENIZER_SPECIALS, &c->ids, e);
    buf_free(&text);
    if (failed)
        return -1;
    if (!c->ids.n || c->ids.ids[0] != c->info.bos_id)
        return err_set(
            e, ERR_FORMAT, "%s: a prompt must begin with the begin-of-sentence token", path);
    return 0;
}

/* Of the prompt that begins at `at`. */
static size_t prompt_length(const struct content *c, size_t at)
{
    size_t n = 1;
    while (at + n < c->ids.n && c->ids.ids[at + n] != c->info.bos_id)
        n++;
    return n;
}

/* ---- One answer ---- */

/* A step gave n tokens that count, in so many seconds: they go to the stretches they belong to. */
static void note_step(struct content_run *r, const int32_t *ids, int n, double seconds)
{
    for (int i = 0; i < n; i++) {
        int stretch = r->n_token++ / HADAL_DRAFT_WINDOW;
        if (stretch < CONTENT_MAX_STRETCH)
            r->stretch[stretch] += seconds / n;
        r->hash = (r->hash ^ (uint64_t)ids[i]) * 0x100000001b3u;
    }
    r->seconds += seconds;
}

/* Steps until the answer is long enough or ends. */
static int answer(struct content *c, struct hadal_turn *turn, struct forced *forced,
    struct content_run *r, struct err *e)
{
    for (int n = 0; n < c->plan->n_token; n += turn->n) {
        double start = clock_seconds();
        if (c->call->interrupt->n)
            return err_set(e, ERR_CANCELLED, "stopped");
        if ((turn->n_draft && forced_expect(forced, turn, e)) ||
            hadal_engine_next(c->engine, turn, 1, e) ||
            (turn->n_draft && forced_take(forced, turn->ids, turn->n, e)))
            return -1;
        double seconds = clock_seconds() - start;
        int n_wanted = n + turn->n > c->plan->n_token ? c->plan->n_token - n : turn->n;
        note_step(r, turn->ids, n_wanted, seconds * n_wanted / turn->n);
        if (turn->ids[n_wanted - 1] == c->info.eos_id)
            return 0;
    }
    return 0;
}

/* Whole blocks are the draft stages' alone. */
static int answer_in(struct content *c, enum content_way way, struct content_run *r, struct err *e)
{
    const struct tokenizer *t = hadal_engine_tokenizer(c->engine);
    int limit = way == CONTENT_PLAIN ? 0 : way == CONTENT_AUTO ? -1 : c->info.n_draft;
    struct hadal_turn turn = {
        .session = c->session[way], .sampling = &c->plan->sampling, .n_draft = limit};
    struct forced forced;
    forced_open(&forced, way == CONTENT_AUTO ? t : NULL, &c->info, 0);
    int failed = answer(c, &turn, &forced, r, e);
    forced_close(&forced);
    return failed;
}

static int read_and_answer(
    struct content *c, size_t at, enum content_way way, struct content_run *r, struct err *e)
{
    int n = (int)prompt_length(c, at);
    if (n + c->plan->n_token + HADAL_NEXT_MAX > c->info.n_context)
        return err_set(e, ERR_ARGUMENT,
            "%s: a prompt of %d tokens and an answer of %d do not fit in a context of %d",
            c->kind->name, n, c->plan->n_token, c->info.n_context);
    return hadal_session_sync(c->session[way], c->ids.ids + at, n, NULL, e) ||
                   answer_in(c, way, r, e)
               ? -1
               : 0;
}

/* ---- A kind ---- */

static void close_sessions(struct content *c)
{
    for (int way = 0; way < N_CONTENT_WAY; way++) {
        hadal_session_close(c->session[way]);
        c->session[way] = NULL;
    }
}

/* The policy that decides about proposals learns from a kind anew each time. */
static int open_sessions(struct content *c, struct err *e)
{
    close_sessions(c);
    for (int way = 0; way < N_CONTENT_WAY; way++)
        if (hadal_session_open(&c->session[way], c->engine, e))
            return -1;
    return 0;
}

static int measure_repeat(struct content *c, struct content_run run[2], int repeat, struct err *e)
{
    int i = 0;
    for (size_t at = 0; at < c->ids.n; at += prompt_length(c, at), i++)
        for (int turn = 0; turn < 2; turn++) {
            enum content_way way = (turn + i + repeat) % 2 ? CONTENT_AUTO : CONTENT_PLAIN;
            if (read_and_answer(c, at, way, &run[way], e))
                return -1;
        }
    c->kind->n_prompt = i;
    for (int way = 0; way < 2; way++)
        hadal_session_draft_stats(c->session[way], &run[way].stats);
    return 0;
}

static int measure_blocks(struct content *c, struct err *e)
{
    struct content_run *r = &c->kind->blocks;
    for (size_t at = 0; at < c->ids.n; at += prompt_length(c, at))
        if (read_and_answer(c, at, CONTENT_BLOCKS, r, e))
            return -1;
    hadal_session_draft_stats(c->session[CONTENT_BLOCKS], &r->stats);
    return 0;
}

static int measure_kind(struct content *c, struct err *e)
{
    struct content_kind *k = c->kind;
    for (int i = 0; i < c->plan->n_repeat; i++) {
        terminal_progress(c->call->terminal, k->name, (uint64_t)i, (uint64_t)c->plan->n_repeat);
        if (open_sessions(c, e) || measure_repeat(c, k->run[i], i, e))
            return -1;
        k->n_repeat = i + 1;
    }
    k->n_stretch = k->run[0][0].n_token / HADAL_DRAFT_WINDOW;
    if (k->n_stretch > CONTENT_MAX_STRETCH)
        k->n_stretch = CONTENT_MAX_STRETCH;
    k->has_blocks = c->info.n_draft > 0;
    return k->has_blocks ? measure_blocks(c, e) : 0;
}

static int measure_file(
    struct content *c, struct content_found *found, struct text path, struct err *e)
{
    char name[4096];
    if (found->n == CONTENT_MAX_KIND || path.n_byte >= sizeof name)
        return err_set(e, ERR_ARGUMENT, "--content: at most %d files", CONTENT_MAX_KIND);
    memcpy(name, path.data, path.n_byte);
    name[path.n_byte] = 0;
    c->kind = &found->kind[found->n];
    memset(c->kind, 0, sizeof *c->kind);
    name_kind(c->kind, name, path.n_byte);
    if (read_prompts(c, name, e) || measure_kind(c, e))
        return -1;
    found->n++;
    return 0;
}

int content_measure(const struct content_plan *plan, hadal_engine *engine,
    struct command_call *call, struct content_found *found, struct err *e)
{
    struct content c = {.plan = plan, .call = call, .engine = engine};
    int failed = 0;
    hadal_engine_info(engine, &c.info);
    found->n = 0;
    for (const char *at = plan->files; !failed && *at;) {
        size_t n = strcspn(at, ",");
        failed = measure_file(&c, found, (struct text){at, n}, e);
        at += n + (at[n] == ',');
    }
    terminal_progress_end(call->terminal);
    close_sessions(&c);
    token_list_free(&c.ids);
    return failed;
}

/* ---- What it comes to ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

void content_speed_up(const struct content_kind *k, double summary[3])
{
    double ratio[CONTENT_MAX_REPEAT];
    for (int i = 0; i < k->n_repeat; i++)
        ratio[i] = k->run[i][CONTENT_PLAIN].seconds / k->run[i][CONTENT_AUTO].seconds;
    summary[1] = median(ratio, k->n_repeat);
    summary[0] = ratio[0];
    summary[2] = ratio[k->n_repeat - 1];
}

double content_stretch_speed_up(const struct content_kind *k, int stretch)
{
    double x[2][CONTENT_MAX_REPEAT];
    for (int i = 0; i < k->n_repeat; i++)
        for (int way = 0; way < 2; way++)
            x[way][i] = k->run[i][way].stretch[stretch];
    return median(x[CONTENT_PLAIN], k->n_repeat) / median(x[CONTENT_AUTO], k->n_repeat);
}

int content_is_same_text(const struct content_kind *k)
{
    uint64_t hash = k->run[0][0].hash;
    int is_same = !k->has_blocks || k->blocks.hash == hash;
    for (int i = 0; i < k->n_repeat; i++)
        is_same &= k->run[i][0].hash == hash && k->run[i][1].hash == hash;
    return is_same;
}
