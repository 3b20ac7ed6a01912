/* compare_models.h: two configurations, field by field; two sets of weights, value by value. */
#ifndef TESTS_CONVERT_COMPARE_MODELS_H
#define TESTS_CONVERT_COMPARE_MODELS_H

#include "model/weights.h"

/* Fail the test at the first difference. Names of the models may differ. */
void compare_configs(const struct model_config *found, const struct model_config *expected);
/* Both models have the shape of config and plan. relative: allowed RMS error per tensor, 0: the
 * same bits. */
void compare_weights(
    const struct model_file_info *found, const struct model_weights *expected, double relative);

#endif
