/*
 * "..." % values and "...".format(values).
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

#define WIDTH_MAX 100000 /* limit of one conversion; precisions of numbers are smaller */

/* One conversion, common to both notations. */
struct spec {
    const struct str *fill; /* NULL: a blank */
    char align;             /* '<', '>', '=', '^', or 0 for the default */
    bool alternate, zero;
    char sign, group;
    int64_t width, precision; /* -1: not given */
    char type;
};

/* Pad the text written since m to the width. */
static void pad(struct vm *vm, struct mark m, const struct spec *sp, char align, size_t n_sign)
{
    const struct str *s = jv_end(vm, m).u.s;
    size_t n = jv_cps(vm, s), missing = 0, left;
    const char *fill = sp->fill != NULL ? sp->fill->p : sp->zero ? "0" : " ";
    size_t len = sp->fill != NULL ? sp->fill->len : 1;
    uint32_t source = sp->fill != NULL ? jv_str_source(sp->fill) : JINJA_TRUSTED;

    if (sp->width > 0 && (size_t)sp->width > n)
        missing = (size_t)sp->width - n;
    left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
    if (align != '=')
        n_sign = 0;
    jv_write_part(vm, s, 0, n_sign);
    jv_fill(vm, fill, len, source, left);
    jv_write_part(vm, s, n_sign, s->len);
    jv_fill(vm, fill, len, source, missing - left);
}

static void write_text(struct vm *vm, const struct spec *sp, const struct str *s, char align)
{
    size_t to = s->len;
    struct mark m;

    if (sp->precision >= 0)
        to = jv_offset(vm, s, (size_t)sp->precision);
    if (sp->width < 0) {
        jv_write_part(vm, s, 0, to);
        return;
    }
    m = jv_begin(vm);
    jv_write_part(vm, s, 0, to);
    pad(vm, m, sp, align, 0);
}

/* Store digits with a separator between groups of three (or four). */
static size_t group_digits(char *buf, size_t n, size_t size, size_t whole, char group,
                           size_t every)
{
    size_t extra = whole > 0 ? (whole - 1) / every : 0;

    if (n + extra >= size)
        return n;
    memmove(buf + whole + extra, buf + whole, n - whole);
    for (size_t i = whole, to = whole + extra, k = 0; i > 0; i--) {
        if (k > 0 && k % every == 0)
            buf[--to] = group;
        buf[--to] = buf[i - 1];
        k++;
    }
    return n + extra;
}

/* Write sign, prefix and digits, then pad. */
static void write_digits(struct vm *vm, const struct spec *sp, bool minus, const char *prefix,
                         const char *digits, size_t n, uint32_t source, char align)
{
    struct mark m = jv_begin(vm);
    size_t begin = m.len, n_sign;

    if (minus)
        jv_puts(vm, "-", source);
    else if (sp->sign != '\0' && sp->sign != '-')
        jv_write(vm, &sp->sign, 1, source);
    jv_puts(vm, prefix, source);
    n_sign = vm->out_len - begin;
    jv_write(vm, digits, n, source);
    pad(vm, m, sp, align, n_sign);
}

static size_t int_digits(uint64_t n, unsigned base, bool upper, char buf[80])
{
    char rev[80];
    size_t len = 0;

    do {
        unsigned digit = (unsigned)(n % base);

        rev[len++] = (char)(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + digit - 10);
        n /= base;
    } while (n > 0);
    for (size_t i = 0; i < len; i++)
        buf[i] = rev[len - 1 - i];
    return len;
}

static void write_int(struct vm *vm, const struct spec *sp, val v, char align, bool percent)
{
    int64_t n = 0;
    char buf[200];
    const char *prefix = "";
    unsigned base = 10;
    size_t len, zeros = 0;

    (void)jv_as_int(v, &n);
    switch (sp->type) {
    case 'x':
    case 'X': base = 16; break;
    case 'o': base = 8; break;
    case 'b': base = 2; break;
    default: break;
    }
    if (sp->alternate && base != 10)
        prefix = sp->type == 'x'   ? "0x"
                 : sp->type == 'X' ? "0X"
                 : sp->type == 'o' ? "0o"
                                   : "0b";
    len = int_digits(n < 0 ? 0 - (uint64_t)n : (uint64_t)n, base, sp->type == 'X', buf);
    if (percent && sp->precision > (int64_t)len) { /* minimum number of digits */
        if (sp->precision > 100)
            jv_fail(vm, ERR_UNSUPPORTED, "a format has a precision of more than 100");
        zeros = (size_t)sp->precision - len;
        memmove(buf + zeros, buf, len);
        memset(buf, '0', zeros);
        len += zeros;
    }
    if (sp->group != '\0')
        len = group_digits(buf, len, sizeof buf, len, sp->group, base == 10 ? 3 : 4);
    write_digits(vm, sp, n < 0, prefix, buf, len, v.source, align);
}

/* Store the digits of f, which must be finite and not negative. */
static size_t float_digits(struct vm *vm, double f, const struct spec *sp, char type, char *buf,
                           size_t size)
{
    int precision = sp->precision >= 0 ? (int)sp->precision : 6;
    char *point;
    int n;

    switch (type) {
    case 'e': n = snprintf(buf, size, "%.*e", precision, f); break;
    case 'E': n = snprintf(buf, size, "%.*E", precision, f); break;
    case 'f':
    case 'F': n = snprintf(buf, size, "%.*f", precision, f); break;
    case 'g':
    case 'n': n = snprintf(buf, size, "%.*g", precision, f); break;
    case 'G': n = snprintf(buf, size, "%.*G", precision, f); break;
    default: /* no type: like str(), or g with a digit after the point */
        if (sp->precision < 0)
            return jv_float_text(f, buf);
        n = snprintf(buf, size, "%.*g", precision > 0 ? precision : 1, f);
        point = strpbrk(buf, ".e");
        if (point == NULL)
            n += sprintf(buf + n, ".0");
    }
    if (sp->alternate)
        jv_fail(vm, ERR_UNSUPPORTED, "the flag # is not supported for such a number");
    return (size_t)n;
}

static void write_float(struct vm *vm, const struct spec *sp, val v, char align)
{
    char buf[800];
    double f = 0;
    size_t len, whole = 0;
    char type = sp->type == '%' ? 'f' : sp->type;

    (void)jv_as_float(v, &f);
    if (sp->precision > 100)
        jv_fail(vm, ERR_UNSUPPORTED, "a format has a precision of more than 100");
    jv_charge(vm, 40);
    if (sp->type == '%')
        f *= 100;
    if (isfinite(f)) {
        len = float_digits(vm, fabs(f), sp, type, buf, sizeof buf / 2);
    } else {
        bool upper = type == 'E' || type == 'F' || type == 'G';

        len = (size_t)sprintf(buf, "%s",
                              isnan(f) ? (upper ? "NAN" : "nan")
                              : upper  ? "INF"
                                       : "inf");
    }
    if (sp->group != '\0') {
        while (whole < len && buf[whole] >= '0' && buf[whole] <= '9')
            whole++;
        len = group_digits(buf, len, sizeof buf, whole, sp->group, 3);
    }
    if (sp->type == '%')
        buf[len++] = '%';
    write_digits(vm, sp, signbit(f) != 0 && !isnan(f), "", buf, len, v.source, align);
}

static void write_char(struct vm *vm, const struct spec *sp, val v, char align)
{
    int64_t n;
    struct mark m = jv_begin(vm);

    if (v.kind == V_STR && jv_cps(vm, v.u.s) == 1) {
        jv_write_str(vm, v.u.s);
    } else {
        n = jv_want_int(vm, v, "the value of %c");
        if (n < 0 || n > 0x10ffff || (n >= 0xd800 && n < 0xe000))
            jv_fail(vm, ERR_FORMAT, "%lld is not a character", (long long)n);
        jv_write_cp(vm, (uint32_t)n, v.source);
    }
    pad(vm, m, sp, align, 0);
}

/* Parse digits at *at of s into *out.  Returns false if there are none. */
static bool number_at(struct vm *vm, const struct str *s, size_t *at, int64_t *out)
{
    size_t from = *at;
    int64_t n = 0;

    for (; *at < s->len && s->p[*at] >= '0' && s->p[*at] <= '9'; ++*at) {
        n = n * 10 + (s->p[*at] - '0');
        if (n > WIDTH_MAX)
            jv_fail(vm, ERR_BUDGET, "a format has a width of more than %d", WIDTH_MAX);
    }
    if (*at > from)
        *out = n;
    return *at > from;
}

/* ---- % ---- */

struct values {
    val arg;
    size_t next;
};

static val next_value(struct vm *vm, struct values *v)
{
    if (v->arg.kind == V_TUPLE && v->next < v->arg.u.list->n)
        return v->arg.u.list->item[v->next++];
    if (v->arg.kind != V_TUPLE && v->next++ == 0)
        return v->arg;
    jv_fail(vm, ERR_FORMAT, "a format has more places than values");
}

/* Parse "(name)" at *at.  Returns the value of name. */
static val named_value(struct vm *vm, const struct str *f, size_t *at, struct values *v)
{
    size_t from = ++*at, depth = 1;
    const val *found;
    const struct str *name;

    for (; *at < f->len; ++*at) {
        depth += f->p[*at] == '(';
        depth -= f->p[*at] == ')';
        if (depth == 0)
            break;
    }
    if (*at == f->len)
        jv_fail(vm, ERR_FORMAT, "a name in a format is never closed");
    if (v->arg.kind != V_DICT)
        jv_fail(vm, ERR_FORMAT, "a format with names needs a dict, not %s",
                jv_type_name(v->arg));
    name = jv_cut(vm, f, from, *at).u.s;
    ++*at;
    found = jv_dict_get(vm, v->arg.u.dict, jv_str(name));
    if (found == NULL)
        jv_fail(vm, ERR_FORMAT, "the dict of a format has no \"%.*s\"",
                (int)(name->len < 60 ? name->len : 60), name->p);
    v->next = 1;
    return *found;
}

static void percent_text(struct vm *vm, const struct str *f, const struct spec *sp, val v,
                         char align)
{
    struct mark m = jv_begin(vm);
    const struct str *s;

    if (sp->type == 'r')
        jv_repr(vm, v);
    else
        jv_print(vm, v);
    s = jv_end(vm, m).u.s;
    if (f->markup && !(v.kind == V_STR && v.u.s->markup)) {
        m = jv_begin(vm);
        jv_write_escaped(vm, s);
        s = jv_end(vm, m).u.s;
    }
    write_text(vm, sp, s, align);
}

static void percent_value(struct vm *vm, const struct str *f, struct spec *sp, val v, bool left)
{
    char number = left ? '<' : sp->zero ? '=' : '>', text = left ? '<' : '>';
    int64_t n;

    if (left)
        sp->zero = false;
    if (v.kind == V_UNDEF && sp->type != 's' && sp->type != 'r')
        jv_fail_undef(vm, v);
    switch (sp->type) {
    case 's':
    case 'r':
        sp->zero = false;
        percent_text(vm, f, sp, v, text);
        return;
    case 'c':
        sp->zero = false;
        write_char(vm, sp, v, text);
        return;
    case 'd':
    case 'i':
    case 'u':
        if (v.kind == V_FLOAT) {
            if (!(v.u.f > -9.2e18 && v.u.f < 9.2e18))
                jv_fail(vm, ERR_BUDGET, "an integer does not fit 64 bits");
            v = jv_sourced(jv_int((int64_t)v.u.f), v.source);
        }
        sp->type = 'd';
        break;
    case 'x':
    case 'X':
    case 'o': break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (!jv_is_number(v))
            jv_fail(vm, ERR_FORMAT, "%%%c needs a number, not %s", sp->type, jv_type_name(v));
        write_float(vm, sp, v, number);
        return;
    case 'a': jv_fail(vm, ERR_UNSUPPORTED, "%%a is not supported");
    default: jv_fail(vm, ERR_FORMAT, "a format has an unknown conversion");
    }
    if (!jv_as_int(v, &n))
        jv_fail(vm, ERR_FORMAT, "%%%c needs a number, not %s", sp->type, jv_type_name(v));
    write_int(vm, sp, v, number, true);
}

/* Write one conversion; *at is after the %. */
static void percent_one(struct vm *vm, const struct str *f, size_t *at, struct values *values)
{
    struct spec sp = { .width = -1, .precision = -1 };
    val v = { .kind = V_MISSING };
    bool left = false;

    if (*at < f->len && f->p[*at] == '(')
        v = named_value(vm, f, at, values);
    for (; *at < f->len && strchr("-+ #0", f->p[*at]) != NULL && f->p[*at] != '\0'; ++*at) {
        char c = f->p[*at];

        left |= c == '-';
        sp.zero |= c == '0';
        sp.alternate |= c == '#';
        if (c == '+' || (c == ' ' && sp.sign != '+'))
            sp.sign = c;
    }
    if (*at < f->len && f->p[*at] == '*') {
        sp.width = jv_want_int(vm, next_value(vm, values), "a width");
        ++*at;
        if (sp.width < -WIDTH_MAX || sp.width > WIDTH_MAX)
            jv_fail(vm, ERR_BUDGET, "a format has a width of more than %d", WIDTH_MAX);
        left |= sp.width < 0;
        sp.width = sp.width < 0 ? -sp.width : sp.width;
    } else {
        (void)number_at(vm, f, at, &sp.width);
    }
    if (*at < f->len && f->p[*at] == '.') {
        ++*at;
        sp.precision = 0;
        if (*at < f->len && f->p[*at] == '*') {
            sp.precision = jv_want_int(vm, next_value(vm, values), "a precision");
            ++*at;
            if (sp.precision > WIDTH_MAX)
                jv_fail(vm, ERR_BUDGET, "a format has a precision of more than %d", WIDTH_MAX);
            if (sp.precision < 0)
                sp.precision = 0;
        } else {
            (void)number_at(vm, f, at, &sp.precision);
        }
    }
    while (*at < f->len && (f->p[*at] == 'h' || f->p[*at] == 'l' || f->p[*at] == 'L'))
        ++*at;
    if (*at == f->len)
        jv_fail(vm, ERR_FORMAT, "a format is incomplete");
    sp.type = f->p[(*at)++];
    if (sp.type == '%') {
        jv_write_part(vm, f, *at - 1, *at);
        return;
    }
    if (v.kind == V_MISSING)
        v = next_value(vm, values);
    percent_value(vm, f, &sp, v, left);
}

val jv_percent(struct vm *vm, const struct str *f, val arg)
{
    static const struct str sign = { .p = "%", .len = 1, .n_cp = 1 };
    struct values values = { arg, 0 };
    size_t at = 0, found;
    struct mark m = jv_begin(vm);
    val got;

    while ((found = jv_find(vm, f, at, f->len, &sign)) != SIZE_MAX) {
        jv_write_part(vm, f, at, found);
        at = found + 1;
        percent_one(vm, f, &at, &values);
    }
    jv_write_part(vm, f, at, f->len);
    if (arg.kind == V_TUPLE ? values.next < arg.u.list->n
                            : values.next == 0 && arg.kind != V_DICT && arg.kind != V_LIST &&
                                  arg.kind != V_UNDEF && arg.kind != V_RANGE)
        jv_fail(vm, ERR_FORMAT, "a format has fewer places than values");
    got = jv_end(vm, m);
    return f->markup ? jv_markup(vm, got) : got;
}

/* ---- format() ---- */

struct fields {
    const struct args *args;
    size_t next;
    bool automatic, manual; /* numbering of the fields; cannot be mixed */
};

static char at_or_nul(const struct str *s, size_t at)
{
    return at < s->len ? s->p[at] : '\0';
}

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '=' || c == '^';
}

static void parse_spec(struct vm *vm, const struct str *s, struct spec *sp)
{
    size_t at = 0, first = 0;
    uint32_t cp;

    *sp = (struct spec){ .width = -1, .precision = -1 };
    if (s->len > 0)
        first = utf8_decode(s->p, s->len, &cp);
    if (first > 0 && is_align(at_or_nul(s, first))) {
        sp->fill = jv_cut(vm, s, 0, first).u.s;
        sp->align = s->p[first];
        at = first + 1;
    } else if (is_align(at_or_nul(s, 0))) {
        sp->align = s->p[at++];
    }
    if (at < s->len && (s->p[at] == '+' || s->p[at] == '-' || s->p[at] == ' '))
        sp->sign = s->p[at++];
    if (at_or_nul(s, at) == '#') {
        sp->alternate = true;
        at++;
    }
    if (at_or_nul(s, at) == '0') {
        sp->zero = sp->fill == NULL;
        if (sp->align == '\0')
            sp->align = '0'; /* '=' for numbers; text rejects it later */
        at++;
    }
    (void)number_at(vm, s, &at, &sp->width);
    if (at_or_nul(s, at) == ',' || at_or_nul(s, at) == '_')
        sp->group = s->p[at++];
    if (at_or_nul(s, at) == '.') {
        at++;
        if (!number_at(vm, s, &at, &sp->precision))
            jv_fail(vm, ERR_FORMAT, "a format has no precision after its point");
    }
    if (at < s->len)
        sp->type = s->p[at++];
    if (at < s->len)
        jv_fail(vm, ERR_FORMAT, "invalid format specification");
}

static void format_number(struct vm *vm, struct spec *sp, val v)
{
    char align = sp->align == '0' ? '=' : sp->align != '\0' ? sp->align : '>';

    if (v.kind == V_FLOAT ||
        (sp->type != '\0' && sp->type != 'n' && strchr("eEfFgG%", sp->type) != NULL)) {
        if (sp->type != '\0' && strchr("eEfFgGn%", sp->type) == NULL)
            jv_fail(vm, ERR_FORMAT, "a float cannot be formatted as \"%c\"", sp->type);
        write_float(vm, sp, v, align);
        return;
    }
    if (sp->type != '\0' && strchr("dnxXobc", sp->type) == NULL)
        jv_fail(vm, ERR_FORMAT, "an integer cannot be formatted as \"%c\"", sp->type);
    if (sp->precision >= 0)
        jv_fail(vm, ERR_FORMAT, "an integer has no precision");
    if (sp->type == 'c')
        write_char(vm, sp, v, align == '>' && sp->align == '\0' ? '<' : align);
    else
        write_int(vm, sp, v, align, false);
}

static void format_value(struct vm *vm, const struct str *spec, val v)
{
    struct spec sp;

    if (spec->len == 0) {
        jv_print(vm, v);
        return;
    }
    parse_spec(vm, spec, &sp);
    if (jv_is_number(v)) {
        format_number(vm, &sp, v);
        return;
    }
    if (v.kind == V_UNDEF)
        v = jv_to_str(vm, v);
    if (v.kind != V_STR)
        jv_fail(vm, ERR_FORMAT, "a value of type %s cannot be formatted", jv_type_name(v));
    if (sp.align == '=' || sp.sign != '\0' || sp.alternate || sp.group != '\0' ||
        (sp.type != '\0' && sp.type != 's'))
        jv_fail(vm, ERR_FORMAT, "text cannot be formatted this way");
    write_text(vm, &sp, v.u.s, sp.align == '\0' || sp.align == '0' ? '<' : sp.align);
}

/* Returns the value of "0", "name" or nothing, then ".attribute" and "[item]". */
static val field_value(struct vm *vm, const struct str *name, struct fields *f)
{
    size_t at = 0;
    int64_t index = -1;
    val v = { .kind = V_MISSING };

    while (at < name->len && name->p[at] != '.' && name->p[at] != '[')
        at++;
    if (at == 0) {
        index = (int64_t)f->next++;
        f->automatic = true;
    } else {
        size_t end = 0;

        if (number_at(vm, name, &end, &index) && end == at)
            f->manual = true;
        else
            index = -1;
    }
    if (f->automatic && f->manual)
        jv_fail(vm, ERR_FORMAT, "a format cannot mix numbered fields with others");
    if (index >= 0 && (uint64_t)index < f->args->n)
        v = f->args->pos[index];
    for (size_t i = 0; index < 0 && i < f->args->n_kw; i++) {
        const struct str *key = f->args->key[i].u.s;

        if (key->len == at && memcmp(key->p, name->p, at) == 0)
            v = f->args->kw[i];
    }
    if (v.kind == V_MISSING)
        jv_fail(vm, ERR_FORMAT, "a format has more places than values");
    while (at < name->len) {
        bool item = name->p[at] == '[';
        size_t from = ++at, end;
        const struct str *part;

        while (at < name->len &&
               (item ? name->p[at] != ']' : name->p[at] != '.' && name->p[at] != '['))
            at++;
        part = jv_cut(vm, name, from, at).u.s;
        end = 0;
        if (part->len == 0 || (item && at == name->len))
            jv_fail(vm, ERR_FORMAT, "invalid field in a format");
        if (!item)
            v = jv_attr(vm, v, part);
        else if (number_at(vm, part, &end, &index) && end == part->len)
            v = jv_item(vm, v, jv_int(index));
        else
            v = jv_item(vm, v, jv_str(part));
        at += item;
        if (item && at < name->len && name->p[at] != '.' && name->p[at] != '[')
            jv_fail(vm, ERR_FORMAT, "invalid field in a format");
    }
    return v;
}

static void format_part(struct vm *vm, const struct str *s, struct fields *f, unsigned level);

/* Write one field; s is the text between its braces. */
static void format_field(struct vm *vm, const struct str *s, struct fields *f, unsigned level)
{
    static const struct str nothing = { .p = "" };
    const struct str *spec = &nothing;
    size_t end = 0, brackets = 0;
    char conversion = '\0';
    struct mark m;
    val v;

    for (; end < s->len && (brackets > 0 || (s->p[end] != '!' && s->p[end] != ':')); end++) {
        brackets += s->p[end] == '[';
        brackets -= s->p[end] == ']' && brackets > 0;
    }
    v = field_value(vm, jv_cut(vm, s, 0, end).u.s, f);
    if (at_or_nul(s, end) == '!') {
        conversion = at_or_nul(s, end + 1);
        end += 2;
        if ((conversion != 's' && conversion != 'r') || (end < s->len && s->p[end] != ':'))
            jv_fail(vm, ERR_FORMAT, "invalid conversion in a format");
    }
    if (end < s->len) { /* the specification may contain fields, too */
        m = jv_begin(vm);
        format_part(vm, jv_cut(vm, s, end + 1, s->len).u.s, f, level + 1);
        spec = jv_end(vm, m).u.s;
    }
    if (conversion != '\0') {
        m = jv_begin(vm);
        if (conversion == 'r')
            jv_repr(vm, v);
        else
            jv_print(vm, v);
        v = jv_end(vm, m);
    }
    format_value(vm, spec, v);
}

static void format_part(struct vm *vm, const struct str *s, struct fields *f, unsigned level)
{
    if (level > 2)
        jv_fail(vm, ERR_FORMAT, "the fields of a format nest too deeply");
    jv_charge_bytes(vm, s->len);
    for (size_t at = 0, from; at < s->len;) {
        size_t depth = 0;
        char c;

        for (from = at; at < s->len && s->p[at] != '{' && s->p[at] != '}'; at++) {
        }
        jv_write_part(vm, s, from, at);
        if (at == s->len)
            break;
        c = s->p[at];
        if (at_or_nul(s, at + 1) == c && level == 0) {
            jv_write_part(vm, s, at, at + 1);
            at += 2;
            continue;
        }
        if (c == '}')
            jv_fail(vm, ERR_FORMAT, "a format has a single \"}\"");
        for (from = ++at; at < s->len; at++) {
            depth += s->p[at] == '{';
            if (s->p[at] == '}' && depth-- == 0)
                break;
        }
        if (at == s->len)
            jv_fail(vm, ERR_FORMAT, "a field of a format is never closed");
        format_field(vm, jv_cut(vm, s, from, at).u.s, f, level);
        at++;
    }
}

val jv_format(struct vm *vm, const struct str *s, const struct args *a)
{
    struct fields f = { .args = a };
    struct mark m;
    val got;

    if (s->markup)
        jv_fail(vm, ERR_UNSUPPORTED, "the method \"format\" of safe text is not supported");
    m = jv_begin(vm);
    format_part(vm, s, &f, 0);
    got = jv_end(vm, m);
    return got;
}
