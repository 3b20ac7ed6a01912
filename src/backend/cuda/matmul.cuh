/* matmul.cuh: matrix products by matrix instructions, for the formats of formats.cuh. */
#ifndef HADAL_BACKEND_CUDA_MATMUL_CUH
#define HADAL_BACKEND_CUDA_MATMUL_CUH

#include "backend/cuda/matmul_many.cuh"

/* Whether formats.cuh has the format and the sizes are whole groups. */
int cuda_has_slices(const struct tensor *w);
/* Up to eight rows go one way, more the other; bits are the same. */
enum { CUDA_FEW_ROWS = 8 };

static inline int cuda_slices(int64_t n_in)
{
    return (int)((n_in + SLICE - 1) / SLICE);
}
/* Room for n_row split rows of n_in values; 0 when there is none (the failure is recorded). */
int cuda_split_new(struct backend *be, split_rows *s, int64_t n_row, int64_t n_in);
/* Split row r is part r % n_group of row r / n_group of x. */
void cuda_split_many(
    struct backend *be, const split_rows &to, const struct tensor *x, int64_t n_in, int n_group);
/* Launches many_kernel on n_y tiles of rows. */
void cuda_run_many(struct backend *be, const many_job &j, int64_t n_y);

/* In the reference's order, any format; matmul_plain.cu */
void cuda_matmul_plain(struct backend *be, const struct tensor *y, const struct tensor *x,
    const struct tensor *w, int n_group);
void cuda_expert_mlp_plain(struct backend *be, const void *args);

#endif
