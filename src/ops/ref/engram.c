/* engram.c: the gate through which an n-gram memory enters a stream. v41 spec 9.3 */
#include "base/fmath.h"
#include "ops/ref/ref.h"

/* One stream of one row: its key, and the products q k of its gate weights. */
static float gate_of(const float *x, const float *key, const float *qk, int64_t d, float eps)
{
    struct ref_lanes lanes = {{0}};
    for (int64_t i = 0; i < d; i++)
        lanes.lane[i % REF_N_LANE] = fmaf(x[i] * key[i], qk[i], lanes.lane[i % REF_N_LANE]);
    float dot = ref_fold(&lanes);
    float scale_x = 1.0f / sqrtf(ref_dot(x, x, d) / (float)d + eps);
    float scale_key = 1.0f / sqrtf(ref_dot(key, key, d) / (float)d + eps);
    dot = dot * scale_x * scale_key * (1.0f / sqrtf((float)d));
    float magnitude = fabsf(dot) > 1e-6f ? fabsf(dot) : 1e-6f;
    return fmath_sigmoid(copysignf(sqrtf(magnitude), dot));
}

void ref_engram_gate(struct backend *be, const void *args)
{
    const struct op_engram_gate *a = args;
    int64_t s = a->x->dim[1], d = a->x->dim[2];
    const float *q = ref_weight_values(be, a->q), *k = ref_weight_values(be, a->k);
    float *qk = backend_scratch(be, (size_t)(s * d) * sizeof *qk);
    if (!q || !k || !qk)
        return;
    for (int64_t i = 0; i < s * d; i++)
        qk[i] = q[i] * k[i];
    for (int64_t r = 0; r < a->x->dim[0] * s; r++) {
        float *x = ref_row(a->x, r);
        const float *kv = ref_row(a->kv, r / s), *value = kv + s * d;
        float gate = gate_of(x, kv + r % s * d, qk + r % s * d, d, a->eps);
        for (int64_t i = 0; i < d; i++)
            x[i] = fmaf(gate, value[i], x[i]);
    }
}
