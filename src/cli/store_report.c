/* store_report.c: see store_report.h. */
#include "cli/store_report.h"

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

void store_print(const hadal_engine *engine, struct buf *out)
{
    struct hadal_store_stats s;
    hadal_engine_store_stats(engine, &s);
    if (!s.disk_bytes)
        return;
    buf_print(out, "weights on disk %.2f GiB, cache %.2f GiB | experts in memory %.0f%% of %llu",
        (double)s.disk_bytes / 0x1p30, (double)s.cache_bytes / 0x1p30,
        percent(s.n_expert_hit, s.n_expert), (unsigned long long)s.n_expert);
    if (s.n_row)
        buf_print(out, ", n-gram rows %.0f%% of %llu", percent(s.n_row_hit, s.n_row),
            (unsigned long long)s.n_row);
    buf_print(out, " | read %.2f GiB, waited %.1f s", (double)s.read_bytes / 0x1p30, s.wait_seconds);
}

void store_report(const hadal_engine *engine, struct terminal *t)
{
    struct buf line = {0};
    store_print(engine, &line);
    if (line.n_byte && !line.is_broken)
        terminal_note(t, "%s", line.data);
    buf_free(&line);
}
