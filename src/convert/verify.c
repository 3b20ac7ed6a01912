/* verify.c: see verify.h. */
#include "convert/verify.h"

#include "base/file.h"
#include "format/gguf.h"
#include "model/weights_table.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

/* Above this relative RMS error something else than rounding went wrong; Q2_K of normal numbers has
 * about 0.3. */
static const double error_limit = 0.6;

struct verification {
    const struct convert_options *options;
    const struct model_weights *input, *output;
    struct convert_report *report;
    struct arena arena;
    uint64_t n_done, n_total;
    struct err *e;
};

static int tell(struct verification *v, const char *what, const char *name)
{
    const struct convert_options *o = v->options;
    if (o->progress)
        o->progress(o->progress_context, what, name, v->n_done, v->n_total);
    return o->is_cancelled && *o->is_cancelled ? err_set(v->e, ERR_CANCELLED, "stopped") : 0;
}

/* ---- Checksums ---- */

static int check_sums(struct verification *v, const struct gguf *file)
{
    const struct gguf_key *key = gguf_find_key(file, "hadal.tensor_xxh64");
    uint64_t n;
    const struct gguf_tensor *t = gguf_tensors(file, &n);
    if (!key || !key->is_array || key->n != n)
        return err_set(v->e, ERR_FORMAT, "key hadal.tensor_xxh64 is no list of %llu numbers",
            (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++)
        v->n_total += t[i].n_byte;
    for (uint64_t i = 0; i < n; i++) {
        struct gguf_number stored;
        uint64_t sum = XXH64(t[i].data, (size_t)t[i].n_byte, 0);
        if (tell(v, "check", t[i].name) || gguf_number(key, i, &stored))
            return -1;
        if ((uint64_t)stored.i != (sum ? sum : 1))
            return err_set(v->e, ERR_FORMAT,
                "tensor %s: its checksum is wrong, the file is damaged", t[i].name);
        v->n_done += t[i].n_byte;
    }
    return 0;
}

/* ---- Values ---- */

struct difference {
    double error, size; /* sums of squares */
    int is_exact;
};

static void compare_row(struct difference *d, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = (double)a[i], error = x - (double)b[i];
        d->is_exact &= a[i] == b[i];
        d->error += error * error;
        d->size += x * x;
    }
}

static int judge(struct verification *v, const struct tensor *t, const struct difference *d)
{
    double relative = d->size > 0 ? sqrt(d->error / d->size) : d->error > 0 ? HUGE_VAL : 0;
    v->report->n_exact += d->is_exact;
    v->report->n_tensor++;
    if (relative > v->report->largest_error) {
        v->report->largest_error = relative;
        memset(v->report->worst, 0, sizeof v->report->worst);
        strncpy(v->report->worst, t->name, sizeof v->report->worst - 1);
    }
    if (relative <= error_limit)
        return 0;
    return err_set(v->e, ERR_FORMAT, "tensor %s: relative error %g, expected at most %g", t->name,
        relative, error_limit);
}

static int compare_slot(void *context, const struct weight_slot *slot)
{
    struct verification *v = context;
    const struct tensor *a = weight_slot_tensor((struct model_weights *)(uintptr_t)v->input, slot);
    const struct tensor *b = weight_slot_tensor((struct model_weights *)(uintptr_t)v->output, slot);
    struct difference d = {.is_exact = 1};
    int64_t n_row = tensor_n_row(a), n_col = tensor_n_col(a);
    float *x = ARENA_NEW(&v->arena, float, 2 * (size_t)n_col);
    if (!x)
        return err_set(v->e, ERR_MEMORY, "no memory to compare rows");
    for (int64_t r = 0; r < n_row; r++) {
        if (r % 4096 == 0 && tell(v, "verify", a->name))
            return -1;
        tensor_decode(a, r, 0, n_col, x);
        tensor_decode(b, r, 0, n_col, x + n_col);
        compare_row(&d, x, x + n_col, n_col);
    }
    v->n_done += (uint64_t)tensor_data_bytes(b->type, b->n_dim, b->dim);
    arena_free(&v->arena);
    return judge(v, a, &d);
}

static int compare_models(
    struct verification *v, const struct model_file *input, const struct model_file *output)
{
    struct model_file_info a, b;
    model_file_info(input, &a);
    model_file_info(output, &b);
    v->input = a.weights;
    v->output = b.weights;
    v->n_done = 0;
    v->n_total = b.weight_bytes;
    return weights_each_slot(a.config, a.plan, compare_slot, v);
}

int verify_run(const struct convert_options *o, const struct model_file *input,
    struct convert_report *report, struct err *e)
{
    struct verification v = {.options = o, .report = report, .e = e};
    struct file_map map = {0};
    struct gguf *file = NULL;
    struct model_file *output = NULL;
    int failed = file_map_open(&map, o->output, e);
    report->n_byte = map.n_byte;
    report->n_tensor = 0;
    file_map_close(&map);
    failed = failed || gguf_open(&file, o->output, e) || check_sums(&v, file) ||
             model_file_open(&output, o->output, NULL, 0, e) || compare_models(&v, input, output);
    model_file_close(output);
    gguf_close(file);
    arena_free(&v.arena);
    return failed ? -1 : 0;
}
