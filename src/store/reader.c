/* reader.c: see reader.h.
 *
 * Reads wait in a list. A thread takes the next piece of the first one; whoever takes the last piece
 * takes the read off the list, and whoever finishes its last piece finishes it. All of that is under
 * one lock, which nobody holds while reading.
 *
 *   at          n_taken                                       at + n_byte
 *   |-- piece --|-- piece --|-- not taken -----------------------|
 */
#include "store/reader.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/threads.h"

#include <string.h>
#include <sys/mman.h>

enum {
    PIECE_BYTES = 1 << 20,
    COPIED_BYTES = 1 << 16, /* pieces that are not aligned, and so go through a buffer */
    BOUNCE_BYTES = COPIED_BYTES + 2 * DISK_ALIGN,
    MAX_THREAD = 64
};

struct worker {
    struct reader *reader;
    pthread_t thread;
    char *bounce; /* for reads that are not aligned */
};

struct reader {
    pthread_mutex_t lock;
    pthread_cond_t has_read, has_done;
    struct read *first, *last; /* with pieces to take */
    int is_closing;
    struct reader_stats stats;
    int n_thread, n_bounce;
    struct worker worker[MAX_THREAD];
};

struct piece {
    struct read *read;
    uint64_t at, n_byte; /* within the read: [at, at + n_byte) */
};

static int is_aligned(const struct read *r)
{
    return (r->at | r->n_byte | (uintptr_t)r->to) % DISK_ALIGN == 0;
}

/* ---- Threads ---- */

/* Waits for a piece; 0 when the reader closes. */
static int take_piece(struct reader *d, struct piece *p)
{
    while (!d->first && !d->is_closing)
        pthread_cond_wait(&d->has_read, &d->lock);
    if (d->is_closing)
        return 0;
    struct read *r = d->first;
    uint64_t left = r->n_byte - r->n_taken, most = is_aligned(r) ? PIECE_BYTES : COPIED_BYTES;
    *p = (struct piece){r, r->n_taken, left < most ? left : most};
    r->n_taken += p->n_byte;
    r->n_piece++;
    if (r->n_taken == r->n_byte) {
        d->first = r->next;
        d->last = d->first ? d->last : NULL;
    }
    return 1;
}

/* Bytes that were asked of the disk. */
static uint64_t read_piece(const struct piece *p, char *bounce, struct err *e)
{
    const struct read *r = p->read;
    char *to = (char *)r->to + p->at;
    uint64_t begin = r->at + p->at, from = disk_below(begin);
    if (is_aligned(r)) {
        disk_read(r->file, begin, p->n_byte, to, e);
        return p->n_byte;
    }
    uint64_t n = disk_above(begin + p->n_byte) - from;
    if (!disk_read(r->file, from, n, bounce, e))
        memcpy(to, bounce + (begin - from), p->n_byte);
    return n;
}

static void finish_piece(struct reader *d, struct read *r, const struct err *failure)
{
    struct read_group *group = r->group;
    if (failure->code && !group->failure.code)
        group->failure = *failure;
    if (--r->n_piece || r->n_taken < r->n_byte)
        return;
    if (atomic_fetch_sub_explicit(&group->n_open, 1, memory_order_release) == 1)
        pthread_cond_broadcast(&d->has_done);
}

static void *serve(void *argument)
{
    const struct worker *w = argument;
    struct reader *d = w->reader;
    struct piece p;
    pthread_mutex_lock(&d->lock);
    while (take_piece(d, &p)) {
        struct err failure = {0};
        pthread_mutex_unlock(&d->lock);
        uint64_t n_byte = read_piece(&p, w->bounce, &failure);
        pthread_mutex_lock(&d->lock);
        d->stats.n_read++;
        d->stats.read_bytes += failure.code ? 0 : n_byte;
        finish_piece(d, p.read, &failure);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- Callers ---- */

static void append(struct reader *d, struct read *r)
{
    r->next = NULL;
    r->n_taken = 0;
    r->n_piece = 0;
    if (d->last)
        d->last->next = r;
    else
        d->first = r;
    d->last = r;
}

void reader_start(struct reader *d, struct read_group *group, struct read *r, int n)
{
    group->failure = (struct err){.code = ERR_NONE};
    atomic_store_explicit(&group->n_open, n, memory_order_relaxed);
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < n; i++) {
        r[i].group = group;
        append(d, &r[i]);
    }
    if (n == 1 && r->n_byte <= COPIED_BYTES)
        pthread_cond_signal(&d->has_read);
    else
        pthread_cond_broadcast(&d->has_read);
    pthread_mutex_unlock(&d->lock);
}

int read_group_is_done(const struct read_group *group)
{
    return atomic_load_explicit(&group->n_open, memory_order_acquire) == 0;
}

static int any_is_done(struct read_group *const *group, int n)
{
    for (int i = 0; i < n; i++)
        if (read_group_is_done(group[i]))
            return 1;
    return 0;
}

void reader_wait_any(struct reader *d, struct read_group *const *group, int n)
{
    if (!n || any_is_done(group, n))
        return;
    double start = clock_seconds();
    pthread_mutex_lock(&d->lock);
    while (!any_is_done(group, n))
        pthread_cond_wait(&d->has_done, &d->lock);
    d->stats.wait_seconds += clock_seconds() - start;
    pthread_mutex_unlock(&d->lock);
}

int reader_wait(struct reader *d, struct read_group *group, struct err *e)
{
    reader_wait_any(d, &group, 1);
    if (!group->failure.code)
        return 0;
    if (e)
        *e = group->failure;
    return -1;
}

struct reader_stats reader_stats(struct reader *d)
{
    pthread_mutex_lock(&d->lock);
    struct reader_stats stats = d->stats;
    pthread_mutex_unlock(&d->lock);
    return stats;
}

/* ---- Opening ---- */

uint64_t reader_thread_bytes(void)
{
    return BOUNCE_BYTES + (64 << 10); /* what a thread's stack really uses is less than 64 KiB */
}

static int start_threads(struct reader *d, int n_thread)
{
    for (; d->n_bounce < n_thread; d->n_bounce++) {
        void *bounce = mmap(
            NULL, BOUNCE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bounce == MAP_FAILED)
            return -1;
        d->worker[d->n_bounce].bounce = bounce;
        d->worker[d->n_bounce].reader = d;
    }
    for (; d->n_thread < n_thread; d->n_thread++) {
        struct worker *w = &d->worker[d->n_thread];
        if (thread_start(&w->thread, serve, w))
            return -1;
    }
    return 0;
}

int reader_open(struct reader **reader, int n_thread, struct err *e)
{
    struct reader *d = mem_resize(NULL, sizeof *d);
    *reader = NULL;
    if (!d)
        return err_set(e, ERR_MEMORY, "no memory for threads that read");
    memset(d, 0, sizeof *d);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->has_read, NULL);
    pthread_cond_init(&d->has_done, NULL);
    if (start_threads(d, n_thread < MAX_THREAD ? n_thread : MAX_THREAD)) {
        reader_close(d);
        return err_set(e, ERR_MEMORY, "the system refused %d threads that read", n_thread);
    }
    *reader = d;
    return 0;
}

void reader_close(struct reader *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->is_closing = 1;
    pthread_cond_broadcast(&d->has_read);
    pthread_mutex_unlock(&d->lock);
    for (int i = 0; i < d->n_thread; i++)
        pthread_join(d->worker[i].thread, NULL);
    for (int i = 0; i < d->n_bounce; i++)
        munmap(d->worker[i].bounce, BOUNCE_BYTES);
    pthread_cond_destroy(&d->has_read);
    pthread_cond_destroy(&d->has_done);
    pthread_mutex_destroy(&d->lock);
    mem_free(d);
}
