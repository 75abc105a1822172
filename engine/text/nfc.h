/*
 * nfc.h - Unicode's composed normal form of a text.
 */
#ifndef MEMWALL_ENGINE_TEXT_NFC_H
#define MEMWALL_ENGINE_TEXT_NFC_H

#include <stddef.h>

#include "engine/base/err.h"

/* The normal form of valid UTF-8, malloc'ed; or *out NULL where it is the text itself. */
int nfc_text(const char *text, size_t len, char **out, size_t *n, struct err *e);

#endif
