/* op_compare.h: is a result what the reference returned?
 *
 * The same bytes, guards and gaps included. Of backends with matrix instructions, ops that sum
 * products in another order may differ by a bound; even they return a row's bits whatever rows are
 * beside it. A selection by scores of their own may prefer another row where the reference's scores
 * of both lie within that bound.
 */
#ifndef HADAL_TESTS_OPS_OP_COMPARE_H
#define HADAL_TESTS_OPS_OP_COMPARE_H

#include "ops/op_case.h"

/* What ops must do: write every output value of field f, leave inputs, gaps and guards alone. NULL:
 * they did. */
const char *compare_places(const struct op_case *c, int f, const struct case_result *r);

struct comparison {
    const struct op_case *c;
    struct backend *ref;
    const char *backend;
    const struct case_result *expected, *result;
    const struct case_result *in_one_call; /* all rows, of the same backend */
};
/* NULL when the result is sound, else what is wrong. */
const char *compare_results(const struct comparison *k);

#endif
