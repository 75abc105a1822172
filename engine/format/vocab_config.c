/* Reads tokenizer_config.json and the chat template of a snapshot. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/encoding.h"
#include "engine/format/file_open.h"
#include "engine/format/json.h"
#include "engine/format/reader.h"
#include "engine/format/vocab_rules.h"

#define CONFIG_FILE             "tokenizer_config.json"
#define TEMPLATE_FILE           "chat_template.jinja"
#define PROCESSOR_TEMPLATE_FILE "chat_template.json" /* of models that also see images */

struct config {
    struct vocab_config *out; /* NULL: read the template */
    int which;                /* of the special tokens, or -1 */
    enum { C_OTHER, C_ADD_BOS, C_SPECIAL, C_TEMPLATE, C_ADDED } key;
    uint32_t id;   /* of the next added token, or UINT32_MAX */
    bool in_added; /* inside its object */
    bool is_content; /* the last key, inside a value, is "content" */
    /* "chat_template": [{"name": "default", "template": "..."}, ...] or {"default": "...", ...} */
    enum { T_NONE, T_NAME, T_TEXT } field;
    bool is_default;
    char *text, *pending; /* the template; one whose name comes later */
    size_t len, pending_len;
};

static bool is(const char *text, size_t len, const char *want)
{
    return strlen(want) == len && memcmp(text, want, len) == 0;
}

char *vocab_file_name(const struct catalogue *c, const char *name)
{
    const char *path = c->path != NULL ? c->path : "";
    const char *slash = strrchr(path, '/');
    size_t n = strlen(path), tail = slash != NULL ? n - (size_t)(slash - path) : n;
    char *out;

    /* The snapshot may have been opened by the name of a file in it. */
    if (n > 12 &&
        (strcmp(path + n - 12, ".safetensors") == 0 || strcmp(path + n - 5, ".json") == 0))
        n -= tail;
    while (n > 1 && path[n - 1] == '/')
        n--;
    out = malloc(n + strlen(name) + 2);
    if (out == NULL)
        return NULL;
    memcpy(out, path, n);
    if (n > 0)
        out[n++] = '/';
    strcpy(out + n, name);
    return out;
}

static int keep(char **to, size_t *n, const char *text, size_t len, struct err *e)
{
    if (len > VOCAB_MAX_TEMPLATE)
        return err_set(e, ERR_FORMAT, "a text of %zu bytes is longer than %zu", len,
                       VOCAB_MAX_TEMPLATE);
    free(*to);
    *to = malloc(len + 1);
    if (*to == NULL)
        return err_memory(e, "the chat template");
    memcpy(*to, text, len);
    (*to)[len] = '\0';
    *n = len;
    return 0;
}

static void on_top_key(struct config *c, const char *text, size_t len)
{
    static const char *const special[] = { "bos_token", "eos_token", "unk_token", "pad_token" };

    c->key = C_OTHER;
    c->id = UINT32_MAX;
    c->is_content = false;
    if (is(text, len, "add_bos_token"))
        c->key = C_ADD_BOS;
    if (is(text, len, "chat_template"))
        c->key = C_TEMPLATE;
    if (is(text, len, "added_tokens_decoder"))
        c->key = C_ADDED;
    for (int i = 0; i < 4; i++)
        if (is(text, len, special[i])) {
            c->key = C_SPECIAL;
            c->which = i;
        }
}

/* "<s>" or {"content": "<s>", ...} */
static void on_special(struct config *c, enum json_event event, const char *text, size_t len,
                       unsigned depth)
{
    if (event == JSON_KEY)
        c->is_content = is(text, len, "content");
    else if (event == JSON_STRING && (depth == 1 || (depth == 2 && c->is_content)) &&
             len <= VOCAB_MAX_TEXT) {
        memcpy(c->out->special[c->which], text, len);
        c->out->special_len[c->which] = len;
    }
}

/* "256": {"content": "<s>", "special": true, ...} */
static int on_added(struct config *c, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    struct added_list *l = &c->out->added;

    if (depth == 2 && event == JSON_KEY) {
        if (!added_id(text, len, &c->id))
            c->id = UINT32_MAX;
    } else if (depth == 2 && event == JSON_OBJECT && c->id != UINT32_MAX) {
        if (added_new(l, e) != 0)
            return -1;
        l->all[l->n - 1].id = c->id;
        c->in_added = true;
    } else if (depth == 2 && event == JSON_OBJECT_END && c->in_added) {
        if (l->all[l->n - 1].text == NULL)
            l->n--;
        c->in_added = false;
    } else if (depth == 3 && event == JSON_KEY) {
        added_key(l, text, is(text, len, "id") ? 0 : len);
    } else if (depth == 3 && c->in_added && len <= VOCAB_MAX_TEXT &&
               (event != JSON_STRING || len > 0)) {
        return added_value(l, event, text, len, e);
    }
    return 0;
}

/* Take the pending template if it is the default, or the first one. */
static void choose_template(struct config *c)
{
    if (c->pending == NULL || (!c->is_default && c->text != NULL))
        return;
    free(c->text);
    c->text = c->pending;
    c->len = c->pending_len;
    c->pending = NULL;
}

static int on_template(struct config *c, enum json_event event, const char *text, size_t len,
                       unsigned depth, struct err *e)
{
    if (event == JSON_STRING && depth == 1)
        return keep(&c->text, &c->len, text, len, e);
    if (event == JSON_KEY && depth == 2) { /* an object of names */
        c->field = T_TEXT;
        c->is_default = is(text, len, "default");
    } else if (event == JSON_KEY) {
        c->field = is(text, len, "name") ? T_NAME : is(text, len, "template") ? T_TEXT : T_NONE;
    } else if (event == JSON_OBJECT) {
        c->is_default = false;
        free(c->pending);
        c->pending = NULL;
    } else if (event == JSON_STRING && depth == 3 && c->field == T_NAME) {
        c->is_default = is(text, len, "default");
    } else if (event == JSON_STRING && depth <= 3 && c->field == T_TEXT) {
        if (keep(&c->pending, &c->pending_len, text, len, e) != 0)
            return -1;
        if (depth == 2)
            choose_template(c);
    } else if (event == JSON_OBJECT_END && depth == 2) {
        choose_template(c);
    }
    return 0;
}

static int on_event(void *ctx, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    struct config *c = ctx;

    if (depth == 0)
        return event == JSON_OBJECT || event == JSON_OBJECT_END
                   ? 0
                   : err_set(e, ERR_FORMAT, "is not a JSON object");
    if (depth == 1 && event == JSON_KEY) {
        on_top_key(c, text, len);
        return 0;
    }
    if (c->out == NULL) {
        if (c->key == C_TEMPLATE && on_template(c, event, text, len, depth, e) != 0)
            return err_at(e, NULL, ERR_NO_OFFSET, "chat_template");
        return 0;
    }
    if (c->key == C_ADD_BOS && depth == 1 && (event == JSON_TRUE || event == JSON_FALSE))
        c->out->add_bos = event == JSON_TRUE;
    if (c->key == C_SPECIAL)
        on_special(c, event, text, len, depth);
    if (c->key == C_ADDED && on_added(c, event, text, len, depth, e) != 0)
        return err_at(e, NULL, ERR_NO_OFFSET, "added_tokens_decoder");
    return 0;
}

static bool exists(const struct catalogue *c, const char *name)
{
    return model_file_is_there(c->dir_fd, name);
}

static int read_config(const struct catalogue *c, const char *name, struct config *config,
                       struct err *e)
{
    char *shown = vocab_file_name(c, name);
    struct model_file f;
    int rc = -1;

    if (shown == NULL)
        return err_memory(e, "a file's name");
    if (!exists(c, name)) {
        rc = 0;
    } else if (model_file_open(&f, c->dir_fd, name, shown, e) == 0) {
        rc = json_stream(f.fd, f.size, 0, f.size, on_event, config, e);
        if (rc != 0)
            file_not_json(&f, e);
        model_file_close(&f);
    }
    free(shown);
    return rc;
}

static int by_id(const void *a, const void *b)
{
    const struct json_added *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

int vocab_config_read(const struct catalogue *c, struct vocab_config *out, struct err *e)
{
    struct config config = { .out = out };

    memset(out, 0, sizeof *out);
    out->add_bos = -1;
    if (read_config(c, CONFIG_FILE, &config, e) != 0) {
        vocab_config_free(out); /* its last token may be without a text */
        return -1;
    }
    if (out->added.n > 0)
        qsort(out->added.all, out->added.n, sizeof out->added.all[0], by_id);
    return 0;
}

void vocab_config_free(struct vocab_config *c)
{
    added_free(&c->added);
}

static int read_template_file(const struct catalogue *c, char **out, size_t *len, struct err *e)
{
    char *shown = vocab_file_name(c, TEMPLATE_FILE), *text = NULL;
    struct reader r = { 0 };
    struct model_file f;
    int rc = -1, mark = 0;

    if (shown == NULL)
        return err_memory(e, "a file's name");
    if (model_file_open(&f, c->dir_fd, TEMPLATE_FILE, shown, e) == 0) {
        if (f.size > VOCAB_MAX_TEMPLATE)
            err_set(e, ERR_FORMAT, "a template of %llu bytes is longer than %zu",
                    (unsigned long long)f.size, VOCAB_MAX_TEMPLATE);
        else if ((text = malloc((size_t)f.size + 1)) == NULL)
            err_memory(e, "the chat template");
        else if (reader_open(&r, f.fd, f.size, 0, e) == 0) {
            rc = reader_copy(&r, text, (size_t)f.size, e);
            reader_close(&r);
        }
        if (rc == 0 && (mark = encoding_mark(text, (size_t)f.size, e)) < 0)
            rc = -1;
        if (rc == 0) {
            *len = (size_t)f.size - (size_t)mark;
            memmove(text, text + mark, *len);
            text[*len] = '\0';
            *out = text;
        } else {
            free(text);
            err_at(e, shown, ERR_NO_OFFSET, NULL);
        }
        model_file_close(&f);
    }
    free(shown);
    return rc;
}

int vocab_config_template(const struct catalogue *c, char **out, size_t *len, struct err *e)
{
    struct config config = { .which = -1 };
    int rc;

    if (exists(c, TEMPLATE_FILE))
        return read_template_file(c, out, len, e);
    rc = read_config(c, CONFIG_FILE, &config, e);
    if (rc == 0 && config.text == NULL)
        rc = read_config(c, PROCESSOR_TEMPLATE_FILE, &config, e);
    free(config.pending);
    if (rc != 0) {
        free(config.text);
        return -1;
    }
    *out = config.text;
    *len = config.len;
    return 0;
}
