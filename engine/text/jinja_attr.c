/*
 * Attributes, items and slices of values.
 */
#include "config.h"

#include <string.h>

#include "engine/text/jinja_internal.h"

static val missing_attr(val of, const struct str *name)
{
    return (val){ .kind = V_UNDEF, .flag = UNDEF_ATTR, .source = of.kind, .u.s = name };
}

static val method(struct vm *vm, val self, int id)
{
    struct method *m = jv_take(vm, sizeof *m);

    *m = (struct method){ self, id };
    return (val){ .kind = V_METHOD, .u.method = m };
}

static val loop_attr(val v, const struct str *name)
{
    const struct loop *l = v.u.loop;
    int64_t at = (int64_t)l->at, n = (int64_t)l->n;

    if (jv_is(name, "index"))
        return jv_int(at + 1);
    if (jv_is(name, "index0"))
        return jv_int(at);
    if (jv_is(name, "first"))
        return jv_bool(at == 0);
    if (jv_is(name, "last"))
        return jv_bool(at == n - 1);
    if (jv_is(name, "length"))
        return jv_int(n);
    if (jv_is(name, "revindex"))
        return jv_int(n - at);
    if (jv_is(name, "revindex0"))
        return jv_int(n - at - 1);
    if (jv_is(name, "depth"))
        return jv_int(l->depth0 + 1);
    if (jv_is(name, "depth0"))
        return jv_int(l->depth0);
    if (jv_is(name, "previtem"))
        return at == 0 ? jv_hint("there is no previous item") : l->item[at - 1];
    if (jv_is(name, "nextitem"))
        return at == n - 1 ? jv_hint("there is no next item") : l->item[at + 1];
    return (val){ .kind = V_MISSING };
}

/*
 * Returns an attribute in Python's sense, ignoring items, or V_MISSING.
 */
static val own_attr(struct vm *vm, val v, const struct str *name)
{
    val got = { .kind = V_MISSING };
    int id;

    switch (v.kind) {
    case V_UNDEF: jv_fail_undef(vm, v);
    case V_LOOP: got = loop_attr(v, name); break;
    case V_NAMESPACE: {
        const val *found = jv_dict_get(vm, v.u.dict, jv_str(name));

        if (found != NULL)
            return *found;
        break;
    }
    default: break;
    }
    if (got.kind != V_MISSING)
        return got;
    if (name->len > 0 && name->p[0] == '_') {
        /* Templates may not use any of Python's attributes of this form. */
        return (val){ .kind = V_MISSING };
    }
    id = jv_method_id(v.kind, name);
    if (id == -2)
        return (val){ .kind = V_UNDEF, .flag = UNDEF_UNSAFE, .source = v.kind, .u.s = name };
    if (id == -3)
        jv_fail(vm, ERR_UNSUPPORTED, "the attribute \"%.*s\" of %s is not supported",
                (int)(name->len < 40 ? name->len : 40), name->p, jv_type_name(v));
    if (id >= 0 && v.kind == V_STR)
        jv_refuse_safe(vm, v.u.s);
    return id >= 0 ? method(vm, v, id) : (val){ .kind = V_MISSING };
}

/* Returns v[key], or V_MISSING where Python raises TypeError or LookupError. */
static val own_item(struct vm *vm, val v, val key)
{
    const val *found;
    int64_t at, n;

    switch (v.kind) {
    case V_DICT:
        if (key.kind == V_LIST || key.kind == V_DICT)
            return (val){ .kind = V_MISSING };
        found = jv_dict_get(vm, v.u.dict, key);
        return found != NULL ? *found : (val){ .kind = V_MISSING };
    case V_STR:
    case V_LIST:
    case V_TUPLE:
    case V_RANGE: break;
    case V_UNDEF: jv_fail_undef(vm, v);
    default: return (val){ .kind = V_MISSING };
    }
    if (!jv_as_int(key, &at))
        return (val){ .kind = V_MISSING };
    n = jv_length(vm, v);
    if (at < 0)
        at += n;
    if (at < 0 || at >= n)
        return (val){ .kind = V_MISSING };
    if (v.kind == V_RANGE)
        return jv_sourced(jv_int(v.u.range->start + at * v.u.range->step), v.source);
    if (v.kind != V_STR)
        return v.u.list->item[at];
    return jv_cut(vm, v.u.s, jv_offset(vm, v.u.s, (size_t)at),
                  jv_offset(vm, v.u.s, (size_t)at + 1));
}

val jv_attr(struct vm *vm, val v, const struct str *name)
{
    val got = own_attr(vm, v, name);

    if (got.kind == V_MISSING)
        got = own_item(vm, v, jv_str(name));
    return got.kind == V_MISSING ? missing_attr(v, name) : got;
}

val jv_item(struct vm *vm, val v, val key)
{
    val got = own_item(vm, v, key);

    if (got.kind != V_MISSING)
        return got;
    if (key.kind == V_STR) {
        got = own_attr(vm, v, key.u.s);
        return got.kind == V_MISSING ? missing_attr(v, key.u.s) : got;
    }
    if (key.kind == V_INT)
        return (val){ .kind = V_UNDEF, .flag = UNDEF_ITEM, .source = v.kind, .u.i = key.u.i };
    return jv_hint("there is no such element");
}

/* Compute the bounds of a slice like Python's slice.indices(). */
static void slice_bounds(struct vm *vm, int64_t n, const val *start, const val *stop,
                         const val *step, int64_t *from, int64_t *to, int64_t *by)
{
    int64_t low, high;

    *by = 1;
    if (step != NULL && step->kind != V_NONE && !jv_as_int(*step, by))
        jv_fail(vm, ERR_FORMAT, "the step of a slice is not an integer");
    if (*by == 0)
        jv_fail(vm, ERR_FORMAT, "the step of a slice is 0");
    low = *by < 0 ? -1 : 0;
    high = *by < 0 ? n - 1 : n;
    *from = *by < 0 ? high : low;
    *to = *by < 0 ? low : high;
    for (int i = 0; i < 2; i++) {
        const val *v = i == 0 ? start : stop;
        int64_t *out = i == 0 ? from : to;

        if (v == NULL || v->kind == V_NONE)
            continue;
        if (!jv_as_int(*v, out))
            jv_fail(vm, ERR_FORMAT, "the bounds of a slice are not integers");
        if (*out < 0)
            *out += n;
        if (*out < low)
            *out = low;
        if (*out > high)
            *out = high;
    }
}

static val slice_text(struct vm *vm, const struct str *s, int64_t from, size_t count,
                      int64_t by)
{
    struct mark m;

    if (by == 1)
        return count == 0 ? jv_cut(vm, s, 0, 0)
                          : jv_cut(vm, s, jv_offset(vm, s, (size_t)from),
                                   jv_offset(vm, s, (size_t)from + count));
    jv_refuse_safe(vm, s);
    m = jv_begin(vm);
    if (jv_cps(vm, s) == s->len) {
        for (size_t i = 0; i < count; i++) {
            size_t at = (size_t)(from + (int64_t)i * by);

            jv_write_part(vm, s, at, at + 1);
        }
    } else {
        struct list l = jv_items(vm, jv_str(s));

        for (size_t i = 0; i < count; i++)
            jv_write_str(vm, l.item[from + (int64_t)i * by].u.s);
    }
    return jv_end(vm, m);
}

val jv_slice(struct vm *vm, val v, const val *start, const val *stop, const val *step)
{
    int64_t n, from, to, by;
    size_t count = 0;
    struct list *l;

    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (v.kind != V_STR && v.kind != V_LIST && v.kind != V_TUPLE)
        jv_fail(vm, v.kind == V_RANGE ? ERR_UNSUPPORTED : ERR_FORMAT,
                "a value of type %s has no slices", jv_type_name(v));
    n = jv_length(vm, v);
    slice_bounds(vm, n, start, stop, step, &from, &to, &by);
    if (by > 0 && from < to)
        count = (size_t)((uint64_t)(to - from - 1) / (uint64_t)by + 1);
    else if (by < 0 && from > to)
        count = (size_t)((uint64_t)(from - to - 1) / (0 - (uint64_t)by) + 1);
    if (v.kind == V_STR)
        return slice_text(vm, v.u.s, from, count, by);
    if (v.kind == V_TUPLE && count == (size_t)n && by == 1)
        return v;
    l = jv_list_new(vm, count);
    for (size_t i = 0; i < count; i++)
        jv_push(vm, l, v.u.list->item[from + (int64_t)i * by]);
    return jv_of_list(l, v.kind);
}
