/* disk.c: see disk.h. */
#include "store/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_VAIN = 3 }; /* reads that bring nothing new before the file counts as ended */

/* ---- The system's calls ---- */

static int open_file(void *context, const char *path, int is_direct)
{
    (void)context;
    return open(path, O_RDONLY | O_CLOEXEC | (is_direct ? O_DIRECT : 0));
}

static int64_t size_of(void *context, int fd)
{
    struct stat st;
    (void)context;
    return fstat(fd, &st) ? -1 : (int64_t)st.st_size;
}

static int64_t read_at(void *context, int fd, void *to, uint64_t n_byte, uint64_t at)
{
    (void)context;
    return (int64_t)pread(fd, to, (size_t)n_byte, (off_t)at);
}

static void forget(void *context, int fd, uint64_t at, uint64_t n_byte)
{
    (void)context;
    posix_fadvise(fd, (off_t)at, (off_t)n_byte, n_byte ? POSIX_FADV_DONTNEED : POSIX_FADV_RANDOM);
}

static void close_file(void *context, int fd)
{
    (void)context;
    close(fd);
}

const struct disk_calls disk_system = {
    .open = open_file, .size = size_of, .read = read_at, .forget = forget, .close = close_file};

/* ---- Reading ---- */

uint64_t disk_above(uint64_t n_byte)
{
    return (n_byte + DISK_ALIGN - 1) & ~(uint64_t)(DISK_ALIGN - 1);
}

uint64_t disk_below(uint64_t at)
{
    return at & ~(uint64_t)(DISK_ALIGN - 1);
}

static int64_t read_some(const struct disk_file *f, void *to, uint64_t n_byte, uint64_t at)
{
    int64_t n;
    do
        n = f->calls->read(f->calls->context, f->fd, to, n_byte, at);
    while (n < 0 && errno == EINTR);
    return n;
}

static int refuse_end(const struct disk_file *f, uint64_t end, struct err *e)
{
    return err_set(e, ERR_IO, "%s: ends at byte %llu, but had %llu bytes when it was opened", f->path,
        (unsigned long long)end, (unsigned long long)f->n_byte);
}

int disk_read(const struct disk_file *f, uint64_t at, uint64_t n_byte, void *to, struct err *e)
{
    uint64_t wanted = at >= f->n_byte ? 0 : f->n_byte - at < n_byte ? f->n_byte - at : n_byte;
    int n_vain = 0;
    for (uint64_t done = 0; done < wanted;) {
        /* a read that was cut short goes on at the last multiple, as direct reads must */
        uint64_t from = disk_below(done);
        int64_t n = read_some(f, (char *)to + from, n_byte - from, at + from);
        if (n < 0)
            return err_set(e, ERR_IO, "%s: cannot read %llu bytes at %llu: %s", f->path,
                (unsigned long long)(n_byte - from), (unsigned long long)(at + from),
                strerror(errno));
        if (from + (uint64_t)n <= done && ++n_vain == MAX_VAIN)
            return refuse_end(f, at + from + (uint64_t)n, e);
        if (from + (uint64_t)n > done)
            done = from + (uint64_t)n;
    }
    if (!f->is_direct && n_byte)
        f->calls->forget(f->calls->context, f->fd, at, n_byte);
    return 0;
}

/* Whether direct reads work here: some file systems take the flag and refuse the read. */
static int can_read(const struct disk_file *f)
{
    _Alignas(DISK_ALIGN) char block[DISK_ALIGN];
    return read_some(f, block, sizeof block, 0) >= 0;
}

static int try_open(struct disk_file *f, const char *path, int is_direct)
{
    f->is_direct = is_direct;
    f->fd = f->calls->open(f->calls->context, path, is_direct);
    if (f->fd < 0 || !is_direct || can_read(f))
        return f->fd < 0 ? -1 : 0;
    disk_close(f);
    return -1;
}

int disk_open(struct disk_file *f, const char *path, const struct disk_calls *calls, struct err *e)
{
    *f = (struct disk_file){.calls = calls, .path = path, .fd = -1};
    if (try_open(f, path, 1) && try_open(f, path, 0))
        return err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    int64_t n_byte = calls->size(calls->context, f->fd);
    if (n_byte < 0) {
        int cause = errno;
        disk_close(f);
        return err_set(e, ERR_IO, "%s: cannot tell its size: %s", path, strerror(cause));
    }
    f->n_byte = (uint64_t)n_byte;
    if (!f->is_direct)
        calls->forget(calls->context, f->fd, 0, 0);
    return 0;
}

void disk_close(struct disk_file *f)
{
    if (f->calls && f->fd >= 0)
        f->calls->close(f->calls->context, f->fd);
    f->fd = -1;
}
