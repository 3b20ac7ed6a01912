/* graphs.cu: steps captured as graphs. See device.cuh.
 *
 * While a step is captured its launches go to a stream of their own and nothing of them runs; the
 * writes of the same step go to the main stream, so they are done when the graph is launched there.
 * Launches are hashed by kernel: a replayed step whose launches are others than the captured ones
 * is refused rather than answered wrongly.
 */
#include "backend/cuda/device.cuh"

extern "C" {
#include "base/arena.h"
}

enum { MAX_GRAPH = 256 };

enum mode { PLAIN, CAPTURES, REPLAYS };

struct graph {
    uint64_t key, hash;
    cudaGraphExec_t run; /* NULL: seen once */
};

struct cuda_graphs {
    struct graph graph[MAX_GRAPH];
    int n;
    enum mode mode;
    struct graph *now; /* of the step at hand; NULL: none */
    uint64_t hash;
    cudaStream_t main, capture;
};

static struct graph *find(struct cuda_graphs *g, uint64_t key)
{
    for (int i = 0; i < g->n; i++)
        if (g->graph[i].key == key)
            return &g->graph[i];
    return NULL;
}

int cuda_graphs_open(struct cuda_backend *c, struct err *e)
{
    c->graphs = (struct cuda_graphs *)mem_resize(NULL, sizeof *c->graphs);
    if (!c->graphs)
        return err_set(e, ERR_MEMORY, "no memory for a backend");
    *c->graphs = (struct cuda_graphs){};
    c->graphs->main = c->stream;
    cudaError_t error = cudaStreamCreateWithFlags(&c->graphs->capture, cudaStreamNonBlocking);
    return error == cudaSuccess ? 0 : cuda_report(e, "opening the device", error);
}

void cuda_graphs_close(struct cuda_backend *c)
{
    struct cuda_graphs *g = c->graphs;
    if (!g)
        return;
    for (int i = 0; i < g->n; i++)
        if (g->graph[i].run)
            cudaGraphExecDestroy(g->graph[i].run);
    if (g->capture)
        cudaStreamDestroy(g->capture);
    mem_free(g);
}

int cuda_graph_is_open(const struct cuda_backend *c)
{
    return c->graphs->mode != PLAIN;
}

int cuda_graph_note(struct cuda_backend *c, const void *kernel)
{
    struct cuda_graphs *g = c->graphs;
    g->hash = (g->hash ^ (uint64_t)(uintptr_t)kernel) * 0x100000001b3u;
    return g->mode == REPLAYS;
}

void cuda_graph_begin(struct cuda_backend *c, uint64_t key)
{
    struct cuda_graphs *g = c->graphs;
    g->hash = 0xcbf29ce484222325u;
    g->mode = PLAIN;
    g->now = key ? find(g, key) : NULL;
    if (key && !g->now && g->n < MAX_GRAPH)
        g->graph[g->n++] = (struct graph){key, 0, NULL};
    if (!g->now)
        return;
    g->mode = g->now->run ? REPLAYS : CAPTURES;
    if (g->mode == REPLAYS)
        return;
    cudaError_t error = cudaStreamBeginCapture(g->capture, cudaStreamCaptureModeRelaxed);
    if (error == cudaSuccess)
        c->stream = g->capture;
    else
        g->mode = PLAIN;
}

static int end_capture(struct cuda_backend *c, struct err *e)
{
    struct cuda_graphs *g = c->graphs;
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamEndCapture(g->capture, &graph);
    c->stream = g->main;
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&g->now->run, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    g->now->hash = g->hash;
    return error == cudaSuccess ? 0 : cuda_report(e, "capturing a step", error);
}

int cuda_graph_end(struct cuda_backend *c, struct err *e)
{
    struct cuda_graphs *g = c->graphs;
    enum mode mode = g->mode;
    g->mode = PLAIN;
    if (mode == PLAIN)
        return 0;
    if (mode == CAPTURES && end_capture(c, e))
        return -1;
    if (c->base.failure.code)
        return 0; /* the step failed before it ran */
    if (g->hash != g->now->hash)
        return err_set(e, ERR_UNSUPPORTED, "CUDA: a captured step changed its launches");
    cudaError_t error = cudaGraphLaunch(g->now->run, c->stream);
    return error == cudaSuccess ? 0 : cuda_report(e, "replaying a step", error);
}
