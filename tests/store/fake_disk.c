/* fake_disk.c: see fake_disk.h. A descriptor is the number in the file's name, plus 1000 when direct. */
#include "store/fake_disk.h"

#include <errno.h>
#include <stdlib.h>

enum { DIRECT = 1000 };

unsigned char fake_disk_byte(int file, uint64_t at)
{
    uint64_t x = (at + 1) * 0x9e3779b97f4a7c15u + (uint64_t)file * 0xd1b54a32d192ed03u;
    return (unsigned char)((x ^ x >> 29) >> 24);
}

int fake_disk_holds(int file, uint64_t at, const void *data, uint64_t n_byte)
{
    const unsigned char *p = data;
    for (uint64_t i = 0; i < n_byte; i++)
        if (p[i] != fake_disk_byte(file, at + i))
            return 0;
    return 1;
}

static int open_fake(void *context, const char *path, int is_direct)
{
    struct fake_disk *d = context;
    if (path[0] != 'f' || (is_direct && d->has_no_direct == 1)) {
        errno = path[0] == 'f' ? EINVAL : ENOENT;
        return -1;
    }
    atomic_fetch_add(&d->n_open, 1);
    return atoi(path + 1) + (is_direct ? DIRECT : 0);
}

static int64_t size_of(void *context, int fd)
{
    (void)fd;
    return (int64_t)((struct fake_disk *)context)->n_byte;
}

static int is_failing(struct fake_disk *d, int n)
{
    int at = atomic_load(&d->fails_at), from = atomic_load(&d->fails_from);
    return (at && n == at) || (from && n >= from);
}

static int64_t read_fake(void *context, int fd, void *to, uint64_t n_byte, uint64_t at)
{
    struct fake_disk *d = context;
    int n = atomic_fetch_add(&d->n_read, 1) + 1;
    uint64_t end = atomic_load(&d->end);
    end = end ? end : d->n_byte;
    int is_misaligned = (at | n_byte | (uintptr_t)to) % DISK_ALIGN != 0;
    if (fd >= DIRECT && (d->has_no_direct || is_misaligned)) {
        errno = EINVAL;
        return -1;
    }
    if (is_failing(d, n) || (d->is_short && n % 5 == 0)) {
        errno = is_failing(d, n) ? EIO : EINTR;
        return -1;
    }
    uint64_t left = at < end ? end - at : 0, take = left < n_byte ? left : n_byte;
    if (d->is_short && take > DISK_ALIGN)
        take = DISK_ALIGN + (take - DISK_ALIGN) / 2;
    for (uint64_t i = 0; i < take; i++)
        ((unsigned char *)to)[i] = fake_disk_byte(fd % DIRECT, at + i);
    return (int64_t)take;
}

static void forget(void *context, int fd, uint64_t at, uint64_t n_byte)
{
    (void)fd, (void)at, (void)n_byte;
    atomic_fetch_add(&((struct fake_disk *)context)->n_forget, 1);
}

static void close_fake(void *context, int fd)
{
    (void)fd;
    atomic_fetch_sub(&((struct fake_disk *)context)->n_open, 1);
}

struct disk_calls fake_disk_calls(struct fake_disk *d)
{
    return (struct disk_calls){d, open_fake, size_of, read_fake, forget, close_fake};
}
