/*
 * ledger.h - the messages of a conversation: who said each, and which the model still sees.
 *
 *     message  0        n_absent      n_dropped                n
 *              │ saved only │            │ the model sees these │
 *
 * Messages before n_absent are only in the saved chat, because all of them together do not
 * fit the context.  Messages before n_dropped were dropped by /shift on.
 */
#ifndef MEMWALL_UI_TALK_LEDGER_H
#define MEMWALL_UI_TALK_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger {
    uint8_t *is_user; /* a bit for each message; the others are answers */
    size_t n, room;   /* room in bytes */
    size_t n_dropped, n_absent;
    uint32_t restored_ctx; /* the context in tokens when n_absent was chosen */
};

void ledger_free(struct ledger *l);
void ledger_clear(struct ledger *l);

void ledger_add(struct ledger *l, bool is_user);
/* Keep the first n messages. */
void ledger_cut(struct ledger *l, size_t n);

bool ledger_is_user(const struct ledger *l, size_t message);
bool ledger_ends_with_user(const struct ledger *l);
/* The n-th user message from the end (1 is the last), or -1. */
long ledger_user(const struct ledger *l, uint64_t n);

#endif
