/*
 * Schemas that are in no text: what merging makes of others.
 */
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/schema_internal.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define MADE_MOST   ((size_t)8 << 20)
#define WORK_BYTES  4 /* that take about as much time as a member that is looked at */

struct schema_block {
    struct schema_block *next;
    size_t size, used;
    _Alignas(max_align_t) char bytes[];
};

void *schema_take(struct schema *s, size_t n)
{
    struct schema_block *b = s->block;

    n = (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    s->n_taken += n;
    s->work += n / WORK_BYTES;
    if (s->n_taken > MADE_MOST) {
        err_set(s->e, ERR_UNSUPPORTED,
                "the schema is too large: to merge its parts takes more than 8 MiB at %.200s",
                s->path);
        return NULL;
    }
    if (b == NULL || n > b->size - b->used) {
        size_t size = n > BLOCK_BYTES ? n : BLOCK_BYTES;

        b = malloc(sizeof *b + size);
        if (b == NULL) {
            err_memory(s->e, "a schema");
            return NULL;
        }
        *b = (struct schema_block){ .next = s->block, .size = size };
        s->block = b;
    }
    b->used += n;
    return b->bytes + b->used - n;
}

void schema_free_made(struct schema *s)
{
    while (s->block != NULL) {
        struct schema_block *next = s->block->next;

        free(s->block);
        s->block = next;
    }
}

struct json_node *schema_make(struct schema *s, enum json_kind kind)
{
    struct json_node *n = schema_take(s, sizeof *n);

    if (n != NULL)
        *n = (struct json_node){ .kind = kind };
    return n;
}

struct json_node *schema_copy(struct schema *s, const struct json_node *n)
{
    struct json_node *copy = schema_take(s, sizeof *copy);

    if (copy != NULL)
        *copy = *n;
    return copy;
}

const char *schema_text(struct schema *s, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = schema_take(s, n);

    return copy != NULL ? memcpy(copy, text, n) : NULL;
}

int schema_start(struct schema *s, struct made *m, enum json_kind kind)
{
    *m = (struct made){ .all = schema_make(s, kind) };
    return m->all != NULL ? 0 : -1;
}

void schema_put(struct made *m, const char *key, struct json_node *n)
{
    n->key = key;
    n->next = NULL;
    if (m->last == NULL)
        m->all->first = n;
    else
        m->last->next = n;
    m->last = n;
    m->all->n++;
}

int schema_add(struct schema *s, struct made *m, const char *key, const struct json_node *n)
{
    struct json_node *copy = schema_copy(s, n);

    if (copy == NULL)
        return -1;
    schema_put(m, key, copy);
    return 0;
}

int schema_add_text(struct schema *s, struct made *m, const char *text)
{
    struct json_node *n = schema_make(s, JSON_IS_STRING);

    if (n == NULL)
        return -1;
    n->text = text;
    n->len = strlen(text);
    schema_put(m, NULL, n);
    return 0;
}

struct json_node *schema_make_bool(struct schema *s, bool truth)
{
    struct json_node *n = schema_make(s, JSON_IS_BOOL);

    if (n != NULL)
        n->truth = truth;
    return n;
}

struct json_node *schema_make_types(struct schema *s, unsigned bits)
{
    struct made list;

    if (schema_start(s, &list, JSON_IS_ARRAY) != 0)
        return NULL;
    for (unsigned bit = 1; bit <= bits; bit <<= 1)
        if ((bits & bit) != 0 && schema_add_text(s, &list, schema_type_name(bit)) != 0)
            return NULL;
    return list.all;
}

const char *schema_origin(const struct json_node *n)
{
    return n->kind == JSON_IS_OBJECT || n->kind == JSON_IS_BOOL ? n->text : NULL;
}
