/* fuzz_safetensors.c: any bytes as a safetensors file. */
#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte)
{
    struct safetensors *st;
    struct err e;
    uint64_t n;
    volatile uint64_t sum = 0;
    if (safetensors_open_bytes(&st, data, n_byte, &e))
        return 0;
    const struct safetensors_entry *t = safetensors_entries(st, &n);
    for (uint64_t i = 0; i < n; i++)
        if (t[i].n_byte)
            sum += t[i].data[0] + (uint64_t)t[i].data[t[i].n_byte - 1];
    safetensors_close(st);
    (void)sum; /* read, though nobody asks */
    return 0;
}
