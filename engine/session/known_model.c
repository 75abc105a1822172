/* Published models that are known by their shape: the list, and what a user's name means. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/format/known.h"
#include "engine/memwall.h"

_Static_assert(MW_KNOWN_TYPES == KNOWN_TYPES, "both list the usual types");

int mw_known_open(struct mw_known **out, const char *path, struct err *e)
{
    return known_open(out, path, e);
}

void mw_known_close(struct mw_known *k)
{
    known_close(k);
}

size_t mw_known_count(const struct mw_known *k)
{
    return k->n;
}

void mw_known_at(const struct mw_known *k, size_t i, struct mw_known_info *out)
{
    const struct known_model *m = &k->model[i];

    *out = (struct mw_known_info){ .name = m->name, .n_type = m->n_type };
    memcpy(out->types, m->types, sizeof out->types);
}

void mw_known_types(const struct mw_known *k, size_t i, char *buf, size_t n)
{
    known_labels(&k->model[i], buf, n);
}

/* Makers add the kind of training to a name: "gemma-4-E2B-it". */
static bool is_kind(const char *rest, size_t n)
{
    static const char *const kinds[] = { "", "-it", "-instruct" };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (n == strlen(kinds[i]) && strncasecmp(rest, kinds[i], n) == 0)
            return true;
    return false;
}

bool mw_known_find(const struct mw_known *k, const char *name, size_t *i, const char **label)
{
    const char *slash = strrchr(name, '/'), *colon;
    size_t n;

    name = slash != NULL ? slash + 1 : name;
    colon = strrchr(name, ':');
    n = colon != NULL ? (size_t)(colon - name) : strlen(name);
    *label = NULL;
    for (*i = 0; *i < k->n; (*i)++) {
        const char *known = k->model[*i].name;
        size_t len = strlen(known);

        if (n < len || strncasecmp(name, known, len) != 0 || !is_kind(name + len, n - len))
            continue;
        *label = colon != NULL ? known_label(&k->model[*i], colon + 1) : k->model[*i].types[0];
        return *label != NULL;
    }
    return false;
}
