/* threads.h: a fixed crew of threads that share out items of work.
 *
 * The caller works too, as worker 0. Items are outputs: a sum is never split, so results do not
 * depend on the number of threads. Workers spin briefly for the next call and then sleep. One call
 * at a time; a function must not call workers_run of the same crew.
 */
#ifndef HADAL_BASE_THREADS_H
#define HADAL_BASE_THREADS_H

#include "base/err.h"

#include <pthread.h>
#include <stdint.h>

/* pthread_create, with every signal left to the threads that were there before: the program's own thread must be the
 * one that Ctrl-C wakes. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *context);

struct workers;
/* Items [first, end), done by worker 0 .. workers_n - 1. */
typedef void (*workers_fn)(void *context, int64_t first, int64_t end, int worker);

/* n_thread 0: workers_n_processor(). */
int workers_open(struct workers **w, int n_thread, struct err *e);
void workers_close(struct workers *w); /* NULL is fine */
int workers_n(const struct workers *w);

/* Calls fn for runs of at most `grain` items until all are done, and returns then. */
void workers_run(struct workers *w, int64_t n_item, int64_t grain, workers_fn fn, void *context);

/* Processors that this process may use at the same time: its affinity mask, and its control group's
 * share if less. */
int workers_n_processor(void);

#endif
