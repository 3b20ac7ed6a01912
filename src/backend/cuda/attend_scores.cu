/* attend_scores.cu: the first half of attention: scores and their exponentials. See attend.cuh.
 *
 * A warp has one part of all its heads' queries in registers and reads the same part of every key
 * straight into operands, so keys never pass through shared memory; the parts of the sums do.
 */
#include "backend/cuda/attend.cuh"

/* Steps of this warp's part, as operands: rows are heads. */
template <int M> struct queries {
    uint32_t hi[M][SCORE_STEPS][4], lo[M][SCORE_STEPS][4];
};

/* First of the four values that this thread holds of step s of its warp's part. */
static __device__ inline int64_t step_value(int s)
{
    return 16 * (int64_t)(threadIdx.x / 32 + SCORE_PARTS * s) + 4 * (threadIdx.x % 4);
}

template <int M, bool PLAIN>
static __device__ inline void load_queries(
    queries<M> &q, const struct attend_job &a, int64_t r, int64_t first)
{
    int64_t n_head = a.q.dim[1];
#pragma unroll
    for (int i = 0; i < M * SCORE_STEPS * 2; i++) {
        int m = i / (SCORE_STEPS * 2), s = i / 2 % SCORE_STEPS, half = i % 2;
        int64_t head = 16 * (M * (int64_t)blockIdx.z + m) + threadIdx.x % 32 / 4 + 8 * half;
        float4 x = make_float4(0, 0, 0, 0);
        if (head < n_head)
            x = cache_four<PLAIN>(
                (cache_row)cuda_row(a.q, r * n_head + head), first + step_value(s), a.q.dim[2]);
        uint32_t hi[2], lo[2];
        split_four(x, hi, lo);
        q.hi[m][s][half] = hi[0], q.hi[m][s][2 + half] = hi[1];
        q.lo[m][s][half] = lo[0], q.lo[m][s][2 + half] = lo[1];
    }
}

/* acc[m][half] += step s of 8 keys; x: this thread's values of its key. */
template <int M>
static __device__ inline void score_step(
    float acc[M][2][4], const queries<M> &q, int s, int half, const float4 &x)
{
    uint32_t hi[2], lo[2];
    split_four(x, hi, lo);
#pragma unroll
    for (int m = 0; m < M; m++)
        mma_bf16(acc[m][half], q.hi[m][s], hi);
#pragma unroll
    for (int m = 0; m < M; m++)
        mma_bf16(acc[m][half], q.lo[m][s], hi);
    if (!__any_sync(0xffffffffu, lo[0] | lo[1]))
        return;
#pragma unroll
    for (int m = 0; m < M; m++)
        mma_bf16(acc[m][half], q.hi[m][s], lo);
}

/* Place of key k of a head in the block's partial sums; writes and reads fall into all banks. */
static __device__ inline int part_place(int head, int k)
{
    return head * PIECE + (k ^ (head & 2) << 2);
}

template <int M> static __device__ inline void write_part(float *part, const float acc[M][2][4])
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    part += threadIdx.x / 32 * (16 * M * PIECE);
#pragma unroll
    for (int i = 0; i < M * 4; i++) {
        int m = i / 4, half = i / 2 % 2, low = i % 2;
        *(float2 *)(part + part_place(16 * m + g + 8 * low, 8 * half + 2 * t)) =
            make_float2(acc[m][half][2 * low], acc[m][half][2 * low + 1]);
    }
}

/* Four neighbouring threads finish one head's piece, four keys each. */
template <int M>
static __device__ inline void finish_piece(
    const struct attend_job &a, const float *part, int piece, int n_key)
{
    int64_t n_head = a.q.dim[1];
    for (int i = threadIdx.x; i < 16 * M * 4; i += SCORE_THREADS) {
        int head = i / 4, k = 4 * (i % 4);
        float4 s = make_float4(0, 0, 0, 0);
        for (int p = 0; p < SCORE_PARTS; p++) {
            float4 x = *(const float4 *)(part + p * (16 * M * PIECE) + part_place(head, k));
            s.x += x.x, s.y += x.y, s.z += x.z, s.w += x.w;
        }
        float e[4] = {s.x * a.scale, s.y * a.scale, s.z * a.scale, s.w * a.scale};
        float most = -INFINITY, sum = 0;
        int n = n_key - piece * PIECE - k; /* of the four, those that exist */
        for (int j = 0; j < 4; j++)
            most = j < n ? fmaxf(most, e[j]) : most;
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        for (int j = 0; j < 4; j++) {
            e[j] = j < n ? fmath_exp(e[j] - most) : 0;
            sum += e[j];
        }
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        int64_t row = blockIdx.x * n_head + 16 * M * (int64_t)blockIdx.z + head;
        if (16 * M * (int64_t)blockIdx.z + head >= n_head)
            continue;
        *(float4 *)(a.e + row * a.pitch + piece * PIECE + k) = make_float4(e[0], e[1], e[2], e[3]);
        if (k == 0)
            a.piece[row * (a.pitch / PIECE) + piece] = make_float2(most, sum);
    }
}

template <int M, bool PLAIN>
static __global__ void __launch_bounds__(SCORE_THREADS, M > 1 ? 1 : 2)
    scores_kernel(const __grid_constant__ struct attend_job a)
{
    cuda_wait();
    extern __shared__ float part[]; /* [2][SCORE_PARTS][16 M heads][PIECE] */
    int64_t r = a.first_row + blockIdx.x, d = a.q.dim[2];
    row_keys keys = keys_of_row(a, r);
    int n_piece = piece_count(keys), step = (int)gridDim.y, g = threadIdx.x % 32 / 4, turn = 0;
    if ((int)blockIdx.y >= n_piece)
        return;
    queries<M> q;
    load_queries<M, PLAIN>(q, a, r, 0);
    cache_row key[2], next[2];
    float4 x[2][SCORE_STEPS];
#pragma unroll
    for (int i = 0; i < 2 * SCORE_STEPS; i++) {
        key[i % 2] = key_at(a, keys, (int)blockIdx.y * PIECE + 8 * (i % 2) + g);
        next[i % 2] = key_at(a, keys, ((int)blockIdx.y + step) * PIECE + 8 * (i % 2) + g);
        x[i % 2][i / 2] = cache_four<PLAIN>(key[i % 2], step_value(i / 2), d);
    }
    for (int c = blockIdx.y; c < n_piece; c += step, turn ^= 1) {
        float acc[M][2][4] = {}, *to = part + turn * (SCORE_PARTS * 16 * M * PIECE);
        if (blockIdx.z == 0 && threadIdx.x < 32 && threadIdx.x % 4 < 2)
            a.key[blockIdx.x * a.pitch + c * PIECE + 8 * (threadIdx.x % 4) + g] =
                threadIdx.x % 4 ? key[1] : key[0];
        cache_row later[2] = {key_at(a, keys, (c + 2 * step) * PIECE + g),
            key_at(a, keys, (c + 2 * step) * PIECE + 8 + g)};
#pragma unroll
        for (int i = 0; i < 2 * SCORE_STEPS; i++) {
            float4 now = x[i % 2][i / 2];
            x[i % 2][i / 2] = cache_four<PLAIN>(next[i % 2], step_value(i / 2), d);
            score_step<M>(acc, q, i / 2, i % 2, now);
        }
        for (int64_t first = 16 * SCORE_PARTS * SCORE_STEPS; PLAIN && first < d;
             first += 16 * SCORE_PARTS * SCORE_STEPS) {
            queries<M> more;
            load_queries<M, PLAIN>(more, a, r, first);
#pragma unroll
            for (int i = 0; i < 2 * SCORE_STEPS; i++)
                score_step<M>(acc, more, i / 2, i % 2,
                    cache_four<PLAIN>(key[i % 2], first + step_value(i / 2), d));
        }
        key[0] = next[0], key[1] = next[1], next[0] = later[0], next[1] = later[1];
        write_part<M>(to, acc);
        __syncthreads();
        finish_piece<M>(a, to, c, keys.n);
    }
}

template <int M, bool PLAIN>
static void launch(struct backend *be, const struct attend_job *a, int64_t n_row)
{
    int64_t n_group = (a->q.dim[1] + 16 * M - 1) / (16 * M), n_piece = a->pitch / PIECE;
    int64_t n_block = n_row * n_group, most = (M > 1 ? 1 : 4) * cuda_of(be)->n_multiprocessor;
    int64_t n_share = n_block < most ? (most + n_block - 1) / n_block : 1;
    n_share = n_share < n_piece ? n_share : n_piece;
    size_t shared = 2 * SCORE_PARTS * 16 * M * PIECE * sizeof(float);
    cuda_launch(be, "attend", scores_kernel<M, PLAIN>,
        {dim3((unsigned)n_row, (unsigned)n_share, (unsigned)n_group), SCORE_THREADS, shared}, *a);
}

void attend_scores(struct backend *be, const struct attend_job *a, int64_t n_row, int is_plain)
{
    int is_wide = n_row >= 4 && a->q.dim[1] > 16;
    if (is_plain)
        launch<1, true>(be, a, n_row);
    else if (is_wide)
        launch<4, false>(be, a, n_row);
    else
        launch<1, false>(be, a, n_row);
}
