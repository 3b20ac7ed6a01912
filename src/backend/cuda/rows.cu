/* rows.cu: ops that move or combine whole rows. */
#include "backend/cuda/rows.cuh"
#include "backend/cuda/values.cuh"

static __global__ void gather_kernel(
    struct tensor y, struct tensor w, struct tensor id, struct cuda_fault *fault)
{
    cuda_wait();
    int64_t r = blockIdx.x, i = row_column();
    int32_t row = cuda_ints(id, 0)[r];
    if (cuda_refuse(fault, CUDA_GATHER_ROW, row, w.dim[0]) || i >= y.dim[1])
        return;
    cuda_row(y, r)[i] = value_at(w, row, i);
}

void cuda_gather(struct backend *be, const void *args)
{
    const struct op_gather *a = (const struct op_gather *)args;
    cuda_launch(be, "gather", gather_kernel, {row_grid(a->y->dim[0], a->y->dim[1]), ROW_THREADS, 0},
        *a->y, cuda_weight(be, a->w), *a->id, cuda_fault_of(be));
}

static __global__ void repeat_kernel(struct tensor y, struct tensor x)
{
    cuda_wait();
    int64_t r = blockIdx.x, i = row_column(), n_stream = y.dim[1];
    if (i >= y.dim[2])
        return;
    float value = cuda_row(x, r)[i];
    for (int64_t s = 0; s < n_stream; s++)
        cuda_row(y, r * n_stream + s)[i] = value;
}

void cuda_repeat_streams(struct backend *be, const void *args)
{
    const struct op_repeat_streams *a = (const struct op_repeat_streams *)args;
    cuda_launch(be, "repeat_streams", repeat_kernel,
        {row_grid(a->x->dim[0], a->x->dim[1]), ROW_THREADS, 0}, *a->y, *a->x);
}

static __global__ void add_kernel(struct tensor y, struct tensor x, int64_t n_col)
{
    cuda_wait();
    int64_t r = blockIdx.x, i = row_column();
    if (i < n_col)
        cuda_row(y, r)[i] += cuda_row(x, r)[i];
}

void cuda_add(struct backend *be, const void *args)
{
    const struct op_add *a = (const struct op_add *)args;
    int64_t n_col = tensor_n_col(a->y);
    cuda_launch(be, "add", add_kernel, {row_grid(tensor_n_row(a->y), n_col), ROW_THREADS, 0}, *a->y,
        *a->x, n_col);
}

static __global__ void append_kernel(struct tensor y, struct tensor x, struct tensor slot,
    struct tensor at, struct cuda_fault *fault)
{
    cuda_wait();
    int64_t r = blockIdx.x, i = row_column();
    int32_t to = cuda_ints(slot, 0)[r], position = cuda_ints(at, 0)[r];
    if (cuda_refuse(fault, CUDA_APPEND_SLOT, to, y.dim[0]) ||
        cuda_refuse(fault, CUDA_APPEND_POSITION, position, INT32_MAX) || i >= x.dim[1])
        return;
    cache_put(y, to * y.dim[1] + position % y.dim[1], i, cuda_row(x, r)[i]);
}

void cuda_append(struct backend *be, const void *args)
{
    const struct op_append *a = (const struct op_append *)args;
    cuda_launch(be, "append", append_kernel, {row_grid(a->x->dim[0], a->x->dim[1]), ROW_THREADS, 0},
        *a->y, *a->x, *a->slot, *a->at, cuda_fault_of(be));
}

static __global__ void add_by_pos_kernel(
    struct tensor x, struct tensor table, struct tensor pos, struct cuda_fault *fault)
{
    cuda_wait();
    int64_t r = blockIdx.x, i = row_column();
    int32_t position = cuda_ints(pos, 0)[r];
    if (cuda_refuse(fault, CUDA_TABLE_POSITION, position, INT32_MAX) || i >= x.dim[1])
        return;
    cuda_row(x, r)[i] += value_at(table, position % table.dim[0], i);
}

void cuda_add_by_pos(struct backend *be, const void *args)
{
    const struct op_add_by_pos *a = (const struct op_add_by_pos *)args;
    cuda_launch(be, "add_by_pos", add_by_pos_kernel,
        {row_grid(a->x->dim[0], a->x->dim[1]), ROW_THREADS, 0}, *a->x, cuda_weight(be, a->table),
        *a->pos, cuda_fault_of(be));
}

struct group {
    struct tensor kv, score, table, to_kv, to_score, slot, at; /* table.data NULL: none */
    struct cuda_fault *fault;
};

static __global__ void group_kernel(struct group a)
{
    cuda_wait();
    int64_t r = blockIdx.x, i = row_column(), n_col = a.kv.dim[1];
    int32_t to = cuda_ints(a.slot, 0)[r], at = cuda_ints(a.at, 0)[r];
    if (cuda_refuse(a.fault, CUDA_APPEND_SLOT, to, a.to_kv.dim[0]) ||
        cuda_refuse(a.fault, CUDA_APPEND_POSITION, at, INT32_MAX) || i >= n_col)
        return;
    float kv = cuda_row(a.kv, r)[i], score = cuda_row(a.score, r)[i];
    if (a.table.data) {
        score += value_at(a.table, at % a.table.dim[0], i);
        cuda_row(a.score, r)[i] = score;
    }
    int64_t row = to * a.to_kv.dim[1] + at % a.to_kv.dim[1];
    cache_put(a.to_kv, row, i, kv);
    cache_put(a.to_score, row, i, score);
}

void cuda_append_group(struct backend *be, const void *args)
{
    const struct op_append_group *a = (const struct op_append_group *)args;
    struct group g = {
        *a->kv, *a->score, {}, *a->to_kv, *a->to_score, *a->slot, *a->at, cuda_fault_of(be)};
    if (a->table)
        g.table = cuda_weight(be, a->table);
    cuda_launch(be, "append_group", group_kernel,
        {row_grid(a->kv->dim[0], a->kv->dim[1]), ROW_THREADS, 0}, g);
}

static __global__ void stream_mean_kernel(struct tensor y, struct tensor x)
{
    cuda_wait();
    int64_t r = blockIdx.x, i = row_column(), n_stream = x.dim[1];
    if (i >= y.dim[1])
        return;
    float sum = 0;
#pragma unroll 4
    for (int64_t s = 0; s < n_stream; s++)
        sum += cuda_row(x, r * n_stream + s)[i];
    cuda_row(y, r)[i] = sum / (float)n_stream;
}

void cuda_stream_mean(struct backend *be, const void *args)
{
    const struct op_stream_mean *a = (const struct op_stream_mean *)args;
    cuda_launch(be, "stream_mean", stream_mean_kernel,
        {row_grid(a->y->dim[0], a->y->dim[1]), ROW_THREADS, 0}, *a->y, *a->x);
}

/* ---- The largest value: of parts of a row, then of the parts ---- */

enum { PART_THREADS = 256, PART_LEAST = 4096, MAX_PART = 64 };

static __global__ void part_kernel(struct tensor x, uint64_t *best)
{
    cuda_wait();
    __shared__ uint64_t of_warp[PART_THREADS / 32];
    uint32_t n = (uint32_t)x.dim[1], stride = gridDim.y * PART_THREADS;
    const float *row = cuda_row(x, blockIdx.x);
    uint64_t key = choice_key(row[0], 0);
#pragma unroll 4
    for (uint32_t i = blockIdx.y * PART_THREADS + threadIdx.x; i < n; i += stride) {
        uint64_t other = choice_key(row[i], i);
        key = other > key ? other : key;
    }
    key = choice_best(key);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = key;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    key = choice_best(of_warp[threadIdx.x % (PART_THREADS / 32)]);
    if (threadIdx.x == 0)
        best[blockIdx.x * gridDim.y + blockIdx.y] = key;
}

static __global__ void argmax_kernel(struct tensor id, const uint64_t *best, int n_part)
{
    cuda_wait();
    uint64_t key = 0;
    for (int i = (int)threadIdx.x; i < n_part; i += 32) {
        uint64_t other = best[blockIdx.x * n_part + i];
        key = other > key ? other : key;
    }
    key = choice_best(key);
    if (threadIdx.x == 0)
        cuda_ints(id, 0)[blockIdx.x] = (int32_t)choice_index(key);
}

void cuda_argmax(struct backend *be, const void *args)
{
    const struct op_argmax *a = (const struct op_argmax *)args;
    int64_t n = a->x->dim[0], n_part = (a->x->dim[1] + PART_LEAST - 1) / PART_LEAST;
    n_part = n_part < 1 ? 1 : n_part > MAX_PART ? MAX_PART : n_part;
    uint64_t *best = (uint64_t *)backend_scratch(be, (size_t)(n * n_part) * sizeof *best);
    if (!best)
        return;
    cuda_launch(be, "argmax", part_kernel, {dim3((unsigned)n, (unsigned)n_part), PART_THREADS, 0},
        *a->x, best);
    cuda_launch(be, "argmax", argmax_kernel, {dim3((unsigned)n), 32, 0}, *a->id, best, (int)n_part);
}
