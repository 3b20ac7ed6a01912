/* op_case.h: one call of an op made from a line of text and a seed: tensors with guards around
 * them, on any backend.
 *
 * A line: "n=3 h=2 d=64 block=32 eps=1e-6 w:Q8_0 -bias"
 *   x=5        size of a shape letter (op_list.h); *=3x4 for the dimensions of "*"
 *   name=5     an integer or float argument
 *   name:TYPE  storage format of a tensor whose type is not fixed (default F32, tables I32)
 *   -name      an optional tensor that is not given
 */
#ifndef HADAL_TESTS_OPS_OP_CASE_H
#define HADAL_TESTS_OPS_OP_CASE_H

#include "backend/backend.h"
#include "base/rng.h"

enum { CASE_GUARD = 64 };

/* A tensor of the call: | guard | rows | guard | scales | guard |, as one image of bytes. */
struct case_tensor {
    struct tensor t; /* data and scale are offsets into the image */
    int64_t data_at, scale_at, data_bytes, n_byte;
    uint8_t *image; /* inputs, and outputs poisoned */
    int is_used, is_output;
};

struct op_case {
    enum op op;
    const char *line;
    int64_t size[128];
    int64_t star[TENSOR_MAX_DIM];
    int n_star;
    struct case_tensor tensor[OP_MAX_FIELD]; /* by field number */
    _Alignas(16) unsigned char args[OP_MAX_ARGS];
    int row_padding; /* bytes between the rows of activations */
};

/* Builds inputs; -1 with a message when the line does not fit the op. */
int case_build(struct op_case *c, enum op op, const char *line, int row_padding, uint64_t seed);
void case_free(struct op_case *c);

/* Runs the call on a backend. parts: how many batch rows each call takes, ending with 0; NULL: all
 * at once. Afterwards images[f] holds field f's bytes. Returns -1 with the backend's message. */
struct case_result {
    uint8_t *image[OP_MAX_FIELD];
    double *seconds; /* of n_repeat runs, or NULL */
    int n_repeat;
};
int case_run(const struct op_case *c, struct backend *be, const int64_t *parts,
    struct case_result *result, struct err *e);
/* The call's arguments over images (of inputs or of a result); tensors [OP_MAX_FIELD] and args are
 * the caller's. */
void case_args(const struct op_case *c, uint8_t *const image[OP_MAX_FIELD], struct tensor *tensors,
    unsigned char *args);
void case_result_free(struct case_result *r);

#endif
