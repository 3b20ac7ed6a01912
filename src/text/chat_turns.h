/* chat_turns.h: messages brought into the order in which they are written.
 *
 * Tool results become blocks of user turns, user messages that follow each other join, results take
 * the order of their calls, and what the model does not see again is marked. Used by chat.c only.
 */
#ifndef HADAL_TEXT_CHAT_TURNS_H
#define HADAL_TEXT_CHAT_TURNS_H

#include "text/chat.h"

struct chat_turn {
    enum chat_role role;
    const struct chat_message *first;   /* the message, or the first of a user turn */
    const struct chat_message **blocks; /* user turns: texts and tool results in writing order */
    size_t n_block;
    struct text task;
};

struct chat_turns {
    struct chat_turn *turns;
    size_t n;
    long last_user;      /* index of the last turn that asks for an answer, -1: none */
    int drops_reasoning; /* reasoning is written only after last_user */
};

int chat_turns_build(struct chat_turns *t, struct arena *arena, const struct chat_message *messages,
    size_t n_message, const struct chat_options *options, struct err *e);

/* The turn is answered by the assistant. */
int chat_turn_asks(const struct chat_turns *t, size_t i, const struct dialect *d);

#endif
