/* values.cu: the codebooks of the formats that have one, copied from the host's tables. See
 * values.cuh. */
#include "backend/cuda/device.cuh"
#include "backend/cuda/values.cuh"

extern "C" {
#include "tensor/decode.h"
}

static __device__ struct codebooks device_codebooks;

int cuda_values_open(struct backend *be, struct err *e)
{
    (void)be;
    struct codebooks books;
    for (int i = 0; i < 256; i++) {
        for (int k = 0; k < 8; k++)
            books.grid2[i][k] = (uint8_t)iquants_grid2[i][k];
        for (int k = 0; k < 4; k++)
            books.grid3[i][k] = (uint8_t)iquants_grid3[i][k];
    }
    for (int i = 0; i < 16; i++)
        books.value4[i] = iquants_value4[i];
    cudaError_t error = cudaMemcpyToSymbol(device_codebooks, &books, sizeof books);
    return error == cudaSuccess ? 0 : cuda_report(e, "copying codebooks", error);
}

struct tensor cuda_weight(struct backend *be, const struct tensor *t)
{
    struct tensor w = *t;
    if (t->type != DT_IQ2_XXS && t->type != DT_IQ3_XXS && t->type != DT_IQ4_XS)
        return w;
    void *books = NULL;
    cudaError_t error = cudaGetSymbolAddress(&books, device_codebooks);
    if (error != cudaSuccess)
        cuda_failed(be, "a codebook format", error);
    w.scale = books;
    return w;
}
