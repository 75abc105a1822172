/* See load_meter.h. */
#include "config.h"

#include "engine/machine/load_meter.h"

#include <math.h>

#define NS       1e9
#define FIRST_NS 100000000u  /* some ticks of each processor */
#define NEXT_NS  500000000u  /* between later readings */
#define PAUSE_NS 2000000000u /* between work, before the meter begins again */
#define MOST_STOLEN 0.9

static void add(struct load_meter *m, uint64_t now_ns, const char *root)
{
    m->at[m->n % LOAD_METER_READINGS].t_ns = now_ns;
    load_begin(&m->at[m->n % LOAD_METER_READINGS].load, root);
    m->n++;
}

/* Compare the newest reading with the oldest one. */
static void measure(struct load_meter *m)
{
    uint32_t oldest = m->n > LOAD_METER_READINGS ? m->n % LOAD_METER_READINGS : 0;
    uint32_t newest = (m->n - 1) % LOAD_METER_READINGS;
    const struct load *from = &m->at[oldest].load, *to = &m->at[newest].load;
    double wall_s = (double)(m->at[newest].t_ns - m->at[oldest].t_ns) / NS, all_s;
    double busy_s = load_seconds_between(from, to, &all_s);

    m->is_known = busy_s >= 0 && wall_s > 0;
    if (!m->is_known)
        return;
    m->stolen = to->stolen > from->stolen
                    ? (double)(to->stolen - from->stolen) / (double)(to->all - from->all)
                    : 0;
    m->others_s = fmax(busy_s - m->stolen * all_s, 0) / wall_s;
}

void load_meter_begin(struct load_meter *m, uint64_t now_ns, const char *root)
{
    uint64_t last_ns = m->n > 0 ? m->at[(m->n - 1) % LOAD_METER_READINGS].t_ns : 0;

    if (m->n > 0 && now_ns >= last_ns && now_ns - last_ns <= PAUSE_NS)
        return;
    *m = (struct load_meter){ .is_known = false };
    add(m, now_ns, root);
}

void load_meter_end(struct load_meter *m, uint64_t now_ns, const char *root)
{
    uint64_t last_ns = m->n > 0 ? m->at[(m->n - 1) % LOAD_METER_READINGS].t_ns : now_ns;

    if (now_ns < last_ns + (m->n == 1 ? FIRST_NS : NEXT_NS))
        return;
    add(m, now_ns, root);
    measure(m);
}

/* Before the second reading nothing is known of others, and all waits are within the first
 * tenth of a second: nobody reads them yet. */
uint64_t load_meter_others_ns(const struct load_meter *m, uint64_t waited_ns, uint64_t wall_ns)
{
    bool is_early = m->n == 1 && m->at[0].load.all > 0;
    double most = (double)wall_ns, ns = (double)waited_ns;

    if (is_early)
        return 0;
    if (m->is_known)
        ns = fmin(ns, m->others_s * most) + m->stolen * most;
    return (uint64_t)fmin(ns, most);
}

double load_meter_crowding(const struct load_meter *m, int n_thread, int n_cpu)
{
    double more, fullest;

    if (!m->is_known || n_cpu < 1)
        return 0;
    more = fmax(n_thread + m->others_s - n_cpu, 0);
    fullest = fmax(fmin(more, 1), more / n_cpu); /* programs there, besides the thread */
    return (1 + fullest) / (1 - fmin(m->stolen, MOST_STOLEN)) - 1;
}
