/* score.c: `hadal score`: how well the model predicts a text, or the logits themselves.
 *
 * A text is cut into windows of at most the context; every window starts with the beginning-of-sequence token, and every
 * token behind that is predicted. Rows are computed in blocks, whose size does not change a bit of the result.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "cli/read_input.h"
#include "cli/settings.h"
#include "text/tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ROWS = 64 };

struct score_settings {
    struct engine_settings engine;
    const char *ids;
    int prints_logits, n_continue, n_prompt;
};

#define AT(field) offsetof(struct score_settings, field)
static const struct option score_option_rows[] = {
    {"ids", 0, OPTION_TEXT, AT(ids), "LIST", "token ids such as 0,5,7 instead of a text", 0, 0, 0},
    {"logits", 0, OPTION_FLAG, AT(prints_logits), NULL, "print a line {\"pos\":0,\"id\":5,\"logits\":[...]} for every token", 0, 0, 0},
    {"prompt", 0, OPTION_INT, AT(n_prompt), "N", "of --ids read the first N as a prompt, neither printed nor scored", 0, 1 << 24, 0},
    {"continue", 0, OPTION_INT, AT(n_continue), "N", "append the N likeliest tokens one by one, end tokens too", 0, 1 << 24, 0},
};

struct score {
    const struct score_settings *s;
    struct command_call *call;
    hadal_engine *engine;
    hadal_session *session;
    struct hadal_engine_info info;
    float *logits; /* BLOCK_ROWS x n_vocab */
    float *last;   /* n_vocab: logits of the token before a block; in use when has_last */
    int has_last;
    double nll; /* sum over n_scored tokens of -log p */
    long n_scored;
};

static void print_logits(struct score *sc, int pos, int32_t id, const float *logits)
{
    FILE *out = sc->call->terminal->out;
    fprintf(out, "{\"pos\":%d,\"id\":%d,\"logits\":[", pos, (int)id);
    for (int i = 0; i < sc->info.n_vocab; i++) {
        const char *comma = i ? "," : "";
        if (isfinite(logits[i]))
            fprintf(out, "%s%.9g", comma, (double)logits[i]);
        else
            fprintf(out, "%snull", comma);
    }
    fputs("]}\n", out);
}

/* -log softmax(logits)[id] */
static double surprise(const float *logits, int n, int32_t id)
{
    double max = -INFINITY, sum = 0.0;
    for (int i = 0; i < n; i++)
        max = (double)logits[i] > max ? (double)logits[i] : max;
    for (int i = 0; i < n; i++)
        sum += exp((double)logits[i] - max);
    return log(sum) + max - (double)logits[id];
}

static int32_t likeliest(const float *logits, int n)
{
    struct hadal_sampling greedy = {.top_p = 1.0f, .repetition_penalty = 1.0f};
    return hadal_sample(&greedy, logits, n, NULL, 0, 0);
}

static int score_block(struct score *sc, const int32_t *ids, int n, struct err *e)
{
    int n_vocab = sc->info.n_vocab, pos;
    hadal_session_ids(sc->session, &pos);
    if (hadal_session_append(sc->session, ids, n, sc->logits, e))
        return -1;
    for (int i = 0; i < n; i++) {
        const float *row = sc->logits + (size_t)i * (size_t)n_vocab;
        if (sc->s->prints_logits)
            print_logits(sc, pos + i, ids[i], row);
        if (sc->has_last) {
            sc->nll += surprise(sc->last, n_vocab, ids[i]);
            sc->n_scored++;
        }
        memcpy(sc->last, row, (size_t)n_vocab * sizeof *row);
        sc->has_last = 1;
    }
    return 0;
}

/* Scores ids as one sequence. */
static int score_sequence(struct score *sc, const int32_t *ids, size_t n, struct err *e)
{
    size_t n_prompt = (size_t)sc->s->n_prompt;
    sc->has_last = 0;
    if (n_prompt >= n)
        return err_set(e, ERR_ARGUMENT, "--prompt %zu: a sequence of %zu tokens leaves nothing to score", n_prompt, n);
    if (n_prompt && hadal_session_sync(sc->session, ids, (int)n_prompt, NULL, e))
        return -1;
    if (n_prompt) {
        memcpy(sc->last, hadal_session_logits(sc->session), (size_t)sc->info.n_vocab * sizeof *sc->last);
        sc->has_last = 1;
    }
    for (size_t at = n_prompt; at < n; at += BLOCK_ROWS) {
        int n_now = n - at < BLOCK_ROWS ? (int)(n - at) : BLOCK_ROWS;
        if (sc->call->interrupt->n)
            return err_set(e, ERR_CANCELLED, "stopped");
        if (score_block(sc, ids + at, n_now, e))
            return -1;
    }
    return 0;
}

static int score_text(struct score *sc, const struct token_list *ids, struct err *e)
{
    size_t window = (size_t)sc->info.n_context - 1;
    int32_t *buffer = mem_resize(NULL, (window + 1) * sizeof *buffer);
    int failed = buffer ? 0 : err_set(e, ERR_MEMORY, "no memory for a window of %zu tokens", window);
    for (size_t at = 0; !failed && at < ids->n; at += window) {
        size_t n = ids->n - at < window ? ids->n - at : window;
        buffer[0] = sc->info.bos_id;
        memcpy(buffer + 1, ids->ids + at, n * sizeof *buffer);
        failed = hadal_session_rewind(sc->session, 0, e) || score_sequence(sc, buffer, n + 1, e);
        if (!failed)
            terminal_progress(sc->call->terminal, "score", at + n, ids->n);
    }
    mem_free(buffer);
    return failed ? -1 : 0;
}

static int parse_ids(const char *text, struct token_list *out, struct err *e)
{
    while (*text) {
        char *end;
        long id = strtol(text, &end, 10);
        if (end == text || id < 0 || id > INT32_MAX || (*end && *end != ','))
            return err_set(e, ERR_ARGUMENT, "--ids: expected numbers separated by commas, found %.20s", text);
        if (token_list_append(out, (int32_t)id, e))
            return -1;
        text = *end ? end + 1 : end;
    }
    return out->n ? 0 : err_set(e, ERR_ARGUMENT, "--ids: no numbers");
}

static int score_input(struct score *sc, struct token_list *ids, struct buf *text, struct err *e)
{
    if (sc->s->ids)
        return parse_ids(sc->s->ids, ids, e) || score_sequence(sc, ids->ids, ids->n, e) ? -1 : 0;
    const struct tokenizer *t = hadal_engine_tokenizer(sc->engine);
    if (read_input(sc->call->n_rest ? sc->call->rest[0] : "-", text, e) ||
        tokenizer_encode(t, (struct text){text->data, text->n_byte}, TOKENIZER_PLAIN, ids, e))
        return -1;
    if (!ids->n)
        return err_set(e, ERR_ARGUMENT, "the text is empty");
    return score_text(sc, ids, e);
}

static int score_continue(struct score *sc, struct err *e)
{
    for (int i = 0; i < sc->s->n_continue; i++) {
        int32_t id = likeliest(sc->last, sc->info.n_vocab);
        if (sc->call->interrupt->n)
            return err_set(e, ERR_CANCELLED, "stopped");
        if (score_block(sc, &id, 1, e))
            return -1;
    }
    return 0;
}

static void print_summary(const struct score *sc, size_t n_byte, double seconds)
{
    FILE *out = sc->s->prints_logits ? sc->call->terminal->note : sc->call->terminal->out;
    if (!sc->n_scored)
        return;
    double mean = sc->nll / (double)sc->n_scored;
    fprintf(out, "%ld tokens, perplexity %.6f, %.6f nats a token", sc->n_scored, exp(mean), mean);
    if (n_byte)
        fprintf(out, ", %.6f bits a byte", sc->nll / log(2.0) / (double)n_byte);
    fprintf(out, ", %.1f tokens/s\n", (double)sc->n_scored / seconds);
}

static int score_all(struct score *sc, struct err *e)
{
    struct token_list ids = {0};
    struct buf text = {0};
    double start = clock_seconds();
    int failed = score_input(sc, &ids, &text, e);
    terminal_progress_end(sc->call->terminal);
    double seconds = clock_seconds() - start;
    struct score before = *sc;
    if (!failed)
        failed = score_continue(sc, e);
    if (!failed)
        print_summary(&before, text.n_byte, seconds);
    token_list_free(&ids);
    buf_free(&text);
    return failed;
}

static int run(struct command_call *call, void *settings, struct err *e)
{
    struct score sc = {.s = settings, .call = call};
    struct arena arena = {0};
    if (call->n_rest > 1 || (call->n_rest && sc.s->ids)) {
        err_set(e, ERR_ARGUMENT, "score takes one FILE, or --ids");
        return EXIT_USAGE;
    }
    if (sc.s->n_prompt && !sc.s->ids) {
        err_set(e, ERR_ARGUMENT, "--prompt goes with --ids");
        return EXIT_USAGE;
    }
    struct engine_settings engine = sc.s->engine;
    engine.has_no_drafts = 1;
    if (settings_open_engine(&sc.engine, &engine, call, e))
        return EXIT_FAILED;
    int failed = hadal_session_open(&sc.session, sc.engine, e);
    if (!failed) {
        hadal_engine_info(sc.engine, &sc.info);
        sc.logits = ARENA_NEW(&arena, float, (size_t)sc.info.n_vocab * (BLOCK_ROWS + 1));
        sc.last = sc.logits ? sc.logits + (size_t)sc.info.n_vocab * BLOCK_ROWS : NULL;
        failed = sc.logits ? score_all(&sc, e) : err_set(e, ERR_MEMORY, "no memory for the logits of %d rows", BLOCK_ROWS + 1);
        hadal_session_close(sc.session);
    }
    settings_close_engine(sc.engine, call);
    arena_free(&arena);
    if (failed)
        return e->code == ERR_CANCELLED ? EXIT_INTERRUPTED : EXIT_FAILED;
    return EXIT_OK;
}

const struct command command_score = {
    .name = "score",
    .usage = "[-m MODEL] [FILE | --ids LIST] [options]",
    .summary = "perplexity of a text, or logits",
    .details = "Reads a text (standard input without FILE) and prints how well the model predicts it. With --ids the\n"
               "tokens are given as numbers and nothing is put in front of them. --logits prints the logits after every\n"
               "token with nine significant digits, enough to restore every bit.\n",
    .groups = {{"Score", score_option_rows, sizeof score_option_rows / sizeof *score_option_rows, 0},
        {"Engine", engine_option_rows, N_ENGINE_OPTION, AT(engine)}},
    .n_group = 2,
    .settings_bytes = sizeof(struct score_settings),
    .run = run,
};
