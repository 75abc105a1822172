/*
 * Methods of text, lists and dicts.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

enum method_id {
    STR_CAPITALIZE,
    STR_CENTER,
    STR_COUNT,
    STR_ENDSWITH,
    STR_FIND,
    STR_FORMAT,
    STR_INDEX,
    STR_IS, /* isalpha... */
    STR_JOIN,
    STR_LJUST,
    STR_LOWER,
    STR_LSTRIP,
    STR_PARTITION,
    STR_REMOVEPREFIX,
    STR_REMOVESUFFIX,
    STR_REPLACE,
    STR_RFIND,
    STR_RINDEX,
    STR_RJUST,
    STR_RPARTITION,
    STR_RSPLIT,
    STR_RSTRIP,
    STR_SPLIT,
    STR_SPLITLINES,
    STR_STARTSWITH,
    STR_STRIP,
    STR_SWAPCASE,
    STR_TITLE,
    STR_UPPER,
    STR_ZFILL,
    DICT_COPY,
    DICT_GET,
    DICT_ITEMS,
    DICT_KEYS,
    DICT_VALUES,
    LIST_COPY,
    LIST_COUNT,
    LIST_INDEX,
    INT_BIT_LENGTH,
    FLOAT_IS_INTEGER,
};

enum { CHANGES = -2, OUTSIDE = -3 };

static const struct entry {
    const char *name;
    int id;
} str_methods[] = {
    { "capitalize", STR_CAPITALIZE },
    { "casefold", OUTSIDE },
    { "center", STR_CENTER },
    { "count", STR_COUNT },
    { "encode", OUTSIDE },
    { "endswith", STR_ENDSWITH },
    { "expandtabs", OUTSIDE },
    { "find", STR_FIND },
    { "format", STR_FORMAT },
    { "format_map", OUTSIDE },
    { "index", STR_INDEX },
    { "isalnum", STR_IS },
    { "isalpha", STR_IS },
    { "isascii", STR_IS },
    { "isdecimal", STR_IS },
    { "isdigit", STR_IS },
    { "isidentifier", OUTSIDE },
    { "islower", STR_IS },
    { "isnumeric", STR_IS },
    { "isprintable", STR_IS },
    { "isspace", STR_IS },
    { "istitle", STR_IS },
    { "isupper", STR_IS },
    { "join", STR_JOIN },
    { "ljust", STR_LJUST },
    { "lower", STR_LOWER },
    { "lstrip", STR_LSTRIP },
    { "maketrans", OUTSIDE },
    { "partition", STR_PARTITION },
    { "removeprefix", STR_REMOVEPREFIX },
    { "removesuffix", STR_REMOVESUFFIX },
    { "replace", STR_REPLACE },
    { "rfind", STR_RFIND },
    { "rindex", STR_RINDEX },
    { "rjust", STR_RJUST },
    { "rpartition", STR_RPARTITION },
    { "rsplit", STR_RSPLIT },
    { "rstrip", STR_RSTRIP },
    { "split", STR_SPLIT },
    { "splitlines", STR_SPLITLINES },
    { "startswith", STR_STARTSWITH },
    { "strip", STR_STRIP },
    { "swapcase", STR_SWAPCASE },
    { "title", STR_TITLE },
    { "translate", OUTSIDE },
    { "upper", STR_UPPER },
    { "zfill", STR_ZFILL },
}, dict_methods[] = {
    { "clear", CHANGES },
    { "copy", DICT_COPY },
    { "fromkeys", OUTSIDE },
    { "get", DICT_GET },
    { "items", DICT_ITEMS },
    { "keys", DICT_KEYS },
    { "pop", CHANGES },
    { "popitem", CHANGES },
    { "setdefault", CHANGES },
    { "update", CHANGES },
    { "values", DICT_VALUES },
}, list_methods[] = {
    { "append", CHANGES },
    { "clear", CHANGES },
    { "copy", LIST_COPY },
    { "count", LIST_COUNT },
    { "extend", CHANGES },
    { "index", LIST_INDEX },
    { "insert", CHANGES },
    { "pop", CHANGES },
    { "remove", CHANGES },
    { "reverse", CHANGES },
    { "sort", CHANGES },
}, tuple_methods[] = {
    { "count", LIST_COUNT },
    { "index", LIST_INDEX },
}, int_methods[] = {
    { "as_integer_ratio", OUTSIDE }, { "bit_count", OUTSIDE },   { "bit_length", INT_BIT_LENGTH },
    { "conjugate", OUTSIDE },        { "denominator", OUTSIDE }, { "from_bytes", OUTSIDE },
    { "imag", OUTSIDE },             { "numerator", OUTSIDE },   { "real", OUTSIDE },
    { "to_bytes", OUTSIDE },
}, float_methods[] = {
    { "as_integer_ratio", OUTSIDE },
    { "conjugate", OUTSIDE },
    { "fromhex", OUTSIDE },
    { "hex", OUTSIDE },
    { "imag", OUTSIDE },
    { "is_integer", FLOAT_IS_INTEGER },
    { "real", OUTSIDE },
}, range_methods[] = {
    { "count", OUTSIDE }, { "index", OUTSIDE }, { "start", OUTSIDE },
    { "step", OUTSIDE },  { "stop", OUTSIDE },
}, view_methods[] = {
    { "isdisjoint", OUTSIDE },
    { "mapping", OUTSIDE },
};

#define TABLE(t)                                                                               \
    (struct table)                                                                             \
    {                                                                                          \
        t, sizeof(t) / sizeof(t)[0]                                                            \
    }

struct table {
    const struct entry *entry;
    size_t n;
};

static struct table table_of(enum val_kind kind)
{
    switch (kind) {
    case V_STR: return TABLE(str_methods);
    case V_DICT: return TABLE(dict_methods);
    case V_LIST: return TABLE(list_methods);
    case V_TUPLE: return TABLE(tuple_methods);
    case V_BOOL:
    case V_INT: return TABLE(int_methods);
    case V_FLOAT: return TABLE(float_methods);
    case V_RANGE: return TABLE(range_methods);
    case V_VIEW: return TABLE(view_methods);
    default: return (struct table){ NULL, 0 };
    }
}

/* Ids from here on are predicates. */
#define IS_FIRST 1000

int jv_method_id(enum val_kind kind, const struct str *name)
{
    struct table t = table_of(kind);

    for (size_t i = 0; i < t.n; i++) {
        if (t.entry[i].name[0] == (name->len > 0 ? name->p[0] : '\0') &&
            jv_is(name, t.entry[i].name))
            return t.entry[i].id == STR_IS && kind == V_STR ? IS_FIRST + (int)i : t.entry[i].id;
    }
    return -1;
}

static bool given(val v)
{
    return v.kind != V_MISSING && v.kind != V_NONE;
}

/* ---- text ---- */

static val like(struct vm *vm, const struct str *s, val made)
{
    return s->markup ? jv_markup(vm, made) : made;
}

/* Methods of Markup escape their arguments. */
static const struct str *text_arg(struct vm *vm, const struct str *s, val v)
{
    const struct str *t = jv_want_str(vm, v, "an argument of a method");
    struct mark m;

    if (!s->markup || t->markup)
        return t;
    m = jv_begin(vm);
    jv_write_escaped(vm, t);
    return jv_end(vm, m).u.s;
}

static val strip(struct vm *vm, const struct str *s, const struct args *a, bool left,
                 bool right)
{
    val arg[1];

    jv_bind(vm, a, "strip", "chars", 0, arg);
    return jv_strip(vm, s, given(arg[0]) ? text_arg(vm, s, arg[0]) : NULL, left, right);
}

static val change_case(struct vm *vm, const struct str *s, const struct args *a,
                       enum str_case c)
{
    struct mark m;

    jv_bind(vm, a, "a change of case", "", 0, NULL);
    m = jv_begin(vm);
    jv_write_case(vm, s, 0, s->len, c);
    return like(vm, s, jv_end(vm, m));
}

static val part(struct vm *vm, const struct str *s, size_t from, size_t to)
{
    return jv_cut(vm, s, from, to);
}

/* split() without a separator: split into words. */
static void split_words(struct vm *vm, const struct str *s, int64_t max, struct list *l)
{
    size_t at = 0;

    for (;;) {
        size_t from, len;
        uint32_t cp;

        for (; at < s->len; at += len) {
            len = utf8_decode(s->p + at, s->len - at, &cp);
            if (cp >= UTF8_SHORT || !jv_is_space(cp))
                break;
        }
        if (at == s->len)
            return;
        from = at;
        if (max >= 0 && l->n == (size_t)max) {
            jv_push(vm, l, part(vm, s, from, s->len));
            return;
        }
        for (; at < s->len; at += len) {
            len = utf8_decode(s->p + at, s->len - at, &cp);
            if (cp < UTF8_SHORT && jv_is_space(cp))
                break;
        }
        jv_charge(vm, (at - from) / 4);
        jv_push(vm, l, part(vm, s, from, at));
    }
}

static void reverse(struct list *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        val v = l->item[i];

        l->item[i] = l->item[l->n - 1 - i];
        l->item[l->n - 1 - i] = v;
    }
}

/* Returns the start of the character that ends at `to`. */
static size_t before(const struct str *s, size_t to)
{
    size_t at = to - 1;

    while (at > 0 && ((unsigned char)s->p[at] & 0xc0u) == 0x80)
        at--;
    return at;
}

static bool space_before(const struct str *s, size_t to)
{
    size_t at = before(s, to);
    uint32_t cp;

    return utf8_decode(s->p + at, to - at, &cp) > 0 && cp < UTF8_SHORT && jv_is_space(cp);
}

static void rsplit_words(struct vm *vm, const struct str *s, int64_t max, struct list *l)
{
    size_t to = s->len, from;

    for (;;) {
        while (to > 0 && space_before(s, to))
            to = before(s, to);
        if (to == 0)
            break;
        if (max >= 0 && l->n == (size_t)max) {
            jv_push(vm, l, part(vm, s, 0, to));
            break;
        }
        for (from = to; from > 0 && !space_before(s, from);)
            from = before(s, from);
        jv_charge(vm, (to - from) / 4);
        jv_push(vm, l, part(vm, s, from, to));
        to = from;
    }
    reverse(l);
}

static val split(struct vm *vm, const struct str *s, const struct args *a, bool right)
{
    struct list *l = jv_list_new(vm, 0);
    const struct str *sep;
    size_t at = 0, to = s->len, found;
    int64_t max = -1;
    val arg[2];

    jv_bind(vm, a, "split", "sep maxsplit", 0, arg);
    if (arg[1].kind != V_MISSING)
        max = jv_want_int(vm, arg[1], "\"maxsplit\" of split");
    jv_charge_bytes(vm, s->len);
    if (!given(arg[0])) {
        if (right)
            rsplit_words(vm, s, max, l);
        else
            split_words(vm, s, max, l);
        return jv_of_list(l, V_LIST);
    }
    sep = jv_want_str(vm, arg[0], "\"sep\" of split");
    if (sep->len == 0)
        jv_fail(vm, ERR_FORMAT, "the separator of split is empty");
    for (; max != 0; max--) {
        found = right ? jv_rfind(vm, s, 0, to, sep) : jv_find(vm, s, at, to, sep);
        if (found == SIZE_MAX)
            break;
        if (right) {
            jv_push(vm, l, part(vm, s, found + sep->len, to));
            to = found;
        } else {
            jv_push(vm, l, part(vm, s, at, found));
            at = found + sep->len;
        }
    }
    jv_push(vm, l, part(vm, s, at, to));
    if (right)
        reverse(l);
    return jv_of_list(l, V_LIST);
}

static val splitlines(struct vm *vm, const struct str *s, const struct args *a)
{
    struct list *l = jv_list_new(vm, 0);
    size_t at, end, next = 0;
    val arg[1];

    jv_bind(vm, a, "splitlines", "keepends", 0, arg);
    while (jv_next_line(vm, s, &at, &end, &next))
        jv_push(vm, l, part(vm, s, at, jv_true(vm, arg[0]) ? next : end));
    return jv_of_list(l, V_LIST);
}

static val partition(struct vm *vm, const struct str *s, const struct args *a, bool right)
{
    struct list *l = jv_list_new(vm, 3);
    const struct str *sep;
    size_t found;
    val arg[1];

    jv_bind(vm, a, "partition", "sep", 1, arg);
    sep = text_arg(vm, s, arg[0]);
    if (sep->len == 0)
        jv_fail(vm, ERR_FORMAT, "the separator of partition is empty");
    found = right ? jv_rfind(vm, s, 0, s->len, sep) : jv_find(vm, s, 0, s->len, sep);
    if (found == SIZE_MAX) { /* all text is the first part, or the last */
        for (int i = 0; i < 3; i++)
            jv_push(vm, l, i == (right ? 2 : 0) ? jv_str(s) : part(vm, s, 0, 0));
    } else {
        jv_push(vm, l, part(vm, s, 0, found));
        jv_push(vm, l, part(vm, s, found, found + sep->len));
        jv_push(vm, l, part(vm, s, found + sep->len, s->len));
    }
    return jv_of_list(l, V_TUPLE);
}

/* Compute the byte range of the optional arguments "start" and "end" of find, count and
 * startswith.  Returns false if start is past the end. */
static bool bounds(struct vm *vm, const struct str *s, const val *start, const val *end,
                   size_t *from, size_t *to)
{
    int64_t n = (int64_t)jv_cps(vm, s), i = 0, k = n;

    if (given(*start))
        i = jv_want_int(vm, *start, "\"start\"");
    if (given(*end))
        k = jv_want_int(vm, *end, "\"end\"");
    if (i < 0)
        i = i + n > 0 ? i + n : 0;
    if (k < 0)
        k = k + n > 0 ? k + n : 0;
    if (k > n)
        k = n;
    if (i > n || i > k)
        return false;
    *from = jv_offset(vm, s, (size_t)i);
    *to = jv_offset(vm, s, (size_t)k);
    return true;
}

static int64_t cps_before(struct vm *vm, const struct str *s, size_t at)
{
    return (int64_t)jv_cps(vm, jv_cut(vm, s, 0, at).u.s);
}

static val find(struct vm *vm, const struct str *s, const struct args *a, bool right, bool must)
{
    size_t from, to, found = SIZE_MAX;
    const struct str *needle;
    val arg[3];

    jv_bind(vm, a, "find", "sub start end", 1, arg);
    needle = jv_want_str(vm, arg[0], "what is looked for");
    if (bounds(vm, s, &arg[1], &arg[2], &from, &to))
        found = right ? jv_rfind(vm, s, from, to, needle) : jv_find(vm, s, from, to, needle);
    if (found != SIZE_MAX)
        return jv_int(cps_before(vm, s, found));
    if (must)
        jv_fail(vm, ERR_FORMAT, "index did not find the text");
    return jv_int(-1);
}

static val count(struct vm *vm, const struct str *s, const struct args *a)
{
    const struct str *needle;
    size_t from, to;
    int64_t n = 0;
    val arg[3];

    jv_bind(vm, a, "count", "sub start end", 1, arg);
    needle = jv_want_str(vm, arg[0], "what is counted");
    if (!bounds(vm, s, &arg[1], &arg[2], &from, &to))
        return jv_int(0);
    if (needle->len == 0)
        return jv_int((int64_t)jv_cps(vm, jv_cut(vm, s, from, to).u.s) + 1);
    while ((from = jv_find(vm, s, from, to, needle)) != SIZE_MAX) {
        from += needle->len;
        n++;
    }
    return jv_int(n);
}

static bool has_at_end(const struct str *s, size_t from, size_t to, const struct str *t,
                       bool start)
{
    if (t->len > to - from)
        return false;
    return t->len == 0 || memcmp(s->p + (start ? from : to - t->len), t->p, t->len) == 0;
}

static val startswith(struct vm *vm, const struct str *s, const struct args *a, bool start)
{
    size_t from, to;
    val arg[3];

    jv_bind(vm, a, start ? "startswith" : "endswith", "prefix start end", 1, arg);
    if (arg[0].kind != V_TUPLE)
        (void)jv_want_str(vm, arg[0], start ? "the prefix" : "the suffix");
    if (!bounds(vm, s, &arg[1], &arg[2], &from, &to))
        return jv_bool(false);
    if (arg[0].kind == V_STR) {
        jv_charge_bytes(vm, arg[0].u.s->len);
        return jv_bool(has_at_end(s, from, to, arg[0].u.s, start));
    }
    for (size_t i = 0; i < arg[0].u.list->n; i++) {
        const struct str *t = jv_want_str(vm, arg[0].u.list->item[i], "a prefix or suffix");

        jv_charge_bytes(vm, t->len);
        if (has_at_end(s, from, to, t, start))
            return jv_bool(true);
    }
    return jv_bool(false);
}

static val remove_affix(struct vm *vm, const struct str *s, const struct args *a, bool prefix)
{
    const struct str *t;
    val arg[1];

    jv_bind(vm, a, prefix ? "removeprefix" : "removesuffix", "affix", 1, arg);
    t = text_arg(vm, s, arg[0]);
    jv_charge_bytes(vm, t->len);
    if (!has_at_end(s, 0, s->len, t, prefix))
        return jv_str(s);
    return prefix ? part(vm, s, t->len, s->len) : part(vm, s, 0, s->len - t->len);
}

static val replace(struct vm *vm, const struct str *s, const struct args *a)
{
    int64_t n = -1;
    val arg[3];

    jv_bind(vm, a, "replace", "old new count", 2, arg);
    if (arg[2].kind != V_MISSING)
        n = jv_want_int(vm, arg[2], "\"count\" of replace");
    return like(vm, s, jv_replace(vm, s, text_arg(vm, s, arg[0]), text_arg(vm, s, arg[1]), n));
}

static val join(struct vm *vm, const struct str *s, const struct args *a)
{
    struct list items;
    struct mark m;
    val arg[1];

    jv_bind(vm, a, "join", "iterable", 1, arg);
    items = jv_items(vm, arg[0]);
    for (size_t i = 0; i < items.n; i++)
        (void)jv_want_str(vm, items.item[i], "an item of join");
    m = jv_begin(vm);
    for (size_t i = 0; i < items.n; i++) {
        if (i > 0)
            jv_write_str(vm, s);
        if (s->markup && !items.item[i].u.s->markup)
            jv_write_escaped(vm, items.item[i].u.s);
        else
            jv_write_str(vm, items.item[i].u.s);
    }
    return like(vm, s, jv_end(vm, m));
}

enum align { ALIGN_LEFT, ALIGN_RIGHT, ALIGN_CENTER };

static val justify(struct vm *vm, const struct str *s, const struct args *a, enum align align)
{
    static const struct str blank = { .p = " ", .len = 1, .n_cp = 1 };
    const struct str *fill = &blank;
    size_t n = jv_cps(vm, s), pad = 0, left;
    int64_t width;
    struct mark m;
    val arg[2];

    jv_bind(vm, a, "ljust, rjust or center", "width fillchar", 1, arg);
    width = jv_want_int(vm, arg[0], "the width");
    if (given(arg[1]))
        fill = text_arg(vm, s, arg[1]);
    if (jv_cps(vm, fill) != 1)
        jv_fail(vm, ERR_FORMAT, "the fill character must be one character");
    if (width > 0 && (size_t)width > n)
        pad = (size_t)width - n;
    left = align == ALIGN_LEFT    ? 0
           : align == ALIGN_RIGHT ? pad
                                  : pad / 2 + (pad & (size_t)width & 1);
    m = jv_begin(vm);
    jv_fill(vm, fill->p, fill->len, jv_str_source(fill), left);
    jv_write_str(vm, s);
    jv_fill(vm, fill->p, fill->len, jv_str_source(fill), pad - left);
    return like(vm, s, jv_end(vm, m));
}

static val zfill(struct vm *vm, const struct str *s, const struct args *a)
{
    size_t n = jv_cps(vm, s), pad = 0, sign;
    int64_t width;
    struct mark m;
    val arg[1];

    jv_bind(vm, a, "zfill", "width", 1, arg);
    width = jv_want_int(vm, arg[0], "the width");
    if (width > 0 && (size_t)width > n)
        pad = (size_t)width - n;
    sign = s->len > 0 && (s->p[0] == '-' || s->p[0] == '+');
    m = jv_begin(vm);
    jv_write_part(vm, s, 0, sign);
    jv_fill(vm, "0", 1, JINJA_TRUSTED, pad);
    jv_write_part(vm, s, sign, s->len);
    return like(vm, s, jv_end(vm, m));
}

static val predicate(struct vm *vm, const struct str *s, const struct args *a, size_t i)
{
    jv_bind(vm, a, str_methods[i].name, "", 0, NULL);
    return jv_bool(jv_all(vm, s, str_methods[i].name));
}

static val str_method(struct vm *vm, const struct str *s, int id, const struct args *a)
{
    switch (id) {
    case STR_CAPITALIZE: return change_case(vm, s, a, CASE_CAPITALIZE);
    case STR_CENTER: return justify(vm, s, a, ALIGN_CENTER);
    case STR_COUNT: return count(vm, s, a);
    case STR_ENDSWITH: return startswith(vm, s, a, false);
    case STR_FIND: return find(vm, s, a, false, false);
    case STR_FORMAT: return jv_format(vm, s, a);
    case STR_INDEX: return find(vm, s, a, false, true);
    case STR_JOIN: return join(vm, s, a);
    case STR_LJUST: return justify(vm, s, a, ALIGN_LEFT);
    case STR_LOWER: return change_case(vm, s, a, CASE_LOWER);
    case STR_LSTRIP: return strip(vm, s, a, true, false);
    case STR_PARTITION: return partition(vm, s, a, false);
    case STR_REMOVEPREFIX: return remove_affix(vm, s, a, true);
    case STR_REMOVESUFFIX: return remove_affix(vm, s, a, false);
    case STR_REPLACE: return replace(vm, s, a);
    case STR_RFIND: return find(vm, s, a, true, false);
    case STR_RINDEX: return find(vm, s, a, true, true);
    case STR_RJUST: return justify(vm, s, a, ALIGN_RIGHT);
    case STR_RPARTITION: return partition(vm, s, a, true);
    case STR_RSPLIT: return split(vm, s, a, true);
    case STR_RSTRIP: return strip(vm, s, a, false, true);
    case STR_SPLIT: return split(vm, s, a, false);
    case STR_SPLITLINES: return splitlines(vm, s, a);
    case STR_STARTSWITH: return startswith(vm, s, a, true);
    case STR_STRIP: return strip(vm, s, a, true, true);
    case STR_SWAPCASE: return change_case(vm, s, a, CASE_SWAP);
    case STR_TITLE: return change_case(vm, s, a, CASE_TITLE);
    case STR_UPPER: return change_case(vm, s, a, CASE_UPPER);
    case STR_ZFILL: return zfill(vm, s, a);
    default: return predicate(vm, s, a, (size_t)id - IS_FIRST);
    }
}

/* ---- dicts and lists ---- */

static val dict_get(struct vm *vm, const struct dict *d, const struct args *a)
{
    const val *found;
    val arg[2];

    if (a->n_kw > 0)
        jv_fail(vm, ERR_FORMAT, "get takes no named arguments");
    jv_bind(vm, a, "get", "key default", 1, arg);
    found = jv_dict_get(vm, d, arg[0]);
    if (found != NULL)
        return *found;
    return arg[1].kind != V_MISSING ? arg[1] : jv_none();
}

static val dict_view(struct vm *vm, const struct dict *d, const struct args *a,
                     enum view_kind kind)
{
    struct list *l;
    val v;

    jv_bind(vm, a, "a view of a dict", "", 0, NULL);
    if (kind == VIEW_ITEMS) {
        l = jv_pairs(vm, d);
    } else {
        l = jv_list_new(vm, 0);
        *l = (struct list){ kind == VIEW_KEYS ? d->key : d->value, d->n, d->n };
    }
    v = jv_of_list(l, V_VIEW);
    v.flag = (uint8_t)kind;
    return v;
}

static val dict_copy(struct vm *vm, const struct dict *d, const struct args *a)
{
    struct dict *copy = jv_dict_new(vm);

    jv_bind(vm, a, "copy", "", 0, NULL);
    for (size_t i = 0; i < d->n; i++)
        jv_dict_set(vm, copy, d->key[i], d->value[i]);
    return (val){ .kind = V_DICT, .u.dict = copy };
}

static val list_index(struct vm *vm, const struct list *l, const struct args *a)
{
    int64_t from = 0, to = (int64_t)l->n;
    val arg[3];

    jv_bind(vm, a, "index", "value start stop", 1, arg);
    if (given(arg[1]))
        from = jv_want_int(vm, arg[1], "\"start\" of index");
    if (given(arg[2]))
        to = jv_want_int(vm, arg[2], "\"stop\" of index");
    if (from < 0)
        from = from + (int64_t)l->n > 0 ? from + (int64_t)l->n : 0;
    if (to < 0)
        to += (int64_t)l->n;
    for (int64_t i = from; i < to && i < (int64_t)l->n; i++) {
        if (jv_equal(vm, l->item[i], arg[0]))
            return jv_int(i);
    }
    jv_fail(vm, ERR_FORMAT, "index did not find the value in the list");
}

static val list_count(struct vm *vm, const struct list *l, const struct args *a)
{
    int64_t n = 0;
    val arg[1];

    jv_bind(vm, a, "count", "value", 1, arg);
    for (size_t i = 0; i < l->n; i++)
        n += jv_equal(vm, l->item[i], arg[0]);
    return jv_int(n);
}

static val list_copy(struct vm *vm, const struct list *from, const struct args *a)
{
    struct list *l = jv_list_new(vm, from->n);

    jv_bind(vm, a, "copy", "", 0, NULL);
    for (size_t i = 0; i < from->n; i++)
        jv_push(vm, l, from->item[i]);
    return jv_of_list(l, V_LIST);
}

static val bit_length(struct vm *vm, val self, const struct args *a)
{
    int64_t n = 0, i = 0;

    jv_bind(vm, a, "bit_length", "", 0, NULL);
    (void)jv_as_int(self, &i);
    for (uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i; u > 0; u >>= 1)
        n++;
    return jv_int(n);
}

val jv_call_method(struct vm *vm, val self, int id, const struct args *a)
{
    switch (id) {
    case DICT_COPY: return dict_copy(vm, self.u.dict, a);
    case DICT_GET: return dict_get(vm, self.u.dict, a);
    case DICT_ITEMS: return dict_view(vm, self.u.dict, a, VIEW_ITEMS);
    case DICT_KEYS: return dict_view(vm, self.u.dict, a, VIEW_KEYS);
    case DICT_VALUES: return dict_view(vm, self.u.dict, a, VIEW_VALUES);
    case LIST_COPY: return list_copy(vm, self.u.list, a);
    case LIST_COUNT: return list_count(vm, self.u.list, a);
    case LIST_INDEX: return list_index(vm, self.u.list, a);
    case INT_BIT_LENGTH: return bit_length(vm, self, a);
    case FLOAT_IS_INTEGER:
        jv_bind(vm, a, "is_integer", "", 0, NULL);
        return jv_bool(isfinite(self.u.f) && self.u.f == floor(self.u.f));
    default: return str_method(vm, self.u.s, id, a);
    }
}
