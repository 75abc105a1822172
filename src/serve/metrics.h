/*
 * metrics.h - figures of a server in the text format of Prometheus.
 */
#ifndef MEMWALL_SRC_SERVE_METRICS_H
#define MEMWALL_SRC_SERVE_METRICS_H

#include "engine/base/json_write.h"
#include "engine/memwall.h"

/* Counts since the start of the server. */
struct metrics {
    uint64_t requests[6]; /* by the first digit of their status; [0]: cut before there was one */
    uint64_t answers, cancelled;
    uint64_t prompt_tokens, reused_tokens, answer_tokens;
    uint64_t prefill_ns, decode_ns, stall_ns;
};

/* And figures of this moment. */
struct metrics_now {
    uint32_t waiting, connections;
    bool is_running;
    uint64_t held_bytes, held_most_bytes; /* by requests and answers */
    const struct mw_sample *sample;       /* completed by a watcher */
};

void metrics_request(struct metrics *m, unsigned status);
void metrics_answer(struct metrics *m, const struct mw_receipt *r);

/* Write all of them as text. */
void metrics_write(const struct metrics *m, const struct metrics_now *now, struct json *out);

#endif
