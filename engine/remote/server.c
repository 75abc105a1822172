#include "config.h"

#include "engine/remote/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/visible.h"
#include "engine/format/json.h"

static const struct http_words words = {
    .setting = "--server",
    .server = "a server of models",
    .that = "the server",
    .example = "http://127.0.0.1:8080",
    .token = "MEMWALL_API_KEY or the file of --api-key-file",
    .trust = "give --ca-file FILE with the authority that signed it",
};

const char *mw_server_kind_name(enum mw_server_kind k)
{
    static const char *const names[] = {
        [MW_SERVER_OTHER] = "",      [MW_SERVER_MEMWALL] = "memwall",
        [MW_SERVER_LLAMA] = "llama.cpp", [MW_SERVER_VLLM] = "vLLM",
        [MW_SERVER_SGLANG] = "SGLang", [MW_SERVER_OLLAMA] = "Ollama",
    };

    return names[k];
}

/* ---- the address ---- */

static char *copy(const char *text, bool *failed)
{
    char *out = text != NULL ? strdup(text) : NULL;

    *failed |= text != NULL && out == NULL;
    return out;
}

/* The root is the address without slashes and "v1" at its end. */
static void split_url(struct server *s, const char *url)
{
    const char *host = strstr(url, "://");
    size_t n;

    snprintf(s->root, sizeof s->root, "%.*s", SERVER_URL - 8, url);
    n = strlen(s->root);
    while (n > 0 && s->root[n - 1] == '/')
        s->root[--n] = '\0';
    if (n > 3 && strcmp(s->root + n - 3, "/v1") == 0)
        s->root[n -= 3] = '\0';
    while (n > 0 && s->root[n - 1] == '/')
        s->root[--n] = '\0';
    snprintf(s->api, sizeof s->api, "%s/v1", s->root);
    host = host != NULL ? host + 3 : url;
    visible_line(s->shown, sizeof s->shown, host, strcspn(host, "/?#"));
}

int server_set(struct server *out, const struct mw_server *from, struct err *e)
{
    bool failed = false;

    *out = (struct server){ .http = { .words = &words, .stop_fd = -1 } };
    split_url(out, from->url);
    out->has_key = from->key != NULL && from->key[0] != '\0';
    out->http.endpoint = out->root;
    out->http.token = copy(from->key, &failed);
    for (int i = 0; i < HTTP_CA_FILES; i++)
        out->http.ca_files[i] = copy(from->ca_files[i], &failed);
    out->http.ca_folder = copy(from->ca_folder, &failed);
    return failed ? err_memory(e, "the address of a server") : 0;
}

_Static_assert(HTTP_CA_FILES == MW_SERVER_CA_FILES, "the same files");

static void free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

void server_free(struct server *s)
{
    free_text(s->http.token);
    for (int i = 0; i < HTTP_CA_FILES; i++)
        free_text(s->http.ca_files[i]);
    free_text(s->http.ca_folder);
    for (size_t i = 0; i < s->n_model; i++)
        free(s->model[i]);
    free(s->model);
    free(s->ctx);
    *s = (struct server){ 0 };
}

void server_url(const char *base, const char *path, char url[HTTP_URL_MAX])
{
    snprintf(url, HTTP_URL_MAX, "%s/%s", base, path);
}

/* ---- a request with one text ---- */

bool server_append(char **text, size_t *have, const char *data, size_t n)
{
    char *longer = realloc(*text, *have + n + 1);

    if (longer == NULL)
        return false;
    memcpy(longer + *have, data, n);
    *text = longer;
    *have += n;
    longer[*have] = '\0';
    return true;
}

static size_t keep(struct http_request *r, const char *data, size_t n)
{
    struct server_reply *to = r->ctx;

    return n <= SERVER_TEXT - to->n && server_append(&to->text, &to->n, data, n) ? n : HTTP_STOP;
}

int server_ask(struct http *h, const char *url, const char *body, bool is_patient,
               struct server_reply *out, struct err *e)
{
    struct http_request r = { .url = url,
                              .body = body,
                              .body_len = body != NULL ? strlen(body) : 0,
                              .takes_errors = true,
                              .is_patient = is_patient,
                              .sink = keep,
                              .ctx = out };
    int rc;

    *out = (struct server_reply){ 0 };
    rc = http_start(h, &r, e);
    while (rc == 0 && !r.is_done)
        rc = http_wait(h, 1000, e);
    http_end(&r);
    out->head = r.reply;
    if (rc == 0 && r.err.code != ERR_NONE) {
        *e = r.err;
        rc = -1;
    }
    if (rc == 0 && r.is_stopped)
        rc = err_set(e, ERR_FORMAT, "a reply of the server has more than %zu bytes", SERVER_TEXT);
    if (rc == 0)
        return 0;
    free(out->text);
    out->text = NULL;
    return -1;
}

/* ---- why not ---- */

/* The text of a member, or of the first item of a list of objects with it. */
static const char *text_of(const struct json_node *n, const char *key)
{
    const struct json_node *m = json_get(n, key);

    if (m != NULL && m->kind == JSON_IS_ARRAY && m->first != NULL)
        m = json_get(m->first, "msg");
    return json_as_string(m);
}

/* Servers write {"error":{"message":TEXT}}, {"error":TEXT}, {"message":TEXT}, {"detail":TEXT} or
 * {"detail":[{"msg":TEXT}]}.  Another body that is not JSON is the message itself. */
static void read_message(const char *body, size_t n, bool is_page, char *buf, size_t size)
{
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    const struct json_node *root;
    const char *text = NULL;

    buf[0] = '\0';
    if (body == NULL || n == 0 || is_page)
        return;
    if (json_parse_halves(&doc, body, n, &ignored) == 0) {
        root = json_root(doc);
        text = text_of(json_get(root, "error"), "message");
        for (size_t i = 0; text == NULL && i < 3; i++)
            text = text_of(root, (const char *[]){ "error", "message", "detail" }[i]);
    } else {
        text = body;
    }
    if (text != NULL)
        visible_line(buf, size, text, strnlen(text, size));
    json_free(doc);
}

bool server_message(const struct server_reply *reply, char *buf, size_t n)
{
    read_message(reply->text, reply->n, reply->head.is_page, buf, n);
    return buf[0] != '\0';
}

/* Advise what to do about a status. */
static void advise(const struct server *s, const struct http_reply *head, char *buf, size_t n)
{
    long status = head->status;

    buf[0] = '\0';
    if (status == 401 || status == 403)
        snprintf(buf, n, s->has_key ? "; check the key in MEMWALL_API_KEY or --api-key-file"
                                    : "; set MEMWALL_API_KEY, or give --api-key-file FILE");
    else if (status == 404)
        snprintf(buf, n, "; --server takes the address before /chat/completions, and -m one of "
                         "the server's models");
    else if (head->retry_after_s > 0)
        snprintf(buf, n, "; it asks to wait %u second%s", head->retry_after_s,
                 head->retry_after_s == 1 ? "" : "s");
}

int server_refuse(const struct server *s, const struct http_reply *head, const char *body,
                  size_t n, struct err *e)
{
    /* The request itself is wrong, so that another attempt would fail, too. */
    bool is_final = head->status == 400 || head->status == 413 || head->status == 422;
    char message[300], advice[120], to[200];

    if (head->status / 100 == 3) {
        visible_line(to, sizeof to, head->location, strlen(head->location));
        return err_set(e, ERR_IO,
                       "%s sends requests elsewhere%s%s, where nothing is sent; give the address "
                       "that answers to --server",
                       s->shown, to[0] != '\0' ? ", to " : "", to);
    }
    if (head->status / 100 == 2)
        return err_set(e, ERR_FORMAT,
                       "%s answered with \"%s\", not with a stream of events; is it a server of "
                       "models?",
                       s->shown, head->type);
    read_message(body, n, head->is_page, message, sizeof message);
    advise(s, head, advice, sizeof advice);
    return err_set(e, is_final ? ERR_ARGUMENT : ERR_IO, "%s answered with status %ld%s%s%s",
                   s->shown, head->status, message[0] != '\0' ? ": " : "", message, advice);
}
