/* bpe.c: see bpe.h.
 *
 * Symbols are numbered by the position of their first byte. A symbol swallows its right neighbour
 * and keeps its own position. Heap entries are never removed early: one is stale when the pair at
 * its position no longer has its rank.
 */
#include "text/bpe.h"

#include "text/byte_alphabet.h"
#include "text/shown.h"

#include <stdint.h>

enum { NO_RANK = INT32_MAX };

struct bpe_pair {
    int32_t left, right; /* token ids; left -1: empty */
    int32_t rank;
};

struct bpe_symbol {
    int32_t id;
    int32_t previous, next; /* positions, -1 at the ends */
    int32_t rank; /* of the pair (this, next); NO_RANK when they do not merge or this one is gone */
};

/* ---- the merge table ---- */

static struct bpe_pair *pair_slot(const struct bpe *b, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint32_t slot = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 32) & b->pair_mask;
    while (
        b->pairs[slot].left >= 0 && (b->pairs[slot].left != left || b->pairs[slot].right != right))
        slot = (slot + 1) & b->pair_mask;
    return &b->pairs[slot];
}

static int32_t pair_rank(const struct bpe *b, int32_t left, int32_t right)
{
    const struct bpe_pair *p = pair_slot(b, left, right);
    return p->left < 0 ? NO_RANK : p->rank;
}

/* The id of a spelling in the byte alphabet. Spellings longer than a token's limit cannot be
 * tokens. */
static int32_t find_spelling(const struct vocab *v, struct text spelling, struct buf *bytes)
{
    buf_clear(bytes);
    buf_append(bytes, spelling.data, spelling.n_byte);
    long n = bytes->is_broken ? -1 : byte_alphabet_decode(spelling, bytes->data);
    return n <= 0 ? -1 : vocab_find(v, (struct text){bytes->data, (size_t)n});
}

static int32_t find_joined(const struct vocab *v, int32_t left, int32_t right, struct buf *bytes)
{
    buf_clear(bytes);
    buf_append(bytes, v->bytes[left].data, v->bytes[left].n_byte);
    buf_append(bytes, v->bytes[right].data, v->bytes[right].n_byte);
    return bytes->is_broken ? -1 : vocab_find(v, (struct text){bytes->data, bytes->n_byte});
}

static int add_merge(
    struct bpe *b, struct text merge, int32_t rank, struct buf *bytes, struct err *e)
{
    const char *space = merge.n_byte > 2 && merge.n_byte <= 2 * VOCAB_MAX_TOKEN_BYTES
                            ? memchr(merge.data, ' ', merge.n_byte)
                            : NULL;
    if (!space)
        return err_set(e, ERR_FORMAT, "merge %d is \"%s\", expected two tokens and a space",
            (int)rank, shown_text(merge).text);
    size_t n_left = (size_t)(space - merge.data);
    int32_t left = find_spelling(b->vocab, (struct text){merge.data, n_left}, bytes);
    int32_t right =
        find_spelling(b->vocab, (struct text){space + 1, merge.n_byte - n_left - 1}, bytes);
    if (left < 0 || right < 0)
        return err_set(e, ERR_FORMAT, "merge %d \"%s\" has a %s half that is not a token",
            (int)rank, shown_text(merge).text, left < 0 ? "left" : "right");
    b->merged[rank] = find_joined(b->vocab, left, right, bytes);
    if (b->merged[rank] < 0)
        return err_set(e, ERR_FORMAT, "merge %d \"%s\" joins to text that is not a token",
            (int)rank, shown_text(merge).text);
    struct bpe_pair *p = pair_slot(b, left, right);
    if (p->left >= 0)
        return err_set(e, ERR_FORMAT, "merges %d and %d are both \"%s\"", (int)p->rank, (int)rank,
            shown_text(merge).text);
    *p = (struct bpe_pair){left, right, rank};
    return 0;
}

int bpe_open(struct bpe *b, struct arena *arena, const struct vocab *vocab,
    const struct tokenizer_source *source, struct err *e)
{
    *b = (struct bpe){.vocab = vocab};
    if (source->n_merge < 0 || source->n_merge > BPE_MAX_MERGE)
        return err_set(
            e, ERR_FORMAT, "%d merges, expected at most %d", (int)source->n_merge, BPE_MAX_MERGE);
    uint32_t n_slot = 64;
    while (n_slot < (uint32_t)source->n_merge * 2)
        n_slot *= 2;
    b->pair_mask = n_slot - 1;
    b->pairs = ARENA_NEW(arena, struct bpe_pair, n_slot);
    b->merged = ARENA_NEW(arena, int32_t, (size_t)source->n_merge);
    if (!b->pairs || !b->merged)
        return err_set(e, ERR_MEMORY, "no memory for %d merges", (int)source->n_merge);
    for (uint32_t i = 0; i < n_slot; i++)
        b->pairs[i].left = -1;
    struct buf bytes = {0};
    int failed = 0;
    for (int32_t rank = 0; rank < source->n_merge && !failed; rank++)
        failed = add_merge(b, source->merges[rank], rank, &bytes, e);
    buf_free(&bytes);
    return failed;
}

/* ---- the heap ---- */

static void heap_push(struct bpe_scratch *s, uint64_t entry)
{
    size_t at = s->n_heap++;
    while (at && s->heap[(at - 1) / 2] > entry) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = entry;
}

static uint64_t heap_pop(struct bpe_scratch *s)
{
    uint64_t top = s->heap[0], last = s->heap[--s->n_heap];
    size_t at = 0, left, right, child;
    while ((left = 2 * at + 1) < s->n_heap) {
        right = left + 1 < s->n_heap ? left + 1 : left;
        child = s->heap[right] < s->heap[left] ? right
                                               : left; /* no branch: it could not be predicted */
        if (s->heap[child] >= last)
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return top;
}

/* ---- one piece ---- */

static int reserve(struct bpe_scratch *s, size_t n, struct err *e)
{
    if (n <= s->capacity)
        return 0;
    size_t capacity = s->capacity ? s->capacity : 256;
    while (capacity < n)
        capacity *= 2;
    bpe_scratch_free(s);
    s->symbols = mem_resize(NULL, capacity * sizeof *s->symbols);
    /* n - 1 pairs at first; each of at most n - 1 merges pushes at most two and pops one */
    s->heap = mem_resize(NULL, 2 * capacity * sizeof *s->heap);
    if (!s->symbols || !s->heap)
        return err_set(e, ERR_MEMORY, "no memory to encode a piece of %zu bytes", n);
    s->capacity = capacity;
    return 0;
}

void bpe_scratch_free(struct bpe_scratch *s)
{
    mem_free(s->symbols);
    mem_free(s->heap);
    *s = (struct bpe_scratch){0};
}

static void rank_pair(const struct bpe *b, struct bpe_scratch *s, int32_t at)
{
    struct bpe_symbol *symbol = &s->symbols[at];
    symbol->rank =
        symbol->next < 0 ? NO_RANK : pair_rank(b, symbol->id, s->symbols[symbol->next].id);
    if (symbol->rank != NO_RANK)
        heap_push(s, (uint64_t)symbol->rank << 32 | (uint32_t)at);
}

static void merge_at(const struct bpe *b, struct bpe_scratch *s, int32_t at)
{
    struct bpe_symbol *left = &s->symbols[at], *right = &s->symbols[left->next];
    left->id = b->merged[left->rank];
    left->next = right->next;
    right->rank = NO_RANK;
    if (left->next >= 0)
        s->symbols[left->next].previous = at;
    rank_pair(b, s, at);
    if (left->previous >= 0)
        rank_pair(b, s, left->previous);
}

int bpe_encode(const struct bpe *b, struct bpe_scratch *s, struct text piece,
    struct token_list *out, struct err *e)
{
    if (piece.n_byte > INT32_MAX)
        return err_set(e, ERR_ARGUMENT, "a piece of %zu bytes is too long", piece.n_byte);
    if (reserve(s, piece.n_byte, e))
        return -1;
    int32_t n = (int32_t)piece.n_byte;
    s->n_heap = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t id = b->vocab->byte_ids[(uint8_t)piece.data[i]];
        s->symbols[i] = (struct bpe_symbol){id, i - 1, i + 1 < n ? i + 1 : -1, NO_RANK};
    }
    for (int32_t i = 0; i < n; i++)
        rank_pair(b, s, i);
    while (s->n_heap) {
        uint64_t top = heap_pop(s);
        int32_t at = (int32_t)(top & UINT32_MAX);
        if (s->symbols[at].rank == (int32_t)(top >> 32))
            merge_at(b, s, at);
    }
    for (int32_t i = 0; i >= 0 && i < n; i = s->symbols[i].next)
        if (token_list_append(out, s->symbols[i].id, e))
            return -1;
    return 0;
}
