/* attend.cu: the second half of attention, the weighted sum, and the op. See attend.cuh.
 *
 * A block takes 16 M heads of a row and some of the columns. Weights become operands in shared
 * memory, for all warps, G pieces at a time; a warp reads its columns of the keys straight into
 * operands. Group i + 1 of the weights and group i + 2 of the keys' addresses are on their way
 * while group i is used.
 */
#include "backend/cuda/attend.cuh"
#include "backend/cuda/values.cuh"

/* Rows of weights are apart so that reads fall into all banks. */
template <int M, int G> struct sum_stage {
    enum { HEADS = 16 * M, ITEMS = HEADS * G, KEYS = G * PIECE, PITCH = KEYS + 16 };
    uint16_t hi[2][HEADS][PITCH], lo[2][HEADS][PITCH]; /* weights of a group, two in turn */
    float4 e[ITEMS][4];                                /* of the next group, item by item */
    float2 piece[ITEMS];
    cache_row key[3][KEYS];
    float most[HEADS], denominator[HEADS];
};

/* Largest score and denominator of the block's heads: eight neighbouring threads a head. */
template <int M, int G>
static __device__ inline void sum_heads(sum_stage<M, G> &s, const struct attend_job &a, int n_piece)
{
    for (int i = threadIdx.x / 8; i < 16 * M; i += blockDim.x / 8) {
        int64_t head = 16 * M * (int64_t)blockIdx.z + i;
        int is_there = head < a.q.dim[1];
        const float2 *piece =
            a.piece + (blockIdx.x * a.q.dim[1] + (is_there ? head : 0)) * (a.pitch / PIECE);
        float sink = is_there ? value_at(a.sink, 0, head) : 0, most = sink, sum = 0;
        for (int c = threadIdx.x % 8; c < n_piece; c += 8)
            most = fmaxf(most, piece[c].x);
        for (int half = 4; half; half /= 2)
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, half));
        for (int c = threadIdx.x % 8; c < n_piece; c += 8)
            sum = fmaf(piece[c].y, fmath_exp(piece[c].x - most), sum);
        for (int half = 4; half; half /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, half);
        s.most[i] = most;
        s.denominator[i] = sum + fmath_exp(sink - most);
    }
}

/* ---- Weights and addresses on their way ----
 *
 * Item i of a group is piece i % G of head i / G. The thread that copies it converts it. Its fours
 * are swapped, so that neighbouring threads read from different banks. */

template <int M, int G>
static __device__ inline int has_item(const struct attend_job &a, int i, int group, int n_piece)
{
    int64_t head = 16 * M * (int64_t)blockIdx.z + i / G;
    return group * G + i % G < n_piece && head < a.q.dim[1];
}

template <int M, int G>
static __device__ inline void copy_weights(
    sum_stage<M, G> &s, const struct attend_job &a, int group, int n_piece)
{
    for (int i = threadIdx.x; i < s.ITEMS; i += blockDim.x) {
        if (!has_item<M, G>(a, i, group, n_piece))
            continue;
        int64_t head = blockIdx.x * a.q.dim[1] + 16 * M * (int64_t)blockIdx.z + i / G;
        int64_t piece = head * (a.pitch / PIECE) + group * G + i % G;
        for (int j = 0; j < 4; j++)
            copy_16(&s.e[i][j ^ (i >> 1 & 3)], a.e + piece * PIECE + 4 * j);
        copy_8(&s.piece[i], a.piece + piece);
    }
}

template <int M, int G>
static __device__ inline void copy_keys(
    sum_stage<M, G> &s, const struct attend_job &a, int group, int n_piece)
{
    for (int i = 2 * threadIdx.x; i < s.KEYS; i += 2 * blockDim.x)
        if (group * G + i / PIECE < n_piece)
            copy_16(&s.key[group % 3][i], a.key + blockIdx.x * a.pitch + group * s.KEYS + i);
}

/* The thread's items of a group become operands. */
template <int M, int G>
static __device__ inline void convert_weights(
    sum_stage<M, G> &s, const struct attend_job &a, int group, int n_piece)
{
    for (int i = threadIdx.x; i < s.ITEMS; i += blockDim.x) {
        uint32_t hi[8] = {}, lo[8] = {};
        if (has_item<M, G>(a, i, group, n_piece)) {
            float factor = fmath_exp(s.piece[i].x - s.most[i / G]);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float4 x = s.e[i][j ^ (i >> 1 & 3)];
                x.x *= factor, x.y *= factor, x.z *= factor, x.w *= factor;
                split_four(x, hi + 2 * j, lo + 2 * j);
            }
        }
        uint4 *to_hi = (uint4 *)&s.hi[group & 1][i / G][i % G * PIECE];
        uint4 *to_lo = (uint4 *)&s.lo[group & 1][i / G][i % G * PIECE];
        to_hi[0] = make_uint4(hi[0], hi[1], hi[2], hi[3]);
        to_hi[1] = make_uint4(hi[4], hi[5], hi[6], hi[7]);
        to_lo[0] = make_uint4(lo[0], lo[1], lo[2], lo[3]);
        to_lo[1] = make_uint4(lo[4], lo[5], lo[6], lo[7]);
    }
}

/* ---- Keys ---- */

/* Columns. A warp has N groups of eight, V = 2 (N > 1) of which lie interleaved: group j has the
 * columns first(j) + V g. The pairs are spread over the row, so that columns that are not exact in
 * bf16 fall to all warps. */
template <int N> struct columns {
    enum { V = N > 1 ? 2 : 1, SPREAD = N / V };
    static __device__ int64_t first(int j)
    {
        int64_t n_warp = blockDim.x / 32, warp = threadIdx.x / 32;
        return n_warp * 8 * N * blockIdx.y + 8 * V * (n_warp * (j / V) + warp) + j % V;
    }
};

/* Values of keys 4t .. 4t + 3 of piece c in this thread's column of the N groups: x[group][key]. */
template <int N> struct key_values {
    float x[N][4];
};
template <int N, bool PLAIN>
static __device__ inline void load_values(
    key_values<N> &v, const cache_row key[4], int j, int64_t n_column)
{
    constexpr int V = columns<N>::V;
    int64_t at = columns<N>::first(j) + V * (threadIdx.x % 32 / 4);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (PLAIN) {
            for (int i = 0; i < V; i++)
                v.x[j + i][k] = at + i < n_column ? cache_value(key[k], at + i) : 0;
        } else if (V == 2) {
            float2 two = *(const float2 *)((const float *)key[k] + at);
            v.x[j][k] = two.x, v.x[j + V - 1][k] = two.y;
        } else {
            v.x[j][k] = ((const float *)key[k])[at];
        }
    }
}

/* Piece c of the row. */
template <int N, bool PLAIN, int M, int G>
static __device__ inline void load_piece_part(
    key_values<N> &v, const sum_stage<M, G> &s, int c, int j, int64_t n_column)
{
    const ulonglong2 *from =
        (const ulonglong2 *)&s.key[c / G % 3][c % G * PIECE + 4 * (threadIdx.x % 4)];
    ulonglong2 low = from[0], high = from[1];
    cache_row key[4] = {low.x, low.y, high.x, high.y};
    load_values<N, PLAIN>(v, key, j, n_column);
}
template <int N, bool PLAIN, int M, int G>
static __device__ inline void load_piece(
    key_values<N> &v, const sum_stage<M, G> &s, int c, int64_t n_column)
{
#pragma unroll
    for (int j = 0; j < N; j += columns<N>::V)
        load_piece_part<N, PLAIN>(v, s, c, j, n_column);
}

/* Weights of one piece of a group as operands: rows are heads. */
template <int M> struct weight_operand {
    uint32_t hi[M][4], lo[M][4];
};
template <int M, int G>
static __device__ inline void load_operand(
    weight_operand<M> &o, const sum_stage<M, G> &s, int turn, int piece)
{
    int g = threadIdx.x % 32 / 4, at = piece * PIECE + 4 * (threadIdx.x % 4);
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        uint2 hi = *(const uint2 *)&s.hi[turn][8 * i + g][at];
        uint2 lo = *(const uint2 *)&s.lo[turn][8 * i + g][at];
        o.hi[i / 2][i % 2] = hi.x, o.hi[i / 2][2 + i % 2] = hi.y;
        o.lo[i / 2][i % 2] = lo.x, o.lo[i / 2][2 + i % 2] = lo.y;
    }
}

template <int M>
static __device__ inline void add_piece(
    float (*acc)[4], int stride, const weight_operand<M> &w, const float x[4])
{
    uint32_t hi[2], lo[2];
    split_four(make_float4(x[0], x[1], x[2], x[3]), hi, lo);
#pragma unroll
    for (int m = 0; m < M; m++)
        mma_bf16(acc[m * stride], w.hi[m], hi);
#pragma unroll
    for (int m = 0; m < M; m++)
        mma_bf16(acc[m * stride], w.lo[m], hi);
    if (!__any_sync(0xffffffffu, lo[0] | lo[1]))
        return;
#pragma unroll
    for (int m = 0; m < M; m++)
        mma_bf16(acc[m * stride], w.hi[m], lo);
}

/* Adds the piece whose values are loaded, and loads the next one's in their place. */
struct piece_place {
    int next, n_piece;
    int64_t n_column;
};
template <int M, int N, int G, bool PLAIN>
static __device__ inline void use_piece(float acc[M * N][4], key_values<N> &v,
    const weight_operand<M> &w, const sum_stage<M, G> &s, const piece_place &p)
{
#pragma unroll
    for (int j = 0; j < N; j += columns<N>::V) {
        key_values<N> now = v;
        if (p.next < p.n_piece)
            load_piece_part<N, PLAIN>(v, s, p.next, j, p.n_column);
#pragma unroll
        for (int k = j; k < j + columns<N>::V; k++)
            add_piece<M>(acc + k, N, w, now.x[k]);
    }
}

template <int M, int N>
static __device__ inline void write_sums(
    const struct attend_job &a, const float (*acc)[4], const float *denominator)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < M * N * 4; i++) {
        int m = i / (4 * N), j = i / 4 % N, low = i / 2 % 2, row = 16 * m + g + 8 * low;
        int64_t head = 16 * M * (int64_t)blockIdx.z + row;
        int64_t at = columns<N>::first(j) + columns<N>::V * (2 * t + i % 2);
        if (head < a.q.dim[1] && at < a.q.dim[2])
            cuda_row(a.o, (a.first_row + blockIdx.x) * a.q.dim[1] + head)[at] =
                acc[m * N + j][i % 4] / denominator[row];
    }
}

/* Values are loaded AHEAD pieces before they are used. */
template <int M, int N, int G, int AHEAD, bool PLAIN>
static __global__ void __launch_bounds__(256, 1)
    sum_kernel(const __grid_constant__ struct attend_job a)
{
    cuda_wait();
    extern __shared__ uint4 memory[];
    sum_stage<M, G> &s = *(sum_stage<M, G> *)memory;
    int n_piece = piece_count(keys_of_row(a, a.first_row + blockIdx.x));
    float acc[M * N][4] = {};
    key_values<N> v[AHEAD];
    copy_weights(s, a, 0, n_piece);
    copy_keys(s, a, 0, n_piece);
    copy_keys(s, a, 1, n_piece);
    copy_close();
    sum_heads(s, a, n_piece);
    copy_wait<0>();
    __syncthreads();
#pragma unroll
    for (int c = 0; c < AHEAD; c++)
        if (c < n_piece)
            load_piece<N, PLAIN>(v[c], s, c, a.q.dim[2]);
    for (int group = 0; group * G < n_piece; group++) {
        copy_wait<0>();
        convert_weights(s, a, group, n_piece);
        __syncthreads();
        copy_weights(s, a, group + 1, n_piece);
        copy_keys(s, a, group + 2, n_piece);
        copy_close();
#pragma unroll(AHEAD > 1 ? G : 1)
        for (int i = 0; i < G; i++) {
            int c = group * G + i;
            if (c >= n_piece)
                break;
            weight_operand<M> operand;
            load_operand(operand, s, group & 1, i);
            use_piece<M, N, G, PLAIN>(
                acc, v[i % AHEAD], operand, s, (piece_place){c + AHEAD, n_piece, a.q.dim[2]});
        }
    }
    write_sums<M, N>(a, acc, s.denominator);
}

/* ---- The op ---- */

template <int M, int N, int G, int AHEAD, bool PLAIN>
static void launch_sum(struct backend *be, const struct attend_job *a, int64_t n_row, int n_warp)
{
    int64_t n_column = 8 * N * n_warp;
    dim3 grid((unsigned)n_row, (unsigned)((a->q.dim[2] + n_column - 1) / n_column),
        (unsigned)((a->q.dim[1] + 16 * M - 1) / (16 * M)));
    cuda_launch(be, "attend", sum_kernel<M, N, G, AHEAD, PLAIN>,
        {grid, (unsigned)(32 * n_warp), sizeof(sum_stage<M, G>)}, *a);
}

static void attend_sum(struct backend *be, const struct attend_job *a, int64_t n_row, int is_plain)
{
    int64_t d = a->q.dim[2], n_head = a->q.dim[1];
    if (is_plain)
        launch_sum<1, 1, 8, 8, true>(be, a, n_row, 4);
    else if (n_head > 16 && d % 512 == 0 && 4 * n_row >= cuda_of(be)->n_multiprocessor)
        launch_sum<4, 8, 4, 1, false>(be, a, n_row, 8);
    else
        launch_sum<1, 1, 8, 8, false>(be, a, n_row, d % 32 ? 2 : 4);
}

static void take(struct tensor *to, const struct tensor *from)
{
    if (from)
        *to = *from;
}

static struct attend_job job_of(struct backend *be, const struct op_attend *a)
{
    struct attend_job job = {};
    take(&job.o, a->o), take(&job.q, a->q), take(&job.ring, a->ring), take(&job.comp, a->comp);
    take(&job.slot, a->slot), take(&job.last, a->last), take(&job.rows, a->rows);
    take(&job.n_row, a->n_row), take(&job.first, a->first);
    job.sink = cuda_weight(be, a->sink);
    job.fault = cuda_fault_of(be);
    job.window = a->window;
    job.scale = a->scale;
    return job;
}

void cuda_attend(struct backend *be, const void *args)
{
    enum { SCRATCH_BYTES = 192 << 20 };
    const struct op_attend *a = (const struct op_attend *)args;
    struct attend_job job = job_of(be, a);
    int64_t n = a->q->dim[0], n_head = a->q->dim[1], d = a->q->dim[2];
    int64_t n_key = a->window + (a->rows ? a->rows->dim[1] : a->comp ? a->comp->dim[1] : 0);
    job.pitch = (n_key / PIECE + 1) * PIECE;
    int64_t e_bytes = n_head * job.pitch * (int64_t)sizeof *job.e;
    int64_t key_bytes = job.pitch * (int64_t)sizeof *job.key;
    int64_t piece_bytes = n_head * (job.pitch / PIECE) * (int64_t)sizeof *job.piece;
    int64_t n_each = SCRATCH_BYTES / (e_bytes + key_bytes + piece_bytes + 1);
    n_each = n_each < 1 ? 1 : n_each < n ? n_each : n;
    job.e = (float *)backend_scratch(be, (size_t)(n_each * e_bytes));
    job.key = (cache_row *)backend_scratch(be, (size_t)(n_each * key_bytes));
    job.piece = (float2 *)backend_scratch(be, (size_t)(n_each * piece_bytes));
    if (!job.e || !job.key || !job.piece)
        return;
    int plain = d % 16 || d > 16 * SCORE_PARTS * SCORE_STEPS || is_plain(a->q) ||
                is_plain(a->ring) || is_plain(a->comp);
    for (; job.first_row < n; job.first_row += n_each) {
        int64_t n_row = n - job.first_row < n_each ? n - job.first_row : n_each;
        attend_scores(be, &job, n_row, plain);
        attend_sum(be, &job, n_row, plain);
    }
}
