/*
 * pages.h - pages that describe the server and its model, and the line of a request in the log.
 */
#ifndef MEMWALL_SRC_SERVE_PAGES_H
#define MEMWALL_SRC_SERVE_PAGES_H

#include "src/serve/web.h"

/* Write a page about the model.  Returns its status; from 400 on *e is the reason. */
unsigned pages_write(enum web_page page, const struct reply_model *m, const char *body,
                     size_t len, struct json *out, struct err *e);

void pages_health(bool is_ready, struct json *out);

/* Write a line about a request that is over to buf.  Returns its length. */
#define PAGES_LOG_BYTES 900
size_t pages_log(const struct web_record *r, char buf[PAGES_LOG_BYTES]);

#endif
