/*
 * server.h - one engine for many clients: the loop that joins connections, queue and chat.
 *
 *     connections ──> jobs in a queue ──> mw_chat_ask() ──> events ──> pieces of the answer
 *
 * One thread runs all of this.  The engine has its own.  One request is answered at a time, since
 * the machine has the memory for one context.
 */
#ifndef MEMWALL_SRC_SERVE_SERVER_H
#define MEMWALL_SRC_SERVE_SERVER_H

#include "src/serve/web.h"
#include "ui/ui.h"

struct server_options {
    struct mw_model *model;
    const struct mw_chat_options *chat; /* the values of requests that do not give them */
    const char *model_name;             /* for clients */
    const char *address;                /* as it was given, or the default */
    const char *key_file;               /* NULL: no key is needed, on loopback only */
    unsigned request_s;
    bool allows_settings; /* clients may change those of the model */
    bool quiet; /* no line per request */
    const char *kv_folder; /* of beginnings that requests share; NULL: none are kept */
    uint64_t kv_bytes;     /* of all KV files in it */
    const struct ui_options *ui; /* NULL, or show the dashboard in the terminal */
    const struct ui_paths *paths;
};

/* The memory that a server needs beside the engine, for mw_options.caller_bytes. */
uint64_t server_bytes(const struct mw_model *m, const struct mw_options *o);

/*
 * Serve until a signal comes.  Returns the exit code.  The chat has ended then, unless *is_stuck:
 * the engine does not respond, so the model must stay open.
 */
int server_run(const struct server_options *o, bool *is_stuck);

/* Check an address and its key file as options are.  -1 with *e. */
int server_check(const char *address, const char *key_file, struct err *e);

#endif
