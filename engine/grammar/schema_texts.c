/*
 * Names and values in the notations, as literals of a grammar.
 *
 *     JSON      {"a":"x<y","b":[true]}
 *     tagged    {"a":"x\u003cy","b":[true]}
 *     bare      {a:<|"|>x<y<|"|>,b:[true]}
 */
#include "config.h"

#include <string.h>

#include "engine/grammar/schema_internal.h"

void schema_quote(struct schema *s)
{
    schema_raw(s, s->notation == MW_NOTATION_BARE ? " <|\"|> " : " \"\\\"\" ");
}

static void write_literal(struct schema *s, const struct json *text)
{
    mw_grammar_literal(s->out, text->used > 0 ? text->buf : "", text->used);
    s->out->failed = s->out->failed || text->failed;
}

/* JSON, where "<" is only in texts. */
static void write_json(struct schema *s, struct json *text)
{
    struct json safe;

    json_start(&safe);
    for (size_t i = 0; i < text->used; i++)
        if (text->buf[i] == '<' && s->notation == MW_NOTATION_TAGGED)
            json_raw(&safe, "\\u003c", 6);
        else
            json_raw(&safe, text->buf + i, 1);
    safe.failed = safe.failed || text->failed;
    write_literal(s, &safe);
    json_release(&safe);
}

/* A name is bare if nothing in it could be taken for what follows. */
static bool is_bare(const char *key)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    return key[0] != '\0' && key[strspn(key, plain)] == '\0';
}

void schema_key(struct schema *s, const char *key)
{
    struct json text;

    if (s->notation == MW_NOTATION_BARE) {
        if (!is_bare(key))
            schema_quote(s);
        mw_grammar_literal(s->out, key, strlen(key));
        if (!is_bare(key))
            schema_quote(s);
        return;
    }
    json_start(&text);
    json_string(&text, NULL, key);
    write_json(s, &text);
    json_release(&text);
}

/* Objects and lists of constants are as deep as the JSON reader allows. */
static void write_bare(struct schema *s, const struct json_node *n)
{
    bool is_object = n->kind == JSON_IS_OBJECT;
    struct json text;

    if (n->kind == JSON_IS_STRING) {
        schema_quote(s);
        mw_grammar_literal(s->out, n->text, n->len);
        schema_quote(s);
    } else if (is_object || n->kind == JSON_IS_ARRAY) {
        schema_raw(s, is_object ? "\"{\" " : "\"[\" ");
        for (const struct json_node *m = n->first; m != NULL; m = m->next) {
            if (is_object) {
                schema_key(s, m->key);
                schema_raw(s, " \":\" ");
            }
            write_bare(s, m);
            schema_raw(s, m->next != NULL ? " \",\" " : " ");
        }
        schema_raw(s, is_object ? "\"}\" " : "\"]\" ");
    } else {
        json_start(&text);
        json_copy(&text, NULL, n);
        write_literal(s, &text);
        json_release(&text);
    }
}

void schema_constant(struct schema *s, const struct json_node *n)
{
    struct json text;

    if (s->notation == MW_NOTATION_BARE) {
        write_bare(s, n);
        return;
    }
    json_start(&text);
    json_copy(&text, NULL, n);
    write_json(s, &text);
    json_release(&text);
}
