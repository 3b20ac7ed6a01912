/* chat.h: conversations, and the prompts that they become.
 *
 * A prompt is one text and the list of its trusted spans: the parts that the format wrote itself.
 * Only there special tokens are recognised, so that a user or a tool who writes "<｜Assistant｜>"
 * gets ordinary text. The text is encoded as a whole, so the ids are those of the vendor's encoder
 * followed by its tokenizer whenever nobody wrote such a thing.
 *
 * Not here: images (a part that is not text becomes "[Unsupported TYPE]"), continuing from an
 * already encoded prefix (sessions compare ids instead).
 */
#ifndef HADAL_TEXT_CHAT_H
#define HADAL_TEXT_CHAT_H

#include "base/arena.h"
#include "text/dialect.h"
#include "text/tokenizer.h"

enum {
    CHAT_MAX_MESSAGE = 1 << 16, /* messages in a conversation */
    CHAT_MAX_CALL = 1 << 10     /* calls in a message */
};

enum chat_role { CHAT_SYSTEM, CHAT_DEVELOPER, CHAT_USER, CHAT_ASSISTANT, CHAT_TOOL, CHAT_REMINDER };

struct chat_call {
    struct text id, name;
    struct text
        arguments; /* JSON text of an object; anything else becomes one parameter "arguments" */
};

/* Only the role is needed; a field that a role does not use is ignored. */
struct chat_message {
    enum chat_role role;
    struct text content;
    struct text reasoning;         /* assistant */
    const struct chat_call *calls; /* assistant */
    size_t n_call;
    struct text call_id;         /* tool: the call that this answers */
    struct text tools;           /* system, developer: JSON array of tools in the OpenAI form */
    struct text response_format; /* system, developer: JSON */
    struct text task;            /* action, query, authority, domain, title or read_url */
    int is_open;                 /* assistant: the answer goes on (no end-of-sentence token) */
};

struct chat_options {
    const struct dialect *dialect;
    int is_thinking;
    int keeps_reasoning; /* also of turns before the last user message */
    const char *effort;  /* NULL: the dialect's default */
};

/* Starts as all zeros. */
struct chat_prompt {
    struct buf text;
    struct text_span *trusted; /* in order, not touching */
    size_t n_trusted, capacity;
};
int chat_render(struct chat_prompt *prompt, const struct chat_message *messages, size_t n_message,
    const struct chat_options *options, struct err *e);
void chat_prompt_free(struct chat_prompt *prompt);

/* Appends the ids of a prompt. */
int chat_encode(const struct tokenizer *t, const struct chat_prompt *prompt, struct token_list *out,
    struct err *e);

/* A conversation as it comes from a client: a JSON array of messages in the OpenAI form, or an
 * object with `messages` and optionally `tools`, `response_format`, `thinking`, `reasoning_effort`
 * and `drop_thinking`. Tools and response format of the object go to the first message when that is
 * a system message, else to a new empty one. Reasoning of an assistant is `reasoning_content` or
 * `reasoning`. */
struct chat_request {
    struct arena arena; /* holds everything below */
    struct chat_message *messages;
    size_t n_message;
    struct chat_options options; /* the dialect is left to the caller */
    int has_thinking;            /* options.is_thinking was given */
};
int chat_from_json(struct chat_request *request, struct text json, struct err *e);
void chat_request_free(struct chat_request *request);

#endif
