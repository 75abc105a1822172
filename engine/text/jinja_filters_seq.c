/*
 * Filters for lists and dicts.
 */
#include "config.h"

#include <string.h>

#include "engine/text/jinja_internal.h"

static bool given(val v)
{
    return v.kind != V_MISSING;
}

static val iterator(struct vm *vm, struct list *l)
{
    return jv_iter(vm, l, "generator");
}

val jf_length(struct vm *vm, val v, const struct args *a)
{
    int64_t n = jv_length(vm, v);

    jv_bind(vm, a, "length", "", 0, NULL);
    if (n < 0)
        jv_fail(vm, ERR_FORMAT, "a value of type %s has no length", jv_type_name(v));
    return jv_int(n);
}

val jf_default(struct vm *vm, val v, const struct args *a)
{
    val arg[2];

    jv_bind(vm, a, "default", "default_value boolean", 0, arg);
    if (v.kind != V_UNDEF && (!jv_true(vm, arg[1]) || jv_true(vm, v)))
        return v;
    return given(arg[0]) ? arg[0] : jv_new_str(vm, "", 0, JINJA_TRUSTED);
}

static struct list *copy_items(struct vm *vm, struct list items)
{
    struct list *l = jv_list_new(vm, items.n);

    for (size_t i = 0; i < items.n; i++)
        jv_push(vm, l, items.item[i]);
    return l;
}

val jf_list(struct vm *vm, val v, const struct args *a)
{
    jv_bind(vm, a, "list", "", 0, NULL);
    return jv_of_list(copy_items(vm, jv_items(vm, v)), V_LIST);
}

struct list *jv_pairs(struct vm *vm, const struct dict *d)
{
    struct list *l = jv_list_new(vm, d->n);

    for (size_t i = 0; i < d->n; i++) {
        struct list *pair = jv_list_new(vm, 2);

        jv_push(vm, pair, d->key[i]);
        jv_push(vm, pair, d->value[i]);
        jv_push(vm, l, jv_of_list(pair, V_TUPLE));
    }
    return l;
}

val jf_items(struct vm *vm, val v, const struct args *a)
{
    jv_bind(vm, a, "items", "", 0, NULL);
    if (v.kind == V_UNDEF)
        return iterator(vm, jv_list_new(vm, 0));
    if (v.kind != V_DICT)
        jv_fail(vm, ERR_FORMAT, "items needs a dict, not %s", jv_type_name(v));
    return iterator(vm, jv_pairs(vm, v.u.dict));
}

/* Return the first item without reading the rest of an iterator. */
val jf_first(struct vm *vm, val v, const struct args *a)
{
    jv_bind(vm, a, "first", "", 0, NULL);
    if (v.kind == V_ITER && v.u.iter->at < v.u.iter->list.n)
        return v.u.iter->list.item[v.u.iter->at++];
    if (v.kind == V_STR && v.u.s->len > 0 && !v.u.s->safe)
        return jv_cut(vm, v.u.s, 0, jv_offset(vm, v.u.s, 1));

    struct list items = jv_items(vm, v);

    return items.n > 0 ? items.item[0]
                       : jv_hint("there is no first item: the sequence is empty");
}

val jf_last(struct vm *vm, val v, const struct args *a)
{
    struct list items;

    jv_bind(vm, a, "last", "", 0, NULL);
    if (v.kind == V_ITER)
        jv_fail(vm, ERR_FORMAT, "a generator cannot be read from its end");
    if (v.kind == V_UNDEF)
        return jv_hint("there is no last item: the sequence is empty");
    if (v.kind == V_STR && v.u.s->len > 0)
        return jv_cut(vm, v.u.s, jv_offset(vm, v.u.s, jv_cps(vm, v.u.s) - 1), v.u.s->len);
    items = jv_items(vm, v);
    return items.n > 0 ? items.item[items.n - 1]
                       : jv_hint("there is no last item: the sequence is empty");
}

val jf_reverse(struct vm *vm, val v, const struct args *a)
{
    struct list items, *l;

    jv_bind(vm, a, "reverse", "", 0, NULL);
    if (v.kind == V_STR) {
        val step = jv_int(-1);

        return jv_slice(vm, v, NULL, NULL, &step);
    }
    items = jv_items(vm, v);
    l = jv_list_new(vm, items.n);
    for (size_t i = items.n; i > 0; i--)
        jv_push(vm, l, items.item[i - 1]);
    return v.kind == V_ITER || v.kind == V_UNDEF ? jv_of_list(l, V_LIST) : iterator(vm, l);
}

/* ---- attributes of items ---- */

/* Gets an attribute of an item, or the item if attribute is none. */
struct getter {
    val attribute, fallback; /* fallback V_MISSING: keep undefined values */
    bool lower;              /* convert text to lower case to compare it */
};

static val lowered(struct vm *vm, val v)
{
    struct mark m;

    if (v.kind != V_STR)
        return v;
    m = jv_begin(vm);
    jv_write_case(vm, v.u.s, CASE_LOWER);
    return jv_end(vm, m);
}

static val get(struct vm *vm, const struct getter *g, val item)
{
    jv_charge(vm, 1);
    for (size_t i = 0; g->attribute.kind == V_STR && i < g->attribute.u.s->len; i++) {
        char c = g->attribute.u.s->p[i];

        if (c == '.' || c == ',' || (i == 0 && c >= '0' && c <= '9'))
            jv_fail(vm, ERR_UNSUPPORTED, "an attribute with \"%c\" is not supported", c);
    }
    if (given(g->attribute) && g->attribute.kind != V_NONE)
        item = jv_item(vm, item, g->attribute);
    if (item.kind == V_UNDEF && given(g->fallback) && g->fallback.kind != V_NONE)
        item = g->fallback;
    return g->lower ? lowered(vm, item) : item;
}

/* ---- order ---- */

/* Merges two sorted runs of positions. */
static void merge(struct vm *vm, const val *key, const size_t *from, size_t *to, size_t n,
                  size_t half, bool reverse)
{
    size_t i = 0, k = half;

    for (size_t at = 0; at < n; at++) {
        bool second =
            k < n && (i == half || (reverse ? jv_less(vm, key[from[i]], key[from[k]], "<")
                                            : jv_less(vm, key[from[k]], key[from[i]], "<")));

        to[at] = second ? from[k++] : from[i++];
    }
}

void jv_sort(struct vm *vm, const val *key, size_t *order, size_t n, bool reverse)
{
    size_t *other = jv_take(vm, (n + 1) * sizeof *other), *from = order, *to = other;

    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t width = 1; width < n; width *= 2) {
        size_t *swap = from;

        jv_charge(vm, n);
        for (size_t at = 0; at < n; at += width * 2) {
            size_t left = n - at, here = left < width * 2 ? left : width * 2;

            merge(vm, key, from + at, to + at, here, here < width ? here : width, reverse);
        }
        from = to;
        to = swap;
    }
    if (from != order && n > 0)
        memcpy(order, from, n * sizeof *order);
}

static struct list *sorted(struct vm *vm, struct list items, const struct getter *g,
                           bool reverse)
{
    struct list *keys = jv_list_new(vm, items.n), *l = jv_list_new(vm, items.n);
    size_t *order = jv_take(vm, (items.n + 1) * sizeof *order);

    for (size_t i = 0; i < items.n; i++)
        jv_push(vm, keys, get(vm, g, items.item[i]));
    jv_sort(vm, keys->item, order, items.n, reverse);
    for (size_t i = 0; i < items.n; i++)
        jv_push(vm, l, items.item[order[i]]);
    return l;
}

val jf_sort(struct vm *vm, val v, const struct args *a)
{
    struct getter g = { 0 };
    val arg[3];

    jv_bind(vm, a, "sort", "reverse case_sensitive attribute", 0, arg);
    g.attribute = arg[2];
    g.lower = !jv_true(vm, arg[1]);
    return jv_of_list(sorted(vm, jv_items(vm, v), &g, jv_true(vm, arg[0])), V_LIST);
}

val jf_dictsort(struct vm *vm, val v, const struct args *a)
{
    struct getter g = { .attribute = jv_int(0) };
    val arg[3];

    jv_bind(vm, a, "dictsort", "case_sensitive by reverse", 0, arg);
    if (given(arg[1])) {
        const struct str *by = jv_want_str(vm, arg[1], "\"by\" of dictsort");

        if (jv_is(by, "value"))
            g.attribute = jv_int(1);
        else if (!jv_is(by, "key"))
            jv_fail(vm, ERR_FORMAT, "dictsort sorts by \"key\" or \"value\"");
    }
    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (v.kind != V_DICT)
        jv_fail(vm, ERR_FORMAT, "dictsort needs a dict, not %s", jv_type_name(v));
    g.lower = !jv_true(vm, arg[0]);
    return jv_of_list(sorted(vm, *jv_pairs(vm, v.u.dict), &g, jv_true(vm, arg[2])), V_LIST);
}

val jf_unique(struct vm *vm, val v, const struct args *a)
{
    struct list items = jv_items(vm, v), *l = jv_list_new(vm, 0);
    struct dict *seen = jv_dict_new(vm);
    struct getter g = { 0 };
    val arg[2];

    jv_bind(vm, a, "unique", "case_sensitive attribute", 0, arg);
    g.attribute = arg[1];
    g.lower = !jv_true(vm, arg[0]);
    for (size_t i = 0; i < items.n; i++) {
        val key = get(vm, &g, items.item[i]);

        if (jv_dict_get(vm, seen, key) == NULL) {
            jv_dict_set(vm, seen, key, jv_none());
            jv_push(vm, l, items.item[i]);
        }
    }
    return iterator(vm, l);
}

static val extreme(struct vm *vm, val v, const struct args *a, const char *what, bool most)
{
    struct list items = jv_items(vm, v);
    struct getter g = { 0 };
    val arg[2], best, best_key;

    jv_bind(vm, a, what, "case_sensitive attribute", 0, arg);
    g.attribute = arg[1];
    g.lower = !jv_true(vm, arg[0]);
    if (items.n == 0)
        return jv_hint("there is no such item: the sequence is empty");
    best = items.item[0];
    best_key = get(vm, &g, best);
    for (size_t i = 1; i < items.n; i++) {
        val key = get(vm, &g, items.item[i]);

        if (most ? jv_less(vm, best_key, key, "<") : jv_less(vm, key, best_key, "<")) {
            best = items.item[i];
            best_key = key;
        }
    }
    return best;
}

val jf_min(struct vm *vm, val v, const struct args *a)
{
    return extreme(vm, v, a, "min", false);
}

val jf_max(struct vm *vm, val v, const struct args *a)
{
    return extreme(vm, v, a, "max", true);
}

val jf_sum(struct vm *vm, val v, const struct args *a)
{
    struct list items = jv_items(vm, v);
    struct getter g = { 0 };
    val arg[2], sum;

    jv_bind(vm, a, "sum", "attribute start", 0, arg);
    g.attribute = arg[0];
    sum = given(arg[1]) ? arg[1] : jv_int(0);
    if (sum.kind == V_STR)
        jv_fail(vm, ERR_FORMAT, "sum cannot begin with text");
    for (size_t i = 0; i < items.n; i++)
        sum = jv_arith(vm, LINK_ADD, sum, get(vm, &g, items.item[i]));
    return sum;
}

/* ---- joining ---- */

val jf_join(struct vm *vm, val v, const struct args *a)
{
    struct list items = jv_items(vm, v);
    struct getter g = { 0 };
    const struct str *between = NULL;
    struct mark m;
    val arg[2];

    jv_bind(vm, a, "join", "d attribute", 0, arg);
    g.attribute = arg[1];
    if (given(arg[0]))
        between = jv_to_str(vm, arg[0]).u.s;
    m = jv_begin(vm);
    for (size_t i = 0; i < items.n; i++) {
        if (i > 0 && between != NULL)
            jv_write_str(vm, between);
        jv_print(vm, get(vm, &g, items.item[i]));
    }
    return jv_end(vm, m);
}

/* ---- map, select, reject ---- */

static struct args rest(const struct args *a, size_t skip)
{
    struct args r = *a;

    if (skip > 0) {
        r.pos += skip;
        r.n -= skip;
    }
    return r;
}

static val map_attribute(struct vm *vm, struct list items, const struct args *a)
{
    struct list *l = jv_list_new(vm, items.n);
    struct getter g = { 0 };
    val arg[2];

    jv_bind(vm, a, "map", "attribute default", 1, arg);
    g.attribute = arg[0];
    g.fallback = arg[1];
    for (size_t i = 0; i < items.n; i++)
        jv_push(vm, l, get(vm, &g, items.item[i]));
    return iterator(vm, l);
}

val jf_map(struct vm *vm, val v, const struct args *a)
{
    struct list items = { 0 }, *l;
    const struct str *name;
    struct args more;
    int id;

    if (jv_true(vm, v))
        items = jv_items(vm, v);
    else if (!jv_can_iterate(v))
        return iterator(vm, jv_list_new(vm, 0));
    if (a->n == 0 && a->n_kw > 0)
        return map_attribute(vm, items, a);
    if (a->n == 0)
        jv_fail(vm, ERR_FORMAT, "map needs the name of a filter or an attribute");
    name = jv_want_str(vm, a->pos[0], "the filter of map");
    id = jinja_filter_id(name->p, name->len);
    more = rest(a, 1);
    l = jv_list_new(vm, items.n);
    for (size_t i = 0; i < items.n; i++)
        jv_push(vm, l, jv_filter(vm, id, name, items.item[i], &more));
    return iterator(vm, l);
}

static val choose(struct vm *vm, val v, const struct args *a, const char *what, bool attribute,
                  bool keep)
{
    struct list items = { 0 }, *l = jv_list_new(vm, 0);
    const struct str *name = NULL;
    struct getter g = { 0 };
    struct args more;
    size_t used = 0;
    int id = -1;

    if (jv_true(vm, v))
        items = jv_items(vm, v);
    if (attribute) {
        if (a->n == 0)
            jv_fail(vm, ERR_FORMAT, "%s needs the name of an attribute", what);
        g.attribute = a->pos[used++];
    }
    if (a->n > used) {
        name = jv_want_str(vm, a->pos[used++], "the name of a test");
        id = jinja_test_id(name->p, name->len);
    }
    more = rest(a, used);
    for (size_t i = 0; i < items.n; i++) {
        val item = attribute ? get(vm, &g, items.item[i]) : items.item[i];
        bool yes = name != NULL ? jv_test(vm, id, name, item, &more) : jv_true(vm, item);

        if (yes == keep)
            jv_push(vm, l, items.item[i]);
    }
    return iterator(vm, l);
}

val jf_select(struct vm *vm, val v, const struct args *a)
{
    return choose(vm, v, a, "select", false, true);
}

val jf_reject(struct vm *vm, val v, const struct args *a)
{
    return choose(vm, v, a, "reject", false, false);
}

val jf_selectattr(struct vm *vm, val v, const struct args *a)
{
    return choose(vm, v, a, "selectattr", true, true);
}

val jf_rejectattr(struct vm *vm, val v, const struct args *a)
{
    return choose(vm, v, a, "rejectattr", true, false);
}
