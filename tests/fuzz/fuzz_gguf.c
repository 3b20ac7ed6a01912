/* fuzz_gguf.c: any bytes as a GGUF file: the container alone, then as a whole model. */
#include "format/gguf.h"
#include "model/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte);

/* Touches the first and last byte of everything that the file offers. */
static uint64_t read_ends(const struct gguf *file)
{
    uint64_t n, sum = 0;
    struct gguf_number number;
    const struct gguf_tensor *t = gguf_tensors(file, &n);
    for (uint64_t i = 0; i < n; i++)
        if (t[i].n_byte)
            sum += t[i].data[0] + (uint64_t)t[i].data[t[i].n_byte - 1];
    const struct gguf_key *key = gguf_keys(file, &n);
    for (uint64_t i = 0; i < n; i++) {
        struct gguf_string text = gguf_text(&key[i]);
        sum += text.n_byte ? (uint64_t)text.data[text.n_byte - 1] : 0;
        if (key[i].n && !gguf_number(&key[i], key[i].n - 1, &number))
            sum += (uint64_t)number.i;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte)
{
    struct gguf *file;
    struct model_file *model;
    struct err e;
    if (gguf_open_bytes(&file, data, n_byte, &e))
        return 0;
    volatile uint64_t sum = read_ends(file); /* read, though nobody asks */
    (void)sum;
    gguf_close(file);
    if (!model_file_open(&model, NULL, data, n_byte, &e))
        model_file_close(model);
    return 0;
}
