/* reject.c: see reject.h. */
#include "generate/reject.h"

#include "generate/sample_noise.h"

double reject_random(uint64_t seed, int pos, enum reject_use use)
{
    uint64_t stream = sample_noise_stream(~seed, pos);
    return (double)(sample_noise_bits(stream, use) >> 11) * 0x1p-53;
}

int32_t reject_draw(const float *p, int n_vocab, double u)
{
    double sum = 0, at = 0;
    int32_t last = 0;
    for (int i = 0; i < n_vocab; i++)
        sum += (double)p[i];
    for (int i = 0; i < n_vocab; i++) {
        if (p[i] <= 0)
            continue;
        last = i;
        at += (double)p[i];
        if (u * sum < at)
            break;
    }
    return last;
}

int reject_keeps(const float *p, const float *q, int32_t draft, double u)
{
    return u * (q ? (double)q[draft] : 1.0) < (double)p[draft];
}

int32_t reject_replace(float *p, const float *q, int n_vocab, int32_t draft, double u)
{
    if (!q) {
        p[draft] = 0;
        return reject_draw(p, n_vocab, u);
    }
    for (int i = 0; i < n_vocab; i++)
        p[i] = p[i] > q[i] ? p[i] - q[i] : 0;
    return reject_draw(p, n_vocab, u);
}
