/* test_safetensors.c: single files, shards with an index, and every way in which a header can lie.
 */
#include "format/safetensors.h"

#include "base/buf.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char good[] =
    "{\"__metadata__\": {\"format\": \"pt\"}, \"b\": {\"dtype\": \"F32\", \"shape\": [2, 3], "
    "\"data_offsets\": [0, 24]}, \"a\": {\"dtype\": \"F8_E4M3\", \"shape\": [5], "
    "\"data_offsets\": [24, 29]}, \"scalar\": {\"dtype\": \"I64\", \"shape\": [], "
    "\"data_offsets\": [32, 40]}}";

static void build(struct buf *b, const char *header, size_t n_data)
{
    uint64_t n = strlen(header);
    buf_append(b, &n, 8);
    buf_text(b, header);
    for (size_t i = 0; i < n_data; i++)
        buf_append(b, &(char){(char)i}, 1);
}

static void reads_a_file(void **state)
{
    (void)state;
    struct buf b = {0};
    struct safetensors *st;
    struct err e = {0};
    uint64_t n;
    build(&b, good, 40);
    assert_int_equal(safetensors_open_bytes(&st, b.data, b.n_byte, &e), 0);
    const struct safetensors_entry *all = safetensors_entries(st, &n),
                                   *t = safetensors_find(st, "b");
    assert_int_equal(n, 3);
    assert_string_equal(all[0].name, "a");
    assert_int_equal(t->type, ST_F32);
    assert_int_equal(t->n_dim, 2);
    assert_int_equal(t->dim[1], 3);
    assert_int_equal(t->n_byte, 24);
    assert_int_equal(safetensors_find(st, "a")->data[0], 24);
    assert_int_equal(safetensors_find(st, "scalar")->n_dim, 0);
    assert_null(safetensors_find(st, "c"));
    assert_null(safetensors_find(st, "__metadata__"));
    safetensors_close(st);
    buf_free(&b);
}

static void refuses_every_truncation(void **state)
{
    (void)state;
    struct buf b = {0};
    build(&b, good, 40);
    for (size_t n = 0; n < b.n_byte; n++) {
        struct safetensors *st;
        struct err e = {0};
        char *cut = mem_resize(NULL, n);
        memcpy(cut, b.data, n);
        assert_int_equal(safetensors_open_bytes(&st, cut, n, &e), -1);
        assert_true(e.text[0]);
        mem_free(cut);
    }
    buf_free(&b);
}

static uint64_t read_everything(const struct safetensors *st)
{
    uint64_t n, sum = 0;
    const struct safetensors_entry *t = safetensors_entries(st, &n);
    for (uint64_t k = 0; k < n; k++)
        for (uint64_t at = 0; at < t[k].n_byte; at++)
            sum += t[k].data[at];
    return sum;
}

static void survives_every_changed_byte(void **state)
{
    (void)state;
    struct buf b = {0};
    build(&b, good, 40);
    for (size_t i = 0; i < b.n_byte * 8; i++) {
        struct safetensors *st;
        uint64_t sum = 0;
        b.data[i / 8] ^= (char)(1 << i % 8);
        if (!safetensors_open_bytes(&st, b.data, b.n_byte, NULL)) {
            sum = read_everything(st);
            safetensors_close(st);
        }
        b.data[i / 8] ^= (char)(1 << i % 8);
        assert_true(sum + 1);
    }
    buf_free(&b);
}

static void says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"[]", "JSON holds array, expected object"},
        {"{", "not JSON"},
        {"{} x", "text after the JSON value"},
        {"{\"a\": 1}", "tensor a: dtype is missing"},
        {"{\"a\": {\"dtype\": \"F4\"}}", "tensor a: dtype is F4"},
        {"{\"a\": {\"dtype\": \"F32\"}}", "tensor a: shape is no list of at most 8 numbers"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1,1,1,1,1,1,1,1,1]}}", "shape is no list"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [-1]}}", "dimension 0 is negative or too large"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1.5]}}", "dimension 0 is negative or too large"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [99999999999999999999]}}",
            "dimension 0 is negative or too large"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4611686018427387904, 4]}}",
            "dimension 0 is negative or too large"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4294967296, 4294967296]}}",
            "dimension 1 is negative or too large"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1]}}", "data_offsets are not two numbers"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4, 8]}}",
            "data_offsets are not two numbers"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 8]}}",
            "8 bytes of data, its shape takes 4"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [4, 0]}}",
            "data at bytes 4 to 0 of 40"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [40, 44]}}",
            "data at bytes 40 to 44 of 40"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [-4, 0]}}",
            "data at bytes -4 to 0"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}, "
         "\"b\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [4, 8]}}",
            "tensors a and b share bytes"},
        {"{\"a\": {\"dtype\": \"\xff\", \"shape\": [2], \"data_offsets\": [0, 8]}}", "not JSON"},
        {"{\"a\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
            "not JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b = {0};
        struct safetensors *st;
        struct err e = {0};
        build(&b, cases[i].header, 40);
        assert_int_equal(safetensors_open_bytes(&st, b.data, b.n_byte, &e), -1);
        if (!strstr(e.text, cases[i].message))
            fail_msg("'%s' says '%s', expected '%s'", cases[i].header, e.text, cases[i].message);
        buf_free(&b);
    }
}

/* ---- Folders ---- */

struct folder {
    char path[64];
    char files[8][128];
    int n;
};

static void put(struct folder *f, const char *name, const void *data, size_t n)
{
    struct file_writer w;
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    memcpy(f->files[f->n++], path, sizeof path);
    assert_int_equal(file_writer_open(&w, path, NULL), 0);
    assert_int_equal(file_writer_write(&w, data, n, NULL), 0);
    assert_int_equal(file_writer_commit(&w, NULL), 0);
}

static void put_text(struct folder *f, const char *name, const char *text)
{
    put(f, name, text, strlen(text));
}

static void put_shard(struct folder *f, const char *name, const char *tensor)
{
    struct buf b = {0};
    char header[128];
    snprintf(header, sizeof header,
        "{\"%s\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}", tensor);
    build(&b, header, 4);
    put(f, name, b.data, b.n_byte);
    buf_free(&b);
}

static void start(struct folder *f)
{
    *f = (struct folder){.path = "/tmp/hadal-st-XXXXXX"};
    assert_non_null(mkdtemp(f->path));
}

static void stop(struct folder *f)
{
    for (int i = 0; i < f->n; i++)
        unlink(f->files[i]);
    rmdir(f->path);
}

static void expect(struct folder *f, const char *message)
{
    struct safetensors *st;
    struct err e = {0};
    int failed = safetensors_open(&st, f->path, &e);
    if (!message)
        assert_int_equal(failed, 0);
    else if (!failed || !strstr(e.text, message))
        fail_msg("'%s', expected '%s'", e.text, message);
    safetensors_close(st);
}

static void shards_come_together(void **state)
{
    (void)state;
    static const char index[] = "model.safetensors.index.json";
    struct folder f;
    start(&f);
    expect(&f, "model.safetensors: cannot open");
    put_shard(&f, "1.safetensors", "a");
    put_shard(&f, "2.safetensors", "b");
    put_text(&f, index, "{\"weight_map\": {\"a\": \"1.safetensors\", \"b\": \"2.safetensors\"}}");
    expect(&f, NULL);
    put_text(&f, index, "{\"weight_map\": {\"a\": \"1.safetensors\", \"c\": \"2.safetensors\"}}");
    expect(&f, "tensor c is not in 2.safetensors");
    put_text(&f, index, "{\"weight_map\": {\"a\": \"../1.safetensors\"}}");
    expect(&f, "tensor a is said to be in file '../1.safetensors'");
    put_text(&f, index, "{\"weight_map\": []}");
    expect(&f, "no weight_map");
    put_shard(&f, "2.safetensors", "a");
    put_text(&f, index, "{\"weight_map\": {\"a\": \"1.safetensors\", \"b\": \"2.safetensors\"}}");
    expect(&f, "tensor a is in ");
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_file),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(survives_every_changed_byte),
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(shards_come_together),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
