/* output.c: POSIX files. See output.h. */
#include "convert/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_at(struct output *o, uint64_t offset, const void *bytes, uint64_t n, struct err *e)
{
    const char *p = bytes;
    while (n) {
        ssize_t done = pwrite(o->fd, p, n < 1u << 30 ? (size_t)n : 1u << 30, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return err_set(e, ERR_IO, "%s: cannot write %llu bytes at %llu: %s", o->part,
                (unsigned long long)n, (unsigned long long)offset, strerror(errno));
        p += done;
        offset += (uint64_t)done;
        n -= (uint64_t)done;
    }
    return 0;
}

static int read_at(struct output *o, uint64_t offset, void *bytes, uint64_t n, struct err *e)
{
    char *p = bytes;
    while (n) {
        ssize_t done = pread(o->fd, p, n < 1u << 30 ? (size_t)n : 1u << 30, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return err_set(e, ERR_IO, "%s: cannot read %llu bytes at %llu: %s", o->part,
                (unsigned long long)n, (unsigned long long)offset,
                done ? strerror(errno) : "the file ends");
        p += done;
        offset += (uint64_t)done;
        n -= (uint64_t)done;
    }
    return 0;
}

/* Whether the part file has this very header, whatever its checksums; they are taken over then. */
static int try_resume(struct output *o, const struct output_plan *plan, struct arena *arena)
{
    struct stat st;
    size_t n = plan->header->n_byte, n_sums = (size_t)plan->n_sum * 8;
    char *old = arena_alloc(arena, n);
    if (!old || fstat(o->fd, &st) || (uint64_t)st.st_size != plan->n_byte ||
        read_at(o, 0, old, n, NULL))
        return 0;
    memcpy(o->sums, old + plan->sums_at, n_sums);
    memset(old + plan->sums_at, 0, n_sums);
    if (!memcmp(old, plan->header->data, n))
        return 1;
    memset(o->sums, 0, n_sums);
    return 0;
}

int output_open(
    struct output *o, const struct output_plan *plan, struct arena *arena, struct err *e)
{
    *o = (struct output){
        .fd = -1, .sums_at = plan->sums_at, .data_at = plan->header->n_byte, .n_sum = plan->n_sum};
    if (strlen(plan->path) >= sizeof o->path)
        return err_set(e, ERR_ARGUMENT, "path %.200s... is too long", plan->path);
    snprintf(o->path, sizeof o->path, "%s", plan->path);
    snprintf(o->part, sizeof o->part, "%s.part", plan->path);
    o->sums = ARENA_NEW(arena, uint64_t, (size_t)plan->n_sum);
    if (!o->sums)
        return err_set(e, ERR_MEMORY, "no memory for checksums");
    o->fd = open(o->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (o->fd < 0)
        return err_set(e, ERR_IO, "%s: cannot create: %s", o->part, strerror(errno));
    if (flock(o->fd, LOCK_EX | LOCK_NB))
        return err_set(e, ERR_IO, "%s: another conversion is writing it", o->part);
    o->is_resumed = try_resume(o, plan, arena);
    if (o->is_resumed)
        return 0;
    if (ftruncate(o->fd, 0) || ftruncate(o->fd, (off_t)plan->n_byte))
        return err_set(e, ERR_IO, "%s: cannot have %llu bytes: %s", o->part,
            (unsigned long long)plan->n_byte, strerror(errno));
    return write_at(o, 0, plan->header->data, plan->header->n_byte, e);
}

int output_write(struct output *o, uint64_t offset, const void *bytes, uint64_t n, struct err *e)
{
    return write_at(o, o->data_at + offset, bytes, n, e);
}

int output_read(struct output *o, uint64_t offset, void *bytes, uint64_t n, struct err *e)
{
    return read_at(o, o->data_at + offset, bytes, n, e);
}

int output_finish_tensor(struct output *o, int i, uint64_t sum, struct err *e)
{
    o->sums[i] = sum;
    return write_at(o, o->sums_at + 8 * (uint64_t)i, &sum, 8, e);
}

int output_commit(struct output *o, struct err *e)
{
    if (fsync(o->fd) || rename(o->part, o->path))
        return err_set(e, ERR_IO, "%s: cannot finish: %s", o->path, strerror(errno));
    return 0;
}

void output_close(struct output *o)
{
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}
