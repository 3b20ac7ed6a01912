/* test_workers.c: every item exactly once, many calls in a row, more threads than processors. */
#include "base/threads.h"

#include <stdatomic.h>
#include <stdio.h>

enum { N_ITEM = 1000 };
struct tally {
    atomic_int count[N_ITEM];
};

static void count_items(void *context, int64_t first, int64_t end, int worker)
{
    struct tally *t = context;
    (void)worker;
    for (int64_t i = first; i < end; i++)
        atomic_fetch_add(&t->count[i], 1);
}

static int run_crew(int n_thread)
{
    static struct tally t;
    struct workers *w;
    struct err e = {0};
    if (workers_open(&w, n_thread, &e))
        return printf("%s\n", e.text), 1;
    for (int i = 0; i < N_ITEM; i++)
        atomic_store(&t.count[i], 0);
    int expected[N_ITEM] = {0};
    for (int call = 0; call < 3000; call++) {
        int n = call * 37 % (N_ITEM + 1);
        workers_run(w, n, 1 + call % 50, count_items, &t);
        for (int i = 0; i < n; i++)
            expected[i]++;
    }
    int n_wrong = 0;
    for (int i = 0; i < N_ITEM; i++)
        n_wrong += atomic_load(&t.count[i]) != expected[i];
    workers_close(w);
    if (n_wrong)
        printf("FAIL %d threads: %d items not done exactly once per call\n", n_thread, n_wrong);
    return n_wrong > 0;
}

int main(void)
{
    static const int n_threads[] = {1, 2, 3, 8, 0};
    int n_failed = 0, n_case = sizeof n_threads / sizeof *n_threads;
    for (int i = 0; i < n_case; i++)
        n_failed += run_crew(n_threads[i]);
    n_failed += workers_n_processor() < 1;
    printf("%d passed, %d failed\n", n_case + 1 - n_failed, n_failed);
    return n_failed > 0;
}
