/* fp8.c: E4M3 elements with E8M0 scales; value = float(element) * scale.
 *
 *   FP8_TILE  one scale per tile x tile values, tiles at the right and lower edge may be partial
 *   FP8_ROW32  one scale per row per 32 values, in an array of their own
 *   FP8_PACK32 | n elements | n / 32 scales |, the same in one row
 *
 * v41 spec 3.1, 3.2 and 12.1, v4 spec 6.7
 */
#include "tensor/decode.h"
#include "tensor/encode.h"
#include "tensor/round.h"

static void decode(const struct decode_run *r, const uint8_t *scales, int scale_cols)
{
    for (int64_t i = 0; i < r->n;) {
        int64_t column = r->first + i, left = scale_cols - column % scale_cols;
        int64_t end = i + left < r->n ? i + left : r->n;
        float scale = e8m0_to_float(scales[column / scale_cols]);
        for (; i < end; i++)
            r->out[i] = e4m3_to_float(r->row[r->first + i]) * scale;
    }
}

void fp8_decode_tile32(const struct decode_run *r)
{
    decode(r, r->scale, 32);
}

void fp8_decode_tile128(const struct decode_run *r)
{
    decode(r, r->scale, 128);
}

void fp8_decode_row32(const struct decode_run *r)
{
    decode(r, r->scale, 32);
}

void fp8_decode_pack32(const struct decode_run *r)
{
    decode(r, r->row + r->n_col, 32);
}

/* Scale byte for a largest magnitude: the smallest power of two >= amax / 448, at least 2^-127. v41
 * spec 3.3 */
static uint8_t scale_byte(float largest)
{
    float scale = largest / 448.0f;
    if (!(scale >= 0x1p-126f))
        return 1;
    return (uint8_t)(float_bits(pow2_ceil(scale)) >> 23);
}

static uint8_t encode_value(float x, uint8_t scale)
{
    return float_to_e4m3((float)ldexp((double)x, 127 - scale));
}

void fp8_encode_row32(const float *values, int64_t n, uint8_t *out, uint8_t *scales)
{
    for (int64_t i = 0; i < n; i += 32) {
        float largest = 0;
        for (int k = 0; k < 32; k++)
            largest = fmaxf(largest, fabsf(values[i + k]));
        uint8_t scale = scales[i / 32] = scale_byte(largest);
        for (int k = 0; k < 32; k++)
            out[i + k] = encode_value(values[i + k], scale);
    }
}

struct range {
    int64_t first, end;
};

static void encode_tile(
    const struct fp8_matrix *m, struct range rows, struct range cols, uint8_t *scale)
{
    float largest = 0;
    for (int64_t r = rows.first; r < rows.end; r++)
        for (int64_t c = cols.first; c < cols.end; c++)
            largest = fmaxf(largest, fabsf(m->values[r * m->n_col + c]));
    *scale = scale_byte(largest);
    for (int64_t r = rows.first; r < rows.end; r++)
        for (int64_t c = cols.first; c < cols.end; c++)
            m->out[r * m->n_col + c] = encode_value(m->values[r * m->n_col + c], *scale);
}

static struct range tile_range(int64_t index, int tile, int64_t limit)
{
    int64_t first = index * tile, end = first + tile;
    return (struct range){first, end < limit ? end : limit};
}

void fp8_encode_tiles(const struct fp8_matrix *m)
{
    int64_t n_tile_row = (m->n_row + m->tile - 1) / m->tile,
            n_tile_col = (m->n_col + m->tile - 1) / m->tile;
    for (int64_t r = 0; r < n_tile_row; r++)
        for (int64_t c = 0; c < n_tile_col; c++)
            encode_tile(m, tile_range(r, m->tile, m->n_row), tile_range(c, m->tile, m->n_col),
                m->scales + r * n_tile_col + c);
}
