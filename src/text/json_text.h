/* json_text.h: JSON in, and JSON out the way Python's json.dumps(ensure_ascii=False) writes it.
 *
 * The models were trained on prompts that Python rendered, so tool schemas, arguments and response
 * formats must be re-serialised byte for byte like that: ", " and ": " between things, keys in
 * their order, characters raw, floats in their shortest form. json-c parses; what it would quietly
 * change is refused before: ill-formed UTF-8, lone surrogate escapes, NUL in a key, line feeds
 * inside strings, integers beyond 64 bits, nesting deeper than JSON_TEXT_MAX_DEPTH.
 */
#ifndef HADAL_TEXT_JSON_TEXT_H
#define HADAL_TEXT_JSON_TEXT_H

#include "base/buf.h"
#include "base/err.h"
#include "text/text.h"

struct json_object;

enum { JSON_TEXT_MAX_DEPTH = 128, JSON_TEXT_MAX_BYTES = 1 << 28 };

/* Parses one whole value. Release *value with json_object_put. `null` is a NULL pointer. */
int json_text_read(struct json_object **value, struct text text, struct err *e);

/* One whole JSON value, whatever the size of its integers. */
int json_text_is_valid(struct text text);

void json_text_write(struct buf *out, struct json_object *value);
/* A quoted string. */
void json_text_write_string(struct buf *out, struct text text);
/* The inside of a quoted string; a text may be escaped in parts. */
void json_text_escape(struct buf *out, struct text text);

/* A member of an object; NULL when there is none, when it is null and when this is no object. */
struct json_object *json_text_member(struct json_object *object, const char *key);

/* The text of a string value; empty for any other type. */
struct text json_text_string(struct json_object *value);

#endif
