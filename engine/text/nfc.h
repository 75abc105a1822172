/*
 * nfc.h - convert text to Unicode's composed normal form.
 */
#ifndef MEMWALL_ENGINE_TEXT_NFC_H
#define MEMWALL_ENGINE_TEXT_NFC_H

#include <stddef.h>

#include "engine/base/err.h"

/* Store the normal form of valid UTF-8 in *out (malloc'ed), or NULL if text already has it. */
int nfc_text(const char *text, size_t len, char **out, size_t *n, struct err *e);

#endif
