/* codec_tool.c: decodes or encodes standard input, for test_codec.py.
 *   codec_tool decode TYPE N_ROW N_COL   data bytes, then scale bytes -> floats
 *   codec_tool encode TYPE N_COL         floats of one row -> bytes
 *   codec_tool tables                    the two codebooks as bytes
 */
#include "base/arena.h"
#include "tensor/decode.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *read_all(size_t *n_byte)
{
    size_t capacity = 1 << 24;
    uint8_t *bytes = mem_resize(NULL, capacity);
    *n_byte = bytes ? fread(bytes, 1, capacity, stdin) : 0;
    return bytes;
}

static int decode(enum dtype type, int64_t n_row, int64_t n_col, uint8_t *bytes, size_t n_byte)
{
    struct tensor t = tensor_of(type, bytes, n_row, n_col, 0, 0);
    int64_t data = tensor_data_bytes(type, t.n_dim, t.dim),
            scale = tensor_scale_bytes(type, t.n_dim, t.dim);
    if (data < 0 || scale < 0 || (size_t)(data + scale) != n_byte)
        return 1;
    t.scale = bytes + data;
    float *out = mem_resize(NULL, (size_t)n_col * sizeof *out);
    for (int64_t r = 0; out && r < n_row; r++) {
        tensor_decode(&t, r, 0, n_col, out);
        fwrite(out, sizeof *out, (size_t)n_col, stdout);
    }
    mem_free(out);
    return !out;
}

static int encode(enum dtype type, int64_t n, const uint8_t *bytes)
{
    int64_t n_byte = tensor_data_bytes(type, 1, &n);
    if (n_byte < 0)
        return 1;
    uint8_t *out = mem_resize(NULL, (size_t)n_byte);
    int failed = !out || tensor_encode(type, (const float *)(const void *)bytes, n, out);
    if (!failed)
        fwrite(out, 1, (size_t)n_byte, stdout);
    mem_free(out);
    return failed;
}

/* As the bytes they are defined as. */
static void write_magnitudes(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        putchar((uint8_t)x[i]);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "tables")) {
        write_magnitudes(iquants_grid2[0], sizeof iquants_grid2 / sizeof **iquants_grid2);
        write_magnitudes(iquants_grid3[0], sizeof iquants_grid3 / sizeof **iquants_grid3);
        return 0;
    }
    int type = argc >= 4 ? dtype_by_name(argv[2]) : -1;
    if (type < 0)
        return 2;
    size_t n_byte;
    uint8_t *bytes = read_all(&n_byte);
    int failed = 2;
    if (argc == 5 && !strcmp(argv[1], "decode"))
        failed = decode((enum dtype)type, atoll(argv[3]), atoll(argv[4]), bytes, n_byte);
    else if (argc == 4 && !strcmp(argv[1], "encode"))
        failed = encode((enum dtype)type, atoll(argv[3]), bytes);
    mem_free(bytes);
    return failed;
}
