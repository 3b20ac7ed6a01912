/* token_map.c: see token_map.h.
 *
 * NFKC followed by NFD is NFKD, which utf8proc does in one step. The map was made with the
 * normalizers of the Hugging Face library, whose tables are those of Unicode 9: characters that are
 * marks or decompose only since then stay as they are. (Its lower case is that of a much newer
 * Unicode; capitals added in Unicode 16 and later keep their case here.)
 */
#include "text/token_map.h"

#include "base/arena.h"
#include "text/byte_alphabet.h"
#include "text/utf8.h"

#include <utf8proc.h>

/* ---- keys ---- */

static const struct {
    int32_t first, last;
} kept[] = {
    /* marks and decompositions that are younger than Unicode 9 */
    {0x7FD, 0x7FD},
    {0x898, 0x89F},
    {0x8CA, 0x8D3},
    {0x9FE, 0x9FE},
    {0xAFA, 0xAFF},
    {0xB55, 0xB55},
    {0xC04, 0xC04},
    {0xC3C, 0xC3C},
    {0xCF3, 0xCF3},
    {0xD00, 0xD00},
    {0xD3B, 0xD3C},
    {0xD81, 0xD81},
    {0xEBA, 0xEBA},
    {0xECE, 0xECE},
    {0x1715, 0x1715},
    {0x180F, 0x180F},
    {0x1ABF, 0x1ACE},
    {0x1CF7, 0x1CF7},
    {0x1DF6, 0x1DFA},
    {0x32FF, 0x32FF},
    {0xA7F2, 0xA7F4},
    {0xA82C, 0xA82C},
    {0xA8FF, 0xA8FF},
    {0xAB69, 0xAB69},
    {0x10781, 0x10785},
    {0x10787, 0x107B0},
    {0x107B2, 0x107BA},
    {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC},
    {0x10EFD, 0x10EFF},
    {0x10F46, 0x10F50},
    {0x10F82, 0x10F85},
    {0x11070, 0x11070},
    {0x11073, 0x11074},
    {0x110C2, 0x110C2},
    {0x11145, 0x11146},
    {0x111C9, 0x111C9},
    {0x111CE, 0x111CF},
    {0x11241, 0x11241},
    {0x1133B, 0x1133B},
    {0x1145E, 0x1145E},
    {0x1182C, 0x1183A},
    {0x11930, 0x11935},
    {0x11937, 0x11938},
    {0x1193B, 0x1193E},
    {0x11940, 0x11940},
    {0x11942, 0x11943},
    {0x119D1, 0x119D7},
    {0x119DA, 0x119E0},
    {0x119E4, 0x119E4},
    {0x11A01, 0x11A0A},
    {0x11A33, 0x11A39},
    {0x11A3B, 0x11A3E},
    {0x11A47, 0x11A47},
    {0x11A51, 0x11A5B},
    {0x11A8A, 0x11A99},
    {0x11D31, 0x11D36},
    {0x11D3A, 0x11D3A},
    {0x11D3C, 0x11D3D},
    {0x11D3F, 0x11D45},
    {0x11D47, 0x11D47},
    {0x11D8A, 0x11D8E},
    {0x11D90, 0x11D91},
    {0x11D93, 0x11D97},
    {0x11EF3, 0x11EF6},
    {0x11F00, 0x11F01},
    {0x11F03, 0x11F03},
    {0x11F34, 0x11F3A},
    {0x11F3E, 0x11F42},
    {0x13440, 0x13440},
    {0x13447, 0x13455},
    {0x16F4F, 0x16F4F},
    {0x16F7F, 0x16F87},
    {0x16FE4, 0x16FE4},
    {0x16FF0, 0x16FF1},
    {0x1CF00, 0x1CF2D},
    {0x1CF30, 0x1CF46},
    {0x1E030, 0x1E06D},
    {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF},
    {0x1F16C, 0x1F16C},
    {0x1FBF0, 0x1FBF9},
};

static int is_kept(uint32_t code)
{
    for (size_t i = 0; i < sizeof kept / sizeof *kept && code >= (uint32_t)kept[i].first; i++)
        if (code <= (uint32_t)kept[i].last)
            return 1;
    return 0;
}

static int is_mark(int32_t code)
{
    utf8proc_category_t category = utf8proc_category(code);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
           category == UTF8PROC_CATEGORY_ME || code == 0x1CF2 ||
           code == 0x1CF3; /* letters since 12 */
}

static int is_collapsed(int32_t code)
{
    return code == ' ' || code == '\t' || code == '\r' || code == '\n';
}

/* White_Space of Unicode, which trimming removes. */
static int is_white(int32_t code)
{
    return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

enum {
    EXPANSION = 18,     /* U+FDFA becomes 18 characters, the most of all */
    ONE_SPACE = 0xE000, /* stands for a text that is one space; the reference turns it into a space
                           at the end */
};

/* Code points under construction; the arrays have room for EXPANSION times the text. */
struct key {
    int32_t *codes;
    size_t n, capacity;
};

static void append_code(struct key *k, int32_t code)
{
    code = is_collapsed(code) ? ' ' : utf8proc_tolower(code);
    if (code != ' ' || !k->n || k->codes[k->n - 1] != ' ')
        k->codes[k->n++] = code;
}

/* Decomposes in place behind what is there, then keeps what is no mark. */
static int append_folded(struct key *k, struct text text)
{
    utf8proc_ssize_t room = (utf8proc_ssize_t)(k->capacity - k->n);
    int32_t *codes = k->codes + k->n;
    utf8proc_ssize_t n = utf8proc_decompose((const utf8proc_uint8_t *)text.data,
        (utf8proc_ssize_t)text.n_byte, codes, room, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    if (n < 0 || n > room)
        return -1;
    for (utf8proc_ssize_t i = 0; i < n; i++)
        if (!is_mark(codes[i]))
            append_code(k, codes[i]); /* writes at most where it has read */
    return 0;
}

/* Characters that are kept separate the runs that are folded. */
static int fold(struct key *k, struct text text)
{
    size_t begin = 0;
    uint32_t code;
    for (size_t at = 0; at < text.n_byte;) {
        int n = utf8_read(text.data + at, text.n_byte - at, &code);
        if (n <= 0)
            return -1;
        if (is_kept(code)) {
            if (append_folded(k, (struct text){text.data + begin, at - begin}))
                return -1;
            k->codes[k->n++] = (int32_t)code;
            begin = at + (size_t)n;
        }
        at += (size_t)n;
    }
    return append_folded(k, (struct text){text.data + begin, text.n_byte - begin});
}

static void append_trimmed(struct key *k, struct buf *out)
{
    size_t begin = 0, end = k->n;
    if (end == 1 && k->codes[0] == ' ')
        k->codes[0] = ONE_SPACE;
    while (begin < end && is_white(k->codes[begin]))
        begin++;
    while (end > begin && is_white(k->codes[end - 1]))
        end--;
    for (size_t i = begin; i < end; i++)
        utf8_append(out, k->codes[i] == ONE_SPACE ? ' ' : (uint32_t)k->codes[i]);
}

int token_map_normalize(struct text text, struct buf *out, struct err *e)
{
    int32_t few[512];
    struct key k = {few, 0, text.n_byte * EXPANSION + 1};
    if (k.capacity > sizeof few / sizeof *few)
        k.codes = mem_resize(NULL, k.capacity * sizeof *k.codes);
    if (!k.codes)
        return err_set(e, ERR_MEMORY, "no memory to normalise %zu bytes", text.n_byte);
    int rc = fold(&k, text);
    if (!rc)
        append_trimmed(&k, out);
    if (k.codes != few)
        mem_free(k.codes);
    return rc ? err_set(e, ERR_FORMAT, "a text of %zu bytes is not UTF-8", text.n_byte) : 0;
}

/* A token is not text when its bytes are not UTF-8 or hold U+FFFD. */
static int is_text(struct text bytes)
{
    uint32_t code;
    for (size_t at = 0; at < bytes.n_byte;) {
        int n = utf8_read(bytes.data + at, bytes.n_byte - at, &code);
        if (n <= 0 || code == 0xFFFD)
            return 0;
        at += (size_t)n;
    }
    return 1;
}

static int append_key(const struct tokenizer *t, int32_t id, struct buf *keys, struct err *e)
{
    struct text bytes = tokenizer_bytes(t, id), spelling = tokenizer_describe(t)->tokens[id];
    size_t begin = keys->n_byte;
    if (!is_text(bytes)) {
        buf_append(keys, spelling.data, spelling.n_byte);
    } else {
        if (token_map_normalize(bytes, keys, e))
            return -1;
        if (keys->n_byte == begin)
            buf_append(keys, bytes.data, bytes.n_byte);
    }
    return keys->is_broken ? err_set(e, ERR_MEMORY, "no memory for the token map") : 0;
}

/* ---- numbering ---- */

/* Keys seen so far: open addressing over the key of the first id that has it. */
struct numbering {
    struct text *keys; /* by compressed id */
    int32_t *slots;    /* compressed id, or -1 */
    uint32_t mask;
    int32_t n;
};

static int32_t number_of(struct numbering *s, struct text key)
{
    uint32_t slot = text_hash(key) & s->mask;
    while (s->slots[slot] >= 0 && !text_equal(s->keys[s->slots[slot]], key))
        slot = (slot + 1) & s->mask;
    if (s->slots[slot] < 0) {
        s->keys[s->n] = key;
        s->slots[slot] = s->n++;
    }
    return s->slots[slot];
}

static int number_all(struct token_map *map, struct arena *arena, const struct buf *keys,
    const size_t *ends, struct err *e)
{
    struct numbering s = {.mask = 63};
    while (s.mask < (uint32_t)map->n_token * 2)
        s.mask = s.mask * 2 + 1;
    s.keys = ARENA_NEW(arena, struct text, (size_t)map->n_token);
    s.slots = ARENA_NEW(arena, int32_t, (size_t)s.mask + 1);
    if (!s.keys || !s.slots)
        return err_set(e, ERR_MEMORY, "no memory for the token map");
    memset(s.slots, 0xFF, ((size_t)s.mask + 1) * sizeof *s.slots);
    for (int32_t id = 0; id < map->n_token; id++) {
        size_t begin = id ? ends[id - 1] : 0;
        map->compressed[id] = number_of(&s, (struct text){keys->data + begin, ends[id] - begin});
    }
    map->n_compressed = s.n;
    return 0;
}

int token_map_build(struct token_map *map, const struct tokenizer *t, struct err *e)
{
    struct arena arena = {0};
    struct buf keys = {0};
    int32_t n = tokenizer_n_token(t);
    size_t *ends = ARENA_NEW(&arena, size_t, (size_t)n);
    *map = (struct token_map){mem_resize(NULL, (size_t)n * sizeof *map->compressed), n, 0};
    int rc = ends && map->compressed ? 0 : err_set(e, ERR_MEMORY, "no memory for the token map");
    for (int32_t id = 0; id < n && !rc; id++) {
        rc = append_key(t, id, &keys, e);
        ends[id] = keys.n_byte;
    }
    if (!rc)
        rc = number_all(map, &arena, &keys, ends, e);
    buf_free(&keys);
    arena_free(&arena);
    if (rc)
        token_map_free(map);
    return rc;
}

void token_map_free(struct token_map *map)
{
    mem_free(map->compressed);
    *map = (struct token_map){0};
}
