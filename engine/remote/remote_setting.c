/* A setting of the server: see remote_internal.h.  GET /memwall/settings has the values in force,
 * POST proposes or changes one. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/visible.h"
#include "engine/format/json.h"
#include "engine/remote/remote_internal.h"

#define MOST_LINES 100
#define LINE_BYTES 600 /* of a line or a value, made visible */

/* Append the visible characters of text, which may be NULL, and an end. */
static void add_text(struct json *to, const char *text, const char *end)
{
    char line[LINE_BYTES];

    if (text == NULL)
        text = "";
    json_raw(to, line, visible_line(line, sizeof line, text, strnlen(text, sizeof line)));
    json_raw(to, end, strlen(end));
}

static void add_lines(struct json *to, const struct json_node *lines)
{
    const struct json_node *n = lines->first;

    for (int i = 0; n != NULL && i < MOST_LINES; n = n->next, i++) {
        const char *how = json_as_string(json_get(n, "how"));

        json_raw(to, how == NULL                        ? "="
                     : strcmp(how, "more") == 0         ? "+"
                     : strcmp(how, "paragraph") == 0    ? "~"
                                                        : "=", 1);
        add_text(to, json_as_string(json_get(n, "role")), "\t");
        add_text(to, json_as_string(json_get(n, "text")), "\n");
    }
}

/* Fill in *ev, and write its text. */
static int read_reply(struct mw_remote *r, const struct remote_command *c,
                      const struct json_node *root, struct mw_event *ev, struct json *out)
{
    const struct json_node *n;
    int64_t ctx;

    if (json_as_int(json_get(root, "ctx"), &ctx) && ctx > 0 && ctx <= UINT32_MAX)
        ev->plan.n_ctx = (uint32_t)ctx;

    switch (c->step) {
    case MW_SETTING_SHOW:
        n = json_get(json_get(root, "settings"), c->name);
        if (json_as_string(n) == NULL)
            return err_set(&ev->err, ERR_UNSUPPORTED, "%s does not have this setting",
                           r->server.shown);
        add_text(out, json_as_string(n), "");
        return 0;
    case MW_SETTING_PROPOSE:
        n = json_get(root, "lines");
        if (n == NULL || n->kind != JSON_IS_ARRAY || n->n == 0)
            return err_set(&ev->err, ERR_FORMAT, "%s does not say what this would change",
                           r->server.shown);
        add_text(out, c->text, "\n");
        add_lines(out, n);
        return 0;
    case MW_SETTING_APPLY:
        r->n_ctx = ev->plan.n_ctx;
        add_text(out, json_as_string(json_get(root, "now")), "");
        return 0;
    }
    return 0;
}

/* The server says why not in words that belong to the value, whose name the caller says, or to
 * what it allows. */
static int refuse(struct mw_remote *r, const struct remote_command *c,
                  const struct server_reply *reply, struct err *e)
{
    char message[400];
    size_t n = strlen(c->name);

    if ((reply->head.status == 400 || reply->head.status == 403 || reply->head.status == 503) &&
        server_message(reply, message, sizeof message))
        return err_set(e, reply->head.status == 400 ? ERR_ARGUMENT : ERR_UNSUPPORTED, "%s",
                       strncmp(message, c->name, n) == 0 && strncmp(message + n, ": ", 2) == 0
                           ? message + n + 2
                           : message);
    if (reply->head.status == 404)
        return err_set(e, ERR_UNSUPPORTED, "%s is too old to change its settings",
                       r->server.shown);
    return server_refuse(&r->server, &reply->head, reply->text, reply->n, e);
}

static int ask(struct mw_remote *r, const struct remote_command *c, struct mw_event *ev,
               struct json *out)
{
    struct err *e = &ev->err;
    struct server_reply reply;
    struct json_doc *doc = NULL;
    struct json body;
    char url[HTTP_URL_MAX];
    int rc;

    server_url(r->server.root, "memwall/settings", url);
    json_start(&body);
    json_object(&body, NULL);
    json_string(&body, c->name, c->text);
    json_bool(&body, "preview", c->step == MW_SETTING_PROPOSE);
    json_end(&body);
    json_raw(&body, "", 1);
    if (body.failed)
        rc = err_memory(e, "a request");
    else
        /* A change waits for the answers before it. */
        rc = server_ask(r->http, url, c->step == MW_SETTING_SHOW ? NULL : body.buf,
                        c->step == MW_SETTING_APPLY, &reply, e);
    json_release(&body);
    if (rc != 0)
        return -1;
    if (reply.head.status != 200)
        rc = refuse(r, c, &reply, e);
    else if (reply.text == NULL || json_parse(&doc, reply.text, reply.n, e) != 0)
        rc = err_set(e, ERR_FORMAT, "%s sent no JSON about its settings", r->server.shown);
    else
        rc = read_reply(r, c, json_root(doc), ev, out);
    json_free(doc);
    free(reply.text);
    return rc;
}

void remote_setting(struct mw_remote *r, const struct remote_command *c)
{
    struct mw_event ev = { .kind = MW_EVENT_SETTING, .step = c->step, .total = c->n,
                           .err = ERR_INIT };
    struct json text;

    ev.plan.n_ctx = r->n_ctx;
    json_start(&text);
    if (ask(r, c, &ev, &text) == 0 && text.failed)
        err_memory(&ev.err, "a setting");
    ev.text = text.buf;
    ev.len = text.used;
    events_post(r->events, &ev);
    json_release(&text);
}
