/* sample.c: choosing a token (hadal_sample of hadal.h).
 *
 * The chain, in this order:
 *   1. repetition penalty:  l > 0 ? l / r : l * r     for tokens of the history
 *      frequency, presence: l - count * frequency - presence
 *   2. temperature 0: the largest l, lowest id among equals. Otherwise x = l / temperature.
 *   3. top-k: the k largest. top-p: of those, the fewest whose probabilities reach top_p of their sum. min-p: of those,
 *      the ones with at least min_p of the largest probability. Equals are ordered by id, lower first.
 *   4. the largest x + Gumbel noise (sample_noise.h), which draws from the softmax of what is left.
 *
 * Every filter keeps the front part of one order (larger l first, then lower id), so it is described by where it cuts.
 * Cuts are found by counting bits of l, most significant first, never by sorting; probabilities are added as integers, so
 * the order of adding plays no role. Nothing is allocated and the logits are not changed: penalties are worked out tile
 * by tile whenever the vocabulary is walked. NaN counts as minus infinity.
 */
#include "hadal.h"

#include "generate/reject.h"
#include "generate/sample_noise.h"

#include <math.h>
#include <string.h>

enum { TILE = 8192, BIN_BITS = 11, N_BIN = 1 << BIN_BITS };

/* A walk over the vocabulary in tiles of penalised logits. */
struct walk {
    const struct hadal_sampling *s;
    const float *logits; /* n_vocab */
    int n_vocab;
    const int32_t *history; /* n_history */
    int n_history;
    float tile[TILE];
    uint16_t count[TILE];
};

/* What a filter keeps: keys above `key`, and of the tokens at `key` the n_equal with the lowest ids. */
struct cut {
    uint32_t key;
    int64_t n_equal;
};

/* Larger floats have larger keys; minus infinity has the smallest of all numbers. */
static uint32_t key_of(float l)
{
    uint32_t u;
    memcpy(&u, &l, sizeof u);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

static float float_of_key(uint32_t key)
{
    uint32_t u = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float l;
    memcpy(&l, &u, sizeof l);
    return l;
}

static int has_penalties(const struct hadal_sampling *s)
{
    return s->presence_penalty != 0.0f || s->frequency_penalty != 0.0f ||
           (s->repetition_penalty != 1.0f && s->repetition_penalty > 0.0f);
}

static float penalise(const struct hadal_sampling *s, float l, int count)
{
    if (s->repetition_penalty > 0.0f)
        l = l > 0.0f ? l / s->repetition_penalty : l * s->repetition_penalty;
    return l - (float)count * s->frequency_penalty - s->presence_penalty;
}

static void count_history(struct walk *w, int first, int n)
{
    memset(w->count, 0, (size_t)n * sizeof w->count[0]);
    for (int i = 0; i < w->n_history; i++) {
        uint32_t at = (uint32_t)w->history[i] - (uint32_t)first;
        if (at < (uint32_t)n && w->count[at] < UINT16_MAX)
            w->count[at]++;
    }
}

/* Fills w->tile with tokens [first, first + n); returns n, 0 at the end. */
static int walk_tile(struct walk *w, int first)
{
    int n = w->n_vocab - first < TILE ? w->n_vocab - first : TILE;
    if (n <= 0)
        return 0;
    for (int i = 0; i < n; i++) {
        float l = w->logits[first + i];
        w->tile[i] = l == l ? l : -INFINITY;
    }
    if (!w->n_history || !has_penalties(w->s))
        return n;
    count_history(w, first, n);
    for (int i = 0; i < n; i++)
        if (w->count[i])
            w->tile[i] = penalise(w->s, w->tile[i], w->count[i]);
    return n;
}

static int32_t largest(struct walk *w, float *value)
{
    int32_t best = 0;
    *value = -INFINITY;
    for (int first = 0, n; (n = walk_tile(w, first)) > 0; first += n)
        for (int i = 0; i < n; i++)
            if (w->tile[i] > *value) {
                *value = w->tile[i];
                best = first + i;
            }
    return best;
}

/* Asked for every token in ascending order of id; n_seen counts the equals so far. */
static int is_kept(const struct cut *cut, uint32_t key, int64_t *n_seen)
{
    return key > cut->key || (key == cut->key && (*n_seen)++ < cut->n_equal);
}

/* What is added up to find a cut: 1 per token, or its probability relative to the largest in units of 2^-40, of which a
 * vocabulary of 2^22 tokens still fits in 64 bits. */
struct measure {
    double max, per_log2; /* probability 2^((l - max) * per_log2) */
    int is_probability;
};

/* 2^y for y <= 0 in units of 2^-40: whole steps are shifts, the rest in (-1, 0] is a Taylor polynomial, relative error
 * below 2^-26. The same bits everywhere, and no fused multiply-add, which portable builds have to call. */
static uint64_t fixed_exp2(double y)
{
    if (!(y > -41.0))
        return 0;
    int whole = (int)y;
    double z = (y - whole) * 0x1.62e42fefa39efp-1, z2 = z * z, z4 = z2 * z2;
    double low = (1.0 + z) + z2 * (1.0 / 2 + z * (1.0 / 6));
    double high = (1.0 / 24 + z * (1.0 / 120)) + z2 * (1.0 / 720 + z * (1.0 / 5040)) + z4 * (1.0 / 40320 + z * (1.0 / 362880));
    return (uint64_t)((low + z4 * high) * 0x1p40) >> -whole;
}

static uint64_t measure_token(const struct measure *m, float l)
{
    return m->is_probability ? fixed_exp2(((double)l - m->max) * m->per_log2) : 1;
}

/* The bits of a key that are fixed already, and where the next BIN_BITS begin. */
struct prefix {
    uint32_t key, mask;
    int shift;
};

static void fill_bins(
    struct walk *w, const struct measure *m, const struct cut *limit, struct prefix prefix, uint64_t *bins)
{
    int64_t n_seen = 0;
    memset(bins, 0, N_BIN * sizeof *bins);
    for (int first = 0, n; (n = walk_tile(w, first)) > 0; first += n)
        for (int i = 0; i < n; i++) {
            uint32_t key = key_of(w->tile[i]);
            if (is_kept(limit, key, &n_seen) && !((key ^ prefix.key) & prefix.mask))
                bins[key >> prefix.shift & (N_BIN - 1)] += measure_token(m, w->tile[i]);
        }
}

static uint64_t sum_of(const uint64_t *bins)
{
    uint64_t sum = 0;
    for (int i = 0; i < N_BIN; i++)
        sum += bins[i];
    return sum;
}

/* Shortens *cut to the fewest tokens that measure at least `wanted`, or, with share > 0, that share of all it keeps. */
static void shorten(struct walk *w, const struct measure *m, double share, uint64_t wanted, struct cut *cut)
{
    static const int shifts[] = {21, 10, 0};
    uint64_t bins[N_BIN];
    struct prefix prefix = {0};
    for (int level = 0; level < 3; level++) {
        prefix.mask = level ? ~0u << shifts[level - 1] : 0;
        prefix.shift = shifts[level];
        fill_bins(w, m, cut, prefix, bins);
        uint64_t total = level ? UINT64_MAX : sum_of(bins);
        if (!level && share > 0.0)
            wanted = (uint64_t)(share * (double)total);
        wanted = wanted < 1 ? 1 : wanted > total ? total : wanted;
        int bin = N_BIN - 1;
        while (bin > 0 && bins[bin] < wanted)
            wanted -= bins[bin--];
        prefix.key |= (uint32_t)bin << prefix.shift;
    }
    uint64_t each = measure_token(m, float_of_key(prefix.key));
    int64_t n_equal = each ? (int64_t)((wanted + each - 1) / each) : INT64_MAX;
    if (prefix.key > cut->key || n_equal < cut->n_equal)
        *cut = (struct cut){prefix.key, n_equal};
}

static struct cut find_cut(struct walk *w, float max)
{
    const struct hadal_sampling *s = w->s;
    struct cut cut = {0, INT64_MAX};
    struct measure m = {.max = max, .per_log2 = 0x1.71547652b82fep+0 / (double)s->temperature};
    if (s->top_k > 0 && s->top_k < w->n_vocab)
        shorten(w, &m, 0.0, (uint64_t)s->top_k, &cut);
    m.is_probability = 1;
    if (s->top_p < 1.0f)
        shorten(w, &m, s->top_p > 0x1p-40f ? s->top_p : 0x1p-40, 0, &cut);
    if (s->min_p > 0.0f) {
        double floor_p = s->min_p < 1.0f ? s->min_p : 1.0;
        uint32_t key = key_of((float)((double)max + (double)s->temperature * sample_noise_log(floor_p)));
        if (key > cut.key)
            cut = (struct cut){key, INT64_MAX};
    }
    return cut;
}

static int32_t draw(struct walk *w, const struct cut *cut, uint64_t stream, int32_t fallback)
{
    double best = -INFINITY, scale = 1.0 / (double)w->s->temperature;
    int32_t best_id = fallback;
    int64_t n_seen = 0;
    for (int first = 0, n; (n = walk_tile(w, first)) > 0; first += n)
        for (int i = 0; i < n; i++) {
            if (!is_kept(cut, key_of(w->tile[i]), &n_seen))
                continue;
            uint64_t bits = sample_noise_bits(stream, first + i);
            double x = (double)w->tile[i] * scale;
            if (x + sample_noise_bound(bits) <= best)
                continue;
            x += sample_noise_gumbel(bits);
            if (x > best) {
                best = x;
                best_id = first + i;
            }
        }
    return best_id;
}

int32_t hadal_sample(const struct hadal_sampling *s, const float *logits, int n_vocab, const int32_t *history,
    int n_history, int pos)
{
    struct walk w;
    w.s = s;
    w.logits = logits;
    w.n_vocab = n_vocab;
    w.history = history;
    w.n_history = n_history;
    float max;
    int32_t best = largest(&w, &max);
    if (!(s->temperature > 0.0f) || max == INFINITY || max == -INFINITY)
        return best;
    struct cut cut = find_cut(&w, max);
    return draw(&w, &cut, sample_noise_stream(s->seed, pos), best);
}

void sample_probabilities(const struct hadal_sampling *s, const float *logits, int n_vocab,
    const int32_t *history, int n_history, float *p)
{
    struct walk w = {.s = s, .logits = logits, .n_vocab = n_vocab, .history = history, .n_history = n_history};
    struct measure m = {.is_probability = 1};
    float max;
    int32_t best = largest(&w, &max);
    memset(p, 0, (size_t)n_vocab * sizeof *p);
    p[best] = 1;
    if (!(s->temperature > 0.0f) || max == INFINITY || max == -INFINITY)
        return;
    struct cut cut = find_cut(&w, max);
    m.max = max;
    m.per_log2 = 0x1.71547652b82fep+0 / (double)s->temperature;
    int64_t n_seen = 0;
    double sum = 0;
    for (int first = 0, n; (n = walk_tile(&w, first)) > 0; first += n)
        for (int i = 0; i < n; i++) {
            int keeps = is_kept(&cut, key_of(w.tile[i]), &n_seen);
            p[first + i] = keeps ? (float)measure_token(&m, w.tile[i]) : 0;
            sum += (double)p[first + i];
        }
    for (int i = 0; i < n_vocab; i++)
        p[i] = (float)((double)p[i] / sum);
}
