/* test_tensor.c: shapes, views and sizes; encoders with scales of their own. Values of every
 * format: test_codec.py. */
#include "tensor/encode.h"
#include "tensor/round.h"
#include "tensor/tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void formats_have_names_and_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < N_DTYPE; i++) {
        const struct dtype_info *info = dtype_info((enum dtype)i);
        assert_non_null(info->name);
        assert_int_equal(dtype_by_name(info->name), i);
        if (info->ggml_type >= 0)
            assert_int_equal(dtype_by_ggml((uint32_t)info->ggml_type), i);
        assert_true(info->block > 0 && info->block_bytes > 0);
        assert_int_equal(!info->scale_rows, !info->scale_cols);
    }
    assert_int_equal(dtype_by_name("q4_k"), DT_Q4_K);
    assert_int_equal(dtype_by_name("Q4_0"), -1);
    assert_int_equal(dtype_by_ggml(2), -1);
    assert_int_equal(dtype_by_ggml(UINT32_MAX), -1);
}

static void shapes_leave_out_trailing_zeros(void **state)
{
    (void)state;
    struct tensor t = tensor_of(DT_Q8_0, NULL, 3, 5, 64, 0);
    char text[64], small[6];
    assert_int_equal(t.n_dim, 3);
    assert_int_equal(tensor_n_row(&t), 15);
    assert_int_equal(tensor_n_col(&t), 64);
    assert_int_equal(tensor_n_value(&t), 960);
    assert_int_equal(t.row_bytes, 68);
    assert_string_equal(tensor_describe(&t, text, sizeof text), "Q8_0 [3, 5, 64]");
    assert_string_equal(tensor_describe(&t, small, sizeof small), "Q8_0 ");
    t = tensor_of(DT_F32, NULL, 7, 0, 0, 0);
    assert_int_equal(tensor_n_row(&t), 1);
    assert_int_equal(tensor_n_col(&t), 7);
    assert_int_equal(t.row_bytes, 28);
}

static void sizes_refuse_what_cannot_be(void **state)
{
    (void)state;
    const struct {
        enum dtype type;
        int n_dim;
        int64_t dim[4], data, scale;
    } cases[] = {
        {DT_F32, 2, {3, 4}, 48, 0},
        {DT_Q4_K, 2, {3, 512}, 864, 0},
        {DT_Q4_K, 2, {3, 500}, -1, 0},
        {DT_FP8_TILE32, 2, {33, 65}, 2145, 6},
        {DT_FP8_TILE128, 3, {2, 129, 128}, 33024, 4},
        {DT_FP4_ROW, 3, {2, 5, 64}, 320, 20},
        {DT_FP8_ROW32, 2, {9, 256}, 2304, 72},
        {DT_FP8_PACK32, 2, {9, 256}, 2376, 0},
        {DT_F32, 2, {INT64_MAX, 2}, -1, 0},
        {DT_F32, 3, {1LL << 40, 1LL << 40, 4}, -1, 0},
        {DT_FP8_TILE32, 3, {1LL << 62, 1LL << 62, 64}, -1, -1},
        {DT_F32, 2, {-1, 4}, -1, 0},
        {DT_F32, 0, {0}, -1, 0},
        {DT_F32, 5, {1, 1, 1, 1}, -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            tensor_data_bytes(cases[i].type, cases[i].n_dim, cases[i].dim), cases[i].data);
        assert_int_equal(
            tensor_scale_bytes(cases[i].type, cases[i].n_dim, cases[i].dim), cases[i].scale);
    }
}

static void slices_are_views(void **state)
{
    (void)state;
    float values[4 * 3 * 2];
    for (int i = 0; i < 24; i++)
        values[i] = (float)i;
    struct tensor t = tensor_of(DT_F32, values, 4, 3, 2, 0), s = tensor_slice(&t, 1, 2),
                  m = tensor_matrix(&t, 3);
    assert_int_equal(s.dim[0], 2);
    assert_ptr_equal(s.data, values + 6);
    assert_int_equal(m.n_dim, 2);
    assert_ptr_equal(m.data, values + 18);
    float out[2];
    tensor_decode(&t, 7, 0, 2, out);
    assert_true(out[0] == 14 && out[1] == 15);
    t = tensor_of(DT_F32, values, 24, 0, 0, 0);
    s = tensor_slice(&t, 5, 3);
    assert_ptr_equal(s.data, values + 5);
    assert_int_equal(tensor_n_col(&s), 3);
}

/* Experts in three ways: contiguous, at addresses of their own, as slices of either. */
static void parts_and_scales_are_found(void **state)
{
    (void)state;
    enum { N = 3, ROWS = 4, COLS = 64 };
    uint8_t codes[N][ROWS * COLS / 2], scales[N][ROWS * COLS / 32];
    float values[N][ROWS][COLS], out[COLS];
    const void *part[N], *scale_part[N];
    for (int e = 0; e < N; e++) {
        for (int r = 0; r < ROWS; r++) {
            for (int c = 0; c < COLS; c++)
                values[e][r][c] = e2m1_to_float((uint8_t)(c + e)) * ldexpf(1, e - r);
            fp4_encode_row(values[e][r], COLS, codes[e] + r * COLS / 2, scales[e] + r * COLS / 32);
        }
        part[e] = codes[e];
        scale_part[e] = scales[e];
    }
    struct tensor whole = tensor_of(DT_FP4_ROW, codes, N, ROWS, COLS, 0), parts = whole;
    whole.scale = scales;
    parts.data = NULL;
    parts.part = part;
    parts.scale_part = scale_part;
    struct tensor tails[2] = {tensor_slice(&whole, 1, 2), tensor_slice(&parts, 1, 2)};
    for (int r = 0; r < N * ROWS; r++) {
        const float *expected = values[r / ROWS][r % ROWS];
        tensor_decode(&whole, r, 0, COLS, out);
        assert_memory_equal(out, expected, sizeof out);
        tensor_decode(&parts, r, 32, 32, out);
        assert_memory_equal(out, expected + 32, 32 * sizeof *out);
        for (int k = 0; k < 2 && r >= ROWS; k++) {
            tensor_decode(&tails[k], r - ROWS, 0, COLS, out);
            assert_memory_equal(out, expected, sizeof out);
        }
    }
}

static void tiles_keep_what_fp8_can_hold(void **state)
{
    (void)state;
    enum { ROWS = 37, COLS = 70 };
    static float values[ROWS * COLS], out[COLS];
    static uint8_t bytes[ROWS * COLS], scales[2 * 3];
    for (int i = 0; i < ROWS * COLS; i++)
        values[i] = (float)((i * 7919) % 113 - 56) / 64;
    struct fp8_matrix m = {values, ROWS, COLS, 32, bytes, scales};
    fp8_encode_tiles(&m);
    struct tensor t = tensor_of(DT_FP8_TILE32, bytes, ROWS, COLS, 0, 0);
    t.scale = scales;
    for (int r = 0; r < ROWS; r++) {
        tensor_decode(&t, r, 0, COLS, out);
        for (int c = 0; c < COLS; c++)
            assert_true(
                fabsf(out[c] - values[r * COLS + c]) <= fabsf(values[r * COLS + c]) / 16 + 1e-4f);
    }
    struct tensor below = tensor_slice(&t, 32, 5);
    tensor_decode(&below, 4, 3, 10, out);
    float again[COLS];
    tensor_decode(&t, 36, 3, 10, again);
    assert_memory_equal(out, again, 10 * sizeof *out);
}

static void encoders_exist_where_promised(void **state)
{
    (void)state;
    float zeros[256] = {0};
    uint8_t out[1024];
    for (int i = 0; i < N_DTYPE; i++) {
        int is_written = i == DT_F32 || i == DT_F16 || i == DT_BF16 || i == DT_Q8_0 ||
                         i == DT_Q4_K || i == DT_Q2_K || i == DT_MXFP4;
        assert_int_equal(tensor_encode((enum dtype)i, zeros, 256, out), is_written ? 0 : -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_have_names_and_numbers),
        cmocka_unit_test(shapes_leave_out_trailing_zeros),
        cmocka_unit_test(sizes_refuse_what_cannot_be),
        cmocka_unit_test(slices_are_views),
        cmocka_unit_test(parts_and_scales_are_found),
        cmocka_unit_test(tiles_keep_what_fp8_can_hold),
        cmocka_unit_test(encoders_exist_where_promised),
    };
    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
