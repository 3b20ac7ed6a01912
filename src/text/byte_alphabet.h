/* byte_alphabet.h: the 256 printable characters that stand for bytes in byte-level vocabularies
 * (GPT-2).
 *
 * Bytes 33..126, 161..172 and 174..255 are the character of the same number; the other 68 bytes, in
 * increasing order, are U+0100 .. U+0143 (space: U+0120, line feed: U+010A).
 */
#ifndef HADAL_TEXT_BYTE_ALPHABET_H
#define HADAL_TEXT_BYTE_ALPHABET_H

#include "base/buf.h"
#include "text/text.h"

#include <stdint.h>

/* Writes the bytes that `spelled` stands for; there are never more than spelled.n_byte. Returns how
 * many, or -1 when a character is not in the alphabet or the text is not UTF-8. */
long byte_alphabet_decode(struct text spelled, char *out);

/* Appends the spelling of `bytes`. */
void byte_alphabet_encode(struct text bytes, struct buf *out);

#endif
