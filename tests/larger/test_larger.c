/* test_larger.c: whole models with less memory than they need: the same bits, whatever the budget; a disk
 * that fails costs a step and nothing else. */
#include "base/arena.h"
#include "engine/engine.h"
#include "support/toy_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_PROMPT = 75, N_TOLD = 40, N_CONTEXT = 256 };

static const char *const shipped[] = {"models/hadal-tiny-v4.gguf", "models/hadal-tiny-v41.gguf"};

/* ---- A disk that fails when told to ---- */

struct bad_disk {
    struct disk_calls calls;
    atomic_int n_read, fails_at, fails_from; /* as in store/fake_disk.h */
};

static int open_it(void *context, const char *path, int is_direct)
{
    (void)context;
    return disk_system.open(NULL, path, is_direct);
}

static int64_t size_of(void *context, int fd)
{
    (void)context;
    return disk_system.size(NULL, fd);
}

static int64_t read_it(void *context, int fd, void *to, uint64_t n_byte, uint64_t at)
{
    struct bad_disk *d = context;
    int n = atomic_fetch_add(&d->n_read, 1) + 1, fails_at = atomic_load(&d->fails_at),
        from = atomic_load(&d->fails_from);
    if ((fails_at && n == fails_at) || (from && n >= from)) {
        errno = EIO;
        return -1;
    }
    return disk_system.read(NULL, fd, to, n_byte, at);
}

static void forget(void *context, int fd, uint64_t at, uint64_t n_byte)
{
    (void)context;
    disk_system.forget(NULL, fd, at, n_byte);
}

static void close_it(void *context, int fd)
{
    (void)context;
    disk_system.close(NULL, fd);
}

static struct bad_disk *bad_disk(struct arena *a)
{
    struct bad_disk *d = ARENA_NEW(a, struct bad_disk, 1);
    d->calls = (struct disk_calls){d, open_it, size_of, read_it, forget, close_it};
    return d;
}

/* ---- What a model tells ---- */

struct tale {
    int n_vocab;
    int32_t ids[N_PROMPT + N_TOLD + HADAL_NEXT_MAX];
    float *prompt; /* [N_PROMPT, n_vocab] */
    float *last;   /* [n_vocab] behind the told tokens */
};

static const struct hadal_sampling sampling = {
    .temperature = 0.8f, .top_p = 0.95f, .repetition_penalty = 1, .seed = 11};

static struct hadal_engine_options options_for(const char *model, uint64_t memory_bytes)
{
    return (struct hadal_engine_options){.model = model,
        .n_context = N_CONTEXT,
        .n_chunk = 32,
        .n_thread = 2,
        .memory_bytes = memory_bytes};
}

static hadal_engine *open_engine(const char *model, uint64_t memory_bytes, struct bad_disk *disk)
{
    hadal_engine *engine = NULL;
    struct hadal_engine_options o = options_for(model, memory_bytes);
    struct err e = {0};
    if (engine_open(&engine, &o, disk ? &disk->calls : NULL, &e))
        fail_msg("%s", e.text);
    return engine;
}

static hadal_session *open_session(hadal_engine *engine)
{
    hadal_session *session = NULL;
    struct err e = {0};
    if (hadal_session_open(&session, engine, &e))
        fail_msg("%s", e.text);
    return session;
}

/* Some repeat, so that copies are proposed. */
static void write_prompt(int32_t *ids, int n_vocab)
{
    for (int i = 0; i < N_PROMPT; i++)
        ids[i] = (int32_t)((uint32_t)(i % 31) * 2654435761u >> 8) % n_vocab;
}

static void tell(hadal_session *session, struct tale *t, struct arena *a)
{
    struct hadal_engine_info info;
    struct err e = {0};
    hadal_engine_info(session->engine, &info);
    t->n_vocab = info.n_vocab;
    t->prompt = ARENA_NEW(a, float, (size_t)N_PROMPT *(size_t)info.n_vocab);
    t->last = ARENA_NEW(a, float, (size_t)info.n_vocab);
    write_prompt(t->ids, info.n_vocab);
    if (hadal_session_append(session, t->ids, N_PROMPT, t->prompt, &e))
        fail_msg("%s", e.text);
    for (int n = 0, given; n < N_TOLD; n += given)
        if (hadal_session_next(session, &sampling, n % 3 ? -1 : 5, t->ids + N_PROMPT + n, &given, &e))
            fail_msg("%s", e.text);
    if (hadal_session_rewind(session, N_PROMPT + N_TOLD - 1, &e) ||
        hadal_session_append(session, t->ids + N_PROMPT + N_TOLD - 1, 1, t->last, &e))
        fail_msg("%s", e.text);
}

static void compare(const struct tale *t, const struct tale *truth, const char *what)
{
    size_t row = (size_t)truth->n_vocab * sizeof(float);
    for (int i = 0; i < N_PROMPT + N_TOLD; i++)
        if (t->ids[i] != truth->ids[i])
            fail_msg("%s: token %d is %d, should be %d", what, i, (int)t->ids[i], (int)truth->ids[i]);
    if (memcmp(t->prompt, truth->prompt, N_PROMPT * row) || memcmp(t->last, truth->last, row))
        fail_msg("%s: other logits", what);
}

/* The tale of a model that is mapped. */
static void tell_truth(const char *model, struct tale *t, struct arena *a)
{
    hadal_engine *engine = open_engine(model, 0, NULL);
    hadal_session *session = open_session(engine);
    struct hadal_store_stats stats;
    tell(session, t, a);
    hadal_engine_store_stats(engine, &stats);
    assert_int_equal(stats.disk_bytes, 0);
    hadal_session_close(session);
    hadal_engine_close(engine);
}

/* ---- Budgets ---- */

/* The least that the model can do with, as its refusal says. */
static uint64_t least_bytes(const char *model)
{
    hadal_engine *engine = NULL;
    struct hadal_engine_options o = options_for(model, 1);
    struct err e = {0};
    unsigned long long n = 0;
    assert_int_equal(hadal_engine_open(&engine, &o, &e), -1);
    assert_null(engine);
    assert_int_equal(e.code, ERR_MEMORY);
    const char *at = strstr(e.text, "GiB (");
    if (!at || sscanf(at, "GiB (%llu MiB)", &n) != 1)
        fail_msg("no size named: %s", e.text);
    return (uint64_t)n << 20;
}

static void check_budget(const char *model, uint64_t n_byte, const struct tale *truth)
{
    struct arena arena = {0};
    struct tale t;
    struct hadal_store_stats stats;
    char what[200];
    hadal_engine *engine = open_engine(model, n_byte, NULL);
    hadal_session *session = open_session(engine);
    snprintf(what, sizeof what, "%s with %llu bytes", model, (unsigned long long)n_byte);
    tell(session, &t, &arena);
    compare(&t, truth, what);
    hadal_engine_store_stats(engine, &stats);
    assert_true(stats.disk_bytes > 0);
    assert_true(stats.n_expert > stats.n_expert_hit);
    assert_true(stats.read_bytes > 0);
    assert_int_equal(stats.n_row > 0, engine->model.config->n_engram > 0);
    hadal_session_close(session);
    hadal_engine_close(engine);
    arena_free(&arena);
}

/* From the least on, until nothing needs to stay on disk. */
static void check_budgets(const char *model, uint64_t step)
{
    struct arena arena = {0};
    struct tale truth;
    uint64_t least = least_bytes(model);
    tell_truth(model, &truth, &arena);
    for (uint64_t n = least;; n += step) {
        hadal_engine *engine = open_engine(model, n, NULL);
        struct hadal_store_stats stats;
        hadal_engine_store_stats(engine, &stats);
        hadal_engine_close(engine);
        if (!stats.disk_bytes) {
            assert_true(n > least); /* there was something to test */
            break;
        }
        check_budget(model, n, &truth);
    }
    arena_free(&arena);
}

static void shipped_models_keep_their_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        check_budgets(shipped[i], 1 << 20);
}

static void too_small_is_refused_with_the_size(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        hadal_engine *engine = NULL;
        struct hadal_engine_options o =
            options_for(shipped[i], least_bytes(shipped[i]) - (2 << 20));
        struct err e = {0};
        assert_int_equal(hadal_engine_open(&engine, &o, &e), -1);
        assert_int_equal(e.code, ERR_MEMORY);
        assert_non_null(strstr(e.text, "try a larger --memory"));
    }
}

/* ---- Checkpoint folders: experts one by one, formats with scales ---- */

static void write_toy(char folder[32], int is_41, enum toy_format format, struct arena *a)
{
    struct err e = {0};
    strcpy(folder, "/tmp/hadal-larger-XXXXXX");
    assert_non_null(mkdtemp(folder));
    struct toy_model *toy = is_41 ? toy_v41(a, &e) : toy_v4(a, &e);
    assert_non_null(toy);
    if (toy_folder_write(toy, folder, format, 3, &e))
        fail_msg("%s", e.text);
}

static void remove_folder(const char *folder)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* A forward pass with the weights of a folder on disk; cache_share of what is beyond the least. */
static float *run_folder(const char *folder, double cache_share, struct arena *a)
{
    struct hadal_engine_options o = options_for(folder, 0);
    hadal_engine *engine = NULL;
    struct stored *stored = NULL;
    struct err e = {0};
    if (hadal_engine_open(&engine, &o, &e))
        fail_msg("%s", e.text);
    if (cache_share >= 0) {
        struct stored_options so = {engine->file, engine->be, &disk_system, 32};
        struct resident_progress progress = {0};
        if (stored_open(&stored, &so, &e))
            fail_msg("%s", e.text);
        struct stored_need need = stored_need(stored);
        uint64_t more = need.whole_bytes - need.least_bytes;
        if (stored_load(stored, need.least_bytes + (uint64_t)((double)more * cache_share), &progress, &e))
            fail_msg("%s", e.text);
        engine->forward.stored = engine->stored = stored;
        engine->forward.weights = stored_weights(stored);
    }
    hadal_session *session = open_session(engine);
    int32_t ids[N_PROMPT];
    float *logits = ARENA_NEW(a, float, (size_t)N_PROMPT *(size_t)engine->model.config->n_vocab);
    write_prompt(ids, engine->model.config->n_vocab);
    if (hadal_session_append(session, ids, N_PROMPT, logits, &e))
        fail_msg("%s", e.text);
    if (stored)
        assert_true(stored_stats(stored).reads.n_read > 0);
    hadal_session_close(session);
    hadal_engine_close(engine);
    return logits;
}

static void folders_keep_their_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct arena arena = {0};
        char folder[32];
        write_toy(folder, i % 2, i / 2 ? TOY_NATIVE : TOY_F32, &arena);
        float *truth = run_folder(folder, -1, &arena);
        for (int k = 0; k <= 4; k++) {
            float *logits = run_folder(folder, k / 4.0, &arena);
            assert_memory_equal(logits, truth, N_PROMPT * (i % 2 ? 120 : 101) * sizeof *logits);
        }
        remove_folder(folder);
        arena_free(&arena);
    }
}

/* ---- Failures ---- */

static void note_failure(const struct err *e, int *n_failed)
{
    if (e->code != ERR_IO)
        fail_msg("%s", e->text);
    ++*n_failed;
}

/* Tells the tale in spite of failing steps. */
static int tell_anyway(hadal_session *session, const struct tale *truth, struct bad_disk *disk, int every)
{
    struct err e = {0};
    int32_t ids[HADAL_NEXT_MAX];
    int n = 0, n_now, n_failed = 0;
    while (hadal_session_sync(session, truth->ids, N_PROMPT, NULL, &e)) {
        note_failure(&e, &n_failed);
        disk->fails_at = disk->n_read + every * n_failed;
    }
    while (n < N_TOLD) {
        disk->fails_at = disk->n_read + 1 + n_failed % every;
        if (hadal_session_next(session, &sampling, n_failed % 2 ? 5 : -1, ids, &n_now, &e)) {
            note_failure(&e, &n_failed);
            disk->fails_at = 0;
            if (hadal_session_next(session, &sampling, -1, ids, &n_now, &e))
                fail_msg("%s", e.text);
        }
        for (int i = 0; i < n_now && n + i < N_TOLD; i++)
            assert_int_equal(ids[i], truth->ids[N_PROMPT + n + i]);
        n += n_now;
    }
    return n_failed;
}

static void sessions_survive_a_failing_disk(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct arena arena = {0};
        struct bad_disk *disk = bad_disk(&arena);
        struct tale truth, t;
        tell_truth(shipped[i], &truth, &arena);
        hadal_engine *engine = open_engine(shipped[i], least_bytes(shipped[i]), disk);
        hadal_session *session = open_session(engine);
        disk->fails_at = disk->n_read + 7;
        assert_true(tell_anyway(session, &truth, disk, 9) > 0);
        disk->fails_at = 0;
        struct err e = {0};
        assert_int_equal(hadal_session_rewind(session, 0, &e), 0);
        tell(session, &t, &arena);
        compare(&t, &truth, "after failures");
        hadal_session_close(session);
        hadal_engine_close(engine);
        arena_free(&arena);
    }
}

/* Reads that fail while the model is loaded. */
static void loading_fails_cleanly(void **state)
{
    struct arena arena = {0};
    uint64_t least = least_bytes(shipped[1]);
    (void)state;
    for (int n = 1; n <= 12; n++) {
        struct bad_disk *disk = bad_disk(&arena);
        struct hadal_engine_options o = options_for(shipped[1], least);
        hadal_engine *engine = NULL;
        struct err e = {0};
        disk->fails_at = n;
        if (!engine_open(&engine, &o, &disk->calls, &e)) {
            assert_true(n == 1 || disk->n_read < n); /* 1: whether direct reads work */
            hadal_engine_close(engine);
            continue;
        }
        assert_int_equal(e.code, ERR_IO);
        assert_non_null(strstr(e.text, shipped[1]));
    }
    arena_free(&arena);
}

static void copy_file(const char *from, const char *to)
{
    char command[200];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    assert_int_equal(system(command), 0);
}

/* Cut while it is open: an error that says so; with its bytes back the session goes on. */
static void a_cut_file_is_noticed(void **state)
{
    struct arena arena = {0};
    struct tale truth;
    char path[64];
    struct err e = {0};
    int32_t ids[HADAL_NEXT_MAX];
    int n_now;
    (void)state;
    snprintf(path, sizeof path, "/tmp/hadal-cut-%d.gguf", (int)getpid());
    copy_file(shipped[0], path);
    tell_truth(shipped[0], &truth, &arena);
    hadal_engine *engine = open_engine(path, least_bytes(path), NULL);
    hadal_session *session = open_session(engine);
    assert_int_equal(hadal_session_sync(session, truth.ids, N_PROMPT, NULL, &e), 0);
    assert_int_equal(truncate(path, 2 << 20), 0);
    assert_int_equal(hadal_session_next(session, &sampling, 0, ids, &n_now, &e), -1);
    assert_int_equal(e.code, ERR_IO);
    assert_non_null(strstr(e.text, "when it was opened"));
    copy_file(shipped[0], path);
    for (int i = 0; i < 10; i++) {
        if (hadal_session_next(session, &sampling, 0, ids, &n_now, &e))
            fail_msg("%s", e.text);
        assert_int_equal(ids[0], truth.ids[N_PROMPT + i]);
    }
    hadal_session_close(session);
    hadal_engine_close(engine);
    unlink(path);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_small_is_refused_with_the_size),
        cmocka_unit_test(shipped_models_keep_their_bits),
        cmocka_unit_test(folders_keep_their_bits),
        cmocka_unit_test(sessions_survive_a_failing_disk),
        cmocka_unit_test(loading_fails_cleanly),
        cmocka_unit_test(a_cut_file_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
