/* toy_model.h: the two toy models of the specifications, in memory, every weight a hash of its
 * checkpoint name. v4 spec appendix F, v41 spec appendix B. All matrices are F32 (expert numbers of
 * the token router I32). */
#ifndef TESTS_SUPPORT_TOY_MODEL_H
#define TESTS_SUPPORT_TOY_MODEL_H

#include "model/weights.h"

struct toy_model {
    struct model_config config;
    struct plan plan;
    struct model_weights weights;
};

/* Everything lives in the arena. NULL when there is no memory or the model contradicts itself (*e
 * says how). The toy V4 has no draft stages, the toy V4.1 has three. */
struct toy_model *toy_v4(struct arena *arena, struct err *e);
struct toy_model *toy_v41(struct arena *arena, struct err *e);

/* Configurations alone. */
void toy_v4_config(struct model_config *c);
int toy_v41_config(struct model_config *c, struct arena *arena, struct err *e);

/* n values of tensor `name`, whose last dimension is n_col. */
void toy_values(const char *name, int64_t n, int64_t n_col, float *out);

#endif
