/* test_disk.c: spans of files, read by one thread and by many, from disks that work, stutter and fail. */
#include "base/arena.h"
#include "base/rng.h"
#include "store/fake_disk.h"
#include "store/reader.h"
#include "store/resident.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { FILE_BYTES = 40 * DISK_ALIGN + 1234, N_READ = 40, ROOM = 64 * DISK_ALIGN };

struct bench {
    struct arena arena;
    struct fake_disk fake;
    struct disk_calls calls;
    struct disk_file file;
    struct err e;
};

static void *pages(struct arena *a, uint64_t n_byte)
{
    char *p = arena_alloc(a, n_byte + DISK_ALIGN);
    return p + (DISK_ALIGN - (uintptr_t)p % DISK_ALIGN) % DISK_ALIGN;
}

static void open_bench(struct bench *b, struct fake_disk fake)
{
    memset(b, 0, sizeof *b);
    b->fake.n_byte = fake.n_byte ? fake.n_byte : FILE_BYTES;
    b->fake.has_no_direct = fake.has_no_direct;
    b->fake.is_short = fake.is_short;
    b->calls = fake_disk_calls(&b->fake);
    if (disk_open(&b->file, "f3", &b->calls, &b->e))
        fail_msg("%s", b->e.text);
}

static void close_bench(struct bench *b)
{
    disk_close(&b->file);
    assert_int_equal(b->fake.n_open, 0);
    arena_free(&b->arena);
}

/* ---- disk ---- */

static void check_spans(struct bench *b)
{
    unsigned char *to = pages(&b->arena, 64 * DISK_ALIGN);
    for (uint64_t first = 0; first < 41; first += 3)
        for (uint64_t n = 1; first + n <= 41; n += 4) {
            uint64_t at = first * DISK_ALIGN, left = FILE_BYTES - at, size = n * DISK_ALIGN;
            memset(to, 0xee, 64 * DISK_ALIGN);
            if (disk_read(&b->file, at, size, to, &b->e))
                fail_msg("%s", b->e.text);
            assert_true(fake_disk_holds(3, at, to, size < left ? size : left));
        }
}

static void every_span_is_read(void **state)
{
    (void)state;
    for (int is_short = 0; is_short < 2; is_short++)
        for (int has_no_direct = 0; has_no_direct < 3; has_no_direct++) {
            struct bench b;
            open_bench(&b, (struct fake_disk){.is_short = is_short, .has_no_direct = has_no_direct});
            assert_int_equal(b.file.is_direct, !has_no_direct);
            check_spans(&b);
            assert_true(has_no_direct ? b.fake.n_forget > 1 : b.fake.n_forget == 0);
            close_bench(&b);
        }
}

static void missing_files_are_named(void **state)
{
    struct bench b;
    struct disk_file other;
    (void)state;
    open_bench(&b, (struct fake_disk){0});
    assert_int_equal(disk_open(&other, "nowhere", &b.calls, &b.e), -1);
    assert_non_null(strstr(b.e.text, "nowhere: cannot open: No such file"));
    close_bench(&b);
}

static void failures_and_cuts_are_told(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, (struct fake_disk){0});
    void *to = pages(&b.arena, 8 * DISK_ALIGN);
    b.fake.fails_at = b.fake.n_read + 1;
    assert_int_equal(disk_read(&b.file, DISK_ALIGN, DISK_ALIGN, to, &b.e), -1);
    assert_int_equal(b.e.code, ERR_IO);
    assert_string_equal(b.e.text, "f3: cannot read 4096 bytes at 4096: Input/output error");
    b.fake.end = 3 * DISK_ALIGN + 100;
    assert_int_equal(disk_read(&b.file, 2 * DISK_ALIGN, DISK_ALIGN, to, &b.e), 0);
    assert_int_equal(disk_read(&b.file, 2 * DISK_ALIGN, 4 * DISK_ALIGN, to, &b.e), -1);
    assert_string_equal(
        b.e.text, "f3: ends at byte 12388, but had 165074 bytes when it was opened");
    close_bench(&b);
}

/* ---- reader ---- */

struct reads {
    struct reader *reader;
    struct read read[N_READ];
    struct read_group group[N_READ];
    int n;
};

/* Reads of many sizes, some of them aligned, each a group of its own. */
static void plan_reads(struct bench *b, struct reads *r, uint64_t seed)
{
    struct rng rng = rng_of(seed, 0);
    memset(r, 0, sizeof *r);
    for (r->n = 0; r->n < N_READ; r->n++) {
        uint64_t at = rng_below(&rng, FILE_BYTES - 1), n = 1 + rng_below(&rng, FILE_BYTES - at);
        int is_aligned = r->n % 2;
        char *to = pages(&b->arena, ROOM);
        if (is_aligned) {
            at = disk_below(at);
            n = disk_above(n);
        }
        r->read[r->n] = (struct read){
            .file = &b->file, .at = at, .n_byte = n, .to = is_aligned ? to : to + r->n};
    }
}

static int read_is_right(const struct read *r)
{
    uint64_t left = FILE_BYTES - r->at;
    return fake_disk_holds(3, r->at, r->to, r->n_byte < left ? r->n_byte : left);
}

static void open_reads(struct bench *b, struct reads *r, struct fake_disk fake, int n_thread)
{
    open_bench(b, fake);
    plan_reads(b, r, (uint64_t)n_thread);
    if (reader_open(&r->reader, n_thread, &b->e))
        fail_msg("%s", b->e.text);
}

static void start_reads(struct reads *r)
{
    for (int i = 0; i < r->n; i++)
        reader_start(r->reader, &r->group[i], &r->read[i], 1);
}

static void all_reads_arrive(void **state)
{
    struct bench b;
    struct reads r;
    (void)state;
    for (int n_thread = 1; n_thread < 8; n_thread += 3) {
        open_reads(&b, &r, (struct fake_disk){.is_short = n_thread == 4}, n_thread);
        start_reads(&r);
        for (int i = r.n - 1; i >= 0; i--) {
            if (reader_wait(r.reader, &r.group[i], &b.e))
                fail_msg("%s", b.e.text);
            assert_true(read_is_right(&r.read[i]));
        }
        assert_true(reader_stats(r.reader).n_read >= N_READ);
        reader_close(r.reader);
        close_bench(&b);
    }
}

/* Larger than a piece, so several threads work on it. */
static void long_reads_are_shared(void **state)
{
    enum { LONG_BYTES = 5 << 20 };
    struct bench b;
    struct reader *reader;
    struct read_group group = {0};
    (void)state;
    open_bench(&b, (struct fake_disk){.n_byte = LONG_BYTES});
    assert_int_equal(reader_open(&reader, 4, &b.e), 0);
    struct read r[2] = {{.file = &b.file, .at = 0, .n_byte = LONG_BYTES},
        {.file = &b.file, .at = 17, .n_byte = LONG_BYTES - 17}};
    r[0].to = pages(&b.arena, LONG_BYTES);
    r[1].to = pages(&b.arena, LONG_BYTES);
    reader_start(reader, &group, r, 2);
    assert_int_equal(reader_wait(reader, &group, &b.e), 0);
    assert_true(fake_disk_holds(3, 0, r[0].to, LONG_BYTES));
    assert_true(fake_disk_holds(3, 17, r[1].to, LONG_BYTES - 17));
    assert_int_equal(reader_stats(reader).n_read, 5 + 80);
    reader_close(reader);
    close_bench(&b);
}

/* Whichever read of the disk fails: one group says so, all others are right. */
static void one_failure_is_one_groups(void **state)
{
    struct bench b;
    struct reads r;
    (void)state;
    for (int n = 1; n <= N_READ; n++) {
        int n_failed = 0;
        open_reads(&b, &r, (struct fake_disk){0}, 3);
        b.fake.fails_at = b.fake.n_read + n;
        start_reads(&r);
        for (int i = 0; i < r.n; i++)
            if (reader_wait(r.reader, &r.group[i], &b.e))
                n_failed++;
            else
                assert_true(read_is_right(&r.read[i]));
        assert_int_equal(n_failed, 1);
        assert_non_null(strstr(b.e.text, "Input/output error"));
        reader_close(r.reader);
        close_bench(&b);
    }
}

/* Closing with reads under way must not wait for those not begun, nor write to freed memory. */
static void closing_drops_the_rest(void **state)
{
    struct bench b;
    struct reads r;
    (void)state;
    for (int i = 0; i < 20; i++) {
        open_reads(&b, &r, (struct fake_disk){0}, 4);
        start_reads(&r);
        reader_close(r.reader);
        close_bench(&b);
    }
}

/* ---- resident ---- */

static void neighbours_are_read_together(void **state)
{
    enum { N_SPAN = 30, LONG_BYTES = 3 << 20 };
    struct bench b;
    struct reader *reader;
    struct resident_span span[N_SPAN];
    struct rng rng = rng_of(9, 0);
    (void)state;
    open_bench(&b, (struct fake_disk){.n_byte = LONG_BYTES});
    assert_int_equal(reader_open(&reader, 3, &b.e), 0);
    for (int i = 0; i < N_SPAN; i++) {
        uint64_t at = rng_below(&rng, LONG_BYTES - 1);
        uint64_t n = 1 + rng_below(&rng, LONG_BYTES - at < 5000 ? LONG_BYTES - at : 5000);
        span[i] = (struct resident_span){.file = &b.file, .at = at, .n_byte = n};
    }
    uint64_t n_byte = resident_plan(span, N_SPAN);
    char *memory = pages(&b.arena, n_byte);
    struct resident_progress progress = {0};
    assert_int_equal(resident_read(reader, span, N_SPAN, memory, &progress, &b.e), 0);
    for (int i = 0; i < N_SPAN; i++)
        assert_true(fake_disk_holds(3, span[i].at, memory + span[i].place, span[i].n_byte));
    assert_in_range(reader_stats(reader).n_read, 2, N_SPAN - 1);
    b.fake.fails_at = b.fake.n_read + 2;
    assert_int_equal(resident_read(reader, span, N_SPAN, memory, &progress, &b.e), -1);
    reader_close(reader);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_span_is_read),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(failures_and_cuts_are_told),
        cmocka_unit_test(all_reads_arrive),
        cmocka_unit_test(long_reads_are_shared),
        cmocka_unit_test(one_failure_is_one_groups),
        cmocka_unit_test(closing_drops_the_rest),
        cmocka_unit_test(neighbours_are_read_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
