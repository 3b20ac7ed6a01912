/* render_chat.c: prompts of conversations, for comparison with Python.
 *
 *   render_chat DIALECT REQUESTS                 the prompts
 *   render_chat DIALECT REQUESTS TOKENIZER.json  their ids, one line each
 *
 * Requests (see chat_from_json) and prompts are separated by NUL bytes. A request that is refused
 * gives "error: REASON".
 */
#include "base/file.h"
#include "text/chat.h"

#include <stdio.h>

static int print_ids(const struct tokenizer *t, const struct chat_prompt *prompt, struct err *e)
{
    struct token_list ids = {0};
    int rc = chat_encode(t, prompt, &ids, e);
    for (size_t i = 0; i < ids.n; i++)
        printf("%s%d", i ? " " : "", (int)ids.ids[i]);
    printf("\n");
    token_list_free(&ids);
    return rc;
}

static void render(const struct dialect *d, struct text json, const struct tokenizer *t)
{
    struct err e = {0};
    struct chat_request request;
    struct chat_prompt prompt = {0};
    int rc = chat_from_json(&request, json, &e);
    request.options.dialect = d;
    if (!rc)
        rc = chat_render(&prompt, request.messages, request.n_message, &request.options, &e);
    if (!rc && t)
        rc = print_ids(t, &prompt, &e);
    if (rc)
        printf("error: %s", e.text);
    else if (!t)
        fwrite(prompt.text.data, 1, prompt.text.n_byte, stdout);
    if (!t)
        putchar(0);
    chat_prompt_free(&prompt);
    chat_request_free(&request);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct file_map map;
    struct tokenizer *t = NULL;
    const struct dialect *d = argc >= 3 ? dialect_find(argv[1]) : NULL;
    if (!d || file_map_open(&map, argv[2], &e) ||
        (argc == 4 && tokenizer_open_json(&t, argv[3], &e))) {
        fprintf(stderr, "render_chat: %s\n", e.text);
        return 2;
    }
    for (uint64_t at = 0; at < map.n_byte;) {
        const char *begin = (const char *)map.data + at;
        const char *end = memchr(begin, 0, (size_t)(map.n_byte - at));
        size_t n = end ? (size_t)(end - begin) : (size_t)(map.n_byte - at);
        render(d, (struct text){begin, n}, t);
        at += n + 1;
    }
    tokenizer_close(t);
    file_map_close(&map);
    return 0;
}
