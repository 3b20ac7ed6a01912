/* test_keep.c: what is kept in memory: the pool against a dumb list, experts and rows by their bytes,
 * with every budget and every failing read. */
#include "base/arena.h"
#include "base/rng.h"
#include "store/demand.h"
#include "store/fake_disk.h"
#include "store/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void *pages(struct arena *a, uint64_t n_byte)
{
    char *p = arena_alloc(a, n_byte + DISK_ALIGN);
    return p + (DISK_ALIGN - (uintptr_t)p % DISK_ALIGN) % DISK_ALIGN;
}

/* ---- pool ---- */

enum { N_SLOT = 7, N_KEY = 20 };

/* The same as a list of keys, oldest first. */
struct dumb {
    uint64_t key[N_SLOT];
    int pins[N_SLOT], n;
};

static int dumb_find(const struct dumb *d, uint64_t key)
{
    for (int i = 0; i < d->n; i++)
        if (d->key[i] == key)
            return i;
    return -1;
}

static void dumb_remove(struct dumb *d, int i)
{
    d->n--;
    memmove(&d->key[i], &d->key[i + 1], (size_t)(d->n - i) * sizeof *d->key);
    memmove(&d->pins[i], &d->pins[i + 1], (size_t)(d->n - i) * sizeof *d->pins);
}

static void dumb_insert(struct dumb *d, int i, uint64_t key, int pins)
{
    memmove(&d->key[i + 1], &d->key[i], (size_t)(d->n - i) * sizeof *d->key);
    memmove(&d->pins[i + 1], &d->pins[i], (size_t)(d->n - i) * sizeof *d->pins);
    d->key[i] = key;
    d->pins[i] = pins;
    d->n++;
}

static int dumb_take(struct dumb *d, uint64_t key)
{
    int i = 0;
    while (d->n == N_SLOT && i < d->n && d->pins[i])
        i++;
    if (i == N_SLOT)
        return -1;
    if (d->n == N_SLOT)
        dumb_remove(d, i);
    dumb_insert(d, d->n, key, 1);
    return 0;
}

static void dumb_pin(struct dumb *d, int i, int change, int goes_first)
{
    uint64_t key = d->key[i];
    int pins = d->pins[i] + change;
    dumb_remove(d, i);
    dumb_insert(d, goes_first ? 0 : d->n, key, pins);
}

static void pool_step(struct pool *p, struct dumb *d, struct rng *rng)
{
    uint64_t key = rng_below(rng, N_KEY);
    int slot = pool_find(p, key), at = dumb_find(d, key), goes_first = rng_below(rng, 4) == 0;
    assert_int_equal(slot >= 0, at >= 0);
    if (slot < 0) {
        slot = pool_take(p, key);
        assert_int_equal(slot >= 0, dumb_take(d, key) == 0);
    } else if (d->pins[at] && rng_below(rng, 3)) {
        pool_unpin(p, slot, goes_first);
        dumb_pin(d, at, -1, goes_first);
    } else if (!d->pins[at] && rng_below(rng, 3) == 0) {
        pool_drop(p, slot);
        dumb_remove(d, at);
    } else {
        pool_pin(p, slot);
        dumb_pin(d, at, 1, 0);
    }
}

static void the_pool_is_a_list(void **state)
{
    struct arena arena = {0};
    struct pool pool;
    struct dumb dumb = {.n = 0};
    struct rng rng = rng_of(5, 0);
    (void)state;
    assert_int_equal(pool_place(&pool, &arena, N_SLOT, 64, pages(&arena, N_SLOT * 64)), 0);
    for (int i = 0; i < 20000; i++) {
        pool_step(&pool, &dumb, &rng);
        for (uint64_t key = 0; key < N_KEY; key++)
            assert_int_equal(pool_find(&pool, key) >= 0, dumb_find(&dumb, key) >= 0);
    }
    arena_free(&arena);
}

/* ---- experts ---- */

enum { N_LAYER = 5, N_EXPERT = 12, N_USED = 3, MAX_PAIR = 40 };

struct kitchen {
    struct arena arena;
    struct fake_disk fake;
    struct disk_calls calls;
    struct disk_file file[2];
    struct expert_layer layer[N_LAYER];
    struct experts_need need;
    struct reader *reader;
    struct experts *experts;
    struct demand demand;
    struct err e;
};

/* Odd places and sizes; layer 3 is larger than the others, layer 2 has no experts here. */
static void place_layer(struct kitchen *k, int layer, uint64_t *at)
{
    static const uint64_t sizes[4] = {5000, 700, 9000, 12};
    struct expert_layer *l = &k->layer[layer];
    *l = (struct expert_layer){.n_expert = N_EXPERT, .n_part = 4, .n_used = N_USED};
    l->file = ARENA_NEW(&k->arena, const struct disk_file *, N_EXPERT * 4);
    l->at = ARENA_NEW(&k->arena, uint64_t, N_EXPERT * 4);
    for (int p = 0; p < 4; p++)
        l->n_byte[p] = sizes[p] + (layer == 3 ? 8192 : 0);
    for (int i = 0; i < N_EXPERT * 4; i++) {
        l->file[i] = &k->file[i % 2];
        l->at[i] = *at;
        *at += l->n_byte[i % 4] + 13;
    }
}

static void open_kitchen(struct kitchen *k)
{
    uint64_t at = 77;
    memset(k, 0, sizeof *k);
    for (int i = 0; i < N_LAYER; i++)
        if (i != 2)
            place_layer(k, i, &at);
    k->fake.n_byte = at;
    k->calls = fake_disk_calls(&k->fake);
    assert_int_equal(disk_open(&k->file[0], "f0", &k->calls, &k->e), 0);
    assert_int_equal(disk_open(&k->file[1], "f1", &k->calls, &k->e), 0);
    assert_int_equal(reader_open(&k->reader, 4, &k->e), 0);
    experts_measure(k->layer, N_LAYER, &k->need);
}

/* With memory between the least and all, in tenths. */
static void furnish(struct kitchen *k, int tenths)
{
    uint64_t n = k->need.least_bytes +
                 (k->need.whole_bytes - k->need.least_bytes) * (uint64_t)tenths / 10;
    struct experts_options o = {k->reader, k->layer, N_LAYER, n, pages(&k->arena, n)};
    if (experts_open(&k->experts, &o, &k->e))
        fail_msg("%s", k->e.text);
    assert_int_equal(
        demand_place(&k->demand, &k->arena, k->experts, N_EXPERT, MAX_PAIR), 0);
}

static void close_kitchen(struct kitchen *k)
{
    reader_close(k->reader);
    experts_close(k->experts);
    disk_close(&k->file[0]);
    disk_close(&k->file[1]);
    arena_free(&k->arena);
}

static void check_expert(const struct kitchen *k, int layer, int expert, int slot)
{
    const struct expert_layer *l = &k->layer[layer];
    for (int p = 0; p < l->n_part; p++) {
        int i = expert * l->n_part + p;
        const void *at = experts_part(k->experts, layer, slot, p);
        assert_int_equal((uintptr_t)at % DISK_ALIGN, l->at[i] % DISK_ALIGN);
        assert_true(fake_disk_holds(i % 2, l->at[i], at, l->n_byte[p]));
    }
}

/* A layer's step: every expert of the list comes exactly once, with its bytes. -1: a read failed. */
static int cook(struct kitchen *k, int layer, const int32_t *idx, int n)
{
    int times[N_EXPERT] = {0};
    struct demand *d = &k->demand;
    demand_begin(d, layer, idx, n);
    for (;;) {
        if (demand_next(d, &k->e)) {
            demand_end(d);
            return -1;
        }
        if (!d->n_now)
            break;
        for (int i = 0; i < d->n_now; i++) {
            int at = d->given[i], expert = d->wanted[at];
            times[expert]++;
            check_expert(k, layer, expert, d->slot[at]);
            for (int p = d->first[expert]; p < d->first[expert + 1]; p++)
                assert_int_equal(idx[d->pair[p]], expert);
        }
    }
    assert_int_equal(d->first[N_EXPERT], n);
    for (int i = 0; i < n; i++)
        assert_int_equal(times[idx[i]], 1);
    demand_end(d);
    return 0;
}

/* A step of all layers; n_pair from one token's to nearly all experts. */
static int cook_all(struct kitchen *k, struct rng *rng)
{
    int32_t idx[MAX_PAIR];
    int n = N_USED * (1 + (int)rng_below(rng, MAX_PAIR / N_USED));
    for (int layer = 0; layer < N_LAYER; layer++) {
        for (int i = 0; i < n; i++)
            idx[i] = (int32_t)rng_below(rng, N_EXPERT);
        if (layer != 2 && cook(k, layer, idx, n))
            return -1;
    }
    return 0;
}

static void any_budget_will_do(void **state)
{
    (void)state;
    uint64_t n_read_before = 0;
    for (int tenths = 0; tenths <= 10; tenths++) {
        struct kitchen k;
        struct rng rng = rng_of(3, 0);
        open_kitchen(&k);
        furnish(&k, tenths);
        for (int i = 0; i < 60; i++)
            assert_int_equal(cook_all(&k, &rng), 0);
        uint64_t n_read = k.demand.stats.n_wanted - k.demand.stats.n_there;
        if (tenths == 10) /* everything was read once */
            assert_int_equal(n_read, (N_LAYER - 1) * N_EXPERT);
        assert_true(n_read > 0 && (tenths < 10 || n_read < n_read_before));
        n_read_before = n_read;
        close_kitchen(&k);
    }
}

/* One token's experts of all layers that fit are there in the next step. */
static void what_fits_stays(void **state)
{
    struct kitchen k;
    static const int32_t idx[N_USED] = {7, 2, 9};
    (void)state;
    open_kitchen(&k);
    furnish(&k, 4);
    for (int i = 0; i < 3; i++)
        for (int layer = 0; layer < N_LAYER; layer++)
            if (layer != 2)
                assert_int_equal(cook(&k, layer, idx, N_USED), 0);
    assert_int_equal(k.demand.stats.n_there, 2 * (N_LAYER - 1) * N_USED);
    close_kitchen(&k);
}

/* A pass over everything does not push out all of what was there: the same pass finds it again. */
static void long_passes_find_something(void **state)
{
    struct kitchen k;
    int32_t idx[N_EXPERT];
    (void)state;
    open_kitchen(&k);
    furnish(&k, 5);
    for (int i = 0; i < N_EXPERT; i++)
        idx[i] = i;
    for (int i = 0; i < 4; i++)
        for (int layer = 0; layer < N_LAYER; layer++)
            if (layer != 2)
                assert_int_equal(cook(&k, layer, idx, N_EXPERT), 0);
    assert_true(k.demand.stats.n_there > k.demand.stats.n_wanted / 8);
    close_kitchen(&k);
}

/* Whichever read fails, its step says so, and the next one is right. */
static void experts_survive_any_failure(void **state)
{
    (void)state;
    for (int tenths = 0; tenths <= 6; tenths += 3)
        for (int n = 1; n <= 60; n++) {
            struct kitchen k;
            struct rng rng = rng_of((uint64_t)n, 0);
            open_kitchen(&k);
            furnish(&k, tenths);
            k.fake.fails_at = k.fake.n_read + n;
            int n_failed = 0;
            for (int i = 0; i < 8; i++)
                n_failed += cook_all(&k, &rng) != 0;
            assert_int_equal(n_failed, k.fake.n_read >= k.fake.fails_at);
            close_kitchen(&k);
        }
}

/* A disk that is gone for a while. */
static void experts_survive_an_outage(void **state)
{
    struct kitchen k;
    struct rng rng = rng_of(1, 0);
    int n_failed = 0; /* not all: now and then everything is there */
    (void)state;
    open_kitchen(&k);
    furnish(&k, 1);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(cook_all(&k, &rng), 0);
        k.fake.fails_from = 1;
        for (int j = 0; j < 3; j++)
            n_failed += cook_all(&k, &rng) != 0;
        k.fake.fails_from = 0;
    }
    assert_in_range(n_failed, 45, 90);
    close_kitchen(&k);
}

/* ---- rows ---- */

enum { N_TABLE = 2, N_ROW = 500, MAX_ID = 64, N_KEPT = N_TABLE * MAX_ID + 40 };

struct library {
    struct arena arena;
    struct fake_disk fake;
    struct disk_calls calls;
    struct disk_file file;
    struct rows_table table[N_TABLE];
    struct reader *reader;
    struct rows *rows;
    struct err e;
};

static void open_library(struct library *l)
{
    memset(l, 0, sizeof *l);
    l->fake.n_byte = 1 << 20;
    l->calls = fake_disk_calls(&l->fake);
    assert_int_equal(disk_open(&l->file, "f4", &l->calls, &l->e), 0);
    assert_int_equal(reader_open(&l->reader, 4, &l->e), 0);
    l->table[0] = (struct rows_table){
        .n_row = N_ROW, .row_bytes = 264, .at = 1001, .file = &l->file, .scale_file = &l->file};
    l->table[1] = l->table[0];
    l->table[1].row_bytes = 256;
    l->table[1].at = 300000;
    l->table[1].scale_bytes = 8;
    l->table[1].scale_at = 600000;
    struct rows_options o = {.reader = l->reader,
        .table = l->table,
        .n_table = N_TABLE,
        .max_id = MAX_ID,
        .n_slot = N_KEPT,
        .memory = pages(&l->arena, N_KEPT * rows_slot_bytes(l->table, N_TABLE))};
    assert_int_equal(rows_open(&l->rows, &o, &l->e), 0);
}

static void close_library(struct library *l)
{
    reader_close(l->reader);
    rows_close(l->rows);
    disk_close(&l->file);
    arena_free(&l->arena);
}

static void check_row(const struct library *l, int table, int32_t id)
{
    const struct rows_table *t = &l->table[table];
    const uint8_t *row = rows_find(l->rows, table, id);
    assert_true(fake_disk_holds(4, t->at + (uint64_t)id * t->row_bytes, row, t->row_bytes));
    assert_true(fake_disk_holds(4, t->scale_at + (uint64_t)id * t->scale_bytes,
        row + t->row_bytes, t->scale_bytes));
}

/* A batch over both tables; rows repeat. -1: a read failed. */
static int lend(struct library *l, struct rng *rng)
{
    int32_t id[N_TABLE][MAX_ID];
    rows_begin(l->rows);
    for (int t = 0; t < N_TABLE; t++) {
        for (int i = 0; i < MAX_ID; i++)
            id[t][i] = (int32_t)(rng_below(rng, 2) ? rng_below(rng, 30) : rng_below(rng, N_ROW));
        assert_int_equal(rows_want(l->rows, t, id[t], MAX_ID, &l->e), 0);
    }
    for (int t = 0; t < N_TABLE; t++) {
        if (rows_wait(l->rows, t, &l->e))
            return -1;
        for (int i = 0; i < MAX_ID; i++)
            check_row(l, t, id[t][i]);
    }
    return 0;
}

static void rows_are_read_once(void **state)
{
    struct library l;
    struct rng rng = rng_of(2, 0);
    static const int32_t id[] = {5, 9, 5, 5, 9, 400, 5};
    (void)state;
    open_library(&l);
    int before = l.fake.n_read;
    rows_begin(l.rows);
    assert_int_equal(rows_want(l.rows, 0, id, 7, &l.e), 0);
    assert_int_equal(rows_wait(l.rows, 0, &l.e), 0);
    assert_int_equal(l.fake.n_read - before, 3);
    for (int i = 0; i < 200; i++)
        assert_int_equal(lend(&l, &rng), 0);
    struct rows_stats stats = rows_stats(l.rows);
    assert_in_range(stats.n_there, stats.n_wanted / 5, stats.n_wanted);
    close_library(&l);
}

static void rows_survive_any_failure(void **state)
{
    (void)state;
    for (int n = 1; n <= 100; n++) {
        struct library l;
        struct rng rng = rng_of((uint64_t)n, 0);
        open_library(&l);
        l.fake.fails_at = l.fake.n_read + n;
        int n_failed = 0;
        for (int i = 0; i < 6; i++)
            n_failed += lend(&l, &rng) != 0;
        assert_int_equal(n_failed, l.fake.n_read >= l.fake.fails_at);
        close_library(&l);
    }
}

static void rows_that_cannot_be(void **state)
{
    struct library l;
    static const int32_t above[] = {3, N_ROW}, below[] = {-1};
    (void)state;
    open_library(&l);
    rows_begin(l.rows);
    assert_int_equal(rows_want(l.rows, 0, above, 2, &l.e), -1);
    assert_string_equal(l.e.text, "row 500 of a table of 500");
    assert_int_equal(rows_want(l.rows, 1, below, 1, &l.e), -1);
    close_library(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pool_is_a_list),
        cmocka_unit_test(any_budget_will_do),
        cmocka_unit_test(what_fits_stays),
        cmocka_unit_test(long_passes_find_something),
        cmocka_unit_test(experts_survive_any_failure),
        cmocka_unit_test(experts_survive_an_outage),
        cmocka_unit_test(rows_are_read_once),
        cmocka_unit_test(rows_survive_any_failure),
        cmocka_unit_test(rows_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
