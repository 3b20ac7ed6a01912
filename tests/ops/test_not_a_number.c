/* test_not_a_number.c: an E4M3 code that is no number makes its sum not-a-number on every
 * instruction set and by every way of multiplying, and no other sum. */
#include "backend/backend.h"
#include "tensor/tensor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N_OUT = 8, N_IN = 64, MAX_ROW = 16, BAD_OUT = 5 };

static const char *const levels[] = {NULL, "portable", "avx2", "avx512", "neon"};

static void check_sums(struct backend *be, int n_row, uint8_t code, float expected)
{
    uint8_t codes[N_OUT][N_IN], scale[4] = {127, 127, 127, 127};
    float x[MAX_ROW][N_IN], y[MAX_ROW][N_OUT];
    memset(codes, 0x38, sizeof codes); /* 1 */
    codes[BAD_OUT][37] = code;
    for (int i = 0; i < MAX_ROW * N_IN; i++)
        x[i / N_IN][i % N_IN] = 1.0f;
    struct tensor w = tensor_of(DT_FP8_TILE32, codes, N_OUT, N_IN, 0, 0);
    w.scale = scale;
    struct tensor in = tensor_of(DT_F32, x, n_row, N_IN, 0, 0),
                  out = tensor_of(DT_F32, y, n_row, N_OUT, 0, 0);
    RUN(be, matmul, .y = &out, .x = &in, .w = &w);
    assert_int_equal(backend_end(be, &(struct err){0}), 0);
    for (int r = 0; r < n_row; r++)
        for (int o = 0; o < N_OUT; o++) {
            float want = o == BAD_OUT ? expected : N_IN;
            assert_true(isnan(want) ? isnan(y[r][o]) : y[r][o] == want);
        }
}

static void test_codes(void **state)
{
    (void)state;
    int n_level = 0;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        struct backend *be = NULL;
        struct backend_options options = {.n_thread = 1, .level = levels[i]};
        if (backend_open(&be, i ? "cpu" : "ref", &options, &(struct err){0}))
            continue; /* not this processor's */
        n_level++;
        for (int n_row = 1; n_row <= MAX_ROW; n_row += 5) {
            check_sums(be, n_row, 0x7f, NAN);
            check_sums(be, n_row, 0xff, NAN);
            check_sums(be, n_row, 0x7e, 448 + N_IN - 1);
            check_sums(be, n_row, 0xfe, -448 + N_IN - 1);
        }
        backend_close(be);
    }
    assert_true(n_level >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_codes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
