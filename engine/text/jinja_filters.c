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
    { "attr", jf_attr },
    { "batch", jf_batch },
    { "capitalize", jf_capitalize },
    { "center", jf_center },
    { "count", jf_length },
    { "d", jf_default },
    { "default", jf_default },
    { "dictsort", jf_dictsort },
    { "e", jf_escape },
    { "escape", jf_escape },
    { "first", jf_first },
    { "float", jf_float },
    { "forceescape", jf_forceescape },
    { "format", jf_format },
    { "groupby", jf_groupby },
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
    { "round", jf_round },
    { "safe", jf_safe },
    { "select", jf_select },
    { "selectattr", jf_selectattr },
    { "slice", jf_slice },
    { "sort", jf_sort },
    { "string", jf_string },
    { "sum", jf_sum },
    { "title", jf_title },
    { "tojson", jf_tojson },
    { "trim", jf_trim },
    { "truncate", jf_truncate },
    { "unique", jf_unique },
    { "upper", jf_upper },
    { "wordcount", jf_wordcount },
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

/* Returns v as text for a filter.  Markup stays Markup. */
static const struct str *text_of(struct vm *vm, val v)
{
    return jv_to_str(vm, v).u.s;
}

static val like(struct vm *vm, const struct str *s, val made)
{
    return s->markup ? jv_markup(vm, made) : made;
}

/* ---- text ---- */

static val with_case(struct vm *vm, val v, const struct args *a, const char *what,
                     enum str_case c)
{
    const struct str *s = text_of(vm, v);
    struct mark m;

    no_args(vm, a, what);
    m = jv_begin(vm);
    jv_write_case(vm, s, 0, s->len, c);
    return like(vm, s, jv_end(vm, m));
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
static bool separates_words(uint32_t cp)
{
    return cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<' ||
           (cp < UTF8_SHORT && jv_is_space(cp));
}

val jf_title(struct vm *vm, val v, const struct args *a)
{
    const struct str *s = text_of(vm, v);
    struct mark m;

    no_args(vm, a, "title");
    m = jv_begin(vm);
    for (size_t at = 0, end, len; at < s->len; at = end) {
        uint32_t cp;
        bool separator;

        len = utf8_decode(s->p + at, s->len - at, &cp);
        separator = separates_words(cp);
        for (end = at + len; end < s->len; end += len) {
            len = utf8_decode(s->p + end, s->len - end, &cp);
            if (separates_words(cp) != separator)
                break;
        }
        jv_charge(vm, 1 + (end - at) / 8);
        len = utf8_decode(s->p + at, s->len - at, &cp);
        if (separator) {
            jv_write_part(vm, s, at, end);
        } else {
            const struct str *rest = jv_cut(vm, s, at + len, end).u.s;

            jv_write_case(vm, s, at, at + len, CASE_UPPER);
            jv_write_case(vm, rest, 0, rest->len, CASE_LOWER);
        }
    }
    return jv_end(vm, m);
}

val jf_trim(struct vm *vm, val v, const struct args *a)
{
    const struct str *chars = NULL, *s = text_of(vm, v);
    val arg[1];

    jv_bind(vm, a, "trim", "chars", 0, arg);
    if (given(arg[0]) && arg[0].kind != V_NONE)
        chars = jv_want_str(vm, arg[0], "\"chars\" of trim");
    return jv_strip(vm, s, chars, true, true);
}

val jf_center(struct vm *vm, val v, const struct args *a)
{
    const struct str *s = text_of(vm, v);
    size_t n = jv_cps(vm, s), pad = 0, left;
    int64_t width = 80;
    struct mark m;
    val arg[1];

    jv_bind(vm, a, "center", "width", 0, arg);
    if (given(arg[0]))
        width = jv_want_int(vm, arg[0], "\"width\" of center");
    if (width > 0 && (size_t)width > n)
        pad = (size_t)width - n;
    left = pad / 2 + (pad & (size_t)width & 1); /* like Python if the padding is odd */
    m = jv_begin(vm);
    jv_fill(vm, " ", 1, JINJA_TRUSTED, left);
    jv_write_str(vm, s);
    jv_fill(vm, " ", 1, JINJA_TRUSTED, pad - left);
    return like(vm, s, jv_end(vm, m));
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
    return jv_plain(
        vm, jv_replace(vm, text_of(vm, v), text_of(vm, arg[0]), text_of(vm, arg[1]), count));
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
    return like(vm, s, jv_end(vm, m));
}

val jf_truncate(struct vm *vm, val v, const struct args *a)
{
    static const struct str dots = { .p = "...", .len = 3, .n_cp = 3 },
                            blank = { .p = " ", .len = 1, .n_cp = 1 };
    const struct str *s, *end = &dots;
    int64_t length = 255, leeway = 5, n = jv_length(vm, v);
    size_t to, n_end, word;
    struct mark m;
    val arg[4];

    jv_bind(vm, a, "truncate", "length killwords end leeway", 0, arg);
    if (given(arg[0]))
        length = jv_want_int(vm, arg[0], "\"length\" of truncate");
    if (given(arg[2]))
        end = jv_want_str(vm, arg[2], "\"end\" of truncate");
    if (given(arg[3]) && arg[3].kind != V_NONE)
        leeway = jv_want_int(vm, arg[3], "\"leeway\" of truncate");
    n_end = jv_cps(vm, end);
    if (length < 0 || (size_t)length < n_end || leeway < 0)
        jv_fail(vm, ERR_FORMAT, "the length of truncate is too small");
    if (n >= 0 && (n <= length || n - length <= leeway))
        return v; /* also returns a list that is short enough */
    s = jv_want_str(vm, v, "what is truncated");
    to = jv_offset(vm, s, (size_t)length - n_end);
    if (!jv_true(vm, arg[1])) {
        word = jv_rfind(vm, s, 0, to, &blank);
        if (word != SIZE_MAX)
            to = word;
    }
    m = jv_begin(vm);
    jv_write_part(vm, s, 0, to);
    jv_write_str(vm, end);
    return jv_end(vm, m);
}

val jf_wordcount(struct vm *vm, val v, const struct args *a)
{
    const struct str *s = text_of(vm, v);
    bool inside = false;
    int64_t n = 0;
    uint32_t cp;

    no_args(vm, a, "wordcount");
    for (size_t i = 0; i < s->len;) {
        bool word;

        i += utf8_decode(s->p + i, s->len - i, &cp);
        jv_charge(vm, 1);
        word = jv_is_word(cp);
        n += word && !inside;
        inside = word;
    }
    return jv_int(n);
}

val jf_escape(struct vm *vm, val v, const struct args *a)
{
    no_args(vm, a, "escape");
    return v.kind == V_STR && v.u.s->markup ? v : jf_forceescape(vm, v, a);
}

val jf_forceescape(struct vm *vm, val v, const struct args *a)
{
    const struct str *s = text_of(vm, v);
    struct mark m;

    no_args(vm, a, "forceescape");
    m = jv_begin(vm);
    jv_write_escaped(vm, s);
    return jv_markup(vm, jv_end(vm, m));
}

val jf_safe(struct vm *vm, val v, const struct args *a)
{
    no_args(vm, a, "safe");
    return jv_markup(vm, jv_to_str(vm, v));
}

val jf_string(struct vm *vm, val v, const struct args *a)
{
    no_args(vm, a, "string");
    return jv_to_str(vm, v);
}

val jf_format(struct vm *vm, val v, const struct args *a)
{
    const struct str *s = text_of(vm, v);
    struct dict *d;

    if (a->n > 0 && a->n_kw > 0)
        jv_fail(vm, ERR_FORMAT, "format takes either positional or named arguments");
    if (a->n_kw == 0) {
        struct list *l = jv_list_new(vm, a->n);

        for (size_t i = 0; i < a->n; i++)
            jv_push(vm, l, a->pos[i]);
        return jv_percent(vm, s, jv_of_list(l, V_TUPLE));
    }
    d = jv_dict_new(vm);
    for (size_t i = 0; i < a->n_kw; i++)
        jv_dict_set(vm, d, a->key[i], a->kw[i]);
    return jv_percent(vm, s, (val){ .kind = V_DICT, .u.dict = d });
}

/* ---- numbers ---- */

/* Python's int(text, base).  Returns whether text is an integer. */
static bool parse_int(struct vm *vm, const struct str *s, int64_t base, int64_t *out)
{
    const struct str *t = jv_strip(vm, s, NULL, true, true).u.s;
    bool minus = false, digit_before = false, any = false;
    size_t i = 0;
    int64_t n = 0;

    if (base != 0 && (base < 2 || base > 36))
        return false;
    jv_charge_bytes(vm, t->len);
    if (i < t->len && (t->p[i] == '-' || t->p[i] == '+'))
        minus = t->p[i++] == '-';
    if (i + 1 < t->len && t->p[i] == '0') {
        char c = (char)(t->p[i + 1] | 0x20);
        int64_t prefix = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;

        if (prefix != 0 && (base == 0 || base == prefix)) {
            base = prefix;
            i += 2;
            digit_before = true; /* an underscore may follow the prefix */
        }
    }
    if (base == 0)
        base = 10;
    for (; i < t->len; i++) {
        char c = t->p[i];
        int64_t digit = c >= '0' && c <= '9'                     ? c - '0'
                        : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                                 : 99;

        if (c == '_' && digit_before && i + 1 < t->len) {
            digit_before = false;
            continue;
        }
        if (digit >= base)
            return false;
        if (__builtin_mul_overflow(n, base, &n) ||
            (minus ? __builtin_sub_overflow(n, digit, &n)
                   : __builtin_add_overflow(n, digit, &n)))
            jv_fail(vm, ERR_BUDGET, "an integer does not fit 64 bits");
        digit_before = any = true;
    }
    *out = n;
    return any;
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
    int64_t base = 10, n;
    double f;
    val arg[2];

    jv_bind(vm, a, "int", "default base", 0, arg);
    if (given(arg[1]))
        base = jv_want_int(vm, arg[1], "\"base\" of int");
    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (jv_as_int(v, &n) || (v.kind == V_STR && parse_int(vm, v.u.s, base, &n)))
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

/* Round an int to tens, hundreds, ...; half rounds to even. */
static int64_t round_int(struct vm *vm, int64_t n, int64_t digits)
{
    int64_t unit = 1, rest, low;

    for (; digits < 0; digits++) {
        if (unit == INT64_C(1000000000000000000)) { /* the next unit does not fit 64 bits */
            if (digits == -1 && (n > 5 * unit || n < -5 * unit))
                jv_fail(vm, ERR_BUDGET, "an integer does not fit 64 bits");
            return 0;
        }
        unit *= 10;
    }
    rest = n % unit;
    if (rest < 0)
        rest += unit;
    low = n - rest;
    if (rest > unit - rest || (rest == unit - rest && (low / unit) % 2 != 0)) {
        if (__builtin_add_overflow(low, unit, &low))
            jv_fail(vm, ERR_BUDGET, "an integer does not fit 64 bits");
    }
    return low;
}

static double round_float(double f, int64_t digits)
{
    char buf[400];
    double unit;

    if (!isfinite(f) || digits > 323)
        return f;
    if (digits >= 0) { /* printf rounds the exact value, half to even */
        snprintf(buf, sizeof buf, "%.*f", (int)(digits < 60 ? digits : 60), f);
        return digits < 60 ? strtod(buf, NULL) : f;
    }
    if (digits < -308)
        return copysign(0, f);
    unit = pow(10, (double)-digits);
    return rint(f / unit) * unit;
}

val jf_round(struct vm *vm, val v, const struct args *a)
{
    int64_t digits = 0, i;
    double f, unit;
    val arg[2];
    bool ceiling;

    jv_bind(vm, a, "round", "precision method", 0, arg);
    if (given(arg[0]))
        digits = jv_want_int(vm, arg[0], "\"precision\" of round");
    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (!jv_as_float(v, &f))
        jv_fail(vm, ERR_FORMAT, "round cannot be used with %s", jv_type_name(v));
    if (!given(arg[1]) || (arg[1].kind == V_STR && jv_is(arg[1].u.s, "common"))) {
        if (jv_as_int(v, &i))
            return jv_sourced(jv_int(digits < 0 ? round_int(vm, i, digits) : i), v.source);
        return jv_sourced(jv_float(round_float(f, digits)), v.source);
    }
    ceiling = arg[1].kind == V_STR && jv_is(arg[1].u.s, "ceil");
    if (!ceiling && !(arg[1].kind == V_STR && jv_is(arg[1].u.s, "floor")))
        jv_fail(vm, ERR_FORMAT, "the method of round must be common, ceil or floor");
    if (digits < -300 || digits > 300 || !isfinite(f))
        jv_fail(vm, ERR_FORMAT, "the number is too large for round");
    unit = pow(10, (double)digits);
    f = ceiling ? ceil(f * unit) : floor(f * unit);
    return jv_sourced(jv_float(f / unit), v.source);
}
