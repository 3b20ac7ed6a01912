/* soak.c: long runs over hadal.h, for the soak suite.
 *
 *   soak drafts MODEL N      N tokens without and with drafts: the same tokens and the same logits,
 * bit for bit soak memory MODEL N      N cycles of opening, writing, undoing, drafting and closing;
 * resident KiB now and then
 */
#include "base/err.h"
#include "hadal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct err e;

static void need(int failed)
{
    if (!failed)
        return;
    fprintf(stderr, "%s\n", e.text);
    exit(1);
}

static uint64_t random_state = 1;

static int random_below(int n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)n);
}

static long resident_kib(void)
{
    long pages = 0, total;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &total, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void same_state(
    const hadal_session *a, const hadal_session *b, int n_vocab, const char *what)
{
    int n_a, n_b;
    const int32_t *ids_a = hadal_session_ids(a, &n_a), *ids_b = hadal_session_ids(b, &n_b);
    if (n_a == n_b && !memcmp(ids_a, ids_b, (size_t)n_a * sizeof *ids_a) &&
        !memcmp(hadal_session_logits(a), hadal_session_logits(b), (size_t)n_vocab * sizeof(float)))
        return;
    fprintf(stderr, "%s: %d and %d tokens differ\n", what, n_a, n_b);
    exit(1);
}

/* The plain session follows the drafting one token by token, choosing for itself. */
static void follow(
    hadal_session *plain, const hadal_session *drafting, const struct hadal_sampling *sampling)
{
    int32_t ids[HADAL_NEXT_MAX];
    int n_plain, n_drafting, n;
    hadal_session_ids(drafting, &n_drafting);
    for (hadal_session_ids(plain, &n_plain); n_plain < n_drafting; n_plain += n)
        need(hadal_session_next(plain, sampling, 0, ids, &n, &e));
}

static void prompt(hadal_session *a, hadal_session *b, int n_vocab)
{
    int32_t ids[24];
    for (int i = 0; i < 24; i++)
        ids[i] = random_below(n_vocab);
    need(hadal_session_sync(a, ids, 24, NULL, &e) || hadal_session_sync(b, ids, 24, NULL, &e));
}

static void soak_drafts(hadal_engine *engine, long n_token)
{
    struct hadal_sampling sampling = {.top_p = 0.95f, .repetition_penalty = 1};
    struct hadal_engine_info info;
    struct hadal_draft_stats stats;
    hadal_session *plain, *drafting;
    int32_t ids[HADAL_NEXT_MAX];
    long n_done = 0;
    int length = 0, n, round = 0;
    hadal_engine_info(engine, &info);
    need(hadal_session_open(&plain, engine, &e) || hadal_session_open(&drafting, engine, &e));
    for (; n_done < n_token; n_done += n) {
        if (!length || length + HADAL_NEXT_MAX >
                           info.n_context) { /* a new text: greedy, then at two temperatures */
            prompt(plain, drafting, info.n_vocab);
            sampling.temperature = 0.5f * (float)(round++ % 3);
        }
        need(hadal_session_next(
            drafting, &sampling, random_below(HADAL_NEXT_MAX + 1) - 1, ids, &n, &e));
        follow(plain, drafting, &sampling);
        same_state(plain, drafting, info.n_vocab, "drafts");
        hadal_session_ids(drafting, &length);
    }
    hadal_session_draft_stats(drafting, &stats);
    printf("{\"tokens\": %ld, \"cycles\": %llu, \"texts\": %d}\n", n_done,
        (unsigned long long)stats.n_cycle, round);
    hadal_session_close(plain);
    hadal_session_close(drafting);
}

static void cycle(hadal_engine *engine, int n_vocab)
{
    struct hadal_sampling sampling = {.temperature = 1, .top_p = 0.9f, .repetition_penalty = 1.1f};
    hadal_session *session;
    int32_t ids[48];
    int n, length = 1 + random_below(48);
    for (int i = 0; i < length; i++)
        ids[i] = random_below(n_vocab);
    need(hadal_session_open(&session, engine, &e) ||
         hadal_session_append(session, ids, length, NULL, &e));
    for (int i = 0; i < 3; i++)
        need(hadal_session_next(
            session, &sampling, random_below(HADAL_NEXT_MAX + 1) - 1, ids, &n, &e));
    hadal_session_ids(session, &n);
    need(hadal_session_rewind(session, random_below(n + 1), &e) ||
         hadal_session_append(session, ids, 1, NULL, &e));
    hadal_session_close(session);
}

static void soak_memory(hadal_engine *engine, long n_cycle)
{
    struct hadal_engine_info info;
    hadal_engine_info(engine, &info);
    for (long i = 1; i <= n_cycle; i++) {
        cycle(engine, info.n_vocab);
        if (i % (n_cycle / 20 ? n_cycle / 20 : 1) == 0)
            printf("{\"cycle\": %ld, \"resident_kib\": %ld}\n", i, resident_kib());
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    struct hadal_engine_options o = {.model = argv[2], .n_context = 1024, .n_session = 2};
    hadal_engine *engine;
    need(hadal_engine_open(&engine, &o, &e));
    long n = atol(argv[3]);
    if (!strcmp(argv[1], "drafts"))
        soak_drafts(engine, n);
    else
        soak_memory(engine, n);
    hadal_engine_close(engine);
    return 0;
}
