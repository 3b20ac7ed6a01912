/* op_fill.h: random but valid contents for the tensors of a case. */
#ifndef HADAL_TESTS_OPS_OP_FILL_H
#define HADAL_TESTS_OPS_OP_FILL_H

#include "ops/op_case.h"

/* Fills field f's rows (and scales) in its image: inputs at random, written outputs with poison. */
void fill_tensor(
    struct op_case *c, const struct op_field *f, struct case_tensor *ct, struct rng *rng);

/* What unwritten output values hold: a quiet NaN as a float, an absurd index as an integer. */
#define FILL_POISON 0x7fc0deadu

#endif
