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

static void note_time(const struct hadal_draft_stats *d, struct terminal *t)
{
    double plain = d->step_seconds * (double)d->n_token;
    if (plain > 0.0 && d->n_row > d->n_cycle)
        terminal_note(t, "time %.2f s; one token at a time about %.2f s: %.0f%% %s", d->seconds,
            plain, 100 * (d->seconds < plain ? 1 - d->seconds / plain : d->seconds / plain - 1),
            d->seconds < plain ? "saved" : "lost");
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
    note_time(&d, t);
}
