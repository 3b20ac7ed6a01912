/* pattern.c: see pattern.h. */
#include "text/pattern.h"

#include "text/shown.h"

struct added {
    char category;
    const char *ranges; /* of characters that got this category in Unicode 15.0, 15.1 or 16.0 */
};

static const struct added added_since_14[] = {
    {'L', "\\x{1C89}-\\x{1C8A}\\x{A7CB}-\\x{A7CD}\\x{A7DA}-\\x{A7DC}\\x{105C0}-\\x{105F3}"
          "\\x{10D4A}-\\x{10D65}\\x{10D6F}-\\x{10D85}\\x{10EC2}-\\x{10EC4}"
          "\\x{1123F}-\\x{11240}\\x{11380}-\\x{11389}\\x{1138B}\\x{1138E}"
          "\\x{11390}-\\x{113B5}\\x{113B7}\\x{113D1}\\x{113D3}\\x{11BC0}-\\x{11BE0}"
          "\\x{11F02}\\x{11F04}-\\x{11F10}\\x{11F12}-\\x{11F33}\\x{1342F}"
          "\\x{13441}-\\x{13446}\\x{13460}-\\x{143FA}\\x{16100}-\\x{1611D}"
          "\\x{16D40}-\\x{16D6C}\\x{18CFF}\\x{1B132}\\x{1B155}\\x{1DF25}-\\x{1DF2A}"
          "\\x{1E030}-\\x{1E06D}\\x{1E4D0}-\\x{1E4EB}\\x{1E5D0}-\\x{1E5ED}\\x{1E5F0}"
          "\\x{2B739}\\x{2EBF0}-\\x{2EE5D}\\x{31350}-\\x{323AF}"},
    {'M', "\\x{897}\\x{CF3}\\x{ECE}\\x{10D69}-\\x{10D6D}\\x{10EFC}-\\x{10EFF}\\x{11241}"
          "\\x{113B8}-\\x{113C0}\\x{113C2}\\x{113C5}\\x{113C7}-\\x{113CA}"
          "\\x{113CC}-\\x{113D0}\\x{113D2}\\x{113E1}-\\x{113E2}\\x{11F00}-\\x{11F01}"
          "\\x{11F03}\\x{11F34}-\\x{11F3A}\\x{11F3E}-\\x{11F42}\\x{11F5A}\\x{13440}"
          "\\x{13447}-\\x{13455}\\x{1611E}-\\x{1612F}\\x{1E08F}\\x{1E4EC}-\\x{1E4EF}"
          "\\x{1E5EE}-\\x{1E5EF}"},
    {'N', "\\x{10D40}-\\x{10D49}\\x{116D0}-\\x{116E3}\\x{11BF0}-\\x{11BF9}"
          "\\x{11F50}-\\x{11F59}\\x{16130}-\\x{16139}\\x{16D70}-\\x{16D79}"
          "\\x{1CCF0}-\\x{1CCF9}\\x{1D2C0}-\\x{1D2D3}\\x{1E4F0}-\\x{1E4F9}"
          "\\x{1E5F1}-\\x{1E5FA}"},
    {'P', "\\x{1B4E}-\\x{1B4F}\\x{1B7F}\\x{10D6E}\\x{113D4}-\\x{113D5}\\x{113D7}-\\x{113D8}"
          "\\x{11B00}-\\x{11B09}\\x{11BE1}\\x{11F43}-\\x{11F4F}\\x{16D6D}-\\x{16D6F}"
          "\\x{1E5FF}"},
    {'S', "\\x{2427}-\\x{2429}\\x{2FFC}-\\x{2FFF}\\x{31E4}-\\x{31E5}\\x{31EF}"
          "\\x{10D8E}-\\x{10D8F}\\x{1CC00}-\\x{1CCEF}\\x{1CD00}-\\x{1CEB3}\\x{1F6DC}"
          "\\x{1F774}-\\x{1F776}\\x{1F77B}-\\x{1F77F}\\x{1F7D9}\\x{1F8B2}-\\x{1F8BB}"
          "\\x{1F8C0}-\\x{1F8C1}\\x{1FA75}-\\x{1FA77}\\x{1FA87}-\\x{1FA89}\\x{1FA8F}"
          "\\x{1FAAD}-\\x{1FAAF}\\x{1FABB}-\\x{1FABF}\\x{1FAC6}\\x{1FACE}-\\x{1FACF}"
          "\\x{1FADA}-\\x{1FADC}\\x{1FADF}\\x{1FAE8}-\\x{1FAE9}\\x{1FAF7}-\\x{1FAF8}"
          "\\x{1FBCB}-\\x{1FBEF}"},
};

static const char white_space[] = "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}"
                                  "\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";

/* A pattern being read. */
struct reader {
    struct text pattern;
    size_t at;
    int in_class;
    struct buf *out;
};

static int refuse(const struct reader *r, struct err *e)
{
    struct text rest = {r->pattern.data + r->at, r->pattern.n_byte - r->at};
    rest.n_byte = rest.n_byte > 8 ? 8 : rest.n_byte;
    return err_set(e, ERR_UNSUPPORTED, "pattern escape \"%s\" at byte %zu is not supported here",
        shown_text(rest).text, r->at);
}

static void put_class(struct reader *r, const char *open, const char *first, const char *second)
{
    buf_text(r->out, r->in_class ? "" : open);
    buf_text(r->out, first);
    buf_text(r->out, second);
    buf_text(r->out, r->in_class ? "" : "]");
}

/* \p{X} */
static int property(struct reader *r, struct err *e)
{
    const char *p = r->pattern.data + r->at;
    if (r->pattern.n_byte - r->at < 5 || p[2] != '{' || p[4] != '}')
        return refuse(r, e);
    for (size_t i = 0; i < sizeof added_since_14 / sizeof *added_since_14; i++) {
        if (added_since_14[i].category != p[3])
            continue;
        char name[6] = {'\\', 'p', '{', p[3], '}', 0};
        put_class(r, "[", name, added_since_14[i].ranges);
        r->at += 5;
        return 0;
    }
    return refuse(r, e);
}

static int escape(struct reader *r, struct err *e)
{
    if (r->at + 1 >= r->pattern.n_byte)
        return refuse(r, e);
    switch (r->pattern.data[r->at + 1]) {
    case 'p':
        return property(r, e);
    case 'P':
        return refuse(r, e);
    case 'S':
        if (r->in_class)
            return refuse(r, e);
        put_class(r, "[^", white_space, "");
        break;
    case 's':
        put_class(r, "[", white_space, "");
        break;
    default:
        buf_append(r->out, r->pattern.data + r->at, 2);
    }
    r->at += 2;
    return 0;
}

int pattern_rewrite(struct text pattern, struct buf *out, struct err *e)
{
    struct reader r = {.pattern = pattern, .out = out};
    if (pattern.n_byte > PATTERN_MAX_BYTES)
        return err_set(e, ERR_FORMAT, "a pattern of %zu bytes, expected at most %d", pattern.n_byte,
            PATTERN_MAX_BYTES);
    while (r.at < pattern.n_byte) {
        char c = pattern.data[r.at];
        if (c == '\\') {
            if (escape(&r, e))
                return -1;
            continue;
        }
        if (c == '[')
            r.in_class = 1;
        else if (c == ']')
            r.in_class = 0;
        buf_append(out, &c, 1);
        r.at++;
    }
    return out->is_broken ? err_set(e, ERR_MEMORY, "no memory for a pattern") : 0;
}
