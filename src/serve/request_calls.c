/*
 * Names of tools by the ids of their calls.
 *
 * The result of a call has its id only, and templates want the name.  A request may have thousands
 * of calls and results, so the calls are in a table with open addresses.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/keyed_hash.h"
#include "src/serve/request_field.h"

#define FIRST_SIZE 16 /* a power of two */

/* The place of an id, or the free one where it would be. */
static struct call_name *place_of(const struct call_names *c, const struct json_node *id)
{
    size_t i = (size_t)keyed_hash(hash_key(), id->text, id->len) & (c->size - 1);

    while (c->slot[i].id != NULL && (c->slot[i].id->len != id->len ||
                                     memcmp(c->slot[i].id->text, id->text, id->len) != 0))
        i = (i + 1) & (c->size - 1);
    return &c->slot[i];
}

/* Keep at least half of the places free. */
static int grow(struct call_names *c, struct err *e)
{
    struct call_names more = { .size = c->size > 0 ? 2 * c->size : FIRST_SIZE, .n = c->n };

    if (2 * (c->n + 1) <= c->size)
        return 0;
    more.slot = calloc(more.size, sizeof *more.slot);
    if (more.slot == NULL)
        return err_memory(e, "calls of tools");
    for (size_t i = 0; i < c->size; i++)
        if (c->slot[i].id != NULL)
            *place_of(&more, c->slot[i].id) = c->slot[i];
    free(c->slot);
    *c = more;
    return 0;
}

int call_names_add(struct call_names *c, const struct json_node *id, const struct json_node *name,
                   struct err *e)
{
    struct call_name *at;

    if (id == NULL || id->kind != JSON_IS_STRING)
        return 0;
    if (grow(c, e) != 0)
        return -1;
    at = place_of(c, id);
    c->n += at->id == NULL;
    *at = (struct call_name){ id, name };
    return 0;
}

const struct json_node *call_names_find(const struct call_names *c, const struct json_node *id)
{
    return c->size > 0 ? place_of(c, id)->name : NULL;
}

void call_names_free(struct call_names *c)
{
    free(c->slot);
}
