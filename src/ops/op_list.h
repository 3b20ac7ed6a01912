/* op_list.h: THE list of operations. Everything a model computes is one of these.
 *
 * For every op: what it computes in one formula, and its arguments in OP_FIELDS_<op>(op, T, F, I):
 *   T(op, IN | OUT | IO | OPT | OPT_OUT, name)   a tensor: read, written whole, updated, read if given, written if given
 *   F(op, name)   a float      I(op, name)   an integer
 * From this list come the argument structs, the enum, the table and the field descriptors (ops.h).
 *
 * Conventions
 *   - n rows of a batch; a row r belongs to sequence slot[r] and stands at position pos[r] (both I32 [n]).
 *   - F32 unless stated; outputs and activations are always F32, indices always I32. A weight may have any dtype.
 *   - Rows of any tensor may be row_bytes apart (views into wider rows are legal).
 *   - A row's result depends on that row alone: the same bits whatever n is, whoever computes it.
 *   - Sums over an inner dimension use 16 lanes: lane l adds elements i = l (mod 16) in ascending order with fused
 *     multiply-add, starting from +0; then lanes fold 16 -> 8 -> 4 -> 2 -> 1 by x[l] += x[l + half].
 */
#ifndef HADAL_OPS_OP_LIST_H
#define HADAL_OPS_OP_LIST_H

#define OP_LIST(X)                                                                                 \
    X(gather) X(repeat_streams) X(add) X(rms_norm) X(matmul) X(matmul_grouped)                     \
    X(rope_angles) X(rope_tail) X(hadamard) X(round_fp8) X(round_fp4) X(round_fp4_e4m3)            \
    X(swiglu) X(append) X(add_by_pos) X(pool)                                                      \
    X(index_score) X(topk) X(candidate_blocks) X(index_select) X(attend)                           \
    X(router) X(router_by_token) X(expert_mlp)                                                     \
    X(mhc_mix) X(mhc_head) X(mhc_collapse) X(mhc_merge) X(engram_gate) X(stream_mean) X(argmax)

/* y[r,:] = w[id[r],:]                        y [n, d]   w [rows, d]   id [n], 0 <= id < rows */
#define OP_FIELDS_gather(op, T, F, I) T(op, OUT, y) T(op, IN, w) T(op, IN, id)

/* y[r,s,:] = x[r,:]                          y [n, S, D]   x [n, D] */
#define OP_FIELDS_repeat_streams(op, T, F, I) T(op, OUT, y) T(op, IN, x)

/* y += x                                     same shape */
#define OP_FIELDS_add(op, T, F, I) T(op, IO, y) T(op, IN, x)

/* y[r,:] = x[r,:] * (1 / sqrt(mean(x[r,:]^2) + eps)) * w      over the last dimension; w [d], absent: 1.
 * y may be x. (v4 spec 0.1, 3.1) */
#define OP_FIELDS_rms_norm(op, T, F, I) T(op, OUT, y) T(op, IN, x) T(op, OPT, w) F(op, eps)

/* y[r,o] = sum_i w[o,i] x[r,i]               y [n, O]   x [n, I]   w [O, I], any weight dtype */
#define OP_FIELDS_matmul(op, T, F, I) T(op, OUT, y) T(op, IN, x) T(op, IN, w)

/* y[r,g*O+o] = sum_i w[g*O+o,i] x[r,g*I+i]   y [n, G*O]   x [n, G*I]   w [G*O, I]: block diagonal (v4 spec 3.5) */
#define OP_FIELDS_matmul_grouped(op, T, F, I) T(op, OUT, y) T(op, IN, x) T(op, IN, w) I(op, n_group)

/* cs[r,i,:] = cos, sin of pos[r] * freq[i], product and reduction in double     cs [n, P, 2]   freq [P] */
#define OP_FIELDS_rope_angles(op, T, F, I) T(op, OUT, cs) T(op, IN, pos) T(op, IN, freq)

/* Rotates the last 2P values of every head as pairs (2i, 2i+1): (a c - b s, a s + b c); inverse: s -> -s.
 * x [n, h, d]   cs [n, P, 2]   (v4 spec 3.2) */
#define OP_FIELDS_rope_tail(op, T, F, I) T(op, IO, x) T(op, IN, cs) I(op, is_inverse)

/* x[r,:] = d^-0.5 H x[r,:], H the Sylvester Hadamard matrix, d a power of two; last dimension. Butterflies with strides
 * 1, 2, 4, ..., then one multiplication. (v4 spec 4.6) */
#define OP_FIELDS_hadamard(op, T, F, I) T(op, IO, x)

/* Trained roundings, last dimension, groups of `block` values; the first n_col columns only (0: all).
 * fp8:      s = pow2_ceil(max(amax, 1e-4) / 448),      x = e4m3(x / s) * s         (v4 4.6 fp8sim, v41 3.3 W8)
 * fp4:      s = pow2_ceil(max(amax, 6 2^-126) / 6),    x = e2m1(x / s) * s         (v4 4.6 fp4sim, v41 3.3 I4)
 * fp4_e4m3: s = e4m3(max(amax, 6 2^-9) / 6),           x = e2m1(x / s) * s         (v41 3.3 C4)
 * Codes times scales are exact in bf16, so the result is what the models' own bf16 caches hold. */
#define OP_FIELDS_round_fp8(op, T, F, I) T(op, IO, x) I(op, block) I(op, n_col)
#define OP_FIELDS_round_fp4(op, T, F, I) T(op, IO, x) I(op, block) I(op, n_col)
#define OP_FIELDS_round_fp4_e4m3(op, T, F, I) T(op, IO, x) I(op, block) I(op, n_col)

/* y = silu(min(gate, limit)) * clamp(up, -limit, limit)          y, gate, up [n, f]; y may be gate (v4 spec 6.4) */
#define OP_FIELDS_swiglu(op, T, F, I) T(op, OUT, y) T(op, IN, gate) T(op, IN, up) F(op, limit)

/* y[slot[r], at[r] mod cap, :] = x[r,:]       y [S, cap, d]   x [n, d]: rings and append-only rows alike */
#define OP_FIELDS_append(op, T, F, I) T(op, IO, y) T(op, IN, x) T(op, IN, slot) T(op, IN, at)

/* x[r,:] += table[pos[r] mod rows, :]         x [n, w]   table [rows, w] (v4 spec 4.2, ape) */
#define OP_FIELDS_add_by_pos(op, T, F, I) T(op, IO, x) T(op, IN, table) T(op, IN, pos)

/* Closes one compressed row for each of the m rows; pos[r] is the group's last token, so tokens pos-ratio+1 .. pos.
 * For each channel c: y[r,c] = sum_j softmax_j(score_j[c]) kv_j[c], j over the group's tokens, oldest first;
 * with overlap = 1 the rows are 2d wide and j runs first over the group before (columns c), when there is one, then over
 * this group (columns d + c). kv, score [S, ring, d (1 + overlap)], addressed by position mod ring. y [m, d]
 * (v4 spec 4.3, v41 spec 7.1) */
#define OP_FIELDS_pool(op, T, F, I)                                                                \
    T(op, OUT, y) T(op, IN, kv) T(op, IN, score) T(op, IN, slot) T(op, IN, pos) I(op, ratio) I(op, overlap)

/* s[r,j] = sum_h w[r,h] * scale * max(0, q[r,h,:] . keys[slot[r],j,:]) for j < visible[r], heads in ascending order
 * s [n, cap]   q [n, h, d]   w [n, h]   keys [S, cap, d]   visible [n]. Columns >= visible are left alone.
 * (v4 spec 5.2, v41 spec 7.3; scores stay F32) */
#define OP_FIELDS_index_score(op, T, F, I)                                                         \
    T(op, OUT, s) T(op, IN, q) T(op, IN, w) T(op, IN, keys) T(op, IN, slot) T(op, IN, visible) F(op, scale)

/* rows[r,:] = the k best of s[r, 0..visible[r]), ties to the lower index, written in ascending row order;
 * n_row[r] = how many (min(k, candidates)); unused entries are -1. With block given only rows of the listed blocks of
 * block_size rows count.   rows [n, k]   n_row [n]   s [n, cap]   block [n, b]   n_block [n] */
#define OP_FIELDS_topk(op, T, F, I)                                                                \
    T(op, OUT, rows) T(op, OUT, n_row) T(op, IN, s) T(op, IN, visible) T(op, OPT, block) T(op, OPT, n_block) I(op, block_size)

/* The b best blocks of block_size rows by their best score, the block of row visible-1 always among them, ties to the
 * lower block; ascending. block [n, b]   n_block [n]   (v41 spec 7.4) */
#define OP_FIELDS_candidate_blocks(op, T, F, I)                                                    \
    T(op, OUT, block) T(op, OUT, n_block) T(op, IN, s) T(op, IN, visible) I(op, block_size)

/* index_score, then topk restricted to `block` if given, and candidate_blocks into make_block if given; the scores
 * are never kept. Nothing is scored while everything visible is chosen. Fused. */
#define OP_FIELDS_index_select(op, T, F, I)                                                        \
    T(op, OUT, rows) T(op, OUT, n_row) T(op, IN, q) T(op, IN, w) T(op, IN, keys) T(op, IN, slot) T(op, IN, visible) \
    T(op, OPT, block) T(op, OPT, n_block) T(op, OPT_OUT, make_block) T(op, OPT_OUT, n_make_block)  \
    I(op, block_size) F(op, scale)

/* One softmax over compressed rows (ascending), then window rows last[r]-window+1 .. last[r] (oldest first, not below
 * 0), with a sink in the denominator only; keys are values.
 *   s_k = scale (q[r,h,:] . key_k)    m = max(max_k s_k, sink[h])    o = sum_k e^(s_k - m) key_k / (sum_k e^(s_k - m) + e^(sink[h] - m))
 * o, q [n, h, d]   ring [S, R, d] by position mod R   last [n]   comp [S, cap, d]: rows[r, 0..n_row[r]) of it, or rows
 * 0..n_row[r)-1 when rows is absent; without comp the window alone.   sink [h]   (v4 spec 3.3, 3.4; v41 spec 6.3) */
#define OP_FIELDS_attend(op, T, F, I)                                                              \
    T(op, OUT, o) T(op, IN, q) T(op, IN, ring) T(op, IN, slot) T(op, IN, last) T(op, OPT, comp) T(op, OPT, rows) \
    T(op, OPT, n_row) T(op, IN, sink) I(op, window) F(op, scale)

/* p = sqrt(softplus(logits)); the k largest of p + bias, ties to the lower index, in descending order of p + bias;
 * weight = scale p / (sum of the k p + 1e-20)   idx, weight [n, k]   logits [n, E]   bias [E]  (v4 spec 6, v41 spec 8) */
#define OP_FIELDS_router(op, T, F, I)                                                              \
    T(op, OUT, idx) T(op, OUT, weight) T(op, IN, logits) T(op, OPT, bias) F(op, scale)

/* The same weights for experts table[id[r], :]      table [V, k] I32 or I64   id [n]   (v4 spec 6.2) */
#define OP_FIELDS_router_by_token(op, T, F, I)                                                     \
    T(op, OUT, idx) T(op, OUT, weight) T(op, IN, logits) T(op, IN, table) T(op, IN, id) F(op, scale)

/* y[r,:] = sum_k down[e_k] (weight[r,k] swiglu(gate[e_k] x, up[e_k] x)), e_k = idx[r,k], k ascending from +0
 * y, x [n, D]   idx, weight [n, k]   gate, up [E, f, D]   down [E, D, f] */
#define OP_FIELDS_expert_mlp(op, T, F, I)                                                          \
    T(op, OUT, y) T(op, IN, x) T(op, IN, idx) T(op, IN, weight) T(op, IN, gate) T(op, IN, up) T(op, IN, down) F(op, limit)

/* m = fn flat(x) / sqrt(mean(flat(x)^2) + norm_eps);  pre = sigmoid(m scale0 + base) + eps;  post = 2 sigmoid(m scale1 +
 * base);  comb = Sinkhorn(m scale2 + base), n_iter column passes.  x [n, S, D]   pre, post [n, S]   comb [n, S, S]
 * fn [(2+S)S, S D]   scale [3]   base [(2+S)S]   (v4 spec 2.2, v41 spec 5) */
#define OP_FIELDS_mhc_mix(op, T, F, I)                                                             \
    T(op, OUT, pre) T(op, OUT, post) T(op, OUT, comb) T(op, IN, x) T(op, IN, fn) T(op, IN, scale) T(op, IN, base) \
    I(op, n_iter) F(op, eps) F(op, norm_eps)

/* pre = sigmoid(m scale[0] + base) + eps, m as above with fn [S, S D]   (v4 spec 2.3) */
#define OP_FIELDS_mhc_head(op, T, F, I)                                                            \
    T(op, OUT, pre) T(op, IN, x) T(op, IN, fn) T(op, IN, scale) T(op, IN, base) F(op, eps) F(op, norm_eps)

/* y[r,:] = sum_s pre[r,s] x[r,s,:], s ascending      y [n, D]   x [n, S, D] */
#define OP_FIELDS_mhc_collapse(op, T, F, I) T(op, OUT, y) T(op, IN, pre) T(op, IN, x)

/* x[r,j,:] = post[r,j] y[r,:] + sum_i comb[r,i,j] x[r,i,:], i ascending       x [n, S, D]   y [n, D] */
#define OP_FIELDS_mhc_merge(op, T, F, I) T(op, IO, x) T(op, IN, y) T(op, IN, post) T(op, IN, comb)

/* x[r,s,:] += gate_s value, gate_s = sigmoid(copysign(sqrt(max(|dot|, 1e-6)), dot)), dot = sum_d x q k key /
 * (rms(x_s) rms(key_s) sqrt(D)); key_s = kv[r, s D ..], value = kv[r, S D ..]     x [n, S, D]   kv [n, (S+1) D]
 * q, k [S, D]   (v41 spec 9.3) */
#define OP_FIELDS_engram_gate(op, T, F, I) T(op, IO, x) T(op, IN, kv) T(op, IN, q) T(op, IN, k) F(op, eps)

/* y[r,:] = (sum_s x[r,s,:]) / S               y [n, D]   x [n, S, D] */
#define OP_FIELDS_stream_mean(op, T, F, I) T(op, OUT, y) T(op, IN, x)

/* id[r] = lowest index of the largest x[r,:]  id [n]   x [n, v] */
#define OP_FIELDS_argmax(op, T, F, I) T(op, OUT, id) T(op, IN, x)

#endif
