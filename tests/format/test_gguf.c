/* test_gguf.c: what is written is read back; what is damaged is refused without touching a byte
 * outside the file. */
#include "format/gguf.h"
#include "format/gguf_write.h"

#include "base/file.h"
#include "tensor/dtype.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A small file: keys of every kind and three tensors. */
static void build(struct buf *out, int n_part, int part)
{
    struct gguf_header h = {0};
    const int32_t numbers[3] = {-1, 0, 7};
    const uint64_t large[1] = {UINT64_MAX};
    const struct gguf_string texts[2] = {{"a", 1}, {"b\0c", 3}};
    char name[32];
    if (n_part > 1) {
        gguf_put_u32(&h, "split.count", (uint32_t)n_part);
        gguf_put_u32(&h, "split.no", (uint32_t)part);
    }
    gguf_put_text(&h, "general.architecture", "toy");
    gguf_put_u32(&h, "u32", 4000000000u);
    gguf_put_i32(&h, "i32", -5);
    gguf_put_u64(&h, "u64", 1ull << 63);
    gguf_put_f32(&h, "f32", 0.5f);
    gguf_put_bool(&h, "bool", 1);
    gguf_put_numbers(&h, "numbers", GGUF_I32, numbers, 3);
    gguf_put_numbers(&h, "large", GGUF_U64, large, 1);
    gguf_put_texts(&h, "texts", texts, 2);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "part%d.t%d", part, i);
        struct gguf_tensor t = {.name = name,
            .ggml_type = i == 2 ? 8 : 0,
            .n_dim = 2,
            .dim = {2, 32},
            .n_byte = i == 2 ? 68 : 256};
        gguf_put_tensor(&h, &t);
    }
    assert_int_equal(gguf_header_bytes(&h, out, NULL, NULL), 0);
    for (uint64_t i = 0; i < h.n_data_byte; i++)
        buf_append(out, &(char){(char)i}, 1);
    gguf_header_free(&h);
}

static int open_copy(const struct buf *b, size_t n, struct gguf **file, struct err *e)
{
    return gguf_open_bytes(file, b->data, n, e);
}

static double number(const struct gguf *file, const char *name, uint64_t i)
{
    struct gguf_number n;
    const struct gguf_key *key = gguf_find_key(file, name);
    assert_non_null(key);
    assert_int_equal(gguf_number(key, i, &n), 0);
    return n.f;
}

static void reads_what_was_written(void **state)
{
    (void)state;
    struct buf b = {0};
    struct gguf *file;
    struct err e = {0};
    uint64_t n;
    build(&b, 1, 0);
    assert_int_equal(open_copy(&b, b.n_byte, &file, &e), 0);
    assert_true(number(file, "u32", 0) == 4000000000.0);
    assert_true(number(file, "i32", 0) == -5);
    assert_true(number(file, "u64", 0) == 0x1p63);
    assert_true(number(file, "f32", 0) == 0.5);
    assert_true(number(file, "bool", 0) == 1);
    assert_true(number(file, "numbers", 0) == -1 && number(file, "numbers", 2) == 7);
    struct gguf_number bits;
    assert_int_equal(gguf_number(gguf_find_key(file, "large"), 0, &bits), 0);
    assert_true((uint64_t)bits.i == UINT64_MAX);
    assert_int_equal(gguf_number(gguf_find_key(file, "numbers"), 3, &bits), -1);
    assert_int_equal(gguf_number(gguf_find_key(file, "texts"), 0, &bits), -1);
    struct gguf_string text = gguf_text(gguf_find_key(file, "general.architecture"));
    assert_int_equal(text.n_byte, 3);
    assert_memory_equal(text.data, "toy", 3);
    assert_null(gguf_text(gguf_find_key(file, "texts")).data);
    const uint8_t *next = gguf_find_key(file, "texts")->payload;
    gguf_next_string(&next);
    text = gguf_next_string(&next);
    assert_int_equal(text.n_byte, 3);
    assert_null(gguf_find_key(file, "nothing"));
    assert_null(gguf_find_tensor(file, "nothing"));
    const struct gguf_tensor *t = gguf_find_tensor(file, "part0.t2");
    assert_non_null(t);
    assert_int_equal(t->type, DT_Q8_0);
    assert_int_equal(t->n_byte, 68);
    assert_int_equal(t->dim[0], 2);
    assert_int_equal(t->dim[1], 32);
    gguf_tensors(file, &n);
    assert_int_equal(n, 3);
    gguf_keys(file, &n);
    assert_int_equal(n, 9);
    gguf_close(file);
    buf_free(&b);
}

/* Copies end exactly at the cut, so that the sanitizer sees every byte read behind it. */
static void refuses_every_truncation(void **state)
{
    (void)state;
    struct buf b = {0};
    build(&b, 1, 0);
    for (size_t n = 0; n + 28 < b.n_byte;
         n++) { /* the last 28 bytes are padding of the last tensor */
        struct buf cut = {0};
        struct gguf *file;
        struct err e = {0};
        buf_append(&cut, b.data, n);
        cut.data = mem_resize(cut.data, n);
        assert_int_equal(gguf_open_bytes(&file, cut.data, n, &e), -1);
        assert_null(file);
        assert_true(e.code != ERR_NONE && e.text[0]);
        mem_free(cut.data);
    }
    buf_free(&b);
}

/* Touches all that an open file offers. */
static uint64_t read_everything(const struct gguf *file)
{
    uint64_t n, sum = 0;
    struct gguf_number value;
    const struct gguf_tensor *t = gguf_tensors(file, &n);
    for (uint64_t k = 0; k < n; k++)
        for (uint64_t at = 0; at < t[k].n_byte; at++)
            sum += t[k].data[at];
    const struct gguf_key *key = gguf_keys(file, &n);
    for (uint64_t k = 0; k < n; k++)
        for (uint64_t at = 0; at < key[k].n && !gguf_number(&key[k], at, &value); at++)
            sum += (uint64_t)value.i;
    return sum;
}

/* Every byte set to several values: opening may succeed or fail, and everything that it offers can
 * be read. */
static void survives_every_changed_byte(void **state)
{
    (void)state;
    struct buf b = {0};
    build(&b, 1, 0);
    static const uint8_t masks[] = {1, 2, 0x10, 0x40, 0x80, 0xff};
    for (size_t i = 0; i < b.n_byte * sizeof masks; i++) {
        uint8_t *byte = (uint8_t *)b.data + i / sizeof masks, old = *byte;
        struct gguf *file;
        uint64_t sum = 0;
        *byte ^= masks[i % sizeof masks];
        if (!gguf_open_bytes(&file, b.data, b.n_byte, NULL)) {
            sum = read_everything(file);
            gguf_close(file);
        }
        *byte = old;
        assert_true(sum + 1);
    }
    buf_free(&b);
}

struct damage {
    const char *name, *message;
    const char *find; /* bytes whose first occurrence is looked for */
    size_t n_find, skip;
    uint64_t value;
    int n_value;
};

static void says_what_is_wrong(void **state)
{
    (void)state;
    /* A tensor's entry: name, u32 n_dim, u64 dims, u32 type, u64 offset. */
    static const struct damage damages[] = {
        {"magic", "does not start with GGUF", "GGUF", 4, 0, 'X', 1},
        {"version 1", "GGUF version 1, expected 2 or 3", "GGUF", 4, 4, 1, 4},
        {"big endian", "big-endian file", "GGUF", 4, 4, 0x03000000, 4},
        {"many tensors", "a tensor's name has 0 bytes, expected 1 to 511", "GGUF", 4, 8, 1ull << 60,
            8},
        {"many keys", "", "GGUF", 4, 16, UINT64_MAX, 8},
        {"value type", "key u32: value type 13", "u32", 3, 3, 13, 4},
        {"nested array", "key numbers: value type 9 in an array", "numbers", 7, 11, 9, 4},
        {"long array", "file ends inside its metadata", "numbers", 7, 15, UINT64_MAX, 8},
        {"long name", "file ends inside its list of tensors", "part0.t0", 8, (size_t)-8, 1ull << 40,
            8},
        {"no dimension", "tensor part0.t0 has 0 dimensions, expected 1 to 4", "part0.t0", 8, 8, 0,
            4},
        {"dimension 0", "tensor part0.t0: a dimension is 0", "part0.t0", 8, 12, 0, 8},
        {"dimension", "tensor part0.t0: a dimension is 18446744073709551615", "part0.t0", 8, 12,
            UINT64_MAX, 8},
        {"product", "tensor part0.t0: its shape does not fit the blocks of F32", "part0.t0", 8, 12,
            1ull << 62, 8},
        {"block", "tensor part0.t2: its shape does not fit the blocks of Q8_0", "part0.t2", 8, 12,
            31, 8},
        {"size", "tensor part0.t0: 4294967296 bytes at offset 0 of 608", "part0.t0", 8, 12,
            1ull << 29, 8},
        {"offset", "tensor part0.t1: offset 255, expected a multiple of 32 up to 608", "part0.t1",
            8, 32, 255, 8},
        {"far", "tensor part0.t1: offset 9223372036854775808, expected", "part0.t1", 8, 32,
            1ull << 63, 8},
        {"overlap", "tensors part0.t0 and part0.t1 share bytes", "part0.t1", 8, 32, 224, 8},
        {"twice", "tensor part0.t1 stands there twice", "part0.t0", 8, 7, '1', 1},
        {"key twice", "key i32 stands there twice", "u32", 3, 0, 'i', 1},
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const struct damage *d = &damages[i];
        struct buf b = {0};
        struct gguf *file;
        struct err e = {0};
        build(&b, 1, 0);
        char *at = memmem(b.data, b.n_byte, d->find, d->n_find);
        assert_non_null(at);
        memcpy(at + d->skip, &d->value, (size_t)d->n_value);
        assert_int_equal(gguf_open_bytes(&file, b.data, b.n_byte, &e), -1);
        if (!strstr(e.text, d->message))
            fail_msg("%s: '%s', expected '%s'", d->name, e.text, d->message);
        buf_free(&b);
    }
}

static void unknown_formats_have_no_size(void **state)
{
    (void)state;
    struct buf b = {0};
    struct gguf *file;
    build(&b, 1, 0);
    char *at = memmem(b.data, b.n_byte, "part0.t0", 8), text[24];
    memcpy(at + 28, &(uint32_t){999}, 4);
    assert_int_equal(gguf_open_bytes(&file, b.data, b.n_byte, NULL), 0);
    const struct gguf_tensor *t = gguf_find_tensor(file, "part0.t0");
    assert_int_equal(t->type, -1);
    assert_int_equal(t->n_byte, 0);
    assert_string_equal(gguf_type_name(t->ggml_type, text), "type 999");
    assert_string_equal(gguf_type_name(29, text), "IQ1_M");
    assert_string_equal(gguf_type_name(12, text), "Q4_K");
    gguf_close(file);
    buf_free(&b);
}

/* ---- Split files ---- */

static void write_part(const char *folder, const char *name, int n_part, int part)
{
    struct buf b = {0};
    struct file_writer w;
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    build(&b, n_part, part);
    assert_int_equal(file_writer_open(&w, path, NULL), 0);
    assert_int_equal(file_writer_write(&w, b.data, b.n_byte, NULL), 0);
    assert_int_equal(file_writer_commit(&w, NULL), 0);
    buf_free(&b);
}

static void split_files_come_together(void **state)
{
    (void)state;
    char folder[] = "/tmp/hadal-gguf-XXXXXX", path[256];
    struct gguf *file;
    struct err e = {0};
    uint64_t n;
    assert_non_null(mkdtemp(folder));
    write_part(folder, "m-00001-of-00002.gguf", 2, 0);
    snprintf(path, sizeof path, "%s/m-00001-of-00002.gguf", folder);
    assert_int_equal(gguf_open(&file, path, &e), -1);
    assert_non_null(strstr(e.text, "m-00002-of-00002.gguf"));
    write_part(folder, "m-00002-of-00002.gguf", 2, 1);
    assert_int_equal(gguf_open(&file, path, &e), 0);
    gguf_tensors(file, &n);
    assert_int_equal(n, 6);
    assert_non_null(gguf_find_tensor(file, "part1.t2"));
    gguf_close(file);
    snprintf(path, sizeof path, "%s/m-00002-of-00002.gguf", folder);
    assert_int_equal(gguf_open(&file, path, &e), -1);
    assert_non_null(strstr(e.text, "this is part 2; open part 1"));
    unlink(path);
    snprintf(path, sizeof path, "%s/renamed.gguf", folder);
    write_part(folder, "renamed.gguf", 2, 0);
    assert_int_equal(gguf_open(&file, path, &e), -1);
    assert_non_null(strstr(e.text, "does not end in -00001-of-00002.gguf"));
    unlink(path);
    snprintf(path, sizeof path, "%s/m-00001-of-00002.gguf", folder);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(survives_every_changed_byte),
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(unknown_formats_have_no_size),
        cmocka_unit_test(split_files_come_together),
    };
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
