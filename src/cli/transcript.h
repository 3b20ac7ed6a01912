/* transcript.h: the conversation of a chat: what was said, as text, and the prompt it makes. */
#ifndef HADAL_CLI_TRANSCRIPT_H
#define HADAL_CLI_TRANSCRIPT_H

#include "base/err.h"
#include "text/chat.h"

struct turn {
    enum chat_role role;
    struct buf content, reasoning;
    int is_open; /* an answer that was cut off and may be continued */
};

/* Starts as all zeros. */
struct transcript {
    struct turn *turns;
    size_t n, capacity;
};

int transcript_add(struct transcript *t, enum chat_role role, struct text content, struct text reasoning, struct err *e);
/* Sets, replaces or (empty text) removes the system message in front. */
int transcript_set_system(struct transcript *t, struct text content, struct err *e);
/* The system message, or NULL. */
const struct turn *transcript_system(const struct transcript *t);
struct turn *transcript_last(struct transcript *t);
/* Removes the last answer, if the conversation ends with one. Returns whether it did. */
int transcript_drop_answer(struct transcript *t);
/* Removes the last question and its answer. Returns whether there was one. */
int transcript_drop_exchange(struct transcript *t);
/* Removes all but the system message. */
void transcript_clear(struct transcript *t);
void transcript_free(struct transcript *t);

/* Appends the ids of the prompt that asks for the next answer. */
int transcript_encode(const struct transcript *t, const struct chat_options *options, const struct tokenizer *tokenizer,
    struct token_list *out, struct err *e);

/* As a JSON array of messages in the OpenAI form. Loading replaces everything; after an error nothing has changed. */
int transcript_save(const struct transcript *t, const char *path, struct err *e);
int transcript_load(struct transcript *t, const char *path, struct err *e);

#endif
