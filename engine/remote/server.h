/*
 * server.h - the address of a server, what it is, and requests whose reply is one text.
 *
 *     http://HOST:PORT/v1/models              the protocol
 *     http://HOST:PORT/metrics, /props, ...   what some kinds of servers have beside it
 */
#ifndef MEMWALL_ENGINE_REMOTE_SERVER_H
#define MEMWALL_ENGINE_REMOTE_SERVER_H

#include "engine/http/http.h"
#include "engine/remote/remote.h"

#define SERVER_URL     600
#define SERVER_MODELS  1000
#define SERVER_ID      256                /* bytes of a model's name */
#define SERVER_TEXT    ((size_t)4 << 20)  /* of a reply that is read as a whole */

struct server {
    char root[SERVER_URL]; /* "http://127.0.0.1:8080" */
    char api[SERVER_URL];  /* "http://127.0.0.1:8080/v1" */
    char shown[128];       /* "127.0.0.1:8080", for messages */
    bool has_key;
    enum mw_server_kind kind;
    struct http_options http; /* texts of it belong to the server; stop_fd -1 */
    char **model;             /* [n_model], as the server names them */
    uint32_t *ctx;            /* [n_model]; 0: not reported */
    size_t n_model, used;     /* used: index of the model */
    struct mw_model_info info;
};

/* Copy the settings and check the address.  server_free() frees *out in any case. */
int server_set(struct server *out, const struct mw_server *from, struct err *e);
void server_free(struct server *s);

/* Fill in model, kind and info.  name: see mw_remote_open(). */
int server_look(struct server *s, struct http *h, const char *name, struct err *e);

/* Make "ROOT/path", or "API/path". */
void server_url(const char *base, const char *path, char url[HTTP_URL_MAX]);

struct server_reply {
    struct http_reply head;
    char *text; /* n bytes and a NUL; NULL: none came */
    size_t n;
};

/* Append n bytes and a NUL to a text of *have bytes.  Returns false if memory is too small; then
 * the text stays as it is. */
bool server_append(char **text, size_t *have, const char *data, size_t n);

/* Send one request, with a body of JSON or NULL, and take its reply of any status.  The caller
 * frees out->text.  -1 with *e: there was no reply, or it is too long. */
int server_ask(struct http *h, const char *url, const char *body, bool is_patient,
               struct server_reply *out, struct err *e);

/* Write the message of an error in a reply, safe to print.  Returns false if there is none. */
bool server_message(const struct server_reply *reply, char *buf, size_t n);

/* Say why a reply is not the one that was asked for: its status, and the message in its body of
 * n bytes.  Returns -1. */
int server_refuse(const struct server *s, const struct http_reply *head, const char *body,
                  size_t n, struct err *e);

#endif
