/* A growing list of ids. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/text/tokenizer.h"

static int grow(struct ids *list, size_t n, struct err *e)
{
    size_t cap = list->cap < 64 ? 64 : list->cap;
    uint32_t *id;

    if (list->max > 0 && n > list->max)
        return err_set(e, ERR_CONTEXT, "a prompt of more than %zu token%s does not fit the context",
                       list->max, list->max == 1 ? "" : "s");
    while (cap < n)
        cap += cap / 2;
    if (list->max > 0 && cap > list->max)
        cap = list->max;
    id = realloc(list->id, cap * sizeof *id);
    if (id == NULL)
        return err_memory(e, "%zu ids", cap);
    list->id = id;
    list->cap = cap;
    return 0;
}

int ids_reserve(struct ids *list, size_t n, struct err *e)
{
    return n > list->cap ? grow(list, n, e) : 0;
}

int ids_push(struct ids *list, uint32_t id, struct err *e)
{
    if (list->n == list->cap && grow(list, list->n + 1, e) != 0)
        return -1;
    list->id[list->n++] = id;
    return 0;
}

int ids_append(struct ids *list, const uint32_t *id, size_t n, struct err *e)
{
    if (n > list->cap - list->n && grow(list, list->n + n, e) != 0)
        return -1;
    if (n > 0)
        memcpy(list->id + list->n, id, n * sizeof *id);
    list->n += n;
    return 0;
}

void ids_free(struct ids *list)
{
    free(list->id);
    *list = (struct ids){ 0 };
}
