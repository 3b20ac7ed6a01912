/* kquants_encode.c: encoders of Q2_K and Q4_K.
 *
 * A sub-block is approximated by scale * q - minimum with q in 0..q_max and minimum >= 0. Candidate
 * step sizes around (largest - smallest) / q_max are tried; for each, the codes are chosen by
 * rounding and scale and minimum follow by weighted least squares. Large values weigh more, as they
 * do in the dot products that follow. Then the 8 or 16 scales and minima of the block become small
 * integers themselves, and the codes are chosen again for the rounded ones.
 */
#include "tensor/decode.h"
#include "tensor/encode.h"
#include "tensor/round.h"

enum { N_VALUE = 256, MAX_SUB = 16, MAX_SUB_VALUES = 32, N_STEP = 24 };

struct sub_block {
    const float *x;
    int n, q_max;
    float weight[MAX_SUB_VALUES];
    float scale, minimum; /* the answer; minimum >= 0 */
};

static int clamp_code(float x, int q_max)
{
    int q = x > 0 ? (int)(fminf(x, 1e6f) + 0.5f) : 0;
    return q > q_max ? q_max : q;
}

/* Least squares of x = scale * q - minimum for given codes, with minimum >= 0. */
static void solve(const struct sub_block *b, const int *q, float *scale, float *minimum)
{
    double sw = 0, sq = 0, sqq = 0, sx = 0, sqx = 0;
    for (int i = 0; i < b->n; i++) {
        double w = (double)b->weight[i], x = (double)b->x[i];
        sw += w;
        sq += w * q[i];
        sqq += w * q[i] * q[i];
        sx += w * x;
        sqx += w * q[i] * x;
    }
    double determinant = sw * sqq - sq * sq, s = 0, m = -1;
    if (determinant > 1e-9 * sw * sqq) { /* otherwise all codes are equal */
        s = (sw * sqx - sq * sx) / determinant;
        m = (sq * sqx - sqq * sx) / determinant;
    }
    if (m < 0) {
        m = 0;
        s = sqq > 0 ? sqx / sqq : 0;
    }
    *scale = (float)fmax(s, 0);
    *minimum = (float)m;
}

static double error_of(const struct sub_block *b, const int *q, float scale, float minimum)
{
    double error = 0;
    for (int i = 0; i < b->n; i++) {
        double difference = (double)scale * q[i] - (double)minimum - (double)b->x[i];
        error += (double)b->weight[i] * difference * difference;
    }
    return error;
}

static void fit(struct sub_block *b)
{
    float smallest = 0, largest = b->x[0], sum = 0;
    for (int i = 0; i < b->n; i++) {
        smallest = fminf(smallest, b->x[i]);
        largest = fmaxf(largest, b->x[i]);
        sum += b->x[i] * b->x[i];
    }
    b->scale = 0;
    b->minimum = -smallest;
    if (!(largest > smallest))
        return;
    float base = sqrtf(sum / (float)b->n);
    for (int i = 0; i < b->n; i++)
        b->weight[i] = base + fabsf(b->x[i]);
    double best = HUGE_VAL;
    for (int step = 0; step < N_STEP; step++) {
        float inverse = ((float)b->q_max - 0.9f + 0.1f * (float)step) / (largest - smallest);
        int q[MAX_SUB_VALUES];
        float scale, minimum;
        for (int i = 0; i < b->n; i++)
            q[i] = clamp_code((b->x[i] - smallest) * inverse, b->q_max);
        solve(b, q, &scale, &minimum);
        double error = error_of(b, q, scale, minimum);
        if (error < best) {
            best = error;
            b->scale = scale;
            b->minimum = minimum;
        }
    }
}

/* A block's scales and minima as integers 0..limit times a half-precision unit. */
struct block_scales {
    uint16_t d, dmin;
    int scale[MAX_SUB], minimum[MAX_SUB];
    uint8_t code[N_VALUE];
};

static int to_unit(float x, float unit, int limit)
{
    return unit > 0 ? clamp_code(x / unit, limit) : 0;
}

static void choose_codes(struct block_scales *s, const struct sub_block *b, int index)
{
    float scale = f16_to_float(s->d) * (float)s->scale[index];
    float minimum = f16_to_float(s->dmin) * (float)s->minimum[index];
    for (int i = 0; i < b->n; i++) {
        float q = scale > 0 ? (b->x[i] + minimum) / scale : 0;
        s->code[index * b->n + i] = (uint8_t)clamp_code(q, b->q_max);
    }
}

static void fit_block(struct block_scales *s, const float *x, int n_sub, int q_max, int limit)
{
    struct sub_block sub[MAX_SUB];
    float largest_scale = 0, largest_minimum = 0;
    for (int i = 0; i < n_sub; i++) {
        sub[i] = (struct sub_block){
            .x = x + i * (N_VALUE / n_sub), .n = N_VALUE / n_sub, .q_max = q_max};
        fit(&sub[i]);
        largest_scale = fmaxf(largest_scale, sub[i].scale);
        largest_minimum = fmaxf(largest_minimum, sub[i].minimum);
    }
    s->d = float_to_f16(largest_scale / (float)limit);
    s->dmin = float_to_f16(largest_minimum / (float)limit);
    for (int i = 0; i < n_sub; i++) {
        s->scale[i] = to_unit(sub[i].scale, f16_to_float(s->d), limit);
        s->minimum[i] = to_unit(sub[i].minimum, f16_to_float(s->dmin), limit);
        choose_codes(s, &sub[i], i);
    }
}

static void store_u16(uint8_t *p, uint16_t x)
{
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}

static void encode_q2_k(const float *x, uint8_t *out)
{
    struct block_scales s;
    fit_block(&s, x, 16, 3, 15);
    memset(out, 0, 84);
    for (int i = 0; i < 16; i++)
        out[i] = (uint8_t)(s.scale[i] | s.minimum[i] << 4);
    for (int v = 0; v < N_VALUE; v++)
        out[16 + 32 * (v / 128) + v % 32] |= (uint8_t)(s.code[v] << v % 128 / 32 * 2);
    store_u16(out + 80, s.d);
    store_u16(out + 82, s.dmin);
}

/* Inverse of kquants_scale_min. */
static void pack_scales(const struct block_scales *s, uint8_t *packed)
{
    for (int b = 0; b < 4; b++) {
        packed[b] = (uint8_t)(s->scale[b] | s->scale[b + 4] >> 4 << 6);
        packed[b + 4] = (uint8_t)(s->minimum[b] | s->minimum[b + 4] >> 4 << 6);
        packed[b + 8] = (uint8_t)((s->scale[b + 4] & 15) | (s->minimum[b + 4] & 15) << 4);
    }
}

static void encode_q4_k(const float *x, uint8_t *out)
{
    struct block_scales s;
    fit_block(&s, x, 8, 15, 63);
    memset(out, 0, 144);
    store_u16(out, s.d);
    store_u16(out + 2, s.dmin);
    pack_scales(&s, out + 4);
    for (int v = 0; v < N_VALUE; v++)
        out[16 + 32 * (v / 64) + v % 32] |= (uint8_t)(s.code[v] << (v % 64 < 32 ? 0 : 4));
}

void kquants_encode_q2_k(const float *values, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i += N_VALUE, out += 84)
        encode_q2_k(values + i, out);
}

void kquants_encode_q4_k(const float *values, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i += N_VALUE, out += 144)
        encode_q4_k(values + i, out);
}
