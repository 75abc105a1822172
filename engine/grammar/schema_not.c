/*
 * The keyword "not": types and values that a grammar can leave out.
 *
 * Texts other than some are written as a pattern, one level for each of their characters:
 *
 *     not "ab", "b"        |[^ab].*|a(|[^b].*|b(.+))|b(.+)
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/grammar/schema_internal.h"

#define TEXTS_MOST 64
#define TEXT_BYTES 30 /* of each: groups of a pattern are not nested deeper */

bool schema_same(const struct json_node *a, const struct json_node *b)
{
    double v, w;

    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case JSON_IS_NULL: return true;
    case JSON_IS_BOOL: return a->truth == b->truth;
    case JSON_IS_STRING: return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
    case JSON_IS_NUMBER:
        return strcmp(a->text, b->text) == 0 ||
               (json_as_float(a, &v) && json_as_float(b, &w) && v == w);
    case JSON_IS_OBJECT:
    case JSON_IS_ARRAY: break;
    }
    return false;
}

static const struct json_node *next_value(const struct schema_not *x, const struct json_node *v)
{
    return x->is_one ? NULL : v->next;
}

static int wrong(struct schema *s)
{
    return schema_wrong(s, "not", ERR_UNSUPPORTED,
                        "is supported with \"type\", or with \"enum\" or \"const\" of texts, true, "
                        "false and null only");
}

static int take_values(struct schema *s, const struct json_node *m, struct schema_not *out)
{
    out->is_one = strcmp(m->key, "const") == 0;
    if (out->first != NULL || (!out->is_one && m->kind != JSON_IS_ARRAY))
        return wrong(s);
    out->first = out->is_one ? m : m->first;
    for (const struct json_node *v = out->first; v != NULL; v = next_value(out, v)) {
        if (v->kind == JSON_IS_OBJECT || v->kind == JSON_IS_ARRAY)
            return wrong(s);
        out->has_text = out->has_text || v->kind == JSON_IS_STRING;
        out->has_number = out->has_number || v->kind == JSON_IS_NUMBER;
        out->n++;
        out->n_byte += v->kind == JSON_IS_NUMBER ? v->len : 0;
    }
    return 0;
}

int schema_not(struct schema *s, const struct json_node *n, struct schema_not *out)
{
    const struct json_node *x = json_member(n, "not");
    bool any, is_empty = true;

    *out = (struct schema_not){ .first = NULL };
    if (x == NULL || (json_as_bool(x, &any) && !any))
        return 0;
    for (const struct json_node *m = x->kind == JSON_IS_OBJECT ? x->first : NULL; m != NULL;
         m = m->next) {
        if (schema_is_note(m->key))
            continue;
        is_empty = false;
        if (strcmp(m->key, "type") == 0) {
            if (schema_work(s, x->n) != 0) /* the keyword may be there many times */
                return -1;
            out->types = schema_types(s, x);
            if (out->types == 0)
                return -1;
        } else if ((strcmp(m->key, "const") != 0 && strcmp(m->key, "enum") != 0) ||
                   take_values(s, m, out) != 0) {
            return wrong(s);
        }
    }
    if (is_empty)
        return schema_wrong(s, "not", ERR_ARGUMENT, "allows no value");
    return out->types != 0 && out->first != NULL ? wrong(s) : 0;
}

uint64_t schema_not_work(const struct schema_not *x, const struct json_node *v)
{
    return x->n + (v->kind == JSON_IS_NUMBER ? x->n * v->len + x->n_byte : 0);
}

bool schema_is_out(const struct schema_not *x, const struct json_node *v)
{
    for (const struct json_node *o = x->first; o != NULL; o = next_value(x, o))
        if (schema_same(o, v))
            return true;
    return false;
}

/* ---- other texts ---- */

/* The texts that begin with the same n bytes. */
struct texts {
    const struct json_node *text[TEXTS_MOST];
    size_t n_text, n;
};

/* The character of a text after these bytes. */
static uint32_t char_of(const struct texts *o, size_t i, size_t *len)
{
    uint32_t c = UTF8_BAD;

    *len = o->text[i]->len > o->n
               ? utf8_decode(o->text[i]->text + o->n, o->text[i]->len - o->n, &c)
               : 0;
    return c;
}

/* Write a pattern of all that may follow these bytes. */
static void write_others(struct json *out, const struct texts *o)
{
    struct json set, rest;
    bool is_one = false;

    json_start(&set);
    json_start(&rest);
    for (size_t i = 0; i < o->n_text; i++) {
        struct texts same = { .n_text = 0 };
        size_t len, ignored, k = 0;
        uint32_t c = char_of(o, i, &len);

        is_one = is_one || len == 0;
        while (k < i && char_of(o, k, &ignored) != c)
            k++;
        if (len == 0 || k < i) /* the end of a text, or a character that came before */
            continue;
        same.n = o->n + len;
        for (k = i; k < o->n_text; k++)
            if (char_of(o, k, &ignored) == c)
                same.text[same.n_text++] = o->text[k];
        json_print(&set, "\\u{%x}", c);
        json_print(&rest, "|\\u{%x}", c);
        write_others(&rest, &same);
    }
    json_print(out, "(%s[^", is_one ? "" : "|");
    json_raw(out, set.used > 0 ? set.buf : "", set.used);
    json_print(out, "][^]*");
    json_raw(out, rest.used > 0 ? rest.buf : "", rest.used);
    json_print(out, ")");
    out->failed = out->failed || set.failed || rest.failed;
    json_release(&set);
    json_release(&rest);
}

int schema_other_texts(struct schema *s, const struct schema_not *x, uint32_t *rule)
{
    struct texts all = { .n_text = 0 };
    struct json pattern;
    int rc;

    for (const struct json_node *v = x->first; v != NULL; v = next_value(x, v)) {
        if (v->kind != JSON_IS_STRING)
            continue;
        if (all.n_text == TEXTS_MOST || v->len > TEXT_BYTES)
            return schema_wrong(s, "not", ERR_UNSUPPORTED,
                                "has more than 64 texts, or one of more than 30 bytes");
        all.text[all.n_text++] = v;
    }
    json_start(&pattern);
    json_print(&pattern, "^");
    write_others(&pattern, &all);
    json_raw(&pattern, "$", 2); /* with a NUL */
    rc = pattern.failed ? err_memory(s->e, "a schema")
                        : schema_pattern(s, "not", pattern.buf, rule);
    json_release(&pattern);
    return rc;
}
