/* test_op_vectors.c: the operator vectors of the model description (docs: v4 spec appendix A),
 * computed in double precision from the formulas, against the reference and every level of the CPU
 * backend. */
#include "backend/backend.h"
#include "tensor/round.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct check {
    struct backend *be;
    const char *name;
    int n_passed, n_failed;
};

static void expect(
    struct check *c, const char *what, float found, double expected, double tolerance)
{
    if (fabs(found - expected) <= tolerance * fmax(1, fabs(expected))) {
        c->n_passed++;
        return;
    }
    c->n_failed++;
    printf("FAIL %s: %s: found %.9g, expected %.9g\n", c->name, what, (double)found, expected);
}

static struct tensor floats(float *p, int64_t d0, int64_t d1, int64_t d2)
{
    return tensor_of(DT_F32, p, d0, d1, d2, 0);
}

static struct tensor ints(int32_t *p, int64_t n)
{
    return tensor_of(DT_I32, p, n, 0, 0, 0);
}

static void finish(struct check *c)
{
    struct err e = {0};
    if (!backend_end(c->be, &e))
        return;
    c->n_failed++;
    printf("FAIL %s: %s\n", c->name, e.text);
}

/* fn is diagonal and undoes the norm, so that the control vector is m itself. */
static void check_mhc_mix(struct check *c)
{
    static const double pre_expected[] = {0.4345262, 0.4535649, 0.3908959, 0.3202297};
    static const double post_expected[] = {0.5669016, 0.7533532, 1.0306617, 1.1460222};
    static const double comb_expected[] = {0.3575130, 0.2249880, 0.1848196, 0.2326784, 0.1615539,
        0.3721521, 0.3372878, 0.1290052, 0.0700151, 0.1187652, 0.3091366, 0.5020822, 0.4109170,
        0.2840936, 0.1687551, 0.1362333};
    float m[24], fn[24 * 24] = {0}, scale[] = {0.8f, 1.1f, 1.7f}, base[24], pre[4], post[4],
                         comb[16];
    double square = 0;
    for (int i = 0; i < 24; i++) {
        m[i] = 0.5f * sinf(1 + (float)i);
        base[i] = 0.05f * (float)(i - 12);
        square += (double)m[i] * m[i];
    }
    for (int i = 0; i < 24; i++)
        fn[25 * i] = (float)sqrt(square / 24);
    struct tensor tx = floats(m, 1, 4, 6), tfn = floats(fn, 24, 24, 0),
                  tscale = floats(scale, 3, 0, 0);
    struct tensor tbase = floats(base, 24, 0, 0), tpre = floats(pre, 1, 4, 0),
                  tpost = floats(post, 1, 4, 0);
    struct tensor tcomb = floats(comb, 1, 4, 4);
    RUN(c->be, mhc_mix, .pre = &tpre, .post = &tpost, .comb = &tcomb, .x = &tx, .fn = &tfn,
        .scale = &tscale, .base = &tbase, .n_iter = 20, .eps = 1e-6f);
    finish(c);
    for (int i = 0; i < 4; i++) {
        expect(c, "mhc pre", pre[i], pre_expected[i], 1e-6);
        expect(c, "mhc post", post[i], post_expected[i], 1e-6);
    }
    for (int i = 0; i < 16; i++)
        expect(c, "mhc comb", comb[i], comb_expected[i], 1e-6);
    float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {10, -10};
    static const double merged[] = {
        9.737685, -0.600348, 11.457458, -2.609607, 14.230268, -5.382967, 15.543960, -6.376485};
    struct tensor twrite = floats(x, 1, 4, 2), ty = floats(y, 1, 2, 0);
    RUN(c->be, mhc_merge, .x = &twrite, .y = &ty, .post = &tpost, .comb = &tcomb);
    finish(c);
    for (int i = 0; i < 8; i++)
        expect(c, "mhc merge", x[i], merged[i], 1e-6);
}

static void make_wave(float *x)
{
    for (int i = 0; i < 64; i++)
        x[i] = bf16_to_float(float_to_bf16((float)(sin(0.37 * i) * (1 + 0.05 * i))));
}

static void check_rounding(struct check *c)
{
    static const struct {
        int i;
        float fp8, fp4;
    } spots[] = {{1, 0.375f, 0.5f}, {2, 0.75f, 0.75f}, {3, 1, 1}, {8, 0.25f, 0.25f}};
    float fp8[64], fp4[64], sum8 = 0, sum4 = 0;
    make_wave(fp8);
    make_wave(fp4);
    struct tensor t8 = floats(fp8, 1, 64, 0), t4 = floats(fp4, 1, 32, 0);
    RUN(c->be, round_fp8, .x = &t8, .block = 64);
    RUN(c->be, round_fp4, .x = &t4, .block = 32);
    finish(c);
    for (size_t i = 0; i < sizeof spots / sizeof *spots; i++) {
        expect(c, "fp8 value", fp8[spots[i].i], spots[i].fp8, 0);
        expect(c, "fp4 value", fp4[spots[i].i], spots[i].fp4, 0);
    }
    for (int i = 0; i < 64; i++)
        sum8 += fp8[i];
    for (int i = 0; i < 32; i++)
        sum4 += fp4[i];
    expect(c, "fp8 value 33", fp8[33], -0.9375, 0);
    expect(c, "fp8 value 63", fp8[63], -4, 0);
    expect(c, "fp8 sum", sum8, 2.9619140625, 0);
    expect(c, "fp4 value 20", fp4[20], 2, 0);
    expect(c, "fp4 value 31", fp4[31], -2, 0);
    expect(c, "fp4 sum", sum4, -0.75, 0);
}

/* All ties of E2M1, and the two-level format with an E4M3 scale: 4.5 / 6 = 0.75 is exact. */
static void check_ties(struct check *c)
{
    float x[16] = {6, .25f, .75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, -.25f, -.75f, -1.25f, -1.75f, -2.5f,
        -3.5f, -5, 0},
          y[16];
    static const float expected[16] = {6, 0, 1, 1, 2, 2, 4, 4, 0, -1, -1, -2, -2, -4, -4, 0};
    for (int i = 0; i < 16; i++)
        y[i] = x[i] * .75f;
    struct tensor tx = floats(x, 1, 16, 0), ty = floats(y, 1, 16, 0);
    RUN(c->be, round_fp4, .x = &tx, .block = 16);
    RUN(c->be, round_fp4_e4m3, .x = &ty, .block = 16);
    finish(c);
    for (int i = 0; i < 16; i++) {
        expect(c, "fp4 tie", x[i], expected[i], 0);
        expect(c, "fp4_e4m3 tie", y[i], expected[i] * .75, 0);
    }
}

static void check_hadamard(struct check *c)
{
    float x[128] = {0};
    x[5] = 1;
    struct tensor t = floats(x, 1, 128, 0);
    RUN(c->be, hadamard, .x = &t);
    finish(c);
    for (int i = 0; i < 128; i++)
        expect(c, "hadamard", x[i], ((i & 5) == 1 || (i & 5) == 4 ? -1 : 1) * 0.0883883476, 1e-8);
}

static void check_rope(struct check *c)
{
    static const int pairs[] = {0, 1, 8, 16, 20, 31};
    static const struct {
        int32_t pos;
        int is_compressed;
        double value[6][2];
    } rows[] = {
        {7, 0,
            {{.425409, 1.033938}, {.941106, -.603589}, {.442733, 1.026639}, {.962580, .568718},
                {.988688, .522012}, {.999533, .500933}}},
        {7, 1,
            {{.425409, 1.033938}, {.598472, -.944368}, {.767924, .812584}, {.991945, .515796},
                {.998958, .502078}, {.999998, .500004}}},
        {1000, 0,
            {{.148939, 1.108069}, {-.990248, .519047}, {1.115502, -.075206}, {-.567061, -.963557},
                {-.989444, -.520577}, {.924643, .628518}}},
        {1000, 1,
            {{.148939, 1.108069}, {-1.111168, -.123712}, {1.096153, .220108}, {-1.024336, .448036},
                {.809909, .770744}, {.999716, .500568}}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        float freq[32], cs[64], x[64];
        int32_t pos = rows[r].pos;
        for (int i = 0; i < 32; i++) {
            double g = pow(rows[r].is_compressed ? 160000 : 10000, -2.0 * i / 64),
                   ramp = fmin(fmax((i - 15) / 10.0, 0), 1);
            freq[i] = (float)(rows[r].is_compressed ? g * (1 - ramp) + g / 16 * ramp : g);
            x[2 * i] = 1;
            x[2 * i + 1] = 0.5f;
        }
        struct tensor tfreq = floats(freq, 32, 0, 0), tcs = floats(cs, 1, 32, 2),
                      tx = floats(x, 1, 1, 64);
        struct tensor tpos = ints(&pos, 1);
        RUN(c->be, rope_angles, .cs = &tcs, .pos = &tpos, .freq = &tfreq);
        RUN(c->be, rope_tail, .x = &tx, .cs = &tcs);
        finish(c);
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 2; j++)
                expect(c, "rope", x[2 * pairs[i] + j], rows[r].value[i][j], 3e-5);
        RUN(c->be, rope_tail, .x = &tx, .cs = &tcs, .is_inverse = 1);
        finish(c);
        for (int i = 0; i < 64; i++)
            expect(c, "rope and back", x[i], i % 2 ? 0.5 : 1, 1e-6);
    }
}

/* Angles over the whole range of positions against the C library in double. */
static void check_angles(struct check *c)
{
    enum { N = 1000 };
    float freq[] = {1, 0.687656022f, 0.05f}, cs[N * 6];
    int32_t pos[N];
    for (int i = 0; i < N; i++)
        pos[i] = i < 200 ? i : i * 1049;
    struct tensor tfreq = floats(freq, 3, 0, 0), tcs = floats(cs, N, 3, 2), tpos = ints(pos, N);
    RUN(c->be, rope_angles, .cs = &tcs, .pos = &tpos, .freq = &tfreq);
    finish(c);
    for (int i = 0; i < 3 * N; i++) {
        double angle = (double)pos[i / 3] * (double)freq[i % 3];
        expect(c, "cosine", cs[2 * i], cos(angle), 6.1e-8);
        expect(c, "sine", cs[2 * i + 1], sin(angle), 6.1e-8);
    }
}

/* Keys are unit vectors, so that the output is the weights. */
static void check_sink(struct check *c)
{
    static const double expected[] = {0.473991, 0.174371, 0.064148};
    float q[] = {1, 0, -1}, ring[] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, sink[] = {0.5f}, o[3];
    int32_t slot = 0, last = 2;
    struct tensor tq = floats(q, 1, 1, 3), tring = floats(ring, 1, 3, 3),
                  tsink = floats(sink, 1, 0, 0);
    struct tensor to = floats(o, 1, 1, 3), tslot = ints(&slot, 1), tlast = ints(&last, 1);
    RUN(c->be, attend, .o = &to, .q = &tq, .ring = &tring, .slot = &tslot, .last = &tlast,
        .sink = &tsink, .window = 3, .scale = 1);
    finish(c);
    for (int i = 0; i < 3; i++)
        expect(c, "sink", o[i], expected[i], 1e-6);
    last = -1; /* no key at all */
    RUN(c->be, attend, .o = &to, .q = &tq, .ring = &tring, .slot = &tslot, .last = &tlast,
        .sink = &tsink, .window = 3, .scale = 1);
    finish(c);
    for (int i = 0; i < 3; i++)
        expect(c, "no key", o[i], 0, 0);
}

/* The weights are p / sum(p); a scale of sum(p) shows p. */
static void check_router(struct check *c)
{
    static const double expected[] = {
        4.539993e-5, 0.08194723, 0.5596979, 0.8325546, 1.145976, 2.237569, 5};
    float logits[] = {-20, -5, -1, 0, 1, 5, 25}, weight[7];
    double sum = 0;
    int32_t idx[7];
    for (int i = 0; i < 7; i++)
        sum += expected[i];
    struct tensor tlogits = floats(logits, 1, 7, 0), tweight = floats(weight, 1, 7, 0);
    struct tensor tidx = tensor_of(DT_I32, idx, 1, 7, 0, 0);
    RUN(c->be, router, .idx = &tidx, .weight = &tweight, .logits = &tlogits, .scale = (float)sum);
    finish(c);
    for (int i = 0; i < 7; i++) {
        expect(c, "router order", (float)idx[i], 6 - i, 0);
        expect(c, "router p", weight[i] / (float)expected[6 - i], 1, 3e-6);
    }
}

static void check_swiglu(struct check *c)
{
    static const double expected[] = {1.462117, -99.99546, -1.2366e-7, -2.384058};
    float gate[] = {1, 12, -20, -2}, up[] = {2, -15, 3, 11}, y[4];
    struct tensor tgate = floats(gate, 1, 4, 0), tup = floats(up, 1, 4, 0), ty = floats(y, 1, 4, 0);
    RUN(c->be, swiglu, .y = &ty, .gate = &tgate, .up = &tup, .limit = 10);
    finish(c);
    for (int i = 0; i < 4; i++)
        expect(c, "swiglu", y[i], expected[i], i == 2 ? 1e-11 : 1e-6);
}

static void check_backend(struct check *c, const char *backend, const char *level)
{
    struct err e = {0};
    struct backend_options o = {.n_thread = 1, .level = level, .checks_shapes = 1};
    if (backend_open(&c->be, backend, &o, &e))
        return; /* not on this processor */
    c->name = level ? level : backend;
    check_mhc_mix(c);
    check_rounding(c);
    check_ties(c);
    check_hadamard(c);
    check_rope(c);
    check_angles(c);
    check_sink(c);
    check_router(c);
    check_swiglu(c);
    backend_close(c->be);
}

int main(void)
{
    static const char *const levels[] = {"portable", "avx2", "avx512", "neon"};
    struct check c = {.n_passed = 0};
    check_backend(&c, "ref", NULL);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        check_backend(&c, "cpu", levels[i]);
    printf("%d passed, %d failed\n", c.n_passed, c.n_failed);
    return c.n_failed > 0;
}
