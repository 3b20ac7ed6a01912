/* file.c: POSIX files. See file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int file_map_open(struct file_map *m, const char *path, struct err *e)
{
    *m = (struct file_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        return err_set(e, ERR_IO, "%s: not a regular file", path);
    }
    if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            int cause = errno;
            close(fd);
            return err_set(e, ERR_IO, "%s: cannot map %lld bytes: %s", path, (long long)st.st_size, strerror(cause));
        }
        m->data = p;
        m->n_byte = (uint64_t)st.st_size;
    }
    close(fd);
    return 0;
}

void file_map_close(struct file_map *m)
{
    if (m->data)
        munmap((void *)(uintptr_t)m->data, (size_t)m->n_byte);
    *m = (struct file_map){0};
}

int file_exists(const char *path)
{
    struct stat st;
    return !stat(path, &st);
}

int file_is_directory(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

int file_writer_open(struct file_writer *w, const char *path, struct err *e)
{
    *w = (struct file_writer){0};
    if (strlen(path) >= sizeof w->path)
        return err_set(e, ERR_ARGUMENT, "path of %zu bytes is too long (limit %zu)", strlen(path), sizeof w->path - 1);
    snprintf(w->path, sizeof w->path, "%s", path);
    snprintf(w->part, sizeof w->part, "%s.part", path);
    w->stream = fopen(w->part, "wb");
    if (!w->stream)
        return err_set(e, ERR_IO, "%s: cannot create: %s", w->part, strerror(errno));
    return 0;
}

int file_writer_write(struct file_writer *w, const void *data, uint64_t n_byte, struct err *e)
{
    if (n_byte && fwrite(data, 1, (size_t)n_byte, w->stream) != n_byte)
        return err_set(e, ERR_IO, "%s: cannot write %llu bytes: %s", w->part, (unsigned long long)n_byte, strerror(errno));
    w->n_byte += n_byte;
    return 0;
}

int file_writer_commit(struct file_writer *w, struct err *e)
{
    int failed = fflush(w->stream) || fsync(fileno(w->stream));
    failed |= fclose(w->stream) != 0;
    w->stream = NULL;
    if (failed || rename(w->part, w->path))
        return err_set(e, ERR_IO, "%s: cannot finish: %s", w->path, strerror(errno));
    return 0;
}

void file_writer_abort(struct file_writer *w)
{
    if (w->stream)
        fclose(w->stream);
    w->stream = NULL;
    remove(w->part);
}
