/* threads.c: see threads.h.
 *
 * A call opens the gate and raises `call`. A helper that comes in time enters the gate and takes
 * runs of items from `next` until none is left. The caller does the same, closes the gate and waits
 * for those inside: one that still sleeps is not waited for. Whoever waits spins first: decode
 * steps make hundreds of calls a few microseconds apart.
 */
#include "base/threads.h"

#include "base/arena.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum { N_SPIN = 10000, MAX_THREAD = 1024, CLOSED = 1 << 30 };

struct helper {
    struct workers *crew;
    pthread_t thread;
    int number;
};

struct workers {
    int n_thread, n_spin;
    struct helper *helper; /* n_thread - 1 */
    workers_fn fn;
    void *context;
    int64_t n_item, grain;
    char gap_next[64]; /* what all threads write, on cache lines of its own */
    atomic_int_fast64_t next;
    char gap_gate[64];
    atomic_int gate; /* helpers inside, plus CLOSED */
    char gap_call[64];
    atomic_uint call;
    atomic_int is_closing;
    pthread_mutex_t lock;
    pthread_cond_t has_call, is_done;
    int n_sleeper; /* under lock */
};

int workers_n_processor(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    FILE *f =
        fopen("/sys/fs/cgroup/cpu.max", "r"); /* "quota period" or "max period", in microseconds */
    long quota, period;
    if (f && fscanf(f, "%ld %ld", &quota, &period) == 2 && quota > 0 && period > 0 &&
        quota / period < n)
        n = quota < period ? 1 : (int)(quota / period);
    if (f)
        fclose(f);
    return n < 1 ? 1 : n;
}

static void take_items(struct workers *w, int number)
{
    for (;;) {
        int64_t first = atomic_fetch_add_explicit(&w->next, w->grain, memory_order_relaxed);
        if (first >= w->n_item)
            return;
        int64_t end = w->n_item - first < w->grain ? w->n_item : first + w->grain;
        w->fn(w->context, first, end, number);
    }
}

/* Waits for a call after `seen`; returns its number. */
static unsigned await_call(struct workers *w, unsigned seen)
{
    for (int i = 0; i < w->n_spin; i++) {
        unsigned call = atomic_load_explicit(&w->call, memory_order_acquire);
        if (call != seen)
            return call;
    }
    pthread_mutex_lock(&w->lock);
    w->n_sleeper++;
    while (atomic_load(&w->call) == seen)
        pthread_cond_wait(&w->has_call, &w->lock);
    w->n_sleeper--;
    pthread_mutex_unlock(&w->lock);
    return atomic_load(&w->call);
}

static int enter(struct workers *w)
{
    int gate = atomic_load(&w->gate);
    while (!(gate & CLOSED))
        if (atomic_compare_exchange_weak(&w->gate, &gate, gate + 1))
            return 1;
    return 0;
}

static void leave(struct workers *w)
{
    if (atomic_fetch_sub(&w->gate, 1) - 1 != CLOSED)
        return;
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->is_done);
    pthread_mutex_unlock(&w->lock);
}

static void *help(void *argument)
{
    struct helper *h = argument;
    struct workers *w = h->crew;
    for (unsigned seen = 0;;) {
        seen = await_call(w, seen);
        if (atomic_load(&w->is_closing))
            return NULL;
        if (!enter(w))
            continue;
        take_items(w, h->number);
        leave(w);
    }
}

static void publish(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    atomic_fetch_add(&w->call, 1);
    if (w->n_sleeper)
        pthread_cond_broadcast(&w->has_call);
    pthread_mutex_unlock(&w->lock);
}

void workers_run(struct workers *w, int64_t n_item, int64_t grain, workers_fn fn, void *context)
{
    grain = grain < 1 ? 1 : grain;
    if (n_item <= grain || w->n_thread == 1) {
        if (n_item > 0)
            fn(context, 0, n_item, 0);
        return;
    }
    w->fn = fn;
    w->context = context;
    w->n_item = n_item;
    w->grain = grain;
    atomic_store_explicit(&w->next, 0, memory_order_relaxed);
    atomic_store(&w->gate, 0);
    publish(w);
    take_items(w, 0);
    atomic_fetch_or(&w->gate, CLOSED);
    for (int i = 0; i < w->n_spin; i++)
        if (atomic_load_explicit(&w->gate, memory_order_acquire) == CLOSED)
            return;
    pthread_mutex_lock(&w->lock);
    while (atomic_load(&w->gate) != CLOSED)
        pthread_cond_wait(&w->is_done, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

int thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

int workers_open(struct workers **out, int n_thread, struct err *e)
{
    int n_processor = workers_n_processor();
    n_thread = n_thread > 0 ? n_thread : n_processor;
    n_thread = n_thread < MAX_THREAD ? n_thread : MAX_THREAD;
    struct workers *w = mem_resize(NULL, sizeof *w);
    struct helper *helper = mem_resize(NULL, (size_t)n_thread * sizeof *helper);
    *out = NULL;
    if (!w || !helper) {
        mem_free(w);
        mem_free(helper);
        return err_set(e, ERR_MEMORY, "no memory for %d threads", n_thread);
    }
    *w = (struct workers){
        .n_thread = 1, .n_spin = n_thread > n_processor ? 0 : N_SPIN, .helper = helper};
    atomic_init(&w->gate, CLOSED);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->has_call, NULL);
    pthread_cond_init(&w->is_done, NULL);
    for (; w->n_thread < n_thread; w->n_thread++) {
        struct helper *h = &helper[w->n_thread - 1];
        *h = (struct helper){.crew = w, .number = w->n_thread};
        if (thread_start(&h->thread, help, h)) {
            workers_close(w);
            return err_set(
                e, ERR_MEMORY, "the system refused thread %d of %d", h->number + 1, n_thread);
        }
    }
    *out = w;
    return 0;
}

void workers_close(struct workers *w)
{
    if (!w)
        return;
    atomic_store(&w->is_closing, 1);
    publish(w);
    for (int i = 0; i < w->n_thread - 1; i++)
        pthread_join(w->helper[i].thread, NULL);
    pthread_cond_destroy(&w->is_done);
    pthread_cond_destroy(&w->has_call);
    pthread_mutex_destroy(&w->lock);
    mem_free(w->helper);
    mem_free(w);
}

int workers_n(const struct workers *w)
{
    return w->n_thread;
}
