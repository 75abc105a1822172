/*
 * carried.h - whole messages of a saved chat that are written to it again.
 *
 * A rewind removes messages; /compact and the choice of another answer write some of them again
 * after it, with their receipts, and with the tokens of an answer that was cut.
 */
#ifndef MEMWALL_UI_TALK_CARRIED_H
#define MEMWALL_UI_TALK_CARRIED_H

#include "ui/store/store.h"

struct carried {
    struct carried_message *message; /* [n] */
    size_t n;
};

/* Read messages [from, from + n) whole.  -1 with *e, and nothing to free. */
int carried_read(struct carried *c, const struct store *s, size_t from, size_t n,
                 struct err *e);
/* The same for one of the other answers to the last question. */
int carried_read_other(struct carried *c, const struct store *s, uint32_t i, struct err *e);
/* Keep the only message, an answer, as another answer with this number. */
int carried_keep_other(const struct carried *c, struct store *s, uint32_t number,
                       struct err *e);
/* Is it short enough for that? */
bool carried_can_be_other(const struct carried *c);
/* Write them at the end of the chat. */
int carried_write(const struct carried *c, struct store *s, struct err *e);
bool carried_is_user(const struct carried *c, size_t i);
const char *carried_text(const struct carried *c, size_t i, size_t *n);
void carried_free(struct carried *c);

#endif
