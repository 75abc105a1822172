/* Any recording of telemetry is read to its end or refused. */
#include "config.h"

#include <sys/mman.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/memwall.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mw_sample sample;
    struct err e = ERR_INIT;
    struct mw_replay *r;
    char path[40];
    int fd = memfd_create("recording", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (mw_replay_open(&r, path, &e) == 0) {
        struct mw_rates rates;
        struct json j;

        /* Writing is slower than reading, so write only the first samples. */
        for (int n = 0; mw_replay_next(r, &sample, &e) == 1; n++) {
            mw_rates(&sample, &rates);
            if (n >= 2)
                continue;
            json_start(&j);
            mw_sample_json(&j, &sample, "sample");
            json_release(&j);
        }
        mw_replay_close(r);
    }
    close(fd);
    return 0;
}
