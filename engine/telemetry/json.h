/*
 * json.h - samples and tokens as JSON lines (memwall-telemetry(5)).
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_JSON_H
#define MEMWALL_ENGINE_TELEMETRY_JSON_H

#include <stddef.h>

#include "engine/telemetry/sample.h"

/*
 * One sample as one JSON object, without a newline.  The events "start" and "plan" hold
 * what is fixed between two plans, "sample" (--json) holds everything, others the rest.
 * Returns the length, or what it would need if that is >= n.
 */
size_t mw_sample_json(const struct mw_sample *s, const char *event, char *buf, size_t n);

/* The line of a token; as mw_sample_json(). */
size_t token_json(const struct mw_token *token, char *buf, size_t n);

/* Room that any line of a sample with n_layer layers needs at most, NUL included. */
size_t sample_json_room(uint32_t n_layer);

#endif
