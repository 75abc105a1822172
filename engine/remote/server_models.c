/* The models of a server, and what kind of server it is. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/json_write.h"
#include "engine/base/visible.h"
#include "engine/format/json.h"
#include "engine/remote/server.h"

#define MOST_CTX (1 << 30)

/* ---- reading the list ---- */

static enum mw_server_kind kind_of(const char *owner)
{
    static const struct {
        const char *owner;
        enum mw_server_kind kind;
    } owners[] = {
        { "memwall", MW_SERVER_MEMWALL }, { "llamacpp", MW_SERVER_LLAMA },
        { "vllm", MW_SERVER_VLLM },       { "sglang", MW_SERVER_SGLANG },
        { "library", MW_SERVER_OLLAMA },
    };

    for (size_t i = 0; owner != NULL && i < sizeof owners / sizeof owners[0]; i++)
        if (strcmp(owner, owners[i].owner) == 0)
            return owners[i].kind;
    return MW_SERVER_OTHER;
}

/* A whole number from 1 to most; 0: it is not one. */
static uint64_t whole(const struct json_node *n, int64_t most)
{
    int64_t value;

    return json_as_int(n, &value) && value > 0 && value <= most ? (uint64_t)value : 0;
}

static int add_model(struct server *s, const struct json_node *n, struct err *e)
{
    const char *id = json_as_string(json_get(n, "id"));
    const char *owner = json_as_string(json_get(n, "owned_by"));

    if (id == NULL || id[0] == '\0' || strlen(id) >= SERVER_ID)
        return 0; /* nothing that could be asked for */
    s->model[s->n_model] = strdup(id);
    if (s->model[s->n_model] == NULL)
        return err_memory(e, "the models of the server");
    s->ctx[s->n_model++] = (uint32_t)whole(json_get(n, "max_model_len"), MOST_CTX);
    if (s->kind == MW_SERVER_OTHER)
        s->kind = kind_of(owner);
    return 0;
}

static int allocate(struct server *s, size_t n, struct err *e)
{
    s->model = calloc(n + 1, sizeof *s->model);
    s->ctx = calloc(n + 1, sizeof *s->ctx);
    return s->model != NULL && s->ctx != NULL ? 0 : err_memory(e, "the models of the server");
}

static int read_models(struct server *s, const struct json_node *root, struct err *e)
{
    const struct json_node *list = json_get(root, "data");
    size_t n;

    if (list == NULL || list->kind != JSON_IS_ARRAY)
        return err_set(e, ERR_FORMAT, "%s has no list of models; is it a server of models?",
                       s->shown);
    n = list->n < SERVER_MODELS ? list->n : SERVER_MODELS;
    if (allocate(s, n, e) != 0)
        return -1;
    for (const struct json_node *m = list->first; m != NULL && s->n_model < n; m = m->next)
        if (add_model(s, m, e) != 0)
            return -1;
    return 0;
}

static int get_models(struct server *s, struct http *h, const char *name, struct err *e)
{
    struct json_doc *doc = NULL;
    struct server_reply reply;
    char url[HTTP_URL_MAX];
    int rc;

    server_url(s->api, "models", url);
    if (server_ask(h, url, NULL, false, &reply, e) != 0)
        return -1;
    if (reply.head.status == 404 && name != NULL && !reply.head.is_page) {
        /* A server with one model may do without a list. */
        free(reply.text);
        if (allocate(s, 1, e) != 0 || (s->model[0] = strdup(name)) == NULL)
            return err_memory(e, "the models of the server");
        s->n_model = 1;
        return 0;
    }
    if (reply.head.is_page && reply.head.status / 100 == 2)
        rc = http_refuse_page(h, &reply.head, e);
    else if (reply.head.status != 200)
        rc = server_refuse(s, &reply.head, reply.text, reply.n, e);
    else if (json_parse(&doc, reply.text != NULL ? reply.text : "", reply.n, e) != 0)
        rc = err_set(e, ERR_FORMAT, "the list of models of %s is not JSON; is it a server of "
                                    "models?",
                     s->shown);
    else
        rc = read_models(s, json_root(doc), e);
    json_free(doc);
    free(reply.text);
    return rc;
}

/* ---- choosing one ---- */

/* Names that a message lists, "a, b, c and 12 more". */
static void list_names(const struct server *s, char *buf, size_t n)
{
    size_t used = 0, i = 0;

    buf[0] = '\0';
    for (; i < s->n_model && used + 70 < n; i++) {
        char name[60];

        visible_line(name, sizeof name, s->model[i], strlen(s->model[i]));
        used += (size_t)snprintf(buf + used, n - used, "%s%s", i > 0 ? ", " : "", name);
    }
    if (i < s->n_model)
        snprintf(buf + used, n - used, " and %zu more", s->n_model - i);
}

static int choose(struct server *s, const char *name, struct err *e)
{
    char names[330], shown[80];
    size_t n_part = 0;

    if (s->n_model == 0)
        return err_set(e, ERR_FORMAT, "%s has no models", s->shown);
    if (name == NULL)
        return 0;
    for (size_t i = 0; i < s->n_model; i++)
        if (strcmp(s->model[i], name) == 0) {
            s->used = i;
            return 0;
        }
    for (size_t i = 0; i < s->n_model; i++)
        if (strcasestr(s->model[i], name) != NULL) {
            s->used = i;
            n_part++;
        }
    if (n_part == 1)
        return 0;
    visible_line(shown, sizeof shown, name, strlen(name));
    list_names(s, names, sizeof names);
    return err_set(e, ERR_ARGUMENT, "%s has %s model \"%s\"; there %s %s", s->shown,
                   n_part > 1 ? "more than one" : "no", shown, s->n_model == 1 ? "is" : "are",
                   names);
}

/* ---- what some kinds report beside it ---- */

static struct json_doc *get_json(struct http *h, const char *url, const char *body)
{
    struct err ignored = ERR_INIT;
    struct json_doc *doc = NULL;
    struct server_reply reply;

    if (server_ask(h, url, body, false, &reply, &ignored) != 0)
        return NULL;
    if (reply.head.status == 200 && reply.text != NULL)
        (void)json_parse(&doc, reply.text, reply.n, &ignored);
    free(reply.text);
    return doc;
}

static void copy_word(char *to, size_t size, const struct json_node *n)
{
    const char *text = json_as_string(n);

    if (text != NULL)
        visible_line(to, size, text, strnlen(text, 200));
}

/* The context of a slot of llama-server. */
static void look_at_llama(struct server *s, struct http *h)
{
    char url[HTTP_URL_MAX];
    struct json_doc *doc;
    const struct json_node *settings;

    server_url(s->root, "props", url);
    doc = get_json(h, url, NULL);
    settings = json_get(json_root(doc), "default_generation_settings");
    s->info.n_ctx_train = (uint32_t)whole(json_get(settings, "n_ctx"), MOST_CTX);
    json_free(doc);
}

/* Read how Ollama and memwall describe a model. */
static void look_at_ollama(struct server *s, struct http *h)
{
    struct json j;
    struct json_doc *doc = NULL;
    const struct json_node *details, *facts;
    char url[HTTP_URL_MAX], key[64];

    server_url(s->root, "api/show", url);
    json_start(&j);
    json_object(&j, NULL);
    json_string(&j, "model", s->model[s->used]);
    json_end(&j);
    json_raw(&j, "", 1); /* a NUL */
    if (!j.failed)
        doc = get_json(h, url, j.buf);
    json_release(&j);
    details = json_get(json_root(doc), "details");
    facts = json_get(json_root(doc), "model_info");
    copy_word(s->info.arch, sizeof s->info.arch, json_get(details, "family"));
    copy_word(s->info.type, sizeof s->info.type, json_get(details, "quantization_level"));
    s->info.n_param = whole(json_get(facts, "general.parameter_count"), INT64_MAX);
    snprintf(key, sizeof key, "%s.block_count", s->info.arch);
    s->info.n_layer = (uint32_t)whole(json_get(facts, key), MW_MAX_LAYER);
    json_free(doc);
}

int server_look(struct server *s, struct http *h, const char *name, struct err *e)
{
    const char *id;

    if (get_models(s, h, name, e) != 0 || choose(s, name, e) != 0)
        return -1;
    id = s->model[s->used];
    if (id[0] == '/' && strrchr(id, '/')[1] != '\0') /* the path of a file on that machine */
        id = strrchr(id, '/') + 1;
    visible_line(s->info.name, sizeof s->info.name, id, strlen(id));
    if (s->kind == MW_SERVER_LLAMA)
        look_at_llama(s, h);
    if (s->kind == MW_SERVER_OLLAMA || s->kind == MW_SERVER_MEMWALL)
        look_at_ollama(s, h);
    if (s->ctx[s->used] > 0)
        s->info.n_ctx_train = s->ctx[s->used];
    return 0;
}
