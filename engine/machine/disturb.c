#include "config.h"

#include "engine/machine/disturb.h"

#include "engine/machine/cgroup.h"

/* How often heat slowed the processors down or a quota stopped them.  -1: neither is known. */
static double throttled(const char *root)
{
    double heat = load_heat_events(root), quota = cgroup_cpu_throttled(root);

    return heat < 0 ? quota : quota < 0 ? heat : heat + quota;
}

void disturb_start(struct mw_disturb *d, const char *root)
{
    *d = (struct mw_disturb){ .from_throttled = throttled(root) };
    load_begin(&d->from, root);
}

void disturb_end(struct mw_disturb *d, const char *root)
{
    double events = throttled(root);
    struct load now;

    d->throttled =
        events >= d->from_throttled && d->from_throttled >= 0 ? events - d->from_throttled : -1;
    d->stolen_share = -1;
    d->others_share = load_of_others(&d->from, root);
    load_begin(&now, root);
    if (d->others_share < 0 || now.stolen < d->from.stolen)
        return;
    d->stolen_share = (double)(now.stolen - d->from.stolen) / (double)(now.all - d->from.all);
    /* The load of others contains the stolen time. */
    d->others_share = d->others_share > d->stolen_share ? d->others_share - d->stolen_share : 0;
}

void mw_disturb_start(struct mw_disturb *d)
{
    disturb_start(d, "");
}

void mw_disturb_end(struct mw_disturb *d)
{
    disturb_end(d, "");
}
