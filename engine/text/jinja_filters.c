/*
 * The table of filters, and the filters for text and numbers.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

static const struct {
    const char *name;
    filter_fn *fn;
} filters[] = {
    { "abs", jf_abs },
    { "capitalize", jf_capitalize },
    { "count", jf_length },
    { "d", jf_default },
    { "default", jf_default },
    { "dictsort", jf_dictsort },
    { "first", jf_first },
    { "float", jf_float },
    { "indent", jf_indent },
    { "int", jf_int },
    { "items", jf_items },
    { "join", jf_join },
    { "last", jf_last },
    { "length", jf_length },
    { "list", jf_list },
    { "lower", jf_lower },
    { "map", jf_map },
    { "max", jf_max },
    { "min", jf_min },
    { "reject", jf_reject },
    { "rejectattr", jf_rejectattr },
    { "replace", jf_replace },
    { "reverse", jf_reverse },
    { "safe", jf_safe },
    { "select", jf_select },
    { "selectattr", jf_selectattr },
    { "sort", jf_sort },
    { "string", jf_string },
    { "sum", jf_sum },
    { "title", jf_title },
    { "tojson", jf_tojson },
    { "trim", jf_trim },
    { "unique", jf_unique },
    { "upper", jf_upper },
};

int jinja_filter_id(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        if (strlen(filters[i].name) == len && memcmp(filters[i].name, name, len) == 0)
            return (int)i;
    }
    return -1;
}

val jv_filter(struct vm *vm, int id, const struct str *name, val v, const struct args *a)
{
    val got;

    jv_charge(vm, 1);
    if (id < 0)
        jv_fail(vm, ERR_UNSUPPORTED, "unknown filter \"%.*s\"",
                (int)(name->len < 60 ? name->len : 60), name->p);
    jv_enter(vm);
    got = filters[id].fn(vm, v, a);
    jv_leave(vm);
    return got;
}

static void no_args(struct vm *vm, const struct args *a, const char *what)
{
    jv_bind(vm, a, what, "", 0, NULL);
}

static bool given(val v)
{
    return v.kind != V_MISSING;
}

/* Returns v as text for a filter. */
static const struct str *text_of(struct vm *vm, val v)
{
    const struct str *s = jv_to_str(vm, v).u.s;

    jv_refuse_safe(vm, s);
    return s;
}

/* ---- text ---- */

static val with_case(struct vm *vm, val v, const struct args *a, const char *what,
                     enum str_case c)
{
    const struct str *s = text_of(vm, v);
    struct mark m;

    no_args(vm, a, what);
    m = jv_begin(vm);
    jv_write_case(vm, s, c);
    return jv_end(vm, m);
}

val jf_upper(struct vm *vm, val v, const struct args *a)
{
    return with_case(vm, v, a, "upper", CASE_UPPER);
}

val jf_lower(struct vm *vm, val v, const struct args *a)
{
    return with_case(vm, v, a, "lower", CASE_LOWER);
}

val jf_capitalize(struct vm *vm, val v, const struct args *a)
{
    return with_case(vm, v, a, "capitalize", CASE_CAPITALIZE);
}

/* Words begin after blanks, hyphens and opening brackets. */
static bool separates_words(char c)
{
    return c != '\0' && strchr("-({[< \t\n\v\f\r\x1c\x1d\x1e\x1f", c) != NULL;
}

val jf_title(struct vm *vm, val v, const struct args *a)
{
    const struct str *s = text_of(vm, v);
    struct mark m;

    no_args(vm, a, "title");
    m = jv_begin(vm);
    for (size_t at = 0, end; at < s->len; at = end) {
        for (end = at; end < s->len && separates_words(s->p[end]);)
            end++;
        jv_write_part(vm, s, at, end);
        for (at = end; end < s->len && !separates_words(s->p[end]);)
            end++;
        jv_write_case(vm, jv_cut(vm, s, at, end).u.s, CASE_CAPITALIZE);
    }
    return jv_end(vm, m);
}

val jf_trim(struct vm *vm, val v, const struct args *a)
{
    const struct str *chars = NULL, *s = jv_to_str(vm, v).u.s;
    val arg[1];

    jv_bind(vm, a, "trim", "chars", 0, arg);
    if (given(arg[0]) && arg[0].kind != V_NONE)
        chars = jv_want_str(vm, arg[0], "\"chars\" of trim");
    return jv_strip(vm, s, chars, true, true);
}

val jv_replace(struct vm *vm, const struct str *s, const struct str *old, const struct str *new,
               int64_t count)
{
    size_t at = 0, done = 0;
    struct mark m = jv_begin(vm);

    for (; count != 0; count--) {
        size_t found = jv_find(vm, s, at, s->len, old);

        if (found == SIZE_MAX)
            break;
        jv_write_part(vm, s, done, found);
        jv_write_str(vm, new);
        done = found + old->len;
        at = done;
        if (old->len == 0) { /* between all characters */
            if (at == s->len)
                break;
            at++;
            while (at < s->len && ((unsigned char)s->p[at] & 0xc0u) == 0x80)
                at++;
        }
    }
    if (done == 0 && vm->out_len == m.len && (old->len > 0 || count == 0)) {
        jv_drop(vm, m);
        return jv_cut(vm, s, 0, s->len);
    }
    jv_write_part(vm, s, done, s->len);
    return jv_end(vm, m);
}

val jf_replace(struct vm *vm, val v, const struct args *a)
{
    int64_t count = -1;
    val arg[3];

    jv_bind(vm, a, "replace", "old new count", 2, arg);
    if (given(arg[2]) && arg[2].kind != V_NONE)
        count = jv_want_int(vm, arg[2], "\"count\" of replace");
    return jv_replace(vm, text_of(vm, v), text_of(vm, arg[0]), text_of(vm, arg[1]), count);
}

static bool ends_line(uint32_t cp)
{
    return (cp >= 0x0a && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 ||
           cp == 0x2028 || cp == 0x2029;
}

bool jv_next_line(struct vm *vm, const struct str *s, size_t *at, size_t *end, size_t *next)
{
    size_t from = *at = *next;
    uint32_t cp = 0;

    if (from >= s->len)
        return false;
    for (size_t len = 0; from < s->len; from += len) {
        len = utf8_decode(s->p + from, s->len - from, &cp);
        if (cp < UTF8_SHORT && ends_line(cp)) {
            *end = from;
            *next = from + len + (cp == '\r' && from + 1 < s->len && s->p[from + 1] == '\n');
            jv_charge(vm, 1 + (*next - *at) / 8);
            return true;
        }
    }
    jv_charge(vm, 1 + (s->len - *at) / 8);
    *end = *next = s->len;
    return true;
}

val jf_indent(struct vm *vm, val v, const struct args *a)
{
    const struct str *s = jv_want_str(vm, v, "what is indented"), *by = NULL;
    size_t at, end, next = 0, last_break = 0;
    bool first, blank, begun = false;
    int64_t width = 4;
    struct mark m;
    val arg[3];

    jv_bind(vm, a, "indent", "width first blank", 0, arg);
    jv_refuse_safe(vm, s);
    first = jv_true(vm, arg[1]);
    blank = jv_true(vm, arg[2]);
    if (arg[0].kind == V_STR)
        by = arg[0].u.s;
    else if (given(arg[0]))
        width = jv_want_int(vm, arg[0], "\"width\" of indent");
    if (by == NULL) {
        m = jv_begin(vm);
        jv_fill(vm, " ", 1, JINJA_TRUSTED, width > 0 ? (size_t)width : 0);
        by = jv_end(vm, m).u.s;
    }
    m = jv_begin(vm);
    if (first)
        jv_write_str(vm, by);
    while (jv_next_line(vm, s, &at, &end, &next)) {
        if (begun) {
            jv_puts(vm, "\n", jv_source_at(s, last_break));
            if (blank || end > at)
                jv_write_str(vm, by);
        }
        begun = true;
        last_break = end;
        jv_write_part(vm, s, at, end);
    }
    if (begun && last_break < s->len) { /* the text ends with a line break */
        jv_puts(vm, "\n", jv_source_at(s, last_break));
        if (blank)
            jv_write_str(vm, by);
    }
    return jv_end(vm, m);
}

val jf_safe(struct vm *vm, val v, const struct args *a)
{
    no_args(vm, a, "safe");
    return jv_safe(vm, jv_to_str(vm, v));
}

val jf_string(struct vm *vm, val v, const struct args *a)
{
    no_args(vm, a, "string");
    return jv_to_str(vm, v);
}

/* ---- numbers ---- */

/* Python's int(text).  Returns whether text is an integer. */
static bool parse_int(struct vm *vm, const struct str *s, int64_t *out)
{
    const struct str *t = jv_strip(vm, s, NULL, true, true).u.s;
    bool minus = false, digit_before = false;
    size_t i = 0;

    *out = 0;
    jv_charge_bytes(vm, t->len);
    if (i < t->len && (t->p[i] == '-' || t->p[i] == '+'))
        minus = t->p[i++] == '-';
    for (; i < t->len; i++) {
        int64_t digit = t->p[i] - '0';

        if (t->p[i] == '_' && digit_before) {
            digit_before = false;
            continue;
        }
        if (digit < 0 || digit > 9)
            return false;
        if (__builtin_mul_overflow(*out, 10, out) ||
            (minus ? __builtin_sub_overflow(*out, digit, out)
                   : __builtin_add_overflow(*out, digit, out)))
            jv_fail(vm, ERR_BUDGET, "an integer does not fit 64 bits");
        digit_before = true;
    }
    return digit_before;
}

/* Python's float(text). */
static bool parse_float(struct vm *vm, const struct str *s, double *out)
{
    const struct str *t = jv_strip(vm, s, NULL, true, true).u.s;
    char buf[400], *end;
    size_t n = 0;

    for (size_t i = 0; i < t->len; i++) {
        char c = t->p[i];

        if (c == '_') { /* allowed only between digits */
            if (i == 0 || i + 1 == t->len || t->p[i - 1] < '0' || t->p[i - 1] > '9' ||
                t->p[i + 1] < '0' || t->p[i + 1] > '9')
                return false;
            continue;
        }
        if (c == '\0' || strchr("0123456789+-.eEinfatyINFATY", c) == NULL)
            return false;
        if (n == sizeof buf - 1)
            jv_fail(vm, ERR_UNSUPPORTED, "a number has more than %zu characters", n);
        buf[n++] = c;
    }
    buf[n] = '\0';
    *out = strtod(buf, &end);
    return n > 0 && *end == '\0';
}

static bool float_to_int(struct vm *vm, double f, int64_t *out)
{
    if (isnan(f) || isinf(f))
        return false;
    if (f >= 9223372036854775808.0 || f < -9223372036854775808.0)
        jv_fail(vm, ERR_BUDGET, "an integer does not fit 64 bits");
    *out = (int64_t)f;
    return true;
}

static uint32_t source_of(val v)
{
    return v.kind == V_STR ? jv_str_source(v.u.s) : v.source;
}

val jf_int(struct vm *vm, val v, const struct args *a)
{
    int64_t n;
    double f;
    val arg[1];

    jv_bind(vm, a, "int", "default", 0, arg);
    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (jv_as_int(v, &n) || (v.kind == V_STR && parse_int(vm, v.u.s, &n)))
        return jv_sourced(jv_int(n), source_of(v));
    if (v.kind == V_FLOAT && isinf(v.u.f))
        jv_fail(vm, ERR_FORMAT, "infinity is not an integer");
    if ((jv_as_float(v, &f) || (v.kind == V_STR && parse_float(vm, v.u.s, &f))) &&
        float_to_int(vm, f, &n))
        return jv_sourced(jv_int(n), source_of(v));
    return given(arg[0]) ? arg[0] : jv_int(0);
}

val jf_float(struct vm *vm, val v, const struct args *a)
{
    double f;
    val arg[1];

    jv_bind(vm, a, "float", "default", 0, arg);
    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (jv_as_float(v, &f) || (v.kind == V_STR && parse_float(vm, v.u.s, &f)))
        return jv_sourced(jv_float(f), source_of(v));
    return given(arg[0]) ? arg[0] : jv_float(0);
}

val jf_abs(struct vm *vm, val v, const struct args *a)
{
    int64_t i;

    no_args(vm, a, "abs");
    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (v.kind == V_FLOAT)
        return jv_sourced(jv_float(fabs(v.u.f)), v.source);
    if (!jv_as_int(v, &i))
        jv_fail(vm, ERR_FORMAT, "abs cannot be used with %s", jv_type_name(v));
    return i < 0 ? jv_negate(vm, v) : jv_sourced(jv_int(i), v.source);
}
