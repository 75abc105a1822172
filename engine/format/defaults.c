#include "config.h"

#include "engine/format/defaults.h"

#include <stddef.h>
#include <string.h>

void defaults_drop(struct default_list *d, const char *name)
{
    for (uint32_t i = 0; d != NULL && i < d->n; i++) {
        if (strcmp(d->v[i].name, name) != 0)
            continue;
        d->n--;
        memmove(&d->v[i], &d->v[i + 1], (d->n - i) * sizeof d->v[0]);
        return;
    }
}

void defaults_note(struct default_list *d, const char *name, double value)
{
    if (d == NULL)
        return;
    defaults_drop(d, name);
    if (d->n < MAX_DEFAULT)
        d->v[d->n++] = (struct default_value){ name, value };
}
