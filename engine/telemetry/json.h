/*
 * json.h - samples and tokens as JSON lines (memwall-telemetry(5)).
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_JSON_H
#define MEMWALL_ENGINE_TELEMETRY_JSON_H

#include "engine/base/json_write.h"
#include "engine/telemetry/sample.h"

/*
 * Write a sample as one JSON object, without a newline.  The events "start" and "plan" have
 * the fields that change only with the plan, "sample" (--json) has all fields, and other
 * events have the rest.
 */
void mw_sample_json(struct json *j, const struct mw_sample *s, const char *event);

/* Write the line of a token, without a newline. */
void token_json(struct json *j, const struct mw_token *token,
                const struct mw_expert_trace *trace);

#endif
