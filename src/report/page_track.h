/*
 * page_track.h - a recording (memwall-telemetry(5)) as curves for a report.
 *
 * It has no text of prompts and answers: recordings have none.
 */
#ifndef MEMWALL_SRC_REPORT_PAGE_TRACK_H
#define MEMWALL_SRC_REPORT_PAGE_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/memwall.h"

/* Figures of one sample.  Bytes are NAN if Linux did not report them. */
struct track_moment {
    double t_s; /* since the start of the recording */
    double memory, cached;
    double read_bytes_s; /* since the sample before; NAN: the first */
    uint64_t n_token;
};

struct track_token {
    double t_s, wall_s, stall_s, bytes;
    double tps; /* from the token before; NAN: the first of an answer */
};

struct track {
    struct mw_run run;
    bool is_charged; /* memory is what the control group is charged, not what is resident */
    struct track_moment *moment; /* [n_moment] */
    size_t n_moment, room_moment;
    struct track_token *token; /* [n_token] */
    size_t n_token, room_token;
    uint64_t disk_limit;
    uint64_t peak;    /* of memory; 0: unknown */
    char broken[800]; /* why the recording ends early; "" if it does not */
};

/* Read a recording.  One that is damaged is read up to the damage.  -1 with *e. */
int track_read(struct track **out, const char *path, struct err *e);
void track_free(struct track *t);

/* Mean tokens per second between the tokens of answers; 0 if there are too few. */
double track_mean_tps(const struct track *t);
/* Share of the time of tokens spent waiting for the disk; 0 to 1. */
double track_stall_share(const struct track *t);

/* Write the charts as figures of a page. */
void track_html(const struct track *t, FILE *to);
/* Write all figures as one JSON object. */
void track_json(const struct track *t, FILE *to);

#endif
