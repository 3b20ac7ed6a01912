/* json_file.h: reading the JSON files of a checkpoint folder with json-c: strict, valid UTF-8,
 * bounded size and depth. For small documents that are read once. Of two equal keys the last one
 * counts. */
#ifndef HADAL_FORMAT_JSON_FILE_H
#define HADAL_FORMAT_JSON_FILE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct json_object;

enum { JSON_FILE_MAX_DEPTH = 32, JSON_FILE_MAX_BYTES = 128 << 20 };

/* `what` names the text in messages. The value is an object; release it with json_object_put. */
int json_file_parse(
    struct json_object **object, const void *text, size_t n_byte, const char *what, struct err *e);
/* The same for a document that is one list. */
int json_file_parse_list(
    struct json_object **list, const void *text, size_t n_byte, const char *what, struct err *e);
int json_file_read(struct json_object **object, const char *path, struct err *e);
/* The member `key`, with dots for nesting ("rope_scaling.factor"); NULL when absent or null. */
struct json_object *json_file_get(struct json_object *object, const char *key);

#endif
