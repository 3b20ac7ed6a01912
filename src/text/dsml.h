/* dsml.h: reads what the model writes: reasoning, content and tool calls, while it is being
 * generated.
 *
 *   REASONING </think> CONTENT \n\n <DSML calls> \n
 *   <DSML invoke name="NAME"> \n
 *   <DSML parameter name="KEY" string="true|false"> VALUE </DSML parameter> \n      any number of
 * them
 *   </DSML invoke> \n                                                              any number of
 * these
 *   </DSML calls>
 *
 * Bytes go in as they come, events come out as soon as they are certain; bytes that could be the
 * beginning of a tag are held back. Events do not depend on how the input was cut, except where a
 * text is cut into several of the same kind.
 *
 * What breaks the grammar gives one DSML_MALFORMED with a reason, and the input from there on comes
 * out as content. Calls that ended before stay valid. Two things are malformed, but reading goes
 * on: a calls block within the reasoning (models forget the tag that ends it) and a DSML token
 * within the content.
 */
#ifndef HADAL_TEXT_DSML_H
#define HADAL_TEXT_DSML_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "text/dialect.h"
#include "text/text.h"

enum {
    DSML_MAX_NAME_BYTES = 4096, /* of a function or parameter name */
    DSML_MAX_ARGUMENT = 4096    /* in a call */
};

enum dsml_kind {
    DSML_REASONING, /* text */
    DSML_CONTENT,   /* text */
    DSML_CALL,      /* text: name of the function; index: of the call */
    DSML_ARGUMENT, /* text: name of the parameter; is_string; index: of the argument within its call
                    */
    DSML_VALUE,    /* text: a part of the value; is_string */
    DSML_ARGUMENT_END, /* the value is complete, and JSON when it is not a string */
    DSML_CALL_END,
    DSML_MALFORMED, /* text: the reason */
    DSML_FINISH
};

struct dsml_event {
    enum dsml_kind kind;
    struct text text; /* valid during the call only */
    int is_string;
    size_t index;
};

typedef void dsml_take(void *user, const struct dsml_event *event);

/* The tags of a dialect, written out. */
struct dsml_tags {
    char start[64], end[64];     /* of the block, the start up to its '>' */
    char call[64], call_end[64]; /* <invoke name=" and </invoke> with line feed */
    char empty_call_end[64];     /* the same after the empty line of a call without arguments */
    char argument[64], argument_end[64]; /* <parameter name=" and </parameter> */
};

struct dsml_parser {
    dsml_take *take;
    void *user;
    struct dsml_tags tags;
    int state;
    struct buf pending; /* bytes not understood yet */
    size_t at;          /* bytes of `pending` that are done */
    struct buf value;   /* of an argument that must be JSON, to check it at its end */
    struct buf keys;    /* names of the arguments of the open call: length (size_t), bytes */
    int is_string, is_malformed;
    size_t n_call, n_argument;
};

/* is_thinking: the input begins within the reasoning. */
void dsml_open(struct dsml_parser *p, const struct dialect *d, int is_thinking);
/* Feeds bytes; not the end-of-sentence token. Set take and user before. Fails only for want of
 * memory. */
int dsml_push(struct dsml_parser *p, struct text bytes, struct err *e);
/* The completion ends here. An unfinished reasoning, call or block is malformed. */
int dsml_finish(struct dsml_parser *p, struct err *e);
void dsml_close(struct dsml_parser *p);

/* Appends the text that must follow what was fed so far, as far as the grammar alone knows it: the
 * rest of a tag that has begun, and what can only stand behind it. Nothing within names, values and
 * plain text. */
void dsml_forced(const struct dsml_parser *p, struct buf *out);

/* Appends what an event adds to the JSON text of the arguments of its call: DSML_CALL opens the
 * object, DSML_CALL_END closes it. Other events add nothing. */
void dsml_arguments_json(struct buf *out, const struct dsml_event *event);

struct dsml_call {
    struct text name, arguments; /* arguments: JSON text of an object */
};

/* A whole completion, read at once; everything lives in the arena. */
struct dsml_message {
    struct arena arena;
    struct text reasoning, content;
    struct dsml_call *calls; /* complete ones */
    size_t n_call;
    struct text malformed; /* the reason, or empty */
};
/* An end-of-sentence token at the end of `completion` is left out. */
int dsml_read(struct dsml_message *m, const struct dialect *d, int is_thinking,
    struct text completion, struct err *e);
void dsml_message_free(struct dsml_message *m);

#endif
