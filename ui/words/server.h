/*
 * server.h - what a server reports about itself, in words: for the dashboard, /stats and run.
 */
#ifndef MEMWALL_UI_WORDS_SERVER_H
#define MEMWALL_UI_WORDS_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/memwall.h"

#define SERVER_ROWS 16
#define SERVER_TEXT 200

struct server_row {
    const char *label; /* at most 10 columns */
    char text[SERVER_TEXT];
    bool is_unknown; /* the text says what cannot be known, and why */
};

/* Write the rows in the order of their worth.  Returns their number.  m: the model. */
size_t server_rows(const struct mw_server_figures *f, const struct mw_model_info *m,
                   struct server_row rows[SERVER_ROWS]);

/* Returns tokens per second of the answer from its first piece on, or pieces per second if the
 * server counts no tokens; *unit is "tok/s" or "pieces/s".  0: not known. */
double server_rate(const struct mw_server_figures *f, const char **unit);

/* "127.0.0.1:8080 (llama.cpp)" */
char *server_name(const struct mw_server_figures *f, char *buf, size_t n);

#endif
