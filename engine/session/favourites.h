/*
 * favourites.h - the experts that the chats of a model use, kept in a file for the next start.
 *
 * The file has a byte for each expert of each layer, a few KB in all: how often tokens chose it,
 * relative to the most popular one of its layer.  It says nothing else about the text of a chat.
 * It belongs to one model file, by what limits_model_of() names it.
 */
#ifndef MEMWALL_ENGINE_SESSION_FAVOURITES_H
#define MEMWALL_ENGINE_SESSION_FAVOURITES_H

#include <stdbool.h>
#include <stdint.h>

/* Read use[n] from the folder.  Returns false if none is kept for this model. */
bool favourites_read(const char *folder, const char *model, uint32_t n, uint8_t *use);

/* Keep the mean of use[n], which n_token tokens chose, and of earlier sessions.  A failure is
 * silent: the next start only knows less. */
void favourites_keep(const char *folder, const char *model, uint32_t n, const uint8_t *use,
                     uint32_t n_token);

#endif
