/*
 * lookalike.h - characters of commands that look like others, or like nothing.
 *
 * Commands are pasted from web pages, word processors and chats.  These replace blanks, hyphens
 * and quotes, and add characters without a width.  The command then looks right and is wrong.
 */
#ifndef MEMWALL_ENGINE_BASE_LOOKALIKE_H
#define MEMWALL_ENGINE_BASE_LOOKALIKE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

/* Make words plain in place: white space other than newlines becomes U+0020, and characters
 * that look like nothing are removed.  text[n] becomes NUL.  Returns the new length. */
size_t lookalike_plain(char *text, size_t n);

/* Returns the text after the characters at its start that look like nothing. */
const char *lookalike_seen(const char *text);

/* Returns the length of text[0 .. n) up to its first white space. */
size_t lookalike_word(const char *text, size_t n);

/* Returns the ASCII character that cp looks like, ' ' for white space; 0: none. */
char lookalike_of(uint32_t cp);

/* Write an addition to a message about text: "; U+2013 looks like '-'", "; U+200B is
 * invisible"; or "" if the text has no such character.  Returns buf. */
char *lookalike_note(const char *text, char *buf, size_t n);

/* Add this note to an error that text caused.  Returns -1. */
int lookalike_explain(struct err *e, const char *text);

#endif
