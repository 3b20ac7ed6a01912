/* normalize.c: prints token map keys, for comparison with Hugging Face normalizers.
 *
 *   normalize TEXTS           the normalised texts of a file; texts and results are separated by
 * NUL bytes normalize --map TOKENIZER.json    the compressed id of every token
 */
#include "base/file.h"
#include "text/token_map.h"

#include <stdio.h>

static int normalize_all(const char *path, struct err *e)
{
    struct file_map map;
    if (file_map_open(&map, path, e))
        return -1;
    int rc = 0;
    for (uint64_t at = 0; at < map.n_byte && !rc;) {
        const char *begin = (const char *)map.data + at;
        const char *end = memchr(begin, 0, (size_t)(map.n_byte - at));
        size_t n = end ? (size_t)(end - begin) : (size_t)(map.n_byte - at);
        struct buf key = {0};
        rc = token_map_normalize((struct text){begin, n}, &key, e);
        fwrite(key.data ? key.data : "", 1, key.n_byte, stdout);
        putchar(0);
        buf_free(&key);
        at += n + 1;
    }
    file_map_close(&map);
    return rc;
}

static int print_map(const char *path, struct err *e)
{
    struct tokenizer *t;
    struct token_map map = {0};
    if (tokenizer_open_json(&t, path, e))
        return -1;
    int rc = token_map_build(&map, t, e);
    for (int32_t id = 0; id < map.n_token; id++)
        printf("%d\n", (int)map.compressed[id]);
    token_map_free(&map);
    tokenizer_close(t);
    return rc;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    int is_map = argc == 3 && !strcmp(argv[1], "--map");
    if (argc != 2 && !is_map)
        return 2;
    int rc = is_map ? print_map(argv[2], &e) : normalize_all(argv[1], &e);
    if (rc)
        fprintf(stderr, "normalize: %s\n", e.text);
    return rc ? 1 : 0;
}
