/* disk_probe.c: what a disk gives to direct reads at random places of a file. bench/disk builds and runs it.
 *
 *   disk_probe FILE RUN_BYTES PIECE_BYTES N_THREAD SECONDS SEED
 *
 * Runs of RUN_BYTES begin at random multiples of 4096; threads take their pieces in order, as the engine's do with the
 * matrices of experts. RUN_BYTES equal to PIECE_BYTES: every piece is at a random place. Pieces land all over a large area,
 * as in the engine's cache: a few buffers used again and again gave half the rate here. Prints bytes per second.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ALIGN = 4096, MAX_THREAD = 64, AREA_BYTES = 1 << 29 };

static struct {
    int fd;
    char *area;
    uint64_t file_bytes, run_bytes, piece_bytes, seed;
    double end;
    atomic_uint_fast64_t next, n_byte;
    atomic_int failed;
} probe;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void *read_pieces(void *unused)
{
    uint64_t n_piece = (probe.run_bytes + probe.piece_bytes - 1) / probe.piece_bytes;
    uint64_t n_place = (probe.file_bytes - probe.run_bytes) / ALIGN;
    (void)unused;
    while (now() < probe.end) {
        uint64_t i = atomic_fetch_add(&probe.next, 1), begin = i % n_piece * probe.piece_bytes;
        uint64_t left = probe.run_bytes - begin, n = left < probe.piece_bytes ? left : probe.piece_bytes;
        uint64_t at = mix(probe.seed ^ mix(i / n_piece)) % n_place * ALIGN + begin;
        char *to = probe.area + i % (AREA_BYTES / probe.piece_bytes) * probe.piece_bytes;
        if (pread(probe.fd, to, n, (off_t)at) != (ssize_t)n) {
            atomic_store(&probe.failed, 1);
            break;
        }
        atomic_fetch_add(&probe.n_byte, n);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[MAX_THREAD];
    if (argc != 7)
        return fprintf(stderr, "usage: disk_probe FILE RUN_BYTES PIECE_BYTES N_THREAD SECONDS SEED\n"), 2;
    int n_thread = atoi(argv[4]);
    probe.fd = open(argv[1], O_RDONLY | O_DIRECT);
    probe.file_bytes = (uint64_t)lseek(probe.fd, 0, SEEK_END);
    probe.run_bytes = strtoull(argv[2], NULL, 10) / ALIGN * ALIGN;
    probe.piece_bytes = strtoull(argv[3], NULL, 10) / ALIGN * ALIGN;
    probe.seed = strtoull(argv[6], NULL, 10);
    probe.area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (probe.area == MAP_FAILED || probe.fd < 0 || !probe.run_bytes || !probe.piece_bytes || probe.file_bytes < 2 * probe.run_bytes ||
        n_thread < 1 || n_thread > MAX_THREAD)
        return fprintf(stderr, "disk_probe: cannot do that with %s\n", argv[1]), 1;
    double start = now();
    probe.end = start + atof(argv[5]);
    for (int i = 0; i < n_thread; i++)
        pthread_create(&thread[i], NULL, read_pieces, NULL);
    for (int i = 0; i < n_thread; i++)
        pthread_join(thread[i], NULL);
    printf("%.0f\n", (double)atomic_load(&probe.n_byte) / (now() - start));
    return atomic_load(&probe.failed);
}
