/*
 * halves.h - halves of characters, in texts that were cut by units of UTF-16.
 *
 * UTF-16 has two units for a character beyond U+FFFF.  A program that cuts texts between them, as
 * servers in JavaScript, C# and Java do, sends each half alone.  In JSON a half is an escape such
 * as \ud83d.  Here it is three bytes, encoded as if it were a character; UTF-8 has no such bytes.
 */
#ifndef MEMWALL_ENGINE_BASE_HALVES_H
#define MEMWALL_ENGINE_BASE_HALVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HALVES_MORE 3 /* bytes that halves_join() adds at most */

/* Copy a JSON text of n bytes with the bytes of a half in place of each escape of a half alone.
 * out[n] may be json.  Returns the length. */
size_t halves_from_json(const char *json, size_t n, char *out);

/* Is a text UTF-8 but for halves? */
bool halves_are_text(const char *s, size_t n);

/*
 * Copy the next part of a text, whose characters are complete but for halves, to
 * out[n + HALVES_MORE], as UTF-8.  A first half at the end waits in *first (0: none does) for the
 * next part.  Each half without the other becomes U+FFFD.  Returns the length.
 */
size_t halves_join(uint32_t *first, const char *s, size_t n, char *out);

#endif
