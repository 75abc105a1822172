/*
 * Print values: Python's str() and repr(), and JSON like json.dumps.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

/* Store the shortest digits that read back as x, in Python's layout. */
static size_t float_text(double x, char buf[32])
{
    char digits[32], *e;
    int precision, exponent;

    if (isnan(x))
        return (size_t)sprintf(buf, "nan");
    if (isinf(x))
        return (size_t)sprintf(buf, x < 0 ? "-inf" : "inf");
    for (precision = 1; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision - 1, x);
        if (strtod(digits, NULL) == x)
            break;
    }
    snprintf(digits, sizeof digits, "%.*e", precision - 1, x);
    e = strchr(digits, 'e');
    exponent = atoi(e + 1);
    if (exponent >= 16 || exponent < -4) {
        *e = '\0';
        return (size_t)snprintf(buf, 32, "%.24se%c%02d", digits, exponent < 0 ? '-' : '+',
                                abs(exponent) % 1000);
    }
    precision -= 1 + exponent;
    return (size_t)snprintf(buf, 32, "%.*f", precision > 1 ? precision : 1, x);
}

static void print_float(struct vm *vm, val v)
{
    char buf[32];

    jv_charge(vm, 20);
    jv_write(vm, buf, float_text(v.u.f, buf), v.source);
}

static void print_int(struct vm *vm, int64_t i, uint32_t source)
{
    char buf[24];

    jv_write(vm, buf, (size_t)snprintf(buf, sizeof buf, "%lld", (long long)i), source);
}

static void repr_str(struct vm *vm, const struct str *s)
{
    bool single = memchr(s->p, '\'', s->len) != NULL, both = false;
    uint32_t around = jv_str_source(s);
    char quote = '\'';
    struct piece piece;

    both = memchr(s->p, '"', s->len) != NULL;
    if (single && !both)
        quote = '"';
    jv_refuse_safe(vm, s);
    jv_write(vm, &quote, 1, around);
    for (size_t at = 0; jv_piece(s, &at, s->len, &piece);) {
        size_t done = 0;

        for (size_t i = 0, len; i < piece.len; i += len) {
            char buf[16];
            uint32_t cp;
            int n;

            len = utf8_decode(piece.p + i, piece.len - i, &cp);
            if (cp == '\\' || cp == (unsigned char)quote)
                n = sprintf(buf, "\\%c", (int)cp);
            else if (cp == '\n' || cp == '\r' || cp == '\t')
                n = sprintf(buf, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
            else if (cp >= UTF8_SHORT || (cp >= 0x20 && cp < 0x7f) || jv_is_printable(cp))
                continue;
            else
                n = sprintf(buf,
                            cp < 0x100     ? "\\x%02x"
                            : cp < 0x10000 ? "\\u%04x"
                                           : "\\U%08x",
                            cp);
            jv_write(vm, piece.p + done, i - done, piece.source);
            jv_write(vm, buf, (size_t)n, piece.source);
            done = i + len;
        }
        jv_write(vm, piece.p + done, piece.len - done, piece.source);
    }
    jv_write(vm, &quote, 1, around);
}

static void repr_items(struct vm *vm, const struct list *l, const char *open, const char *close)
{
    jv_puts(vm, open, JINJA_TRUSTED);
    for (size_t i = 0; i < l->n; i++) {
        if (i > 0)
            jv_puts(vm, ", ", JINJA_TRUSTED);
        jv_repr(vm, l->item[i]);
    }
    jv_puts(vm, close, JINJA_TRUSTED);
}

static void repr_dict(struct vm *vm, const struct dict *d)
{
    jv_puts(vm, "{", JINJA_TRUSTED);
    for (size_t i = 0; i < d->n; i++) {
        if (i > 0)
            jv_puts(vm, ", ", JINJA_TRUSTED);
        jv_repr(vm, d->key[i]);
        jv_puts(vm, ": ", JINJA_TRUSTED);
        jv_repr(vm, d->value[i]);
    }
    jv_puts(vm, "}", JINJA_TRUSTED);
}

void jv_repr(struct vm *vm, val v)
{
    jv_charge(vm, 1);
    jv_enter(vm);
    switch (v.kind) {
    case V_UNDEF: jv_puts(vm, "Undefined", JINJA_TRUSTED); break;
    case V_NONE: jv_puts(vm, "None", v.source); break;
    case V_BOOL: jv_puts(vm, v.u.b ? "True" : "False", v.source); break;
    case V_INT: print_int(vm, v.u.i, v.source); break;
    case V_FLOAT: print_float(vm, v); break;
    case V_STR: repr_str(vm, v.u.s); break;
    case V_LIST: repr_items(vm, v.u.list, "[", "]"); break;
    case V_TUPLE: repr_items(vm, v.u.list, "(", v.u.list->n == 1 ? ",)" : ")"); break;
    case V_DICT: repr_dict(vm, v.u.dict); break;
    default:
        /* The reference prints addresses of some, and names of Python for others. */
        jv_fail(vm, ERR_UNSUPPORTED, "a value of type %s cannot be printed", jv_type_name(v));
    }
    jv_leave(vm);
}

void jv_print(struct vm *vm, val v)
{
    if (v.kind == V_STR)
        jv_write_str(vm, v.u.s);
    else if (v.kind != V_UNDEF)
        jv_repr(vm, v);
}

val jv_to_str(struct vm *vm, val v)
{
    struct mark m;

    if (v.kind == V_STR)
        return v;
    m = jv_begin(vm);
    jv_print(vm, v);
    return jv_end(vm, m);
}

/* ---- JSON ---- */

struct json_style {
    bool ascii, sort;
    const struct str *indent; /* NULL: everything on one line */
    const struct str *item, *key;
};

static void json_str(struct vm *vm, const struct str *s, bool ascii)
{
    uint32_t around = jv_str_source(s);
    struct piece piece;

    jv_puts(vm, "\"", around);
    for (size_t at = 0; jv_piece(s, &at, s->len, &piece);) {
        size_t done = 0;

        for (size_t i = 0, len; i < piece.len; i += len) {
            static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
            unsigned char c = (unsigned char)piece.p[i];
            const char *found;
            char buf[16];
            uint32_t cp = c;
            int n;

            len = 1;
            if (c >= 0x80) {
                if (!ascii)
                    continue;
                len = utf8_decode(piece.p + i, piece.len - i, &cp);
                if (cp >= UTF8_SHORT)
                    cp = 0xfffd;
                if (cp >= 0x10000)
                    n = sprintf(buf, "\\u%04x\\u%04x", 0xd7c0 + (cp >> 10),
                                0xdc00 + (cp & 0x3ff));
                else
                    n = sprintf(buf, "\\u%04x", cp);
            } else if (c != '\0' && (found = strchr(from, c)) != NULL) {
                n = sprintf(buf, "\\%c", to[found - from]);
            } else if (c < 0x20) {
                n = sprintf(buf, "\\u%04x", c);
            } else {
                continue;
            }
            jv_write(vm, piece.p + done, i - done, piece.source);
            jv_write(vm, buf, (size_t)n, piece.source);
            done = i + len;
        }
        jv_write(vm, piece.p + done, piece.len - done, piece.source);
    }
    jv_puts(vm, "\"", around);
}

static void json_float(struct vm *vm, val v)
{
    if (isnan(v.u.f))
        jv_puts(vm, "NaN", v.source);
    else if (isinf(v.u.f))
        jv_puts(vm, v.u.f < 0 ? "-Infinity" : "Infinity", v.source);
    else
        print_float(vm, v);
}

static void json_line(struct vm *vm, const struct json_style *style, size_t level)
{
    if (style->indent == NULL)
        return;
    jv_puts(vm, "\n", JINJA_TRUSTED);
    for (size_t i = 0; i < level; i++)
        jv_write_str(vm, style->indent);
}

static void json_value(struct vm *vm, val v, const struct json_style *style, size_t level);

static void json_key(struct vm *vm, val key, const struct json_style *style)
{
    switch (key.kind) {
    case V_STR: json_str(vm, key.u.s, style->ascii); break;
    case V_NONE:
    case V_BOOL:
    case V_INT:
    case V_FLOAT:
        jv_puts(vm, "\"", key.source);
        json_value(vm, key, style, 0);
        jv_puts(vm, "\"", key.source);
        break;
    default:
        jv_fail(vm, ERR_FORMAT, "a key of type %s cannot be written as JSON",
                jv_type_name(key));
    }
    jv_write_str(vm, style->key);
}

/* Returns the positions of the keys in sorted order. */
static const size_t *sorted_keys(struct vm *vm, const struct dict *d)
{
    struct list *l = jv_list_new(vm, d->n);
    size_t *order = jv_take(vm, (d->n + 1) * sizeof *order);

    for (size_t i = 0; i < d->n; i++)
        jv_push(vm, l, d->key[i]);
    jv_sort(vm, l->item, order, d->n, false);
    return order;
}

static void json_dict(struct vm *vm, const struct dict *d, const struct json_style *style,
                      size_t level)
{
    const size_t *order = style->sort ? sorted_keys(vm, d) : NULL;

    jv_puts(vm, "{", JINJA_TRUSTED);
    for (size_t i = 0; i < d->n; i++) {
        size_t at = order != NULL ? order[i] : i;

        if (i > 0)
            jv_write_str(vm, style->item);
        json_line(vm, style, level + 1);
        json_key(vm, d->key[at], style);
        json_value(vm, d->value[at], style, level + 1);
    }
    if (d->n > 0)
        json_line(vm, style, level);
    jv_puts(vm, "}", JINJA_TRUSTED);
}

static void json_list(struct vm *vm, const struct list *l, const struct json_style *style,
                      size_t level)
{
    jv_puts(vm, "[", JINJA_TRUSTED);
    for (size_t i = 0; i < l->n; i++) {
        if (i > 0)
            jv_write_str(vm, style->item);
        json_line(vm, style, level + 1);
        json_value(vm, l->item[i], style, level + 1);
    }
    if (l->n > 0)
        json_line(vm, style, level);
    jv_puts(vm, "]", JINJA_TRUSTED);
}

static void json_value(struct vm *vm, val v, const struct json_style *style, size_t level)
{
    jv_charge(vm, 1);
    jv_enter(vm);
    switch (v.kind) {
    case V_NONE: jv_puts(vm, "null", v.source); break;
    case V_BOOL: jv_puts(vm, v.u.b ? "true" : "false", v.source); break;
    case V_INT: print_int(vm, v.u.i, v.source); break;
    case V_FLOAT: json_float(vm, v); break;
    case V_STR: json_str(vm, v.u.s, style->ascii); break;
    case V_LIST:
    case V_TUPLE: json_list(vm, v.u.list, style, level); break;
    case V_DICT: json_dict(vm, v.u.dict, style, level); break;
    default:
        jv_fail(vm, ERR_FORMAT, "a value of type %s cannot be written as JSON",
                jv_type_name(v));
    }
    jv_leave(vm);
}

/* The filter of transformers, not of Jinja: it does not escape for HTML. */
val jf_tojson(struct vm *vm, val v, const struct args *a)
{
    static const struct str comma = { .p = ",", .len = 1, .n_cp = 1 },
                            comma_blank = { .p = ", ", .len = 2, .n_cp = 2 },
                            colon = { .p = ": ", .len = 2, .n_cp = 2 };
    struct json_style style = { .key = &colon };
    struct mark m;
    int64_t n;
    val arg[4];

    jv_bind(vm, a, "tojson", "ensure_ascii indent separators sort_keys", 0, arg);
    style.ascii = jv_true(vm, arg[0]);
    style.sort = jv_true(vm, arg[3]);
    if (arg[1].kind == V_STR) {
        style.indent = arg[1].u.s;
    } else if (jv_as_int(arg[1], &n)) {
        struct mark blanks = jv_begin(vm);

        jv_fill(vm, " ", 1, JINJA_TRUSTED, n > 0 ? (size_t)n : 0);
        style.indent = jv_end(vm, blanks).u.s;
    } else if (arg[1].kind != V_NONE && arg[1].kind != V_MISSING) {
        jv_fail(vm, ERR_FORMAT, "\"indent\" of tojson cannot be of type %s",
                jv_type_name(arg[1]));
    }
    style.item = style.indent != NULL ? &comma : &comma_blank;
    if (arg[2].kind != V_NONE && arg[2].kind != V_MISSING) {
        struct list two = jv_items(vm, arg[2]);

        if (two.n != 2)
            jv_fail(vm, ERR_FORMAT, "\"separators\" of tojson are %zu values, not 2", two.n);
        style.item = jv_want_str(vm, two.item[0], "a separator of tojson");
        style.key = jv_want_str(vm, two.item[1], "a separator of tojson");
    }
    m = jv_begin(vm);
    json_value(vm, v, &style, 0);
    return jv_end(vm, m);
}
