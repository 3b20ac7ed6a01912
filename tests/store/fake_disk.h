/* fake_disk.h: a disk for tests: its bytes are a function of their place, and it fails when told to. */
#ifndef TESTS_STORE_FAKE_DISK_H
#define TESTS_STORE_FAKE_DISK_H

#include "store/disk.h"

#include <stdatomic.h>

struct fake_disk {
    uint64_t n_byte;          /* of every file; files differ by the number in their name, "f7" */
    int has_no_direct;        /* 1: opening so is refused; 2: reading is */
    int is_short;             /* reads return less than was asked for, and are interrupted */
    atomic_int fails_at;      /* the read that fails, counted from 1; 0: none */
    atomic_int fails_from;    /* so do this one and all that follow; 0: none */
    atomic_uint_fast64_t end; /* where files end now, when they were cut; 0: they were not */
    atomic_int n_read, n_forget, n_open;
};

/* The calls of *d, which must stay where it is. */
struct disk_calls fake_disk_calls(struct fake_disk *d);
/* Byte `at` of file number `file`. */
unsigned char fake_disk_byte(int file, uint64_t at);
/* 1 when data[0..n_byte) is what stands at `at`. */
int fake_disk_holds(int file, uint64_t at, const void *data, uint64_t n_byte);

#endif
