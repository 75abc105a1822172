#include "config.h"

#include "engine/stream/io_choice.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"

/* Two probes of one disk differ by up to a fifth, so a smaller share would be noise. */
#define SLOW_SHARE 0.7

bool io_prefers_buffered(double direct_bytes_s, double buffered_bytes_s)
{
    return direct_bytes_s > 0 && direct_bytes_s < SLOW_SHARE * buffered_bytes_s;
}

/* The reason for a choice by speed; both rates are 0 if no probe compared them.  It is a ratio:
 * the rate of the disk is corrected by work, and has its place among the limits. */
static void give_reason(struct io_choice *out, const struct stream_options *o)
{
    double direct = o->direct_bytes_s, buffered = o->buffered_bytes_s;

    if (io_prefers_buffered(direct, buffered))
        snprintf(out->reason, sizeof out->reason, "%.2g times as fast as direct",
                 buffered / direct);
    else if (direct > 0 && buffered > 0)
        snprintf(out->reason, sizeof out->reason, "%.2g times as fast as buffered",
                 direct / buffered);
    else
        snprintf(out->reason, sizeof out->reason, "direct works, buffered not measured");
}

static int open_auto(struct io_choice *out, struct source *s, const struct catalogue *c,
                     const struct stream_options *o, struct err *e)
{
    give_reason(out, o);
    if (!io_prefers_buffered(o->direct_bytes_s, o->buffered_bytes_s)) {
        if (source_open(s, c, o->guest, true, e) == 0)
            return 0;
        if (e->code != ERR_UNSUPPORTED)
            return -1;
        snprintf(out->reason, sizeof out->reason, "%.150s", e->what);
    }
    return source_open(s, c, o->guest, false, e);
}

int io_choice_open(struct io_choice *out, struct source *s, const struct catalogue *c,
                   const struct stream_options *options, struct err *e)
{
    char rate[24];
    size_t len;
    int result;

    snprintf(out->reason, sizeof out->reason, "as requested");
    if (options->io == STREAM_AUTO)
        result = open_auto(out, s, c, options, e);
    else
        result = source_open(s, c, options->guest, options->io == STREAM_DIRECT, e);
    if (result == 0 && options->bytes_s > 0) {
        len = strlen(out->reason);
        snprintf(out->reason + len, sizeof out->reason - len, "; limited to %s",
                 units_rate(rate, sizeof rate, (double)options->bytes_s));
    }
    out->name = options->io == STREAM_MMAP ? "mmap" : s->is_direct ? "direct" : "buffered";
    return result;
}
