#include "config.h"

#include "engine/session/observe.h"

#define HOUR_S     3600
#define SLOW_SHARE 0.9 /* of the limit; less is slow */

void observe_begin(struct observer *w, const struct observe_at *at)
{
    w->from = *at;
}

/* How far the limit moves to a slower rate. */
static double weight_of(const struct mw_limits *l, int64_t now_s)
{
    int64_t since_s = l->disk.observed_s > 0 ? l->disk.observed_s : l->measured_s;

    if (l->disk.doubt != 0 || now_s - since_s > 12 * HOUR_S)
        return 1;
    return now_s - since_s > HOUR_S ? 0.5 : 0.25;
}

static void correct(double *rate, struct mw_sure *sure, double observed, int64_t now_s)
{
    *rate = observed;
    *sure = (struct mw_sure){ .observed_s = now_s };
}

bool observe_disk(struct observer *w, const struct observe_at *at, bool is_throttled,
                  int64_t now_s, struct mw_limits *l)
{
    uint64_t bytes = at->bytes - w->from.bytes, ns = at->t_ns - w->from.t_ns;
    double rate, busy;
    bool is_slow;

    if (bytes < OBSERVE_BYTES || ns == 0)
        return false;
    rate = (double)bytes * 1e9 / (double)ns;
    busy = (double)(at->busy_ns - w->from.busy_ns) / (double)ns;
    is_slow = rate < SLOW_SHARE * l->disk_bytes_s && busy >= OBSERVE_BUSY && !is_throttled &&
              at->pinned_bytes == w->from.pinned_bytes;
    w->from = *at;
    if (!(l->disk_bytes_s > 0))
        return false;
    if (rate >= SLOW_SHARE * l->disk_bytes_s) {
        w->n_slow = 0;
        w->fastest_slow = 0;
    }
    if (rate > l->disk_bytes_s) {
        correct(&l->disk_bytes_s, &l->disk, rate, now_s);
        if (l->direct_bytes_s > 0 && rate > l->direct_bytes_s)
            l->direct_bytes_s = rate;
        return true;
    }
    if (!is_slow)
        return false;
    w->fastest_slow = rate > w->fastest_slow ? rate : w->fastest_slow;
    if (++w->n_slow < OBSERVE_SLOW)
        return false;
    rate = l->disk_bytes_s + weight_of(l, now_s) * (w->fastest_slow - l->disk_bytes_s);
    correct(&l->disk_bytes_s, &l->disk, rate, now_s);
    w->n_slow = 0;
    w->fastest_slow = 0;
    return true;
}

bool observe_memory(uint64_t bytes, uint64_t wall_ns, int64_t now_s, struct mw_limits *l)
{
    double rate = wall_ns > 0 ? (double)bytes * 1e9 / (double)wall_ns : 0;

    if (bytes < OBSERVE_MEMORY_BYTES || !(l->memory_bytes_s > 0) || rate <= l->memory_bytes_s)
        return false;
    correct(&l->memory_bytes_s, &l->memory, rate, now_s);
    return true;
}
