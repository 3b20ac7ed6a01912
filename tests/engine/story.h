/* story.h: the truth that engines are compared with: a sequence and the logits of every row,
 * computed one row at a time by one thread in portable C. Failures end the test through cmocka.
 */
#ifndef TESTS_ENGINE_STORY_H
#define TESTS_ENGINE_STORY_H

#include "base/arena.h"
#include "base/err.h"
#include "hadal.h"

enum { STORY_CONTEXT = 640 };

struct story_options {
    const char *model; /* as toy_file.c names them */
    int n_prompt, n;   /* tokens given, tokens in all; the rest is generated */
    uint32_t seed;     /* of the prompt */
    int period;        /* tokens after which the prompt repeats itself; 0: never */
    struct hadal_sampling sampling;
};

struct story {
    struct arena arena;
    struct story_options options;
    int n, n_vocab;
    int32_t *ids;  /* [n] */
    float *logits; /* [n, n_vocab] */
};

struct story *story_new(const struct story_options *o);
void story_free(struct story *s);

/* What computes from here on, truth included: a name as hadal.h takes it; NULL: the cpu backend. From a test program's
 * argument, so that the same tests run on a device. */
void story_use_backend(const char *name);
const char *story_backend(void);
/* An engine over the story's model: model, n_context (unless given) and one thread (unless given)
 * are filled in. NULL when this machine has no such level. */
hadal_engine *story_engine(const struct story *s, struct hadal_engine_options o);
hadal_session *story_session(hadal_engine *engine);

/* The session is the story's beginning: its ids, and to the bit the logits after its last token. */
void story_check(const struct story *s, const hadal_session *session, const char *what);
/* Appends the story's next n tokens and checks every row's logits (has_all), or the last one's. */
void story_append(const struct story *s, hadal_session *session, int n, int has_all);

/* Numbers for fuzzing: 0 .. n - 1, from a state that advances. */
int story_random(uint64_t *state, int n);

#endif
