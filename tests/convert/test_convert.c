/* test_convert.c: toy models as checkpoint folders, opened, converted, opened again; interrupted,
 * damaged, refused. */
#include "convert/convert.h"

#include "base/buf.h"
#include "base/file.h"
#include "compare_models.h"
#include "support/toy_folder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
    struct arena arena;
    struct toy_model *toy;
    char folder[64], in[128], out[128];
};

static void start(struct place *p, int is_v41, enum toy_format format, int n_shard)
{
    struct err e = {0};
    *p = (struct place){.folder = "/tmp/hadal-convert-XXXXXX"};
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->in, sizeof p->in, "%s/toy", p->folder);
    snprintf(p->out, sizeof p->out, "%s/toy.gguf", p->folder);
    p->toy = is_v41 ? toy_v41(&p->arena, &e) : toy_v4(&p->arena, &e);
    assert_non_null(p->toy);
    if (toy_folder_write(p->toy, p->in, format, n_shard, &e))
        fail_msg("%s", e.text);
}

static void stop(struct place *p)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", p->folder);
    assert_int_equal(system(command), 0);
    arena_free(&p->arena);
}

static struct model_file *open_model(const char *path)
{
    struct model_file *file;
    struct err e = {0};
    if (model_file_open(&file, path, NULL, 0, &e))
        fail_msg("%s", e.text);
    return file;
}

static void expect_model(const char *path, const struct toy_model *toy, double relative)
{
    struct model_file *file = open_model(path);
    struct model_file_info info;
    model_file_info(file, &info);
    compare_configs(info.config, &toy->config);
    assert_memory_equal(info.plan, &toy->plan, sizeof toy->plan);
    compare_weights(&info, &toy->weights, relative);
    model_file_close(file);
}

static struct convert_report convert(const struct convert_options *o)
{
    struct convert_report report;
    struct err e = {0};
    if (convert_run(o, &report, &e))
        fail_msg("%s", e.text);
    return report;
}

static void plain_models_survive(void **state)
{
    (void)state;
    for (int is_v41 = 0; is_v41 < 2; is_v41++) {
        struct place p;
        start(&p, is_v41, TOY_F32, is_v41 ? 3 : 1);
        expect_model(p.in, p.toy, 0);
        struct convert_report r =
            convert(&(struct convert_options){.input = p.in, .output = p.out, .verifies = 1});
        assert_int_equal(r.n_exact, r.n_tensor);
        assert_true(r.largest_error == 0);
        expect_model(p.out, p.toy, 0);
        stop(&p);
    }
}

/* FP8, FP4 and BF16 lose precision once, when the folder is written; the conversion loses nothing.
 */
static void native_formats_survive(void **state)
{
    (void)state;
    for (int is_v41 = 0; is_v41 < 2; is_v41++) {
        struct place p;
        start(&p, is_v41, TOY_NATIVE, 2);
        expect_model(p.in, p.toy, 0.13);
        struct convert_report r =
            convert(&(struct convert_options){.input = p.in, .output = p.out, .verifies = 1});
        assert_true(r.largest_error == 0);
        assert_int_equal(r.n_exact, r.n_tensor);
        struct model_file *file = open_model(p.in);
        struct model_file_info info;
        model_file_info(file, &info);
        struct toy_model stored = {*info.config, *info.plan, *info.weights};
        assert_int_equal(info.weights->layer[3].ffn_up_exps.type, DT_FP4_ROW);
        expect_model(p.out, &stored, 0);
        model_file_close(file);
        file = open_model(p.out);
        model_file_info(file, &info);
        assert_int_equal(info.weights->layer[3].ffn_up_exps.type, DT_MXFP4);
        assert_int_equal(
            info.weights->layer[3].attn_q_b.type, is_v41 ? DT_FP8_TILE32 : DT_FP8_TILE128);
        if (is_v41)
            assert_int_equal(info.weights->layer[1].engram_embd.type, DT_FP8_PACK32);
        model_file_close(file);
        stop(&p);
    }
}

static void formats_are_chosen_by_class(void **state)
{
    (void)state;
    struct place p;
    start(&p, 0, TOY_F32, 1);
    struct convert_options o = {.input = p.in,
        .output = p.out,
        .name = "renamed",
        .verifies = 1,
        .types = {"all=Q8_0", "experts=mxfp4", "embed=BF16", "router=keep"},
        .n_type = 4};
    struct convert_report r = convert(&o);
    assert_true(r.largest_error > 0.01 && r.largest_error < 0.2);
    assert_non_null(strstr(r.worst, "exps"));
    struct model_file *file = open_model(p.out);
    struct model_file_info info;
    model_file_info(file, &info);
    assert_string_equal(info.config->name, "renamed");
    assert_int_equal(info.weights->token_embd.type, DT_BF16);
    assert_int_equal(info.weights->output.type, DT_Q8_0);
    assert_int_equal(info.weights->layer[2].ffn_gate_inp.type, DT_F32);
    assert_int_equal(info.weights->layer[2].ffn_down_exps.type, DT_MXFP4);
    assert_int_equal(info.weights->layer[2].attn_norm.type, DT_F32);
    assert_int_equal(info.weights->layer[2].ffn_gate_tid2eid.type, DT_I32);
    compare_weights(&info, &p.toy->weights, 0.2);
    model_file_close(file);
    stop(&p);
}

static void wrong_choices_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *type, *message;
    } cases[] = {
        {"experts", "type 'experts' is not CLASS=FORMAT"},
        {"nothing=Q8_0", "there is no class nothing to choose for"},
        {"ids=Q8_0", "there is no class ids to choose for"},
        {"experts=Q9", "format Q9 cannot be written"},
        {"experts=IQ2_XXS", "format IQ2_XXS cannot be written"},
        {"attn=Q4_K", "no multiple of the 256 of Q4_K; choose another format for attn"},
    };
    struct place p;
    start(&p, 0, TOY_F32, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct convert_options o = {
            .input = p.in, .output = p.out, .types = {cases[i].type}, .n_type = 1};
        struct convert_report r;
        struct err e = {0};
        assert_int_equal(convert_run(&o, &r, &e), -1);
        if (!strstr(e.text, cases[i].message))
            fail_msg("'%s', expected '%s'", e.text, cases[i].message);
        assert_false(file_exists(p.out));
    }
    stop(&p);
}

/* ---- Interruption ---- */

/* Cancels at a tensor after n_left pieces; n_begun tensors were begun by then, all but the last finished. */
struct stopper {
    int n_left, n_begun;
    char name[96];
    volatile int is_cancelled;
};

static void count_down(
    void *context, const char *what, const char *name, uint64_t done, uint64_t total)
{
    struct stopper *s = context;
    assert_true(done <= total && *name);
    if (strcmp(what, "write") || s->is_cancelled)
        return;
    s->n_begun += strcmp(name, s->name) != 0;
    snprintf(s->name, sizeof s->name, "%s", name);
    s->is_cancelled = s->n_left-- <= 0;
}

static struct buf read_file(const char *path)
{
    struct buf b = {0};
    struct file_map m;
    assert_int_equal(file_map_open(&m, path, NULL), 0);
    buf_append(&b, m.data, m.n_byte);
    file_map_close(&m);
    return b;
}

static void flip_byte(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, at, at < 0 ? SEEK_END : SEEK_SET);
    int c = fgetc(f);
    fseek(f, -1, SEEK_CUR);
    fputc(c ^ 1, f);
    fclose(f);
}

static void interrupted_conversions_go_on(void **state)
{
    (void)state;
    struct place p;
    char part[160];
    start(&p, 1, TOY_NATIVE, 1);
    snprintf(part, sizeof part, "%s.part", p.out);
    convert(&(struct convert_options){.input = p.in, .output = p.out});
    struct buf whole = read_file(p.out);
    unlink(p.out);
    struct stopper s = {.n_left = 100};
    struct convert_options o = {.input = p.in,
        .output = p.out,
        .progress = count_down,
        .progress_context = &s,
        .is_cancelled = &s.is_cancelled};
    struct convert_report r;
    struct err e = {0};
    assert_int_equal(convert_run(&o, &r, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    assert_false(file_exists(p.out));
    assert_true(file_exists(part));
    int n_done = s.n_begun - 1;
    s = (struct stopper){.n_left = 1 << 30};
    r = convert(&o);
    assert_true(r.n_kept > n_done / 2 && r.n_kept <= n_done); /* not counted: scales */
    struct buf again = read_file(p.out);
    assert_int_equal(again.n_byte, whole.n_byte);
    assert_memory_equal(again.data, whole.data, whole.n_byte);
    buf_free(&again);
    buf_free(&whole);
    stop(&p);
}

/* Damage in a finished tensor of the part file: only that tensor is written again. */
static void damaged_parts_are_repaired(void **state)
{
    (void)state;
    struct place p;
    char part[160];
    struct err e = {0};
    start(&p, 0, TOY_F32, 1);
    snprintf(part, sizeof part, "%s.part", p.out);
    struct convert_report r = convert(&(struct convert_options){.input = p.in, .output = p.out});
    int n = r.n_tensor;
    struct buf whole = read_file(p.out);
    assert_int_equal(rename(p.out, part), 0);
    flip_byte(part, -1000);
    r = convert(&(struct convert_options){.input = p.in, .output = p.out, .verifies = 1});
    assert_int_equal(r.n_kept, n - 1);
    struct buf again = read_file(p.out);
    assert_memory_equal(again.data, whole.data, whole.n_byte);
    assert_int_equal(rename(p.out, part), 0);
    r = convert(&(struct convert_options){.input = p.in, .output = p.out, .name = "other"});
    assert_int_equal(r.n_kept, 0);
    flip_byte(p.out, -1000);
    struct convert_options check = {.input = p.in, .output = p.out, .verifies_only = 1};
    assert_int_equal(convert_run(&check, &r, &e), -1);
    assert_non_null(strstr(e.text, "its checksum is wrong, the file is damaged"));
    buf_free(&again);
    buf_free(&whole);
    stop(&p);
}

/* ---- Bad checkpoints ---- */

static void replace_text(const char *path, const char *old, const char *new)
{
    struct buf b = read_file(path);
    char *at = memmem(b.data, b.n_byte, old, strlen(old));
    assert_non_null(at);
    assert_int_equal(strlen(old), strlen(new));
    memcpy(at, new, strlen(new));
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(b.data, 1, b.n_byte, f);
    fclose(f);
    buf_free(&b);
}

static void expect_refusal(const char *path, const char *message)
{
    struct model_file *file;
    struct err e = {0};
    assert_int_equal(model_file_open(&file, path, NULL, 0, &e), -1);
    assert_null(file);
    if (!strstr(e.text, message))
        fail_msg("'%s', expected '%s'", e.text, message);
}

static void bad_checkpoints_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *file, *old, *new, *message;
    } cases[] = {
        {"config.json", "\"hidden_size\": 64", "\"hidden_size\": 32",
            "tensor embed.weight: found F32 [101, 64], expected [101, 32]"},
        {"config.json", "\"hidden_size\"", "\"hiddenXsize\"", "key hidden_size is missing"},
        {"config.json", "\"n_routed_experts\": 16", "\"n_routed_experts\": 17",
            "tensor layers.0.ffn.gate.weight: found F32 [16, 64], expected [17, 64]"},
        {"config.json", "\"n_routed_experts\": 16", "\"n_routed_experts\": 02", "not JSON"},
        {"config.json", "deepseek_v4", "deepseek_v9", "architecture is deepseek_v9"},
        {"config.json", "\"sliding_window\": 128", "\"sliding_window\": -12",
            "window is -12, expected 1 to 65536"},
        {"config.json", "\"sliding_window\": 128", "\"sliding_window\": 1.5",
            "sliding_window is 1.5, expected a whole number"},
        {"config.json", "\"sliding_window\": 128", "\"sliding_window\": [1]",
            "sliding_window is a list, expected a number"},
        {"config.json", "\"sliding_window\": 128", "\"sliding_window\": \"a\"",
            "sliding_window is neither a number nor a list"},
        {"config.json", "silu", "gelu", "hidden_act is gelu, expected silu"},
        {"config.json", "\"norm_topk_prob\": true", "\"norm_topk_prob\":    0",
            "norm_topk_prob is 0, expected 1"},
        {"model.safetensors", "layers.3.ffn.experts.9.w2.weight",
            "layers.3.ffn.experts.9.w2.height",
            "tensor layers.3.ffn.experts.9.w2.weight is missing"},
        {"model.safetensors", "layers.3.attn.wkv.weight", "layers.3.attn.wkv.height",
            "tensor layers.3.attn.wkv.weight is missing"},
        {"model.safetensors", "\"layers.2.attn_norm.weight\": {\"dtype\": \"F32\", \"shape\": [64]",
            "\"layers.2.attn_norm.weight\": {\"dtype\": \"I32\", \"shape\": [64]",
            "tensor layers.2.attn_norm.weight: found I32, expected a floating-point format"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct place p;
        char path[256];
        start(&p, 0, TOY_F32, 1);
        snprintf(path, sizeof path, "%s/%s", p.in, cases[i].file);
        replace_text(path, cases[i].old, cases[i].new);
        expect_refusal(p.in, cases[i].message);
        stop(&p);
    }
}

/* Expert numbers behind the last expert, and scales that are no numbers. */
static void bad_values_are_named(void **state)
{
    (void)state;
    struct place p;
    struct err e = {0};
    struct convert_report r;
    start(&p, 0, TOY_F32, 1);
    int32_t *ids = p.toy->weights.layer[1].ffn_gate_tid2eid.data;
    ids[7 * 3 + 1] = 16;
    assert_int_equal(toy_folder_write(p.toy, p.in, TOY_F32, 1, &e), 0);
    expect_refusal(
        p.in, "tensor blk.1.ffn_gate_tid2eid.weight: token 7 is sent to expert 16 of 16");
    ids[7 * 3 + 1] = 3;
    float *norm = p.toy->weights.layer[1].attn_norm.data;
    float *matrix = p.toy->weights.layer[2].ffn_gate_inp.data;
    matrix[64] = INFINITY;
    assert_int_equal(toy_folder_write(p.toy, p.in, TOY_F32, 1, &e), 0);
    assert_int_equal(
        convert_run(&(struct convert_options){.input = p.in, .output = p.out}, &r, &e), -1);
    assert_string_equal(e.text,
        "tensor blk.2.ffn_gate_inp.weight: row 1 holds a value or a scale that is not a number");
    matrix[64] = 0;
    norm[5] = NAN;
    assert_int_equal(toy_folder_write(p.toy, p.in, TOY_F32, 1, &e), 0);
    struct convert_options o = {.input = p.in, .output = p.out, .types = {"norm=F16"}, .n_type = 1};
    assert_int_equal(convert_run(&o, &r, &e), -1);
    assert_string_equal(e.text,
        "tensor blk.1.attn_norm.weight: row 0 holds a value or a scale that is not a number");
    stop(&p);
}

/* A whole converted model, cut at many places: refused, or (cut in padding) whole. */
static void truncated_models_are_refused(void **state)
{
    (void)state;
    struct place p;
    start(&p, 1, TOY_NATIVE, 1);
    convert(&(struct convert_options){.input = p.in, .output = p.out});
    struct buf whole = read_file(p.out);
    for (size_t n = 0; n < whole.n_byte - 32; n += n < 20000 ? 61 : 9973) {
        struct model_file *file;
        struct err e = {0};
        char *cut = mem_resize(NULL, n);
        memcpy(cut, whole.data, n);
        assert_int_equal(model_file_open(&file, NULL, cut, n, &e), -1);
        assert_true(e.text[0]);
        mem_free(cut);
    }
    struct model_file *file;
    assert_int_equal(model_file_open(&file, NULL, whole.data, whole.n_byte, NULL), 0);
    model_file_close(file);
    buf_free(&whole);
    stop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_models_survive),
        cmocka_unit_test(native_formats_survive),
        cmocka_unit_test(formats_are_chosen_by_class),
        cmocka_unit_test(wrong_choices_are_refused),
        cmocka_unit_test(interrupted_conversions_go_on),
        cmocka_unit_test(damaged_parts_are_repaired),
        cmocka_unit_test(bad_checkpoints_are_named),
        cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(truncated_models_are_refused),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
