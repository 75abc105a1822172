/*
 * lines.h - a running session as JSON lines (memwall-telemetry(5)): a line for its plan, one for
 * each token, one for each second.  The recorder writes them to a file, and a server sends them.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_LINES_H
#define MEMWALL_ENGINE_TELEMETRY_LINES_H

#include "engine/base/json_write.h"
#include "engine/telemetry/sample.h"

#define MW_LINES_NS 100000000u /* between two samples, so that every token gets a line */

struct mw_lines {
    struct mw_run run; /* as written last */
    uint64_t plan[MW_PLAN_ROWS];
    bool has_start;
    uint64_t n_token; /* tokens that have a line or were lost */
    uint64_t next_second_ns;
};

/* Begin: tokens before this sample get no line. */
void mw_lines_start(struct mw_lines *l, const struct mw_sample *s);

/* Append the lines for what is new in a sample, each with a newline.  is_last: write the last
 * line of a second that is not over. */
void mw_lines_add(struct mw_lines *l, const struct mw_sample *s, bool is_last, struct json *out);

#endif
