/* probe.c: what this machine can do: reading memory and float multiply-adds, with 1 to N threads.
 * Prints JSON.
 *
 * Roofs for the other figures. Built by bench/run with -O3 -march=native; not part of the program.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __AVX512F__
enum { N_LANE = 16 };
#else
enum { N_LANE = 8 };
#endif
enum { N_BYTE = 1 << 28, N_REPEAT = 9, N_SUM = 12, N_STEP = 20000000, MAX_THREAD = 64 };

typedef float lanes __attribute__((vector_size(4 * N_LANE)));

struct work {
    const uint64_t *data;
    uint64_t n; /* words */
    double result;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *read_words(void *context)
{
    struct work *w = context;
    uint64_t sum[16] = {0};
    for (uint64_t i = 0; i + 16 <= w->n; i += 16)
        for (int j = 0; j < 16; j++)
            sum[j] += w->data[i + (uint64_t)j];
    for (int j = 0; j < 16; j++)
        w->result += (double)sum[j];
    return NULL;
}

/* Independent sums in registers: as many multiply-adds as the processor can start. */
static void *multiply_add(void *context)
{
    struct work *w = context;
    lanes sum[N_SUM], x, y;
    for (int l = 0; l < N_LANE; l++) {
        x[l] = 0.999f;
        y[l] = (float)w->n * 1e-30f;
    }
    for (int j = 0; j < N_SUM; j++)
        sum[j] = y + (float)j;
    for (int i = 0; i < N_STEP / N_SUM; i++)
#pragma GCC unroll 12
        for (int j = 0; j < N_SUM; j++)
            sum[j] = sum[j] * x + y;
    for (int j = 0; j < N_SUM; j++)
        w->result += (double)sum[j][j % N_LANE];
    return NULL;
}

/* Seconds of one run on n threads, each with its share of the data. */
static double run(void *(*fn)(void *), const uint64_t *data, int n)
{
    pthread_t thread[MAX_THREAD];
    struct work work[MAX_THREAD];
    uint64_t share = N_BYTE / 8 / (uint64_t)n;
    double start = now();
    for (int i = 0; i < n; i++) {
        work[i] = (struct work){data + share * (uint64_t)i, share, 0};
        pthread_create(&thread[i], NULL, fn, &work[i]);
    }
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    return now() - start;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_rate(
    const char *name, void *(*fn)(void *), const uint64_t *data, int n, double amount)
{
    double seconds[N_REPEAT];
    for (int i = 0; i < N_REPEAT; i++)
        seconds[i] = run(fn, data, n);
    qsort(seconds, N_REPEAT, sizeof *seconds, by_value);
    printf("  {\"probe\": \"%s\", \"n_thread\": %d, \"best\": %.4g, \"median\": %.4g}", name, n,
        amount / seconds[0] / 1e9, amount / seconds[N_REPEAT / 2] / 1e9);
}

int main(int argc, char **argv)
{
    int n_thread = argc > 1 ? atoi(argv[1]) : 1;
    uint64_t *data = malloc(N_BYTE);
    if (!data || n_thread < 1 || n_thread > MAX_THREAD)
        return 2;
    for (uint64_t i = 0; i < N_BYTE / 8; i++)
        data[i] = i * 0x9e3779b97f4a7c15u;
    printf("[\n");
    for (int n = 1; n <= n_thread; n *= 2) {
        print_rate("read_gb_per_s", read_words, data, n, N_BYTE);
        printf(",\n");
        print_rate(
            "fma_gflop_per_s", multiply_add, data, n, 2.0 * N_LANE * (N_STEP / N_SUM) * N_SUM * n);
        printf(2 * n <= n_thread ? ",\n" : "\n");
    }
    printf("]\n");
    free(data);
    return 0;
}
