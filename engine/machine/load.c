#include "config.h"

#include "engine/machine/load.h"

#include <sys/resource.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/machine/kernel_file.h"
#include "engine/machine/psi.h"

#define MOST_CPUS 1024

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

void load_begin(struct load *l, const char *root)
{
    uint64_t user, nice, system, idle, wait, irq, soft, steal;
    struct rusage own;
    char text[512];

    *l = (struct load){ 0 };
    if (getrusage(RUSAGE_SELF, &own) == 0)
        l->own_s = seconds(own.ru_utime) + seconds(own.ru_stime);
    if (kernel_file_slurp(root, "/proc/stat", text, sizeof text) < 0 ||
        sscanf(text,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &user, &nice, &system, &idle, &wait, &irq, &soft, &steal) != 8)
        return;
    l->stolen = steal;
    l->busy = user + system + irq + soft + steal;
    l->all = l->busy + nice + idle + wait;
}

double load_seconds_between(const struct load *from, const struct load *to, double *all_s)
{
    double ticks_s = (double)sysconf(_SC_CLK_TCK), busy_s;

    if (from->all == 0 || to->all <= from->all || to->busy < from->busy || !(ticks_s > 0))
        return -1;
    *all_s = (double)(to->all - from->all) / ticks_s;
    busy_s = (double)(to->busy - from->busy) / ticks_s - (to->own_s - from->own_s);
    return busy_s <= 0 ? 0 : busy_s < *all_s ? busy_s : *all_s;
}

double load_of_others(const struct load *l, const char *root)
{
    struct load now;
    double all_s, busy_s;

    load_begin(&now, root);
    busy_s = load_seconds_between(l, &now, &all_s);
    return busy_s < 0 ? -1 : busy_s / all_s;
}

double load_pressure(const char *root)
{
    static const char *const files[] = { "/proc/pressure/cpu", "/proc/pressure/io" };
    double most = 0;

    for (int i = 0; i < 2; i++) {
        struct mw_os_value some;
        char text[512];

        if (kernel_file_slurp(root, files[i], text, sizeof text) <= 0)
            continue;
        some = psi_parse(text);
        if (some.why_not == NULL && (double)some.value / 1e4 > most)
            most = (double)some.value / 1e4;
    }
    return most;
}

double load_heat_events(const char *root)
{
    char path[96], text[64];
    double events = -1;

    for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
        snprintf(path, sizeof path,
                 "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", cpu);
        if (kernel_file_slurp(root, path, text, sizeof text) <= 0)
            break;
        events = (cpu == 0 ? 0 : events) + atof(text);
    }
    return events;
}
