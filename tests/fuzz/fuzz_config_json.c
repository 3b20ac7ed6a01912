/* fuzz_config_json.c: any text as a config.json; what is accepted must give a plan, rotary tables
 * and a list of tensors. */
#include "model/config_read.h"
#include "model/plan.h"
#include "model/weights_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte);

static int add_sizes(void *context, const struct weight_slot *slot)
{
    int64_t n = 1;
    for (int i = 0; i < slot->n_dim; i++)
        n *= slot->dim[i];
    *(volatile int64_t *)context = n;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_byte)
{
    static struct model_config c;
    static struct plan p;
    struct arena arena = {0};
    struct err e;
    static float freq[4096];
    volatile int64_t n = 0;
    if (!config_from_json(&c, data, n_byte, &arena, &e) && !plan_make(&p, &c, &e)) {
        plan_rope_frequencies(&c, ROPE_PLAIN, freq);
        plan_rope_frequencies(&c, ROPE_COMPRESSED, freq);
        weights_each_slot(&c, &p, add_sizes, (void *)(uintptr_t)&n);
    }
    arena_free(&arena);
    return 0;
}
