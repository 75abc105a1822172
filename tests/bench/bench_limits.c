/*
 * Measure disk, memory and arithmetic for a model, and print them as one line of JSON.  Other
 * benchmarks divide by these limits.
 *
 *     bench_limits MODEL [SECONDS]
 *     bench_limits --fetch MODEL [SECONDS]     only the disk, read as experts are
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/machine/probe.h"
#include "engine/memwall.h"
#include "engine/stream/fetch.h"
#include "tests/bench/turns.h"

static int measure_fetch(const char *model, double seconds)
{
    struct probe_options o = { .seconds = seconds, .buffer_bytes = FETCH_BYTES };
    struct probe_rate rate;
    struct err e = ERR_INIT;
    int fd = open(model, O_RDONLY | O_DIRECT | O_CLOEXEC);
    int rc;

    if (fd < 0) {
        perror(model);
        return 1;
    }
    rc = probe_disk(fd, true, FETCH_LEAST, FETCH_PIECE, &o, &rate, &e);
    close(fd);
    if (rc != 0)
        return bench_fail("bench_limits", &e);
    printf("{\"fetch_bytes_s\":%.0f,\"spread\":%.3f}\n", rate.bytes_s, rate.spread);
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct mw_options o;
    struct mw_limits l;
    struct mw_model_info info;
    struct mw_model *m;

    if (argc > 2 && strcmp(argv[1], "--fetch") == 0)
        return measure_fetch(argv[2], argc > 3 ? strtod(argv[3], NULL) : 1);
    if (argc < 2) {
        fprintf(stderr, "usage: bench_limits [--fetch] MODEL [SECONDS]\n");
        return 2;
    }
    mw_options_default(&o);
    if (mw_model_open(&m, argv[1], &e) != 0 ||
        mw_limits_measure(m, &o, argc > 2 ? strtod(argv[2], NULL) : 3, &l, &e) != 0 ||
        (mw_rates_list(m, &o, &l), mw_rates_measure(&o, &l, &e)) != 0)
        return bench_fail("bench_limits", &e);
    mw_model_info(m, &info);
    printf("{\"disk_bytes_s\":%.0f,\"direct_bytes_s\":%.0f,\"buffered_bytes_s\":%.0f,"
           "\"memory_bytes_s\":%.0f,\"hot_bytes\":%llu",
           l.disk_bytes_s, l.direct_bytes_s, l.buffered_bytes_s, l.memory_bytes_s,
           (unsigned long long)info.hot_bytes);
    for (uint32_t i = 0; i < l.n_rate; i++)
        printf(",\"%s\":{\"column_bytes_s\":%.0f,\"chunk_flops_s\":%.0f}", l.rate[i].type,
               l.rate[i].column_bytes_s, l.rate[i].chunk_flops_s);
    printf("}\n");
    mw_model_close(m);
    return 0;
}
