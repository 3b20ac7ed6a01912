/* op_cases.h: the shapes on which every op is tested, and those on which it is timed. Lines:
 * op_case.h. */
#ifndef HADAL_TESTS_OPS_OP_CASES_H
#define HADAL_TESTS_OPS_OP_CASES_H

#include "ops/ops.h"

struct case_line {
    enum op op;
    const char *line; /* "w:*" stands for every weight format */
};

extern const struct case_line test_cases[], bench_cases[]; /* the last line is NULL */

#endif
