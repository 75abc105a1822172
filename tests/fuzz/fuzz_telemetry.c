/*
 * Any recording of telemetry is read to its end or refused.
 *
 * A sample has more than 100 KB, and an input of a few bytes can have hundreds of samples of
 * hundreds of layers.  One layer after the other is written by the same code, so few are
 * enough.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/memwall.h"
#include "tests/fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SAMPLES 64 /* read from one input */
#define WRITTEN 2  /* of them, and of the layers and threads of each */

static void write_few(struct mw_sample *s)
{
    struct json j;

    s->n_layer = s->n_layer < WRITTEN ? s->n_layer : WRITTEN;
    s->os.n_thread = s->os.n_thread < WRITTEN ? s->os.n_thread : WRITTEN;
    json_start(&j);
    mw_sample_json(&j, s, "sample");
    json_release(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mw_sample sample;
    struct err e = ERR_INIT;
    struct mw_replay *r;
    char path[40];
    int fd = fuzz_file(data, size);

    if (fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (mw_replay_open(&r, path, &e) == 0) {
        struct mw_rates rates;

        for (int n = 0; n < SAMPLES && mw_replay_next(r, &sample, &e) == 1; n++) {
            mw_rates(&sample, &rates);
            if (n < WRITTEN)
                write_few(&sample);
        }
        mw_replay_close(r);
    }
    return 0;
}
