/* encode_file.c: prints the token ids of texts, for comparison with other tokenizers.
 *
 *   encode_file TOKENIZER.json TEXT [plain|specials]
 *   encode_file --time TOKENIZER.json TEXT
 *
 * The text file holds any number of texts, separated by NUL bytes; one line of ids is printed for
 * each. With --time, the processor seconds that encoding the whole file takes.
 */
#include "base/file.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <time.h>

static int print_ids(const struct tokenizer *t, struct text text, int flags, struct err *e)
{
    struct token_list list = {0};
    int rc = tokenizer_encode(t, text, flags, &list, e);
    for (size_t i = 0; i < list.n && !rc; i++)
        printf("%s%d", i ? " " : "", (int)list.ids[i]);
    printf("\n");
    token_list_free(&list);
    return rc;
}

static int encode_all(const struct tokenizer *t, struct text rest, int flags, struct err *e)
{
    while (rest.n_byte) {
        const char *end = memchr(rest.data, 0, rest.n_byte);
        size_t n = end ? (size_t)(end - rest.data) : rest.n_byte;
        if (print_ids(t, (struct text){rest.data, n}, flags, e))
            return -1;
        n += end != NULL;
        rest = (struct text){rest.data + n, rest.n_byte - n};
    }
    return 0;
}

static int time_all(const struct tokenizer *t, struct text text, struct err *e)
{
    struct timespec begin, end;
    struct token_list list = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    int rc = tokenizer_encode(t, text, TOKENIZER_SPECIALS, &list, e);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%.6f %zu\n",
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec), list.n);
    token_list_free(&list);
    return rc;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct tokenizer *t = NULL;
    struct file_map map = {0};
    if (argc != 4 && argc != 3)
        return 2;
    int is_timed = !strcmp(argv[1], "--time");
    const char *json = argv[1 + is_timed], *path = argv[2 + is_timed];
    int flags = argc == 4 && !strcmp(argv[3], "plain") ? TOKENIZER_PLAIN : TOKENIZER_SPECIALS;
    int rc = tokenizer_open_json(&t, json, &e) || file_map_open(&map, path, &e);
    struct text text = {(const char *)map.data, (size_t)map.n_byte};
    if (!rc)
        rc = is_timed ? time_all(t, text, &e) : encode_all(t, text, flags, &e);
    if (rc)
        fprintf(stderr, "encode_file: %s\n", e.text);
    file_map_close(&map);
    tokenizer_close(t);
    return rc ? 1 : 0;
}
