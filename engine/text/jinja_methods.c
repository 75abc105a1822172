/*
 * Methods of text and dicts.
 */
#include "config.h"

#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

enum method_id {
    STR_CAPITALIZE,
    STR_ENDSWITH,
    STR_FIND,
    STR_FORMAT,
    STR_JOIN,
    STR_LOWER,
    STR_LSTRIP,
    STR_REMOVEPREFIX,
    STR_REMOVESUFFIX,
    STR_REPLACE,
    STR_RSPLIT,
    STR_RSTRIP,
    STR_SPLIT,
    STR_SPLITLINES,
    STR_STARTSWITH,
    STR_STRIP,
    STR_TITLE,
    STR_UPPER,
    DICT_GET,
    DICT_ITEMS,
    DICT_KEYS,
    DICT_VALUES,
    N_METHODS,
    LOOP_CYCLE = N_METHODS
};

static const char *const str_methods[] = {
    [STR_CAPITALIZE] = "capitalize",
    [STR_ENDSWITH] = "endswith",
    [STR_FIND] = "find",
    [STR_FORMAT] = "format",
    [STR_JOIN] = "join",
    [STR_LOWER] = "lower",
    [STR_LSTRIP] = "lstrip",
    [STR_REMOVEPREFIX] = "removeprefix",
    [STR_REMOVESUFFIX] = "removesuffix",
    [STR_REPLACE] = "replace",
    [STR_RSPLIT] = "rsplit",
    [STR_RSTRIP] = "rstrip",
    [STR_SPLIT] = "split",
    [STR_SPLITLINES] = "splitlines",
    [STR_STARTSWITH] = "startswith",
    [STR_STRIP] = "strip",
    [STR_TITLE] = "title",
    [STR_UPPER] = "upper",
};

static const char *const dict_methods[N_METHODS] = {
    [DICT_GET] = "get",
    [DICT_ITEMS] = "items",
    [DICT_KEYS] = "keys",
    [DICT_VALUES] = "values",
};

/* Methods that Python has as well.  The sandbox of transformers refuses those that change the
 * value, and this evaluator refuses the others. */
static const struct {
    const char *changes, *outside;
} more_methods[] = {
    [V_STR] = { "", "casefold center count encode expandtabs format_map index isalnum "
                    "isalpha isascii isdecimal isdigit isidentifier islower isnumeric "
                    "isprintable isspace istitle isupper ljust maketrans partition "
                    "rfind rindex rjust rpartition swapcase translate zfill" },
    [V_DICT] = { "clear pop popitem setdefault update", "copy fromkeys" },
    [V_LIST] = { "append clear extend insert pop remove reverse sort", "copy count index" },
    [V_TUPLE] = { "", "count index grouper list" },
    [V_BOOL] = { "", "as_integer_ratio bit_count bit_length conjugate denominator from_bytes "
                     "imag numerator real to_bytes" },
    [V_INT] = { "", "as_integer_ratio bit_count bit_length conjugate denominator from_bytes "
                    "imag numerator real to_bytes" },
    [V_FLOAT] = { "", "as_integer_ratio conjugate fromhex hex imag is_integer real" },
    [V_RANGE] = { "", "count index start step stop" },
    [V_VIEW] = { "", "isdisjoint mapping" },
    [V_MACRO] = { "", "arguments caller catch_kwargs catch_varargs name" },
    [V_LOOP] = { "", "changed" },
};

/* Whether a list of words separated by blanks has this name. */
static bool has_word(const char *words, const struct str *name)
{
    for (size_t len; *words != '\0'; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        if (len == name->len && memcmp(words, name->p, len) == 0)
            return true;
    }
    return false;
}

int jv_method_id(enum val_kind kind, const struct str *name)
{
    if (kind == V_STR) {
        for (int i = STR_CAPITALIZE; i <= STR_UPPER; i++)
            if (jv_is(name, str_methods[i]))
                return i;
    } else if (kind == V_DICT) {
        for (int i = DICT_GET; i < N_METHODS; i++)
            if (jv_is(name, dict_methods[i]))
                return i;
    }
    if (kind == V_LOOP && jv_is(name, "cycle"))
        return LOOP_CYCLE;
    if ((size_t)kind >= sizeof more_methods / sizeof more_methods[0] ||
        more_methods[kind].outside == NULL)
        return -1;
    return has_word(more_methods[kind].changes, name)   ? -2
           : has_word(more_methods[kind].outside, name) ? -3
                                                        : -1;
}

static bool given(val v)
{
    return v.kind != V_MISSING && v.kind != V_NONE;
}

/* ---- text ---- */

static val strip(struct vm *vm, const struct str *s, const struct args *a, bool left,
                 bool right)
{
    val arg[1];

    jv_bind(vm, a, "strip", "chars", 0, arg);
    return jv_strip(vm, s, given(arg[0]) ? jv_want_str(vm, arg[0], "\"chars\" of strip") : NULL,
                    left, right);
}

static val change_case(struct vm *vm, const struct str *s, const struct args *a,
                       enum str_case c)
{
    struct mark m;

    jv_bind(vm, a, "a change of case", "", 0, NULL);
    m = jv_begin(vm);
    jv_write_case(vm, s, c);
    return jv_end(vm, m);
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
            jv_push(vm, l, jv_cut(vm, s, from, s->len));
            return;
        }
        for (; at < s->len; at += len) {
            len = utf8_decode(s->p + at, s->len - at, &cp);
            if (cp < UTF8_SHORT && jv_is_space(cp))
                break;
        }
        jv_charge(vm, (at - from) / 4);
        jv_push(vm, l, jv_cut(vm, s, from, at));
    }
}

/* rsplit(): the parts before the last max separators are one. */
static val rsplit(struct vm *vm, const struct str *s, const struct args *a)
{
    struct list *l = jv_list_new(vm, 0);
    const struct str *sep;
    size_t to = s->len, found;
    int64_t max = -1;
    val arg[2];

    jv_bind(vm, a, "rsplit", "sep maxsplit", 1, arg);
    if (arg[1].kind != V_MISSING)
        max = jv_want_int(vm, arg[1], "\"maxsplit\" of rsplit");
    sep = jv_want_str(vm, arg[0], "\"sep\" of rsplit");
    if (sep->len == 0)
        jv_fail(vm, ERR_FORMAT, "the separator of rsplit is empty");
    for (; max != 0 && (found = jv_rfind(vm, s, to, sep)) != SIZE_MAX; max--) {
        jv_push(vm, l, jv_cut(vm, s, found + sep->len, to));
        to = found;
    }
    jv_push(vm, l, jv_cut(vm, s, 0, to));
    for (size_t i = 0; i < l->n / 2; i++) {
        val v = l->item[i];

        l->item[i] = l->item[l->n - 1 - i];
        l->item[l->n - 1 - i] = v;
    }
    return jv_of_list(l, V_LIST);
}

static val split(struct vm *vm, const struct str *s, const struct args *a)
{
    struct list *l = jv_list_new(vm, 0);
    const struct str *sep;
    size_t at = 0;
    int64_t max = -1;
    val arg[2];

    jv_bind(vm, a, "split", "sep maxsplit", 0, arg);
    if (arg[1].kind != V_MISSING)
        max = jv_want_int(vm, arg[1], "\"maxsplit\" of split");
    jv_charge_bytes(vm, s->len);
    if (!given(arg[0])) {
        split_words(vm, s, max, l);
        return jv_of_list(l, V_LIST);
    }
    sep = jv_want_str(vm, arg[0], "\"sep\" of split");
    if (sep->len == 0)
        jv_fail(vm, ERR_FORMAT, "the separator of split is empty");
    for (; max != 0; max--) {
        size_t found = jv_find(vm, s, at, s->len, sep);

        if (found == SIZE_MAX)
            break;
        jv_push(vm, l, jv_cut(vm, s, at, found));
        at = found + sep->len;
    }
    jv_push(vm, l, jv_cut(vm, s, at, s->len));
    return jv_of_list(l, V_LIST);
}

static val splitlines(struct vm *vm, const struct str *s, const struct args *a)
{
    struct list *l = jv_list_new(vm, 0);
    size_t at, end, next = 0;
    val arg[1];

    jv_bind(vm, a, "splitlines", "keepends", 0, arg);
    while (jv_next_line(vm, s, &at, &end, &next))
        jv_push(vm, l, jv_cut(vm, s, at, jv_true(vm, arg[0]) ? next : end));
    return jv_of_list(l, V_LIST);
}

static val find(struct vm *vm, const struct str *s, const struct args *a)
{
    size_t found;
    val arg[1];

    jv_bind(vm, a, "find", "sub", 1, arg);
    found = jv_find(vm, s, 0, s->len, jv_want_str(vm, arg[0], "\"sub\" of find"));
    return found == SIZE_MAX ? jv_int(-1)
                             : jv_int((int64_t)jv_cps(vm, jv_cut(vm, s, 0, found).u.s));
}

static bool has_at_end(struct vm *vm, const struct str *s, val v, bool start)
{
    const struct str *t = jv_want_str(vm, v, start ? "the prefix" : "the suffix");

    jv_charge_bytes(vm, t->len);
    return t->len <= s->len &&
           (t->len == 0 || memcmp(start ? s->p : s->p + s->len - t->len, t->p, t->len) == 0);
}

static val startswith(struct vm *vm, const struct str *s, const struct args *a, bool start)
{
    val arg[1];

    jv_bind(vm, a, start ? "startswith" : "endswith", "prefix", 1, arg);
    if (arg[0].kind != V_TUPLE)
        return jv_bool(has_at_end(vm, s, arg[0], start));
    for (size_t i = 0; i < arg[0].u.list->n; i++)
        if (has_at_end(vm, s, arg[0].u.list->item[i], start))
            return jv_bool(true);
    return jv_bool(false);
}

static val remove_affix(struct vm *vm, const struct str *s, const struct args *a, bool start)
{
    size_t len;
    val arg[1];

    jv_bind(vm, a, start ? "removeprefix" : "removesuffix", "affix", 1, arg);
    if (!has_at_end(vm, s, arg[0], start))
        return jv_str(s);
    len = arg[0].u.s->len;
    return start ? jv_cut(vm, s, len, s->len) : jv_cut(vm, s, 0, s->len - len);
}

/* How fields without a name were numbered so far. */
struct numbering {
    size_t n_auto;
    bool is_stated;
};

/* Returns the value of a field of format(): "", a number or a name. */
static val field_of(struct vm *vm, const struct str *s, size_t from, size_t to,
                    const struct args *a, struct numbering *n)
{
    const struct str *name = jv_cut(vm, s, from, to).u.s;
    size_t at = 0;

    if (memchr(name->p, ':', name->len) != NULL || memchr(name->p, '!', name->len) != NULL ||
        memchr(name->p, '.', name->len) != NULL || memchr(name->p, '[', name->len) != NULL)
        jv_fail(vm, ERR_UNSUPPORTED, "a field of format with more than a name is not supported");
    for (size_t i = 0; i < a->n_kw; i++) {
        jv_charge(vm, 1);
        if (jv_same(a->key[i].u.s, name))
            return a->kw[i];
    }
    for (size_t i = 0; i < name->len; i++) {
        if (name->p[i] < '0' || name->p[i] > '9' || at > a->n)
            jv_fail(vm, ERR_FORMAT, "format has no argument \"%.*s\"",
                    (int)(name->len < 40 ? name->len : 40), name->p);
        at = at * 10 + (size_t)(name->p[i] - '0');
    }
    if (name->len == 0)
        at = n->n_auto++;
    n->is_stated |= name->len > 0;
    if (n->is_stated && n->n_auto > 0)
        jv_fail(vm, ERR_FORMAT, "format needs a number in all fields or in none");
    if (at >= a->n)
        jv_fail(vm, ERR_FORMAT, "format needs more than %zu arguments", a->n);
    return a->pos[at];
}

/* Python's format(), whose fields are only named or numbered. */
static val format(struct vm *vm, const struct str *s, const struct args *a)
{
    struct mark m = jv_begin(vm);
    struct numbering n = { 0 };
    size_t done = 0;

    jv_charge_bytes(vm, s->len);
    for (size_t i = 0; i < s->len; i++) {
        const char *end;

        if (s->p[i] != '{' && s->p[i] != '}')
            continue;
        if (i + 1 < s->len && s->p[i + 1] == s->p[i]) { /* one brace */
            jv_write_part(vm, s, done, i + 1);
            done = ++i + 1;
            continue;
        }
        jv_write_part(vm, s, done, i);
        end = s->p[i] == '{' ? memchr(s->p + i, '}', s->len - i) : NULL;
        if (end == NULL)
            jv_fail(vm, ERR_FORMAT, "a single \"%c\" in the text of format", s->p[i]);
        jv_print(vm, field_of(vm, s, i + 1, (size_t)(end - s->p), a, &n));
        i = (size_t)(end - s->p);
        done = i + 1;
    }
    jv_write_part(vm, s, done, s->len);
    return jv_end(vm, m);
}

static val replace(struct vm *vm, const struct str *s, const struct args *a)
{
    int64_t n = -1;
    val arg[3];

    jv_bind(vm, a, "replace", "old new count", 2, arg);
    if (arg[2].kind != V_MISSING)
        n = jv_want_int(vm, arg[2], "\"count\" of replace");
    return jv_replace(vm, s, jv_want_str(vm, arg[0], "\"old\" of replace"),
                      jv_want_str(vm, arg[1], "\"new\" of replace"), n);
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
        jv_write_str(vm, items.item[i].u.s);
    }
    return jv_end(vm, m);
}

/* ---- dicts ---- */

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

val jv_call_method(struct vm *vm, val self, int id, const struct args *a)
{
    const struct str *s = self.u.s;

    switch ((enum method_id)id) {
    case STR_CAPITALIZE: return change_case(vm, s, a, CASE_CAPITALIZE);
    case STR_ENDSWITH: return startswith(vm, s, a, false);
    case STR_FIND: return find(vm, s, a);
    case STR_FORMAT: return format(vm, s, a);
    case STR_JOIN: return join(vm, s, a);
    case STR_LOWER: return change_case(vm, s, a, CASE_LOWER);
    case STR_LSTRIP: return strip(vm, s, a, true, false);
    case STR_REMOVEPREFIX: return remove_affix(vm, s, a, true);
    case STR_REMOVESUFFIX: return remove_affix(vm, s, a, false);
    case STR_REPLACE: return replace(vm, s, a);
    case STR_RSPLIT: return rsplit(vm, s, a);
    case STR_RSTRIP: return strip(vm, s, a, false, true);
    case STR_SPLIT: return split(vm, s, a);
    case STR_SPLITLINES: return splitlines(vm, s, a);
    case STR_STARTSWITH: return startswith(vm, s, a, true);
    case STR_STRIP: return strip(vm, s, a, true, true);
    case STR_TITLE: return change_case(vm, s, a, CASE_TITLE);
    case STR_UPPER: return change_case(vm, s, a, CASE_UPPER);
    case DICT_GET: return dict_get(vm, self.u.dict, a);
    case DICT_ITEMS: return dict_view(vm, self.u.dict, a, VIEW_ITEMS);
    case DICT_KEYS: return dict_view(vm, self.u.dict, a, VIEW_KEYS);
    case LOOP_CYCLE:
        if (a->n == 0 || a->n_kw > 0)
            jv_fail(vm, ERR_FORMAT, "loop.cycle needs values");
        return a->pos[self.u.loop->at % a->n];
    case DICT_VALUES:
    default: return dict_view(vm, self.u.dict, a, VIEW_VALUES);
    }
}
