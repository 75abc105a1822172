#include "config.h"

#include "ui/talk/ledger.h"

#include <stdlib.h>

void ledger_free(struct ledger *l)
{
    free(l->is_user);
    *l = (struct ledger){ 0 };
}

void ledger_clear(struct ledger *l)
{
    l->n = l->n_dropped = l->n_absent = 0;
}

void ledger_add(struct ledger *l, bool is_user)
{
    uint8_t bit = (uint8_t)(1u << l->n % 8), *byte;

    if (l->n == 8 * l->room) {
        size_t room = l->room * 2 + 64;
        uint8_t *more = realloc(l->is_user, room);

        if (more == NULL)
            return;
        l->is_user = more;
        l->room = room;
    }
    byte = &l->is_user[l->n / 8];
    *byte = (uint8_t)(is_user ? *byte | bit : *byte & ~bit);
    l->n++;
}

void ledger_cut(struct ledger *l, size_t n)
{
    if (n < l->n)
        l->n = n;
}

bool ledger_is_user(const struct ledger *l, size_t message)
{
    return (l->is_user[message / 8] >> message % 8 & 1) != 0;
}

bool ledger_ends_with_user(const struct ledger *l)
{
    return l->n > 0 && ledger_is_user(l, l->n - 1);
}

long ledger_user(const struct ledger *l, uint64_t n)
{
    for (size_t i = l->n; i-- > 0;)
        if (ledger_is_user(l, i) && n-- == 1)
            return (long)i;
    return -1;
}
