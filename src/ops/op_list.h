/* op_list.h: THE list of operations. Everything a model computes is one of these.
 *
 * For every op: what it computes in one formula, and its arguments in OP_FIELDS_<op>(op, T, F, I):
 *
 *   T(op, role, type, name, "shape")   a tensor
 *   F(op, name)                        a float
 *   I(op, name, "letter")              an integer; with a letter it is a dimension of the tensors
 *
 *   role    IN read, OUT written whole, IO updated, OPT read if given, OPT_OUT written if given
 *   type    F32, I32, WEIGHT: any storage format, CACHE: F32 or BF16, IDS: I32 or I64
 *   shape   one word per dimension, outermost first. A letter means the same size everywhere in
 *           one call; "SD" is a product; a digit is itself; "*" is any number of dimensions,
 *           taken as one.
 *
 * From this list come the argument structs, the enum, the tables, the field descriptors and the
 * shape checks (ops.h).
 *
 * Conventions
 *
 *   - n rows of a batch; a row r belongs to sequence slot[r] and stands at position pos[r] (I32).
 *   - Rows of any tensor may be row_bytes apart (views into wider rows are legal). Where a formula
 *     flattens the rows of a tensor (mhc_mix, mhc_head), they are contiguous.
 *   - A row's result depends on that row alone: the same bits whatever n is, whoever computes it.
 *   - Sums over an inner dimension use 16 lanes ("lane sum"): lane l adds elements i = l (mod 16)
 *     in ascending order with fused multiply-add, starting from +0; then lanes fold 16 -> 8 -> 4
 *     -> 2 -> 1 by x[l] += x[l + half]. All other sums are in ascending order.
 *   - exp, log1p and what is made of them are those of base/fmath.h: fixed sequences, the same
 *     bits on every processor. Where a formula leaves an order open, ops/ref decides.
 */
#ifndef HADAL_OPS_OP_LIST_H
#define HADAL_OPS_OP_LIST_H

/* The list is laid out by hand. */
/* clang-format off */

#define OP_LIST_BASE(X)                                                                            \
    X(gather) X(repeat_streams) X(add) X(rms_norm) X(matmul) X(matmul_grouped)                     \
    X(rope_angles) X(rope_tail) X(hadamard) X(round_fp8) X(round_fp4) X(round_fp4_e4m3)            \
    X(swiglu) X(append) X(add_by_pos) X(pool)                                                      \
    X(index_score) X(topk) X(candidate_blocks) X(attend)                                           \
    X(router) X(router_by_token) X(expert_mlp)                                                     \
    X(mhc_mix) X(mhc_head) X(mhc_collapse) X(mhc_merge) X(engram_gate) X(stream_mean) X(argmax)
/* Defined by base ops in fused.c; a backend may have its own. */
#define OP_LIST_FUSED(X)                                                                           \
    X(index_select) X(matmul_each) X(gated_mlp) X(norm_rope) X(rotate_round) X(keep_row)           \
    X(append_group) X(mhc_open) X(mhc_merge_sum)
#define OP_LIST(X) OP_LIST_BASE(X) OP_LIST_FUSED(X)

/* y[r,:] = w[id[r],:]                        0 <= id < v */
#define OP_FIELDS_gather(op, T, F, I)                                                              \
    T(op, OUT, F32, y, "n d") T(op, IN, WEIGHT, w, "v d") T(op, IN, I32, id, "n")

/* y[r,s,:] = x[r,:] */
#define OP_FIELDS_repeat_streams(op, T, F, I) T(op, OUT, F32, y, "n S D") T(op, IN, F32, x, "n D")

/* y += x */
#define OP_FIELDS_add(op, T, F, I) T(op, IO, F32, y, "* d") T(op, IN, F32, x, "* d")

/* y[r,:] = x[r,:] * (1 / sqrt(mean(x[r,:]^2) + eps)) * w      over the last dimension; w absent: 1. The squares are a lane
 * sum. y may be x. (v4 spec 0.1, 3.1) */
#define OP_FIELDS_rms_norm(op, T, F, I)                                                            \
    T(op, OUT, F32, y, "* d") T(op, IN, F32, x, "* d") T(op, OPT, WEIGHT, w, "d") F(op, eps)

/* y[r,o] = sum_i w[o,i] x[r,i]               lane sum */
#define OP_FIELDS_matmul(op, T, F, I)                                                              \
    T(op, OUT, F32, y, "n O") T(op, IN, F32, x, "n I") T(op, IN, WEIGHT, w, "O I")

/* y[r,g*O+o] = sum_i w[g*O+o,i] x[r,g*I+i]   lane sum; block diagonal (v4 spec 3.5) */
#define OP_FIELDS_matmul_grouped(op, T, F, I)                                                      \
    T(op, OUT, F32, y, "n GO") T(op, IN, F32, x, "n GI") T(op, IN, WEIGHT, w, "GO I") I(op, n_group, "G")

/* y_i[r,:] = w_i x[r,:] for all weights that read the same rows: matmul of each. Fused. */
#define OP_FIELDS_matmul_each(op, T, F, I)                                                         \
    T(op, IN, F32, x, "n I") T(op, OUT, F32, y0, "n A") T(op, IN, WEIGHT, w0, "A I")               \
    T(op, OPT_OUT, F32, y1, "n B") T(op, OPT, WEIGHT, w1, "B I")                                   \
    T(op, OPT_OUT, F32, y2, "n C") T(op, OPT, WEIGHT, w2, "C I")                                   \
    T(op, OPT_OUT, F32, y3, "n D") T(op, OPT, WEIGHT, w3, "D I")                                   \
    T(op, OPT_OUT, F32, y4, "n E") T(op, OPT, WEIGHT, w4, "E I")                                   \
    T(op, OPT_OUT, F32, y5, "n F") T(op, OPT, WEIGHT, w5, "F I")                                   \
    T(op, OPT_OUT, F32, y6, "n G") T(op, OPT, WEIGHT, w6, "G I")

/* cs[r,i,:] = cos, sin of pos[r] * freq[i]; product, reduction and series in double */
#define OP_FIELDS_rope_angles(op, T, F, I)                                                         \
    T(op, OUT, F32, cs, "n P 2") T(op, IN, I32, pos, "n") T(op, IN, F32, freq, "P")

/* Rotates the last 2P values of every head as pairs (2i, 2i+1): (a c - b s, a s + b c); inverse: s -> -s.
 * (v4 spec 3.2) */
#define OP_FIELDS_rope_tail(op, T, F, I)                                                           \
    T(op, IO, F32, x, "n h d") T(op, IN, F32, cs, "n P 2") I(op, is_inverse, "")

/* x[r,:] = d^-0.5 H x[r,:], H the Sylvester Hadamard matrix, d a power of two; last dimension. Butterflies with strides
 * 1, 2, 4, ..., then one multiplication. (v4 spec 4.6) */
#define OP_FIELDS_hadamard(op, T, F, I) T(op, IO, F32, x, "* d")

/* Trained roundings, last dimension, groups of `block` values; the first n_col columns only (0: all).
 * fp8:      s = pow2_ceil(max(amax, 1e-4) / 448),      x = e4m3(x / s) * s         (v4 4.6 fp8sim, v41 3.3 W8)
 * fp4:      s = pow2_ceil(max(amax, 6 2^-126) / 6),    x = e2m1(x / s) * s         (v4 4.6 fp4sim, v41 3.3 I4)
 * fp4_e4m3: s = e4m3(max(amax, 6 2^-9) / 6),           x = e2m1(x / s) * s         (v41 3.3 C4)
 * Codes times scales are exact in bf16, so the result is what the models' own bf16 caches hold. */
#define OP_FIELDS_round_fp8(op, T, F, I) T(op, IO, F32, x, "* d") I(op, block, "") I(op, n_col, "")
#define OP_FIELDS_round_fp4(op, T, F, I) T(op, IO, F32, x, "* d") I(op, block, "") I(op, n_col, "")
#define OP_FIELDS_round_fp4_e4m3(op, T, F, I) T(op, IO, F32, x, "* d") I(op, block, "") I(op, n_col, "")

/* rms_norm of every head, then rope_tail. Fused. */
#define OP_FIELDS_norm_rope(op, T, F, I)                                                           \
    T(op, IO, F32, x, "n h d") T(op, OPT, WEIGHT, w, "d") T(op, IN, F32, cs, "n P 2") F(op, eps)

/* rope_tail, hadamard if has_hadamard, then the rounding (enum op_rounding). Fused. */
#define OP_FIELDS_rotate_round(op, T, F, I)                                                        \
    T(op, IO, F32, x, "n h d") T(op, IN, F32, cs, "n P 2") I(op, has_hadamard, "")                 \
    I(op, rounding, "") I(op, block, "") I(op, n_col, "")

/* A row on its way into a cache: rms_norm if w is given, rotate_round as a single head, append to y. Fused. */
#define OP_FIELDS_keep_row(op, T, F, I)                                                            \
    T(op, IO, F32, x, "n d") T(op, OPT, WEIGHT, w, "d") T(op, IN, F32, cs, "n P 2")                \
    T(op, IO, CACHE, y, "S c d") T(op, IN, I32, slot, "n") T(op, IN, I32, at, "n")                 \
    I(op, has_hadamard, "") I(op, rounding, "") I(op, block, "") I(op, n_col, "") F(op, eps)

/* y = silu(min(gate, limit)) * clamp(up, -limit, limit)          y may be gate or up (v4 spec 6.4) */
#define OP_FIELDS_swiglu(op, T, F, I)                                                              \
    T(op, OUT, F32, y, "* f") T(op, IN, F32, gate, "* f") T(op, IN, F32, up, "* f") F(op, limit)

/* y[slot[r], at[r] mod c, :] = x[r,:]        rings and append-only rows alike; BF16 rows are rounded to nearest even. No
 * two rows of a call go to the same place. */
#define OP_FIELDS_append(op, T, F, I)                                                              \
    T(op, IO, CACHE, y, "S c d") T(op, IN, F32, x, "n d") T(op, IN, I32, slot, "n") T(op, IN, I32, at, "n")

/* x[r,:] += table[pos[r] mod v, :]           (v4 spec 4.2, ape) */
#define OP_FIELDS_add_by_pos(op, T, F, I)                                                          \
    T(op, IO, F32, x, "n w") T(op, IN, WEIGHT, table, "v w") T(op, IN, I32, pos, "n")

/* add_by_pos of table to score if it is given, append of kv to to_kv and of score to to_score. Fused. */
#define OP_FIELDS_append_group(op, T, F, I)                                                        \
    T(op, IN, F32, kv, "n w") T(op, IO, F32, score, "n w") T(op, OPT, WEIGHT, table, "v w")        \
    T(op, IO, CACHE, to_kv, "S c w") T(op, IO, CACHE, to_score, "S c w")                           \
    T(op, IN, I32, slot, "n") T(op, IN, I32, at, "n")

/* Closes one compressed row for each of the m rows; pos[r] is the group's last token, so tokens pos-ratio+1 .. pos.
 * For each channel c: y[r,c] = sum_j softmax_j(score_j[c]) kv_j[c], j over the group's tokens, oldest first;
 * with overlap = 1 the rows are w = 2d wide and j runs first over the group before (columns c), when there is one, then
 * over this group (columns d + c). kv and score are addressed by position mod R. Numerator (fused) and denominator in
 * ascending j, then one division. (v4 spec 4.3, v41 spec 7.1) */
#define OP_FIELDS_pool(op, T, F, I)                                                                \
    T(op, OUT, F32, y, "m d") T(op, IN, F32, kv, "S R w") T(op, IN, F32, score, "S R w")           \
    T(op, IN, I32, slot, "m") T(op, IN, I32, pos, "m") I(op, ratio, "") I(op, overlap, "")

/* s[r,j] = sum_h (w[r,h] scale) max(0, q[r,h,:] . keys[slot[r],j,:]) for j < visible[r] <= t; dots are lane sums, heads
 * in ascending order, fused. Columns >= visible are left alone. (v4 spec 5.2, v41 spec 7.3; scores stay F32) */
#define OP_FIELDS_index_score(op, T, F, I)                                                         \
    T(op, IO, F32, s, "n t") T(op, IN, F32, q, "n h d") T(op, IN, F32, w, "n h")                   \
    T(op, IN, CACHE, keys, "S c d") T(op, IN, I32, slot, "n") T(op, IN, I32, visible, "n") F(op, scale)

/* rows[r,:] = the k best of s[r, 0..visible[r]), ties to the lower index, written in ascending row order;
 * n_row[r] = how many (min(k, candidates)); unused entries are -1. With block given only rows of the first n_block[r]
 * listed blocks of block_size rows count; blocks are listed in ascending order. */
#define OP_FIELDS_topk(op, T, F, I)                                                                \
    T(op, OUT, I32, rows, "n k") T(op, OUT, I32, n_row, "n") T(op, IN, F32, s, "n t")              \
    T(op, IN, I32, visible, "n") T(op, OPT, I32, block, "n b") T(op, OPT, I32, n_block, "n")       \
    I(op, block_size, "")

/* The b best blocks of block_size rows by their best score, the block of row visible-1 always among them, ties to the
 * lower block; ascending, n_block[r] of them, unused entries are -1. (v41 spec 7.4) */
#define OP_FIELDS_candidate_blocks(op, T, F, I)                                                    \
    T(op, OUT, I32, block, "n b") T(op, OUT, I32, n_block, "n") T(op, IN, F32, s, "n t")           \
    T(op, IN, I32, visible, "n") I(op, block_size, "")

/* index_score, then topk restricted to `block` if given, and candidate_blocks into make_block if given; the scores
 * are never kept. Nothing is scored while everything visible is chosen. Fused. */
#define OP_FIELDS_index_select(op, T, F, I)                                                        \
    T(op, OUT, I32, rows, "n k") T(op, OUT, I32, n_row, "n") T(op, IN, F32, q, "n h d")            \
    T(op, IN, F32, w, "n h") T(op, IN, CACHE, keys, "S c d") T(op, IN, I32, slot, "n")             \
    T(op, IN, I32, visible, "n") T(op, OPT, I32, block, "n b") T(op, OPT, I32, n_block, "n")       \
    T(op, OPT_OUT, I32, make_block, "n B") T(op, OPT_OUT, I32, n_make_block, "n")                  \
    I(op, block_size, "") F(op, scale)

/* One softmax over compressed rows (ascending), then window rows last[r]-window+1 .. last[r] (oldest first, not below
 * first[r], or 0 without it), with a sink in the denominator only; keys are values.
 *   s_k = scale (q[r,h,:] . key_k)    m = max(max_k s_k, sink[h])
 *   o = sum_k e^(s_k - m) key_k / (sum_k e^(s_k - m) + e^(sink[h] - m))
 * Dots are lane sums; so is the sum of the e over k in that joint order, the sink added last; the numerator is fused, k
 * ascending. ring is addressed by position mod R; of comp the rows rows[r, 0..n_row[r]), or 0..n_row[r]-1 when rows is
 * absent; without comp the window alone. (v4 spec 3.3, 3.4; v41 spec 6.3) */
#define OP_FIELDS_attend(op, T, F, I)                                                              \
    T(op, OUT, F32, o, "n h d") T(op, IN, F32, q, "n h d") T(op, IN, CACHE, ring, "S R d")         \
    T(op, IN, I32, slot, "n") T(op, IN, I32, last, "n") T(op, OPT, CACHE, comp, "S c d")           \
    T(op, OPT, I32, rows, "n k") T(op, OPT, I32, n_row, "n") T(op, OPT, I32, first, "n")           \
    T(op, IN, WEIGHT, sink, "h") I(op, window, "") F(op, scale)

/* p = sqrt(softplus(logits)); the k largest of p + bias, ties to the lower index, in descending order of p + bias;
 * weight = scale p / (sum of the k p + 1e-20)                                     (v4 spec 6, v41 spec 8) */
#define OP_FIELDS_router(op, T, F, I)                                                              \
    T(op, OUT, I32, idx, "n k") T(op, OUT, F32, weight, "n k") T(op, IN, F32, logits, "n E")       \
    T(op, OPT, WEIGHT, bias, "E") F(op, scale)

/* The same weights for experts table[id[r], :]      (v4 spec 6.2) */
#define OP_FIELDS_router_by_token(op, T, F, I)                                                     \
    T(op, OUT, I32, idx, "n k") T(op, OUT, F32, weight, "n k") T(op, IN, F32, logits, "n E")       \
    T(op, IN, IDS, table, "V k") T(op, IN, I32, id, "n") F(op, scale)

/* y[r,:] = sum_k down[e_k] (weight[r,k] swiglu(gate[e_k] x, up[e_k] x)), e_k = idx[r,k], k ascending from +0 */
#define OP_FIELDS_expert_mlp(op, T, F, I)                                                          \
    T(op, OUT, F32, y, "n D") T(op, IN, F32, x, "n D") T(op, IN, I32, idx, "n k")                  \
    T(op, IN, F32, weight, "n k") T(op, IN, WEIGHT, gate, "E f D") T(op, IN, WEIGHT, up, "E f D")  \
    T(op, IN, WEIGHT, down, "E D f") F(op, limit)

/* y = down swiglu(gate x, up x): matmul, matmul, swiglu, matmul. Fused. (v4 spec 6.4, the shared expert) */
#define OP_FIELDS_gated_mlp(op, T, F, I)                                                           \
    T(op, OUT, F32, y, "n D") T(op, IN, F32, x, "n D") T(op, IN, WEIGHT, gate, "f D")              \
    T(op, IN, WEIGHT, up, "f D") T(op, IN, WEIGHT, down, "D f") F(op, limit)

/* m = fn flat(x) / sqrt(mean(flat(x)^2) + norm_eps), lane sums;  pre = sigmoid(m scale0 + base) + eps;  post = 2
 * sigmoid(m scale1 + base);  comb = Sinkhorn(m scale2 + base), n_iter column passes.  M = (2+S)S, in the order pre, post,
 * comb row-major. (v4 spec 2.2, v41 spec 5) */
#define OP_FIELDS_mhc_mix(op, T, F, I)                                                             \
    T(op, OUT, F32, pre, "n S") T(op, OUT, F32, post, "n S") T(op, OUT, F32, comb, "n S S")        \
    T(op, IN, F32, x, "n S D") T(op, IN, WEIGHT, fn, "M SD") T(op, IN, WEIGHT, scale, "3")         \
    T(op, IN, WEIGHT, base, "M") I(op, n_iter, "") F(op, eps) F(op, norm_eps)

/* pre = sigmoid(m scale[0] + base) + eps, m as above with S rows of fn   (v4 spec 2.3) */
#define OP_FIELDS_mhc_head(op, T, F, I)                                                            \
    T(op, OUT, F32, pre, "n S") T(op, IN, F32, x, "n S D") T(op, IN, WEIGHT, fn, "S SD")           \
    T(op, IN, WEIGHT, scale, "1") T(op, IN, WEIGHT, base, "S") F(op, eps) F(op, norm_eps)

/* y[r,:] = sum_s pre[r,s] x[r,s,:], s ascending, fused */
#define OP_FIELDS_mhc_collapse(op, T, F, I)                                                        \
    T(op, OUT, F32, y, "n D") T(op, IN, F32, pre, "n S") T(op, IN, F32, x, "n S D")

/* x[r,j,:] = post[r,j] y[r,:] + sum_i comb[r,i,j] x[r,i,:], i ascending, fused */
#define OP_FIELDS_mhc_merge(op, T, F, I)                                                           \
    T(op, IO, F32, x, "n S D") T(op, IN, F32, y, "n D") T(op, IN, F32, post, "n S") T(op, IN, F32, comb, "n S S")

/* mhc_mix, mhc_collapse by `before` or, without it, by the pre just made, rms_norm of that with weight norm. Fused. */
#define OP_FIELDS_mhc_open(op, T, F, I)                                                            \
    T(op, OUT, F32, y, "n D") T(op, OUT, F32, pre, "n S") T(op, OUT, F32, post, "n S")             \
    T(op, OUT, F32, comb, "n S S") T(op, IN, F32, x, "n S D") T(op, OPT, F32, before, "n S")       \
    T(op, IN, WEIGHT, fn, "M SD") T(op, IN, WEIGHT, scale, "3") T(op, IN, WEIGHT, base, "M")       \
    T(op, IN, WEIGHT, norm, "D") I(op, n_iter, "") F(op, eps) F(op, norm_eps)

/* y += more, then mhc_merge of y. Fused. */
#define OP_FIELDS_mhc_merge_sum(op, T, F, I)                                                       \
    T(op, IO, F32, x, "n S D") T(op, IO, F32, y, "n D") T(op, IN, F32, more, "n D")                \
    T(op, IN, F32, post, "n S") T(op, IN, F32, comb, "n S S")

/* x[r,s,:] += gate_s value, gate_s = sigmoid(copysign(sqrt(max(|dot|, 1e-6)), dot)), dot = sum_d (x key) (q k) /
 * (rms(x_s) rms(key_s) sqrt(D)), lane sums; key_s = kv[r, s D ..], value = kv[r, S D ..]; K = (S+1) D
 * (v41 spec 9.3) */
#define OP_FIELDS_engram_gate(op, T, F, I)                                                         \
    T(op, IO, F32, x, "n S D") T(op, IN, F32, kv, "n K") T(op, IN, WEIGHT, q, "S D") T(op, IN, WEIGHT, k, "S D") \
    F(op, eps)

/* y[r,:] = (sum_s x[r,s,:]) / S */
#define OP_FIELDS_stream_mean(op, T, F, I) T(op, OUT, F32, y, "n D") T(op, IN, F32, x, "n S D")

/* id[r] = lowest index of the largest x[r,:] */
#define OP_FIELDS_argmax(op, T, F, I) T(op, OUT, I32, id, "n") T(op, IN, F32, x, "n v")

#endif
