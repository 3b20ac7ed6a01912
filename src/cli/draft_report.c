/* draft_report.c: see draft_report.h. */
#include "cli/draft_report.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

int draft_read_limit(const char *text, int *n_draft, struct err *e)
{
    char *end = NULL;
    if (!text || !strcmp(text, "auto")) {
        *n_draft = -1;
        return 0;
    }
    long n = strcmp(text, "off") ? strtol(text, &end, 10) : 0;
    if ((end && (end == text || *end)) || n < 0 || n > HADAL_DRAFT_PLACES)
        return err_set(e, ERR_ARGUMENT,
            "drafts are auto, off, or a number of tokens ahead from 0 to %d, not %s",
            HADAL_DRAFT_PLACES, text);
    *n_draft = (int)n;
    return 0;
}

void draft_note_limit(int n_draft, struct terminal *t)
{
    if (n_draft < 0)
        terminal_note(t, "drafts: auto, as many tokens ahead as save time");
    else if (n_draft == 0)
        terminal_note(t, "drafts: off, one token at a time");
    else
        terminal_note(t, "drafts: always up to %d tokens ahead", n_draft);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0;
}

static void note_places(const struct hadal_draft_stats *d, struct terminal *t)
{
    struct buf line = {0};
    for (int i = 0; i < HADAL_DRAFT_PLACES && d->n_proposed[i]; i++)
        buf_print(&line, "%s%.0f%% of %llu", i ? ", " : "",
            100 * share(d->n_accepted[i], d->n_proposed[i]), (unsigned long long)d->n_proposed[i]);
    if (line.n_byte && !line.is_broken)
        terminal_note(t, "kept, by place: %s", line.data);
    buf_free(&line);
}

static void note_saved(double share_saved, const char *what, struct buf *line)
{
    buf_print(line, "%s%.1f%% %s", what, 100 * (share_saved < 0 ? -share_saved : share_saved),
        share_saved < 0 ? "lost" : "saved");
}

static void note_time(const struct hadal_draft_stats *d, struct terminal *t)
{
    struct buf line = {0};
    if (d->n_row == d->n_cycle && d->saved_seconds == 0.0)
        return;
    buf_print(&line, "time %.2f s, ", d->seconds);
    note_saved(d->saved_seconds / (d->seconds + d->saved_seconds), "", &line);
    if (d->n_window) {
        buf_print(&line, "; of %llu stretches of %d tokens ", (unsigned long long)d->n_window,
            HADAL_DRAFT_WINDOW);
        note_saved(d->least_saved, "at worst ", &line);
    }
    if (!line.is_broken)
        terminal_note(t, "%s", line.data);
    buf_free(&line);
}

void draft_report(const hadal_session *session, struct terminal *t)
{
    struct hadal_draft_stats d;
    hadal_session_draft_stats(session, &d);
    if (!d.n_cycle)
        return;
    terminal_note(t, "%llu tokens in %llu steps: %.2f a step kept of %.2f computed",
        (unsigned long long)d.n_token, (unsigned long long)d.n_cycle, share(d.n_token, d.n_cycle),
        share(d.n_row, d.n_cycle));
    note_places(&d, t);
    if (d.n_copied)
        terminal_note(t, "of these, earlier text proposed %llu and %.0f%% were kept",
            (unsigned long long)d.n_copied, 100 * share(d.n_copied_accepted, d.n_copied));
    if (d.n_expected)
        terminal_note(t, "what had to follow was proposed %llu times and %.0f%% were kept",
            (unsigned long long)d.n_expected, 100 * share(d.n_expected_accepted, d.n_expected));
    note_time(&d, t);
}
