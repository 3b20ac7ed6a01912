/* transcript.c: see transcript.h. */
#include "cli/transcript.h"

#include "base/file.h"
#include "text/json_text.h"

#include <string.h>

static void free_turn(struct turn *turn)
{
    buf_free(&turn->content);
    buf_free(&turn->reasoning);
}

static int insert(struct transcript *t, size_t at, struct turn turn, struct err *e)
{
    if (t->n == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 16;
        struct turn *grown = mem_resize(t->turns, capacity * sizeof *grown);
        if (!grown) {
            free_turn(&turn);
            return err_set(e, ERR_MEMORY, "no memory for %zu turns", capacity);
        }
        t->turns = grown;
        t->capacity = capacity;
    }
    memmove(t->turns + at + 1, t->turns + at, (t->n - at) * sizeof *t->turns);
    t->turns[at] = turn;
    t->n++;
    return 0;
}

int transcript_add(struct transcript *t, enum chat_role role, struct text content, struct text reasoning, struct err *e)
{
    struct turn turn = {.role = role};
    buf_append(&turn.content, content.data, content.n_byte);
    buf_append(&turn.reasoning, reasoning.data, reasoning.n_byte);
    if (turn.content.is_broken || turn.reasoning.is_broken) {
        free_turn(&turn);
        return err_set(e, ERR_MEMORY, "no memory for a message of %zu bytes", content.n_byte);
    }
    return insert(t, t->n, turn, e);
}

const struct turn *transcript_system(const struct transcript *t)
{
    return t->n && t->turns[0].role == CHAT_SYSTEM ? &t->turns[0] : NULL;
}

static void cut(struct transcript *t, size_t n)
{
    while (t->n > n)
        free_turn(&t->turns[--t->n]);
}

int transcript_set_system(struct transcript *t, struct text content, struct err *e)
{
    struct turn turn = {.role = CHAT_SYSTEM};
    if (transcript_system(t)) {
        free_turn(&t->turns[0]);
        memmove(t->turns, t->turns + 1, --t->n * sizeof *t->turns);
    }
    if (!content.n_byte)
        return 0;
    buf_append(&turn.content, content.data, content.n_byte);
    return insert(t, 0, turn, e);
}

struct turn *transcript_last(struct transcript *t)
{
    return t->n ? &t->turns[t->n - 1] : NULL;
}

int transcript_drop_answer(struct transcript *t)
{
    if (!t->n || t->turns[t->n - 1].role != CHAT_ASSISTANT)
        return 0;
    cut(t, t->n - 1);
    return 1;
}

int transcript_drop_exchange(struct transcript *t)
{
    size_t n = t->n;
    while (n && t->turns[n - 1].role != CHAT_USER)
        n--;
    if (!n)
        return 0;
    cut(t, n - 1);
    return 1;
}

void transcript_clear(struct transcript *t)
{
    cut(t, transcript_system(t) ? 1 : 0);
}

void transcript_free(struct transcript *t)
{
    cut(t, 0);
    mem_free(t->turns);
    *t = (struct transcript){0};
}

static struct text text_of_buf(const struct buf *b)
{
    return (struct text){b->data, b->n_byte};
}

int transcript_encode(const struct transcript *t, const struct chat_options *options, const struct tokenizer *tokenizer,
    struct token_list *out, struct err *e)
{
    struct chat_prompt prompt = {0};
    struct chat_message *messages = mem_resize(NULL, (t->n + 1) * sizeof *messages);
    if (!messages)
        return err_set(e, ERR_MEMORY, "no memory for %zu messages", t->n);
    for (size_t i = 0; i < t->n; i++)
        messages[i] = (struct chat_message){.role = t->turns[i].role, .content = text_of_buf(&t->turns[i].content),
            .reasoning = text_of_buf(&t->turns[i].reasoning), .is_open = t->turns[i].is_open && i + 1 == t->n};
    int failed = chat_render(&prompt, messages, t->n, options, e) || chat_encode(tokenizer, &prompt, out, e);
    chat_prompt_free(&prompt);
    mem_free(messages);
    return failed ? -1 : 0;
}

static void write_turn(struct buf *out, const struct turn *turn)
{
    static const char *const roles[] = {[CHAT_SYSTEM] = "system", [CHAT_DEVELOPER] = "developer", [CHAT_USER] = "user",
        [CHAT_ASSISTANT] = "assistant", [CHAT_TOOL] = "tool", [CHAT_REMINDER] = "latest_reminder"};
    buf_print(out, "  {\"role\": \"%s\", \"content\": ", roles[turn->role]);
    json_text_write_string(out, text_of_buf(&turn->content));
    if (turn->reasoning.n_byte) {
        buf_text(out, ", \"reasoning_content\": ");
        json_text_write_string(out, text_of_buf(&turn->reasoning));
    }
    buf_text(out, "}");
}

int transcript_save(const struct transcript *t, const char *path, struct err *e)
{
    struct buf out = {0};
    struct file_writer w;
    buf_text(&out, "[\n");
    for (size_t i = 0; i < t->n; i++) {
        write_turn(&out, &t->turns[i]);
        buf_text(&out, i + 1 < t->n ? ",\n" : "\n");
    }
    buf_text(&out, "]\n");
    if (out.is_broken) {
        buf_free(&out);
        return err_set(e, ERR_MEMORY, "no memory to write %s", path);
    }
    int failed = file_writer_open(&w, path, e);
    if (!failed) {
        failed = file_writer_write(&w, out.data, out.n_byte, e) || file_writer_commit(&w, e);
        if (failed)
            file_writer_abort(&w);
    }
    buf_free(&out);
    return failed ? -1 : 0;
}

int transcript_load(struct transcript *t, const char *path, struct err *e)
{
    struct file_map m;
    struct chat_request request = {0};
    struct transcript loaded = {0};
    if (file_map_open(&m, path, e))
        return -1;
    int failed = chat_from_json(&request, (struct text){(const char *)m.data, m.n_byte}, e);
    for (size_t i = 0; !failed && i < request.n_message; i++)
        failed = transcript_add(
            &loaded, request.messages[i].role, request.messages[i].content, request.messages[i].reasoning, e);
    chat_request_free(&request);
    file_map_close(&m);
    if (failed) {
        transcript_free(&loaded);
        return err_wrap(e, "%s", path);
    }
    transcript_free(t);
    *t = loaded;
    return 0;
}
