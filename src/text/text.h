/* text.h: a run of bytes that somebody else owns. Not terminated, may hold any byte. */
#ifndef HADAL_TEXT_TEXT_H
#define HADAL_TEXT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    const char *data;
    size_t n_byte;
};

/* Initialiser for a string literal. */
#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

static inline struct text text_of(const char *zero_terminated)
{
    return (struct text){zero_terminated, zero_terminated ? strlen(zero_terminated) : 0};
}

static inline int text_equal(struct text a, struct text b)
{
    return a.n_byte == b.n_byte && (!a.n_byte || !memcmp(a.data, b.data, a.n_byte));
}

/* For hash tables in memory (FNV-1a); not for files, not against an opponent. */
static inline uint32_t text_hash(struct text t)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < t.n_byte; i++)
        h = (h ^ (uint8_t)t.data[i]) * 0x100000001B3u;
    return (uint32_t)(h ^ h >> 32);
}

static inline int text_is(struct text a, const char *zero_terminated)
{
    return text_equal(a, text_of(zero_terminated));
}

#endif
