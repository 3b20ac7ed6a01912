/* mhc.cuh: the control vectors of hyper-connections. */
#ifndef HADAL_BACKEND_CUDA_MHC_CUH
#define HADAL_BACKEND_CUDA_MHC_CUH

#include "backend/cuda/cuda.cuh"

enum { MHC_MAX_STREAM = 16 };

/* m[r][i] = (fn_i . flat(x_r)) / sqrt(mean(flat(x_r)^2) + eps), as many per row as fn has rows, in
 * scratch memory; NULL: failed. */
const float *mhc_control(
    struct backend *be, const struct tensor *x, const struct tensor *fn, float eps);

#endif
