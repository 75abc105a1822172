/*
 * json.h - samples and tokens as JSON lines (memwall-telemetry(5)).
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_JSON_H
#define MEMWALL_ENGINE_TELEMETRY_JSON_H

#include <stddef.h>

#include "engine/telemetry/sample.h"

/*
 * Write a sample as one JSON object, without a newline.  The events "start" and "plan" have
 * the fields that change only with the plan, "sample" (--json) has all fields, and other
 * events have the rest.  Returns the length, or the length needed if that is >= n.
 */
size_t mw_sample_json(const struct mw_sample *s, const char *event, char *buf, size_t n);

/* Write the line of a token; returns the same as mw_sample_json(). */
size_t token_json(const struct mw_token *token, char *buf, size_t n);

/* Returns the maximum length of any line for n_layer layers, including NUL. */
size_t sample_json_room(uint32_t n_layer);

#endif
