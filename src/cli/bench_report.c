/* bench_report.c: see bench_report.h. Every number in the files has its unit in its name. */
#include "cli/bench_report.h"

#include "base/memory.h"
#include "text/json_text.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *name, *title, *unit;
    const char *count; /* what n_token counts */
    int is_time;
} kinds[N_BENCH_KIND] = {
    [BENCH_PREFILL] = {"prefill", "prefill up to", "tokens_per_second", "new tokens", 0},
    [BENCH_DECODE] = {"decode", "decode behind", "tokens_per_second", "tokens", 0},
    [BENCH_DRAFTS] = {"decode_drafts", "with drafts behind", "tokens_per_second", "tokens", 0},
    [BENCH_LIVE] = {"first_token_live", "first token, live prefix", "seconds", "new tokens", 1},
    [BENCH_COLD] = {"first_token_cold", "first token, read anew", "seconds", "new tokens", 1},
};

/* ---- For people ---- */

static void print_title(const struct bench_report *r, struct buf *out)
{
    const struct hadal_engine_info *i = r->info;
    buf_print(out, "%s (%s), %.1f MB of weights, %s %s, threads %d\n", i->model_name,
        i->architecture, (double)i->weight_bytes / 1e6, i->backend, i->level ? i->level : "",
        i->n_thread);
    buf_print(out, "%-24s %8s %12s %14s %9s\n", "", "context", "tokens", "median", "spread");
}

void bench_print_table(const struct bench_report *r, struct buf *out)
{
    print_title(r, out);
    for (int i = 0; i < r->rows->n; i++) {
        const struct bench_row *row = &r->rows->row[i];
        double s[3], spread;
        bench_summary(row, s);
        spread = 100.0 * (s[2] - s[0]) / s[1];
        buf_print(out, "%-24s %8d %12d ", kinds[row->kind].title, row->depth, row->n_token);
        if (kinds[row->kind].is_time)
            buf_print(out, "%11.1f ms", s[1] * 1e3);
        else
            buf_print(out, "%10.1f t/s", s[1]);
        buf_print(out, " %7.0f %%", spread);
        if (row->kind == BENCH_DRAFTS)
            buf_print(out, "  %.2f tokens a step", row->n_per_step);
        if (r->store->disk_bytes)
            buf_print(out, "  read %.2f GB/s, waited %.0f %%, experts in memory %.0f %%",
                row->disk.n_byte / row->disk.seconds / 1e9,
                100 * row->disk.wait_seconds / row->disk.seconds,
                100 * row->disk.n_expert_hit / row->disk.n_expert);
        buf_text(out, "\n");
    }
}

/* ---- For programs ---- */

static void print_string(struct buf *out, const char *name, const char *value)
{
    buf_print(out, "\"%s\": ", name);
    if (value)
        json_text_write_string(out, text_of(value));
    else
        buf_text(out, "null");
}

/* "model name" of /proc/cpuinfo, where there is one. */
static void read_cpu_name(char *name, size_t n_name)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(name, n_name, "unknown");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
            snprintf(name, n_name, "%s", strchr(line, ':') + 2);
            name[strcspn(name, "\n")] = 0;
            break;
        }
    if (f)
        fclose(f);
}

/* The arguments as the system knows them, separated by spaces. */
static void read_command(char *command, size_t n_command)
{
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f ? fread(command, 1, n_command - 1, f) : 0;
    if (f)
        fclose(f);
    for (size_t i = 0; i + 1 < n; i++)
        if (!command[i])
            command[i] = ' ';
    command[n] = 0;
}

static void print_machine(struct buf *out)
{
    char cpu[200], now[32];
    struct utsname u;
    time_t t = time(NULL);
    struct tm utc;
    uname(&u);
    gmtime_r(&t, &utc);
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &utc);
    read_cpu_name(cpu, sizeof cpu);
    print_string(out, "finished", now);
    buf_text(out, ",\n\"machine\": {");
    print_string(out, "cpu", cpu);
    buf_print(out, ", \"n_processor\": %ld, \"memory_bytes\": %llu, ",
        sysconf(_SC_NPROCESSORS_ONLN), (unsigned long long)memory_physical());
    print_string(out, "system", u.sysname);
    buf_text(out, ", ");
    print_string(out, "release", u.release);
    buf_text(out, ", ");
    print_string(out, "architecture", u.machine);
    buf_text(out, "},\n");
}

static void print_engine(const struct bench_report *r, struct buf *out)
{
    const struct hadal_engine_info *i = r->info;
    buf_text(out, "\"model\": {");
    print_string(out, "name", i->model_name);
    buf_text(out, ", ");
    print_string(out, "architecture", i->architecture);
    buf_text(out, ", ");
    print_string(out, "file", r->model);
    buf_print(out, ", \"n_layer\": %d, \"weight_bytes\": %llu},\n\"engine\": {", i->n_layer,
        (unsigned long long)i->weight_bytes);
    print_string(out, "backend", i->backend);
    buf_text(out, ", ");
    print_string(out, "level", i->level);
    buf_print(out, ", \"n_thread\": %d, \"n_context\": %d, \"n_chunk\": %d, \"n_draft\": %d},\n",
        i->n_thread, i->n_context, r->n_chunk, i->n_draft);
}

static void print_row(const struct bench_report *r, const struct bench_row *row, struct buf *out)
{
    double s[3];
    bench_summary(row, s);
    buf_print(out, "  {\"kind\": \"%s\", \"depth\": %d, \"n_token\": %d, ", kinds[row->kind].name,
        row->depth, row->n_token);
    if (row->kind == BENCH_DRAFTS)
        buf_print(out, "\"n_per_step\": %.4g, ", row->n_per_step);
    if (r->store->disk_bytes)
        buf_print(out,
            "\"read_bytes\": %.0f, \"seconds\": %.6g, \"wait_seconds\": %.6g, \"n_expert\": %.0f, "
            "\"n_expert_hit\": %.0f, ",
            row->disk.n_byte, row->disk.seconds, row->disk.wait_seconds, row->disk.n_expert,
            row->disk.n_expert_hit);
    buf_print(out,
        "\"unit\": \"%s\", \"median\": %.6g, \"least\": %.6g, \"most\": %.6g, \"samples\": [",
        kinds[row->kind].unit, s[1], s[0], s[2]);
    for (int i = 0; i < row->n_sample; i++)
        buf_print(out, i ? ", %.6g" : "%.6g", row->sample[i]);
    buf_text(out, "]}");
}

void bench_print_head(const struct bench_report *r, struct buf *out)
{
    char command[4096];
    read_command(command, sizeof command);
    buf_text(out, "{");
    print_string(out, "version", r->version);
    buf_text(out, ", ");
    print_string(out, "commit", r->commit);
    buf_text(out, ",\n");
    print_string(out, "command", command);
    buf_text(out, ",\n");
    print_machine(out);
    print_engine(r, out);
    if (r->store->disk_bytes)
        buf_print(out, "\"store\": {\"disk_bytes\": %llu, \"cache_bytes\": %llu},\n",
            (unsigned long long)r->store->disk_bytes, (unsigned long long)r->store->cache_bytes);
}

void bench_print_json(const struct bench_report *r, struct buf *out)
{
    bench_print_head(r, out);
    buf_text(out, "\"rows\": [\n");
    for (int i = 0; i < r->rows->n; i++) {
        print_row(r, &r->rows->row[i], out);
        buf_text(out, i + 1 < r->rows->n ? ",\n" : "\n");
    }
    buf_text(out, "]}\n");
}

void bench_print_csv(const struct bench_report *r, struct buf *out)
{
    buf_text(out, "kind,depth,n_token,unit,median,least,most,n_sample\n");
    for (int i = 0; i < r->rows->n; i++) {
        const struct bench_row *row = &r->rows->row[i];
        double s[3];
        bench_summary(row, s);
        buf_print(out, "%s,%d,%d,%s,%.6g,%.6g,%.6g,%d\n", kinds[row->kind].name, row->depth,
            row->n_token, kinds[row->kind].unit, s[1], s[0], s[2], row->n_sample);
    }
}
