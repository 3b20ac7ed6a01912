/* fuzz_chat_json.c: any bytes as a request. What is read must render in every dialect that takes
 * it, with trusted spans in order and within the text. */
#include "text/chat.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte);

static void check(const struct chat_prompt *prompt)
{
    size_t end = 0;
    for (size_t i = 0; i < prompt->n_trusted; i++) {
        if (prompt->trusted[i].begin < end || prompt->trusted[i].end <= prompt->trusted[i].begin)
            abort();
        end = prompt->trusted[i].end;
    }
    if (end > prompt->text.n_byte)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte)
{
    struct chat_request request;
    struct err e = {0};
    if (chat_from_json(&request, (struct text){(const char *)data, n_byte}, &e))
        return 0;
    for (int i = 0; dialect_at(i); i++) {
        struct chat_prompt prompt = {0};
        request.options.dialect = dialect_at(i);
        if (!chat_render(&prompt, request.messages, request.n_message, &request.options, &e))
            check(&prompt);
        chat_prompt_free(&prompt);
    }
    chat_request_free(&request);
    return 0;
}
