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

/* Print a line about a request that is over to standard error. */
void pages_log(const struct web_record *r);

#endif
