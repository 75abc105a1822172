/* Render conversations written as JSON, mainly for debugging templates. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/format/json.h"
#include "engine/text/chat_internal.h"
#include "engine/text/jinja.h"

/* Messages for a built-in format.  Owns the texts that were joined from parts. */
struct plain {
    struct chat_message *m;
    char **text; /* [n], NULL if the content is one string */
    size_t n;
};

static void plain_free(struct plain *p)
{
    for (size_t i = 0; p->text != NULL && i < p->n; i++)
        free(p->text[i]);
    free(p->text);
    free(p->m);
}

static bool is_key(const struct json_node *n, const char *key)
{
    return n->key != NULL && strcmp(n->key, key) == 0;
}

static const struct json_node *part_text(const struct json_node *part)
{
    const struct json_node *type = json_get(part, "type"), *text = json_get(part, "text");
    const char *name = json_as_string(type);

    if (name == NULL || strcmp(name, "text") != 0)
        return NULL;
    return text != NULL && text->kind == JSON_IS_STRING ? text : NULL;
}

/* Join parts of type "text". */
static int join_parts(struct plain *p, const struct json_node *parts, struct err *e)
{
    struct chat_message *m = &p->m[p->n];
    size_t len = 0;
    char *text;

    for (const struct json_node *part = parts->first; part != NULL; part = part->next) {
        const struct json_node *one = part_text(part);

        if (one == NULL)
            return err_set(e, ERR_UNSUPPORTED,
                           "message %zu has a content part that is not text", p->n + 1);
        len += one->len;
    }
    text = malloc(len + 1);
    if (text == NULL)
        return err_memory(e, "a message of %zu bytes", len);
    p->text[p->n] = text;
    m->content = text;
    m->len = len;
    for (const struct json_node *part = parts->first; part != NULL; part = part->next) {
        const struct json_node *one = part_text(part);

        if (one->len > 0)
            memcpy(text, one->text, one->len);
        text += one->len;
    }
    return 0;
}

static bool role_of(const struct json_node *n, enum chat_role *out)
{
    static const struct {
        const char *name;
        enum chat_role role;
    } roles[] = {
        { "system", CHAT_SYSTEM },
        { "user", CHAT_USER },
        { "assistant", CHAT_ASSISTANT },
        { "developer", CHAT_SYSTEM },
    };
    const char *name = json_as_string(n);

    for (size_t i = 0; name != NULL && i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(roles[i].name, name) == 0) {
            *out = roles[i].role;
            return true;
        }
    return false;
}

/* Add a message.  ERR_UNSUPPORTED: it contains more than a built-in format can print. */
static int add_plain(struct plain *p, const struct json_node *message, struct err *e)
{
    struct chat_message *m = &p->m[p->n];
    const struct json_node *role = json_get(message, "role");

    if (!role_of(role, &m->role))
        return err_set(e, ERR_UNSUPPORTED, "message %zu has the role \"%.40s\"", p->n + 1,
                       role != NULL && role->text != NULL ? role->text : "");
    for (const struct json_node *n = message->first; n != NULL; n = n->next) {
        if (is_key(n, "role") || n->kind == JSON_IS_NULL)
            continue;
        if (is_key(n, "content") && n->kind == JSON_IS_STRING) {
            m->content = n->text;
            m->len = n->len;
        } else if (is_key(n, "content") && n->kind == JSON_IS_ARRAY) {
            free(p->text[p->n]);
            p->text[p->n] = NULL;
            if (join_parts(p, n, e) != 0)
                return -1;
        } else if ((is_key(n, "reasoning_content") || is_key(n, "reasoning")) &&
                   n->kind == JSON_IS_STRING) {
            m->reasoning = n->text;
            m->reasoning_len = n->len;
        } else {
            return err_set(e, ERR_UNSUPPORTED, "message %zu has the member \"%.40s\"", p->n + 1,
                           n->key);
        }
    }
    if (m->content == NULL)
        m->content = "";
    p->n++;
    return 0;
}

static int make_plain(struct plain *p, const struct json_node *messages, struct err *e)
{
    *p = (struct plain){ .m = calloc((size_t)messages->n + 1, sizeof *p->m),
                         .text = calloc((size_t)messages->n + 1, sizeof *p->text) };
    if (p->m == NULL || p->text == NULL)
        return err_memory(e, "%u messages", messages->n);
    for (const struct json_node *n = messages->first; n != NULL; n = n->next)
        if (add_plain(p, n, e) != 0) {
            p->n++; /* plain_free frees its text, too */
            return -1;
        }
    return 0;
}

int chat_format_check_json(const struct json_node *messages, struct err *e)
{
    size_t i = 0;

    if (messages == NULL || messages->kind != JSON_IS_ARRAY)
        return err_set(e, ERR_FORMAT, "expected a JSON array of messages");
    for (const struct json_node *n = messages->first; n != NULL; n = n->next) {
        i++;
        if (n->kind != JSON_IS_OBJECT)
            return err_set(e, ERR_FORMAT, "message %zu is not a JSON object", i);
        if (json_as_string(json_get(n, "role")) == NULL)
            return err_set(e, ERR_FORMAT, "message %zu has no \"role\"", i);
    }
    return 0;
}

struct list {
    const struct json_node *messages;
    bool has_parts;
};

/* Make a list of the messages with all their members. */
static struct jinja_value *json_list(struct jinja_data *d, const void *ctx)
{
    const struct list *l = ctx;

    return jinja_messages(d, l->messages, l->has_parts);
}

size_t chat_json_bytes(const struct json_node *n)
{
    size_t bytes = n->len;

    /* The JSON reader bounds the depth. */
    for (const struct json_node *in = n->first; in != NULL; in = in->next)
        bytes += chat_json_bytes(in) + 16;
    return bytes;
}

/* Returns true if the messages have only roles of a chat, and one string as content. */
static bool is_chat(const struct json_node *messages)
{
    for (const struct json_node *n = messages->first; n != NULL; n = n->next) {
        const struct json_node *content = json_get(n, "content");
        const char *name = json_as_string(json_get(n, "role"));
        enum chat_role role;

        if (n->n != 2 || !role_of(json_get(n, "role"), &role) ||
            strcmp(name, "developer") == 0 || content == NULL ||
            content->kind != JSON_IS_STRING)
            return false;
    }
    return true;
}

/* Render messages with members that only an evaluated template can print. */
static void render_list(struct chat_writer *w, const struct chat_format *f,
                        const struct json_node *messages, const struct chat_options *o)
{
    const struct json_node content = { .kind = JSON_IS_STRING, .key = "content", .text = "" };
    const struct json_node role = { .kind = JSON_IS_STRING, .key = "role", .text = "system",
                                    .len = 6, .next = &content };
    const struct json_node system = { .kind = JSON_IS_OBJECT, .n = 2, .first = &role,
                                      .next = messages->first };
    struct json_node all = *messages;
    struct list l = { &all, chat_template_has_parts(f->template) };
    const char *first =
        messages->n > 0 ? json_as_string(json_get(messages->first, "role")) : NULL;

    if (chat_template_needs_system(f->template) && !o->is_strict &&
        (first == NULL || strcmp(first, role.text) != 0)) {
        all.first = &system;
        all.n++;
    }
    chat_template_render_list(w, f, json_list, &l, all.n, chat_json_bytes(&all), o);
}

int chat_format_render_json(const struct chat_format *f, const struct tokenizer *t,
                            const struct json_node *messages,
                            const struct chat_options *options, struct chat_prompt *out,
                            struct err *e)
{
    struct chat_writer w = { .format = f, .t = t, .out = &out->ids, .shown = out, .e = e };
    struct err rich = ERR_INIT;
    struct plain p = { 0 };

    *out = (struct chat_prompt){ .ids.max = out->ids.max };
    if (chat_format_check_json(messages, e) != 0)
        return -1;
    if (options->tools != NULL && f->template == NULL) {
        err_set(e, ERR_UNSUPPORTED, "the chat format %s prints no tools", f->name);
        return err_at(e, NULL, ERR_NO_OFFSET, "tools");
    }
    if (strcmp(f->name, CHAT_TEMPLATE_NAME) == 0 && !is_chat(messages)) {
        render_list(&w, f, messages, options);
    } else if (make_plain(&p, messages, &rich) == 0) {
        f->render(&w, f, p.m, p.n, options);
    } else if (rich.code == ERR_UNSUPPORTED) {
        w.rc = err_set(e, rich.code, "%s; the built-in format %s cannot print it", rich.what,
                       f->name);
    } else {
        w.rc = -1;
        *e = rich;
    }
    chat_flush(&w, false);
    plain_free(&p);
    free(w.text);
    if (w.rc == 0 && out->text == NULL)
        out->text = calloc(1, 1);
    if (w.rc == 0 && out->text == NULL)
        w.rc = err_memory(e, "a prompt");
    if (w.rc != 0)
        chat_prompt_free(out);
    return w.rc;
}
