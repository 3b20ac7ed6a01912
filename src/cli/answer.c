/* answer.c: see answer.h. Tokens become bytes, bytes whole characters, characters pass the stop strings, and what is left
 * goes to the terminal and into the answer. */
#include "cli/answer.h"

#include "base/clock.h"
#include "cli/forced.h"
#include "cli/stop.h"
#include "text/utf8.h"

#include <stdio.h>

struct stream {
    const struct answer_request *q;
    struct terminal *terminal;
    struct answer *answer;
    struct utf8_stream utf8;
    struct stop_scan stop;
    struct forced forced;
    int32_t end_think_id;
    int is_reasoning;
};

static void show(struct stream *s, const struct buf *text)
{
    FILE *to = s->is_reasoning && !s->terminal->out_is_tty ? s->terminal->note : s->terminal->out;
    if (!text->n_byte || (s->is_reasoning && to == s->terminal->note && s->terminal->is_quiet))
        return;
    if (s->is_reasoning)
        terminal_style(s->terminal, to, STYLE_DIM);
    terminal_write(s->terminal, to, text->data, text->n_byte);
    if (s->is_reasoning)
        terminal_style(s->terminal, to, STYLE_PLAIN);
}

/* Returns 1 at a stop string. */
static int take_text(struct stream *s, const struct buf *whole)
{
    struct buf out = {0};
    int is_stopped = 0;
    if (s->is_reasoning)
        buf_append(&out, whole->data, whole->n_byte);
    else
        is_stopped = stop_push(&s->stop, whole->data, whole->n_byte, &out);
    struct buf *into = s->is_reasoning ? &s->answer->reasoning : &s->answer->content;
    if (out.n_byte)
        buf_append(into, out.data, out.n_byte);
    show(s, &out);
    buf_free(&out);
    return is_stopped;
}

static void end_reasoning(struct stream *s)
{
    struct buf rest = {0};
    utf8_stream_finish(&s->utf8, &rest);
    if (rest.n_byte)
        take_text(s, &rest);
    buf_free(&rest);
    s->is_reasoning = 0;
    if (s->terminal->out_is_tty || s->answer->reasoning.n_byte)
        terminal_end_line(s->terminal);
}

static int take_token(struct stream *s, int32_t id)
{
    if (s->is_reasoning && id == s->end_think_id) {
        end_reasoning(s);
        return 0;
    }
    struct text bytes = tokenizer_bytes(s->q->tokenizer, id);
    struct buf whole = {0};
    utf8_stream_push(&s->utf8, bytes.data, bytes.n_byte, &whole);
    int is_stopped = whole.n_byte ? take_text(s, &whole) : 0;
    buf_free(&whole);
    return is_stopped;
}

static void finish(struct stream *s)
{
    struct buf rest = {0};
    utf8_stream_finish(&s->utf8, &rest);
    if (s->answer->end != ANSWER_STOP_STRING && rest.n_byte)
        take_text(s, &rest);
    buf_clear(&rest);
    if (s->answer->end != ANSWER_STOP_STRING)
        stop_finish(&s->stop, &rest);
    if (rest.n_byte) {
        buf_append(&s->answer->content, rest.data, rest.n_byte);
        show(s, &rest);
    }
    buf_free(&rest);
    stop_free(&s->stop);
}

/* Takes the tokens of one step. Returns 1 when the answer is over. */
static int take_step(struct stream *s, const int32_t *ids, int n)
{
    struct answer *a = s->answer;
    for (int i = 0; i < n; i++) {
        if (ids[i] == s->q->info->eos_id) {
            a->end = ANSWER_COMPLETE;
            return 1;
        }
        a->n_token++;
        if (take_token(s, ids[i])) {
            a->end = ANSWER_STOP_STRING;
            return 1;
        }
        if (s->q->max_token >= 0 && a->n_token >= s->q->max_token) {
            a->end = ANSWER_LENGTH;
            return 1;
        }
    }
    return 0;
}

static int decode(struct stream *s, struct interrupt *interrupt, struct err *e)
{
    const struct answer_request *q = s->q;
    struct hadal_turn turn = {.session = q->session, .sampling = q->sampling, .n_draft = q->n_draft};
    int n_now;
    if (q->max_token == 0) {
        s->answer->end = ANSWER_LENGTH;
        return 0;
    }
    for (;;) {
        hadal_session_ids(q->session, &n_now);
        s->answer->end = n_now >= q->info->n_context ? ANSWER_CONTEXT_FULL : ANSWER_CANCELLED;
        if (s->answer->end == ANSWER_CONTEXT_FULL || interrupt->n)
            return 0;
        if (forced_expect(&s->forced, &turn, e))
            return -1;
        if (hadal_engine_next(q->engine, &turn, 1, e))
            return e->code == ERR_CANCELLED ? 0 : -1;
        s->answer->n_step++;
        if (take_step(s, turn.ids, turn.n))
            return 0;
        if (forced_take(&s->forced, turn.ids, turn.n, e))
            return -1;
    }
}

static int prefill(const struct answer_request *q, struct answer *a, struct err *e)
{
    struct hadal_sync_result result = {0};
    double start = clock_seconds();
    a->n_prompt = q->n_prompt;
    if (hadal_session_sync(q->session, q->prompt, q->n_prompt, &result, e))
        return -1;
    a->prefill_seconds = clock_seconds() - start;
    a->n_kept = result.n_kept;
    return 0;
}

int answer_run(const struct answer_request *q, struct command_call *call, struct answer *a, struct err *e)
{
    struct stream s = {.q = q, .terminal = call->terminal, .answer = a, .is_reasoning = q->is_thinking,
        .stop = {.stops = q->stops}};
    s.end_think_id = tokenizer_special(q->tokenizer, text_of("</think>"));
    a->end = ANSWER_CANCELLED;
    if (call->interrupt->n)
        return 0;
    int failed = prefill(q, a, e);
    terminal_progress_end(call->terminal);
    if (failed)
        return e->code == ERR_CANCELLED ? 0 : -1;
    forced_open(&s.forced, q->tokenizer, q->info, q->is_thinking);
    double start = clock_seconds();
    failed = decode(&s, call->interrupt, e);
    a->decode_seconds = clock_seconds() - start;
    forced_close(&s.forced);
    finish(&s);
    if (a->content.is_broken || a->reasoning.is_broken)
        return err_set(e, ERR_MEMORY, "no memory for an answer of %d tokens", a->n_token);
    return failed;
}

static double per_second(int n, double seconds)
{
    return seconds > 0.0 ? n / seconds : 0.0;
}

void answer_note(const struct answer_request *q, const struct answer *a, struct terminal *t)
{
    static const char *const ends[] = {"", " | ended at a stop string", " | ended at the token limit",
        " | the context is full", " | stopped"};
    char kept[48] = "", steps[48] = "";
    int n_now;
    hadal_session_ids(q->session, &n_now);
    if (a->n_kept)
        snprintf(kept, sizeof kept, " (%d kept)", a->n_kept);
    if (a->n_step && a->n_token > a->n_step)
        snprintf(steps, sizeof steps, ", %.2f a step", (double)a->n_token / a->n_step);
    terminal_note(t, "prompt %d tokens%s, %.1f tokens/s | answer %d tokens, %.1f tokens/s%s | context %d of %d | seed %llu%s",
        a->n_prompt, kept, per_second(a->n_prompt - a->n_kept, a->prefill_seconds), a->n_token,
        per_second(a->n_token, a->decode_seconds), steps, n_now, q->info->n_context,
        (unsigned long long)q->sampling->seed, ends[a->end]);
}

void answer_free(struct answer *a)
{
    buf_free(&a->reasoning);
    buf_free(&a->content);
}
