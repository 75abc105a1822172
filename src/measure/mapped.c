/* See mapped.h. */
#include "config.h"

#include "src/measure/mapped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/command.h"

bool mapped_can(const char *what, const char *command)
{
    struct err e = ERR_INIT;
    struct mw_cage *cage;
    char text[1024];

    if (mw_cage_open(&cage, GIB, &e) == 0) {
        mw_cage_close(cage);
        return true;
    }
    snprintf(text, sizeof text,
             "%s a memory cage, and %s; root can make one, and so can a user "
             "with \"systemd-run --user --scope -p Delegate=yes memwall %s ...\"",
             what, e.what, command);
    report_notice(text, strlen(text));
    return false;
}

static void make_mapped(struct point *to, const struct point *from)
{
    memcpy(to->setting, from->setting, sizeof to->setting);
    snprintf(to->setting[DIM_IO].text, sizeof to->setting[DIM_IO].text, "mmap");
    to->is_caged = true;
    to->budget_bytes = from->budget_bytes; /* the limit, if it was planned already */
    metrics_clear(&to->predicted);
}

int mapped_add(struct results *r, struct err *e)
{
    size_t n = r->n_point;
    struct point *all = calloc(2 * n, sizeof *all);

    if (all == NULL)
        return err_memory(e, "%zu points", 2 * n);
    for (size_t i = 0; i < n; i++) {
        all[2 * i] = r->point[i];
        make_mapped(&all[2 * i + 1], &r->point[i]);
    }
    free(r->point);
    r->point = all;
    r->n_point = 2 * n;
    for (size_t i = 0; i < n; i++)
        if (point_reserve(&all[2 * i + 1], r->n_repeat, e) != 0)
            return -1;
    return 0;
}
