/* verify.h: the second look: checksums of a converted file, and its values against those of the
 * input. */
#ifndef HADAL_CONVERT_VERIFY_H
#define HADAL_CONVERT_VERIFY_H

#include "convert/convert.h"
#include "model/weights.h"

/* Fills n_exact, largest_error and worst. Fails on a wrong checksum, on other shapes, and on errors
 * larger than any format that can be chosen explains. */
int verify_run(const struct convert_options *o, const struct model_file *input,
    struct convert_report *report, struct err *e);

#endif
