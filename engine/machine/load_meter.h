/*
 * load_meter.h - the time that other programs take from the threads of this one.
 *
 * The kernel counts how long a thread was ready to run and had no processor.  Threads of one
 * program also wait for each other: on a quiet machine of two processors, one that computes
 * waited 80 of 450 ms while another one read.  So a wait counts only as far as other programs
 * used processor time.  Linux counts that in ticks, so it is taken from the last seconds.
 */
#ifndef MEMWALL_ENGINE_MACHINE_LOAD_METER_H
#define MEMWALL_ENGINE_MACHINE_LOAD_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/machine/load.h"

#define LOAD_METER_READINGS 8

/* All zeros is a new meter. */
struct load_meter {
    struct {
        uint64_t t_ns;
        struct load load;
    } at[LOAD_METER_READINGS]; /* reading i is at[i % LOAD_METER_READINGS] */
    uint32_t n;
    bool is_known;
    double others_s; /* seconds of processor time that other programs use in a second */
    double stolen;   /* share of the processors' time that the host takes */
};

/* Work begins: after a pause, the readings before it say nothing of now.  root is "" for the
 * real system. */
void load_meter_begin(struct load_meter *m, uint64_t now_ns, const char *root);
/* Work ended: read the counters if the last reading is old enough. */
void load_meter_end(struct load_meter *m, uint64_t now_ns, const char *root);

/* A thread waited for waited_ns of the wall_ns that the work took.  Returns how much of the
 * wait other programs or the host caused; waited_ns if their use of the processors is unknown. */
uint64_t load_meter_others_ns(const struct load_meter *m, uint64_t waited_ns, uint64_t wall_ns);

/* How much longer n_thread threads that never sleep and wait for each other would take beside
 * what runs now on n_cpu processors: the slowest of them shares the fullest processor fairly.
 * With two threads and one other program on two processors, 1; with two others, 1, too.  All
 * threads lose the share of the host.  0: every thread has a processor, or nothing is known. */
double load_meter_crowding(const struct load_meter *m, int n_thread, int n_cpu);

#endif
