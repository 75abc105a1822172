/*
 * server_metrics.h - the metrics of a server, in the text form of Prometheus.
 *
 *     vllm:num_requests_running{model_name="m"} 2.0
 */
#ifndef MEMWALL_ENGINE_REMOTE_SERVER_METRICS_H
#define MEMWALL_ENGINE_REMOTE_SERVER_METRICS_H

#include "engine/remote/remote.h"

/* Set all numbers that a server can report to "not reported". */
void server_metrics_clear(struct mw_server_figures *f);

/* Take the numbers of memwall, llama-server, vLLM and SGLang from n bytes of text.  The others
 * are skipped, and so are lines that are not metrics.  Returns whether there was one. */
bool server_metrics_read(struct mw_server_figures *f, const char *text, size_t n);

#endif
