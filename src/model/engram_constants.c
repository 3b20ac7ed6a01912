/* engram_constants.c: the numbers of the n-gram hash where a file does not carry them. v41 spec 9.2
 * and appendix A.
 *
 * Multipliers come from numpy's default_rng(10007 * layer).integers: SeedSequence, PCG64 and
 * Lemire's bounded draw, written here in plain words. Moduli are consecutive primes: layer by
 * layer, n-gram by n-gram, head by head.
 */
#include "model/config.h"

struct u128 {
    uint64_t hi, lo;
};

static struct u128 multiply_64(uint64_t a, uint64_t b)
{
    uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    uint64_t low = a0 * b0, m1 = a1 * b0 + (low >> 32), m2 = a0 * b1 + (m1 & 0xffffffffu);
    return (struct u128){a1 * b1 + (m1 >> 32) + (m2 >> 32), m2 << 32 | (low & 0xffffffffu)};
}

static struct u128 add_128(struct u128 a, struct u128 b)
{
    struct u128 sum = {a.hi + b.hi, a.lo + b.lo};
    sum.hi += sum.lo < a.lo;
    return sum;
}

static struct u128 multiply_128(struct u128 a, struct u128 b)
{
    struct u128 p = multiply_64(a.lo, b.lo);
    p.hi += a.hi * b.lo + a.lo * b.hi;
    return p;
}

/* SeedSequence: 32-bit words of the seed are stirred into a pool of four, from which eight words
 * are drawn. */
static uint32_t stir(uint32_t x, uint32_t *a)
{
    x ^= *a;
    *a *= 0x931e8875u;
    x *= *a;
    return x ^ x >> 16;
}

static void seed_words(uint64_t seed, uint64_t out[4])
{
    uint32_t pool[4], a = 0x43b0d7e5u, b = 0x8b51f9ddu, word[8];
    for (int i = 0; i < 4; i++)
        pool[i] = stir(i < 2 ? (uint32_t)(seed >> 32 * i) : 0, &a);
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++)
            if (from != to) {
                uint32_t r = 0xca01f9ddu * pool[to] - 0x4973f715u * stir(pool[from], &a);
                pool[to] = r ^ r >> 16;
            }
    for (int i = 0; i < 8; i++) {
        uint32_t x = pool[i % 4] ^ b;
        b *= 0x58f38dedu;
        x *= b;
        word[i] = x ^ x >> 16;
    }
    for (int i = 0; i < 4; i++)
        out[i] = word[2 * i] | (uint64_t)word[2 * i + 1] << 32;
}

struct pcg {
    struct u128 state, increment;
};

static void pcg_step(struct pcg *g)
{
    static const struct u128 multiplier = {0x2360ed051fc65da4u, 0x4385df649fccf645u};
    g->state = add_128(multiply_128(g->state, multiplier), g->increment);
}

static struct pcg pcg_seed(uint64_t seed)
{
    uint64_t s[4];
    seed_words(seed, s);
    struct pcg g = {.increment = {s[2] << 1 | s[3] >> 63, s[3] << 1 | 1}};
    g.state = add_128(g.increment, (struct u128){s[0], s[1]});
    pcg_step(&g);
    return g;
}

static uint64_t pcg_next(struct pcg *g)
{
    pcg_step(g);
    uint64_t x = g->state.hi ^ g->state.lo;
    unsigned turn = (unsigned)(g->state.hi >> 58);
    return x >> turn | x << (-turn & 63);
}

/* A number in [0, bound), bound > 2^32. */
static uint64_t pcg_below(struct pcg *g, uint64_t bound)
{
    uint64_t threshold = -bound % bound;
    struct u128 m;
    do
        m = multiply_64(pcg_next(g), bound);
    while (m.lo < threshold);
    return m.hi;
}

static int is_prime(uint64_t n)
{
    if (n < 4)
        return n > 1;
    for (uint64_t d = 2; d <= n / d; d++)
        if (n % d == 0)
            return 0;
    return 1;
}

int config_engram_constants(struct model_config *c, uint64_t first_prime, struct err *e)
{
    enum { LIMIT = 1 << 30 }; /* trial division stays below a second for all tables together */
    if (first_prime < 2 || first_prime > LIMIT)
        return err_set(e, ERR_FORMAT, "engram_vocab_size is %llu, expected 2 to %d",
            (unsigned long long)first_prime, LIMIT);
    if (c->engram_vocab < 1 || c->engram_vocab > LIMIT)
        return err_set(e, ERR_FORMAT, "engram compressed vocabulary is %lld, expected 1 to %d",
            (long long)c->engram_vocab, LIMIT);
    uint64_t bound = (uint64_t)INT64_MAX / (uint64_t)c->engram_vocab / 2, prime = first_prime - 1;
    int n_column = (c->engram_max_ngram - 1) * c->engram_n_head;
    for (int i = 0; i < c->n_engram; i++) {
        struct engram_config *t = &c->engram[i];
        struct pcg g = pcg_seed(10007 * (uint64_t)t->layer);
        for (int k = 0; k < c->engram_max_ngram; k++)
            t->multiplier[k] = 2 * pcg_below(&g, bound) + 1;
        int64_t offset = 0;
        for (int k = 0; k < n_column; k++) {
            do
                prime++;
            while (!is_prime(prime));
            t->prime[k] = prime;
            t->offset[k] = offset;
            offset += (int64_t)prime;
        }
        if (offset != t->n_row)
            return err_set(e, ERR_FORMAT,
                "engram table of layer %d has %lld rows, its primes sum to %lld", t->layer,
                (long long)t->n_row, (long long)offset);
    }
    return 0;
}
