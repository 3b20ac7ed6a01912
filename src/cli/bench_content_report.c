/* bench_content_report.c: see bench_content_report.h. */
#include "cli/bench_content_report.h"

#include "text/json_text.h"

#include <inttypes.h>

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* The median repeat in the middle of equals would do as well: proposals hardly differ. */
static const struct content_run *auto_run(const struct content_kind *k)
{
    return &k->run[k->n_repeat / 2][CONTENT_AUTO];
}

static double plain_rate(const struct content_kind *k)
{
    double best = 0;
    for (int i = 0; i < k->n_repeat; i++) {
        double rate = k->run[i][CONTENT_PLAIN].n_token / k->run[i][CONTENT_PLAIN].seconds;
        best = rate > best ? rate : best;
    }
    return best;
}

/* ---- For people ---- */

static void print_kind(const struct content_kind *k, struct buf *out)
{
    const struct hadal_draft_stats *a = &auto_run(k)->stats;
    double speed[3], worst = 0;
    content_speed_up(k, speed);
    for (int i = 0; i < k->n_stretch; i++) {
        double ratio = content_stretch_speed_up(k, i);
        worst = !i || ratio < worst ? ratio : worst;
    }
    buf_print(out, "%-10s %7d %11.1f %7.2f (%.2f-%.2f)", k->name, k->run[0][0].n_token,
        plain_rate(k), speed[1], speed[0], speed[2]);
    if (k->n_stretch)
        buf_print(out, " %11.2f", worst);
    else
        buf_print(out, " %11s", "-");
    buf_print(out, " %8.2f %8.2f %7.1f%% ", share(a->n_token, a->n_cycle),
        share(a->n_row, a->n_cycle), 100 * a->saved_seconds / (a->seconds + a->saved_seconds));
    if (k->has_blocks) {
        const struct hadal_draft_stats *b = &k->blocks.stats;
        buf_print(out, "%8.2f ", share(b->n_token, b->n_cycle));
        for (int i = 0; i < HADAL_DRAFT_PLACES && b->n_proposed[i]; i++)
            buf_print(out, " %.0f",
                100 * share(b->n_accepted[i], i ? b->n_accepted[i - 1] : b->n_proposed[i]));
    }
    buf_text(out, content_is_same_text(k) ? "\n" : "  TEXTS DIFFER\n");
}

void content_print_table(const struct content_found *found, struct buf *out)
{
    buf_print(out, "%-10s %7s %11s %19s %11s %8s %8s %8s %8s  %s\n", "", "tokens", "plain t/s",
        "times as fast", "worst 256", "a step", "computed", "saved", "blocks",
        "kept by place, of 100 whose forerunners were");
    for (int i = 0; i < found->n; i++)
        print_kind(&found->kind[i], out);
}

/* ---- For programs ---- */

static void print_counts(const char *name, const uint64_t *count, struct buf *out)
{
    int n = HADAL_DRAFT_PLACES;
    while (n && !count[n - 1])
        n--;
    buf_print(out, ", \"%s\": [", name);
    for (int i = 0; i < n; i++)
        buf_print(out, "%s%" PRIu64, i ? ", " : "", count[i]);
    buf_text(out, "]");
}

static void print_stats(const char *name, const struct hadal_draft_stats *d, struct buf *out)
{
    buf_print(out,
        "\n   \"%s\": {\"n_step\": %" PRIu64 ", \"n_token\": %" PRIu64 ", \"n_row\": %" PRIu64
        ", \"n_copied\": %" PRIu64 ", \"n_copied_kept\": %" PRIu64 ", \"n_forced\": %" PRIu64
        ", \"n_forced_kept\": %" PRIu64
        ", \"seconds\": %.6g, \"saved_seconds\": %.6g, \"least_saved_share\": %.6g",
        name, d->n_cycle, d->n_token, d->n_row, d->n_copied, d->n_copied_accepted, d->n_expected,
        d->n_expected_accepted, d->seconds, d->saved_seconds, d->least_saved);
    print_counts("n_proposed", d->n_proposed, out);
    print_counts("n_kept", d->n_accepted, out);
    buf_text(out, "},");
}

static void print_seconds(
    const char *name, const struct content_kind *k, enum content_way way, struct buf *out)
{
    buf_print(out, "\n   \"%s\": [", name);
    for (int i = 0; i < k->n_repeat; i++)
        buf_print(out, "%s%.6g", i ? ", " : "", k->run[i][way].seconds);
    buf_text(out, "],");
}

static void print_kind_json(const struct content_kind *k, struct buf *out)
{
    double speed[3];
    content_speed_up(k, speed);
    buf_text(out, "  {\"kind\": ");
    json_text_write_string(out, text_of(k->name));
    buf_print(out, ", \"n_prompt\": %d, \"n_token\": %d, \"is_same_text\": %s,", k->n_prompt,
        k->run[0][0].n_token, content_is_same_text(k) ? "true" : "false");
    print_seconds("plain_seconds", k, CONTENT_PLAIN, out);
    print_seconds("auto_seconds", k, CONTENT_AUTO, out);
    print_stats("auto", &auto_run(k)->stats, out);
    if (k->has_blocks)
        print_stats("blocks", &k->blocks.stats, out);
    buf_print(out, "\n   \"times_as_fast\": {\"median\": %.4g, \"least\": %.4g, \"most\": %.4g},",
        speed[1], speed[0], speed[2]);
    buf_text(out, "\n   \"stretches_times_as_fast\": [");
    for (int i = 0; i < k->n_stretch; i++)
        buf_print(out, i ? ", %.4g" : "%.4g", content_stretch_speed_up(k, i));
    buf_text(out, "]}");
}

void content_print_json(const struct bench_report *r, const struct content_plan *plan,
    const struct content_found *found, struct buf *out)
{
    bench_print_head(r, out);
    buf_print(out, "\"temperature\": %g, \"n_repeat\": %d,\n\"content\": [\n",
        (double)plan->sampling.temperature, plan->n_repeat);
    for (int i = 0; i < found->n; i++) {
        print_kind_json(&found->kind[i], out);
        buf_text(out, i + 1 < found->n ? ",\n" : "\n");
    }
    buf_text(out, "]}\n");
}
