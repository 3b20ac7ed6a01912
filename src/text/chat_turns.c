/* chat_turns.c: see chat_turns.h. */
#include "text/chat_turns.h"

#include <stdlib.h>

/* ---- merging ---- */

static int is_user_side(enum chat_role role)
{
    return role == CHAT_USER || role == CHAT_TOOL;
}

/* A tool result joins any user turn before it; a user text starts a turn of its own after one with
 * a task. */
static int joins(const struct chat_turn *last, const struct chat_message *m)
{
    return last && last->role == CHAT_USER &&
           (m->role == CHAT_TOOL || (m->role == CHAT_USER && !last->task.n_byte));
}

static void merge(struct chat_turns *t, const struct chat_message *messages, size_t n_message,
    const struct chat_message **blocks)
{
    for (size_t i = 0; i < n_message; i++) {
        const struct chat_message *m = &messages[i];
        struct chat_turn *last = t->n ? &t->turns[t->n - 1] : NULL;
        blocks[i] = m;
        if (joins(last, m)) {
            last->n_block++; /* blocks of a turn lie side by side, as its messages do */
            continue;
        }
        struct chat_turn turn = {.role = m->role, .first = m, .task = m->task};
        if (is_user_side(m->role))
            turn = (struct chat_turn){
                CHAT_USER, m, &blocks[i], 1, m->role == CHAT_USER ? m->task : (struct text){"", 0}};
        t->turns[t->n++] = turn;
    }
}

/* ---- the order of tool results ---- */

struct result {
    const struct chat_message *message;
    size_t call, arrival;
};

static int compare_results(const void *left, const void *right)
{
    const struct result *a = left, *b = right;
    if (a->call != b->call)
        return a->call < b->call ? -1 : 1;
    return (a->arrival > b->arrival) - (a->arrival < b->arrival);
}

/* Index of the call that a result answers; 0 when there is no such call. The last of equal ids
 * counts. */
static size_t call_of(const struct chat_message *assistant, struct text id)
{
    for (size_t i = assistant->n_call; i-- > 0;)
        if (id.n_byte && text_equal(assistant->calls[i].id, id))
            return i;
    return 0;
}

static void sort_results(
    struct chat_turn *turn, const struct chat_message *assistant, struct result *results)
{
    size_t n = 0, next = 0;
    for (size_t i = 0; i < turn->n_block; i++)
        if (turn->blocks[i]->role == CHAT_TOOL) {
            results[n] =
                (struct result){turn->blocks[i], call_of(assistant, turn->blocks[i]->call_id), n};
            n++;
        }
    qsort(results, n, sizeof *results, compare_results);
    for (size_t i = 0; i < turn->n_block; i++)
        if (turn->blocks[i]->role == CHAT_TOOL)
            turn->blocks[i] = results[next++].message;
}

static void sort_all_results(struct chat_turns *t, struct result *results)
{
    const struct chat_message *assistant = NULL; /* the latest one with calls */
    for (size_t i = 0; i < t->n; i++) {
        struct chat_turn *turn = &t->turns[i];
        if (turn->role == CHAT_ASSISTANT && turn->first->n_call)
            assistant = turn->first;
        else if (turn->role == CHAT_USER && assistant)
            sort_results(turn, assistant, results);
    }
}

/* ---- what is not seen again ---- */

static int has_tools(const struct chat_turns *t, const struct dialect *d)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->turns[i].first->tools.n_byte &&
            (t->turns[i].role != CHAT_USER || d->keeps_user_tools))
            return 1;
    return 0;
}

int chat_turn_asks(const struct chat_turns *t, size_t i, const struct dialect *d)
{
    enum chat_role role = t->turns[i].role;
    return role == CHAT_USER || role == CHAT_DEVELOPER ||
           (role == CHAT_SYSTEM && d->has_system_token && i > 0);
}

static long find_last_user(const struct chat_turns *t, const struct dialect *d)
{
    for (size_t i = t->n; i-- > 0;)
        if (chat_turn_asks(t, i, d))
            return (long)i;
    return -1;
}

static void drop_developers(struct chat_turns *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->turns[i].role != CHAT_DEVELOPER || (long)i >= t->last_user)
            t->turns[n++] = t->turns[i];
    t->n = n;
}

int chat_turns_build(struct chat_turns *t, struct arena *arena, const struct chat_message *messages,
    size_t n_message, const struct chat_options *options, struct err *e)
{
    *t = (struct chat_turns){.turns = ARENA_NEW(arena, struct chat_turn, n_message)};
    const struct chat_message **blocks = ARENA_NEW(arena, const struct chat_message *, n_message);
    struct result *results = ARENA_NEW(arena, struct result, n_message);
    if (!t->turns || !blocks || !results)
        return err_set(e, ERR_MEMORY, "no memory for %zu messages", n_message);
    merge(t, messages, n_message, blocks);
    sort_all_results(t, results);
    t->drops_reasoning = !options->keeps_reasoning && !has_tools(t, options->dialect);
    t->last_user = find_last_user(t, options->dialect);
    if (options->is_thinking && t->drops_reasoning) {
        drop_developers(t);
        t->last_user = find_last_user(t, options->dialect);
    }
    return 0;
}
