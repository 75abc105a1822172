/*
 * Truth, equality, order, arithmetic and iteration of values, as in Python.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

const char *jv_type_name(val v)
{
    static const char *const names[] = {
        [V_MISSING] = "missing", [V_UNDEF] = "Undefined",
        [V_NONE] = "NoneType",   [V_BOOL] = "bool",
        [V_INT] = "int",         [V_FLOAT] = "float",
        [V_STR] = "str",         [V_LIST] = "list",
        [V_TUPLE] = "tuple",     [V_DICT] = "dict",
        [V_VIEW] = "dict view",  [V_ITER] = "generator",
        [V_RANGE] = "range",     [V_NAMESPACE] = "Namespace",
        [V_MACRO] = "Macro",     [V_FUNC] = "function",
        [V_METHOD] = "method",   [V_LOOP] = "LoopContext",
    };

    return names[v.kind];
}

void jv_fail_undef(struct vm *vm, val v)
{
    const char *type = jv_type_name((val){ .kind = (uint8_t)v.source });
    int n = 0;

    if (v.flag != UNDEF_ITEM && v.flag != UNDEF_HINT)
        n = v.u.s->len < 80 ? (int)v.u.s->len : 80;
    switch (v.flag) {
    case UNDEF_NAME: jv_fail(vm, ERR_FORMAT, "\"%.*s\" is undefined", n, v.u.s->p);
    case UNDEF_ATTR:
        jv_fail(vm, ERR_FORMAT, "a value of type %s has no attribute \"%.*s\"", type, n,
                v.u.s->p);
    case UNDEF_ITEM:
        jv_fail(vm, ERR_FORMAT, "a value of type %s has no element %lld", type,
                (long long)v.u.i);
    case UNDEF_UNSAFE:
        jv_fail(vm, ERR_FORMAT, "a template may not use \"%.*s\" of a value of type %s", n,
                v.u.s->p, type);
    default: jv_fail(vm, ERR_FORMAT, "%s", v.u.hint);
    }
}

bool jv_is_number(val v)
{
    return v.kind == V_INT || v.kind == V_FLOAT || v.kind == V_BOOL;
}

bool jv_as_int(val v, int64_t *out)
{
    if (v.kind == V_BOOL)
        *out = v.u.b;
    else if (v.kind == V_INT)
        *out = v.u.i;
    else
        return false;
    return true;
}

bool jv_as_float(val v, double *out)
{
    int64_t i;

    if (v.kind == V_FLOAT)
        *out = v.u.f;
    else if (jv_as_int(v, &i))
        *out = (double)i;
    else
        return false;
    return true;
}

int64_t jv_length(struct vm *vm, val v)
{
    switch (v.kind) {
    case V_UNDEF: return 0;
    case V_STR: return (int64_t)jv_cps(vm, v.u.s);
    case V_LIST:
    case V_TUPLE:
    case V_VIEW: return (int64_t)v.u.list->n;
    case V_DICT: return (int64_t)v.u.dict->n;
    case V_RANGE: return (int64_t)v.u.range->n;
    case V_LOOP: return (int64_t)v.u.loop->n;
    default: return -1;
    }
}

bool jv_true(struct vm *vm, val v)
{
    switch (v.kind) {
    case V_NONE:
    case V_MISSING: return false;
    case V_BOOL: return v.u.b;
    case V_INT: return v.u.i != 0;
    case V_FLOAT: return v.u.f != 0;
    case V_STR: return v.u.s->len > 0;
    default: return jv_length(vm, v) != 0;
    }
}

/* ---- equality and order ---- */

/* Compare an int and a float exactly, not after rounding. */
static int compare_mixed(int64_t i, double f)
{
    double whole;

    if (f >= 9223372036854775808.0)
        return -1;
    if (f < -9223372036854775808.0)
        return 1;
    whole = floor(f);
    if (i != (int64_t)whole)
        return i < (int64_t)whole ? -1 : 1;
    return whole < f ? -1 : 0;
}

/* Compares numbers; *out is -1, 0 or 1, or 2 if one is NaN. */
static bool compare_numbers(val a, val b, int *out)
{
    int64_t i, j;
    double x, y;

    if (!jv_is_number(a) || !jv_is_number(b))
        return false;
    if (jv_as_int(a, &i) && jv_as_int(b, &j))
        *out = i < j ? -1 : i > j;
    else if (jv_as_float(a, &x) && jv_as_float(b, &y) && (isnan(x) || isnan(y)))
        *out = 2;
    else if (jv_as_int(a, &i))
        *out = compare_mixed(i, b.u.f);
    else if (jv_as_int(b, &j))
        *out = -compare_mixed(j, a.u.f);
    else
        *out = a.u.f < b.u.f ? -1 : a.u.f > b.u.f;
    return true;
}

bool jv_identical(val a, val b)
{
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case V_NONE:
    case V_MISSING: return true;
    case V_BOOL: return a.u.b == b.u.b;
    case V_INT: return a.u.i == b.u.i;
    case V_FLOAT: return a.u.f == b.u.f;
    case V_STR: return jv_same(a.u.s, b.u.s);
    case V_UNDEF: return a.flag == b.flag && a.u.s == b.u.s;
    case V_FUNC: return a.u.i == b.u.i;
    default: return a.u.list == b.u.list;
    }
}

static bool equal_lists(struct vm *vm, const struct list *a, const struct list *b)
{
    bool same = a->n == b->n;

    jv_enter(vm);
    for (size_t i = 0; same && i < a->n; i++)
        same = jv_equal(vm, a->item[i], b->item[i]);
    jv_leave(vm);
    return same;
}

static bool equal_dicts(struct vm *vm, const struct dict *a, const struct dict *b)
{
    bool same = a->n == b->n;

    jv_enter(vm);
    for (size_t i = 0; same && i < a->n; i++) {
        const val *other = jv_dict_get(vm, b, a->key[i]);

        same = other != NULL && jv_equal(vm, a->value[i], *other);
    }
    jv_leave(vm);
    return same;
}

bool jv_equal(struct vm *vm, val a, val b)
{
    int order;

    jv_charge(vm, 1);
    if (compare_numbers(a, b, &order))
        return order == 0;
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case V_UNDEF:
    case V_NONE: return true;
    case V_STR:
        jv_charge_bytes(vm, a.u.s->len == b.u.s->len ? a.u.s->len : 0);
        return jv_same(a.u.s, b.u.s);
    case V_LIST:
    case V_TUPLE: return equal_lists(vm, a.u.list, b.u.list);
    case V_DICT: return equal_dicts(vm, a.u.dict, b.u.dict);
    case V_RANGE:
        return a.u.range->n == b.u.range->n &&
               (a.u.range->n == 0 || a.u.range->start == b.u.range->start) &&
               (a.u.range->n <= 1 || a.u.range->step == b.u.range->step);
    case V_METHOD:
        return a.u.method->id == b.u.method->id &&
               jv_identical(a.u.method->self, b.u.method->self);
    default: return jv_identical(a, b);
    }
}

bool jv_less(struct vm *vm, val a, val b, const char *op)
{
    int order;

    jv_charge(vm, 1);
    if (a.kind == V_UNDEF)
        jv_fail_undef(vm, a);
    if (b.kind == V_UNDEF)
        jv_fail_undef(vm, b);
    if (compare_numbers(a, b, &order))
        return order == -1;
    if (a.kind == V_STR && b.kind == V_STR) {
        size_t n = a.u.s->len < b.u.s->len ? a.u.s->len : b.u.s->len;

        jv_charge_bytes(vm, n);
        order = n > 0 ? memcmp(a.u.s->p, b.u.s->p, n) : 0;
        return order != 0 ? order < 0 : a.u.s->len < b.u.s->len;
    }
    if (a.kind == b.kind && (a.kind == V_LIST || a.kind == V_TUPLE))
        jv_fail(vm, ERR_UNSUPPORTED, "the order of a %s is not supported", jv_type_name(a));
    jv_fail(vm, ERR_FORMAT, "\"%s\" cannot compare %s with %s", op, jv_type_name(a),
            jv_type_name(b));
}

bool jv_contains(struct vm *vm, val c, val v)
{
    struct list items;

    if (c.kind == V_STR) {
        if (v.kind != V_STR)
            jv_fail(vm, ERR_FORMAT, "\"in\" can only search text for text, not for %s",
                    jv_type_name(v));
        return jv_find(vm, c.u.s, 0, c.u.s->len, v.u.s) != SIZE_MAX;
    }
    if (c.kind == V_DICT)
        return jv_dict_get(vm, c.u.dict, v) != NULL;
    items = jv_items(vm, c);
    for (size_t i = 0; i < items.n; i++) {
        if (jv_equal(vm, items.item[i], v)) {
            if (c.kind == V_ITER) /* the rest can still be read */
                c.u.iter->at = c.u.iter->list.n - items.n + i + 1;
            return true;
        }
    }
    return false;
}

bool jv_compare(struct vm *vm, enum link op, val a, val b)
{
    int order;

    switch (op) {
    case LINK_EQ: return jv_equal(vm, a, b);
    case LINK_NE: return !jv_equal(vm, a, b);
    case LINK_IN: return jv_contains(vm, b, a);
    case LINK_NOTIN: return !jv_contains(vm, b, a);
    default: break;
    }
    if (compare_numbers(a, b, &order) && order == 2)
        return false; /* comparisons with NaN are false */
    switch (op) {
    case LINK_LT: return jv_less(vm, a, b, "<");
    case LINK_GT: return jv_less(vm, b, a, ">");
    case LINK_LE: return !jv_less(vm, b, a, "<=");
    default: return !jv_less(vm, a, b, ">=");
    }
}

/* ---- hashing ---- */

uint64_t jv_hash(struct vm *vm, val v)
{
    uint64_t hash = v.kind;
    int64_t i;

    switch (v.kind) {
    case V_STR: jv_charge_bytes(vm, v.u.s->len); return jv_hash_text(v.u.s->p, v.u.s->len);
    case V_FLOAT:
        if (v.u.f >= -9e18 && v.u.f <= 9e18 && v.u.f == floor(v.u.f)) {
            i = (int64_t)v.u.f; /* equal to the int, so the same key */
            return jv_hash_text((const char *)&i, sizeof i);
        }
        return jv_hash_text((const char *)&v.u.f, sizeof v.u.f);
    case V_BOOL:
    case V_INT: (void)jv_as_int(v, &i); return jv_hash_text((const char *)&i, sizeof i);
    case V_TUPLE: jv_fail(vm, ERR_UNSUPPORTED, "a tuple as a key is not supported");
    case V_LIST:
    case V_DICT: jv_fail(vm, ERR_FORMAT, "a %s cannot be a key", jv_type_name(v));
    default: return hash;
    }
}

/* ---- iteration ---- */

bool jv_can_iterate(val v)
{
    switch (v.kind) {
    case V_UNDEF:
    case V_STR:
    case V_LIST:
    case V_TUPLE:
    case V_DICT:
    case V_VIEW:
    case V_ITER:
    case V_LOOP:
    case V_RANGE: return true;
    default: return false;
    }
}

static struct list characters(struct vm *vm, const struct str *s)
{
    struct list *l = jv_list_new(vm, jv_cps(vm, s) + 1); /* the first may be incomplete */

    jv_refuse_safe(vm, s);
    for (size_t at = 0; at < s->len;) {
        size_t end = at + 1;

        while (end < s->len && ((unsigned char)s->p[end] & 0xc0u) == 0x80)
            end++;
        jv_push(vm, l, jv_cut(vm, s, at, end));
        at = end;
    }
    return *l;
}

struct list jv_items(struct vm *vm, val v)
{
    struct list l = { 0 };

    switch (v.kind) {
    case V_UNDEF: return l;
    case V_STR: return characters(vm, v.u.s);
    case V_LIST:
    case V_TUPLE:
    case V_VIEW: return *v.u.list;
    case V_DICT: return (struct list){ v.u.dict->key, v.u.dict->n, v.u.dict->n };
    case V_ITER:
        if (v.u.iter->at < v.u.iter->list.n)
            l = (struct list){ .item = v.u.iter->list.item + v.u.iter->at,
                               .n = v.u.iter->list.n - v.u.iter->at };
        v.u.iter->at = v.u.iter->list.n;
        return l;
    case V_RANGE:
        jv_charge(vm, v.u.range->n);
        l.item = jv_take(vm, v.u.range->n * sizeof l.item[0]);
        for (l.n = 0; l.n < v.u.range->n; l.n++)
            l.item[l.n] =
                jv_sourced(jv_int(v.u.range->start + (int64_t)l.n * v.u.range->step), v.source);
        return l;
    default:
        jv_fail(vm, ERR_FORMAT, "a value of type %s cannot be iterated over", jv_type_name(v));
    }
}

/* ---- arithmetic ---- */

static const char *op_name(enum link op)
{
    static const char *const names[] = {
        [LINK_ADD] = "+", [LINK_SUB] = "-",       [LINK_MUL] = "*",
        [LINK_DIV] = "/", [LINK_FLOORDIV] = "//", [LINK_MOD] = "%",
    };

    return names[op];
}

_Noreturn static void overflow(struct vm *vm)
{
    jv_fail(vm, ERR_BUDGET, "an integer does not fit 64 bits");
}

static val int_arith(struct vm *vm, enum link op, int64_t a, int64_t b)
{
    int64_t r = 0;

    switch (op) {
    case LINK_ADD:
        if (__builtin_add_overflow(a, b, &r))
            overflow(vm);
        return jv_int(r);
    case LINK_SUB:
        if (__builtin_sub_overflow(a, b, &r))
            overflow(vm);
        return jv_int(r);
    case LINK_MUL:
        if (__builtin_mul_overflow(a, b, &r))
            overflow(vm);
        return jv_int(r);
    default: break;
    }
    if (b == 0)
        jv_fail(vm, ERR_FORMAT, "division by zero");
    if (op == LINK_DIV) {
        const int64_t exact = (int64_t)1 << 53;

        if (a >= -exact && a <= exact && b >= -exact && b <= exact)
            return jv_float((double)a / (double)b);
        return jv_float((double)((long double)a / (long double)b));
    }
    if (b == -1) {
        if (op == LINK_MOD)
            return jv_int(0);
        if (__builtin_sub_overflow((int64_t)0, a, &r))
            overflow(vm);
        return jv_int(r);
    }
    /* Python rounds down. */
    r = a % b;
    if (r != 0 && (r < 0) != (b < 0))
        return jv_int(op == LINK_MOD ? r + b : a / b - 1);
    return jv_int(op == LINK_MOD ? r : a / b);
}

static val float_arith(struct vm *vm, enum link op, double a, double b)
{
    switch (op) {
    case LINK_ADD: return jv_float(a + b);
    case LINK_SUB: return jv_float(a - b);
    case LINK_MUL: return jv_float(a * b);
    default: break;
    }
    if (b == 0)
        jv_fail(vm, ERR_FORMAT, "division by zero");
    if (op == LINK_DIV)
        return jv_float(a / b);
    jv_fail(vm, ERR_UNSUPPORTED, "\"%s\" is only supported for integers", op_name(op));
}

static val repeat(struct vm *vm, val v, int64_t times)
{
    size_t n = times > 0 ? (size_t)times : 0;

    if (v.kind == V_STR) {
        struct mark m = jv_begin(vm);
        const struct str *s = v.u.s;

        jv_refuse_safe(vm, s);
        if (s->len > 0 && n > vm->d->max / s->len)
            jv_fail(vm, ERR_BUDGET, "a string is too long");
        if (s->store == NULL)
            jv_fill(vm, s->p, s->len, s->source, n);
        else
            for (size_t i = 0; i < n; i++)
                jv_write_str(vm, s);
        return jv_end(vm, m);
    }

    struct list *l;

    if (v.u.list->n > 0 && n > vm->d->max / v.u.list->n)
        jv_fail(vm, ERR_BUDGET, "a list is too long");
    l = jv_list_new(vm, 0);
    for (size_t i = 0; i < n && v.u.list->n > 0; i++)
        for (size_t k = 0; k < v.u.list->n; k++)
            jv_push(vm, l, v.u.list->item[k]);
    return jv_of_list(l, v.kind);
}

static val add_lists(struct vm *vm, val a, val b)
{
    struct list *l = jv_list_new(vm, a.u.list->n + b.u.list->n);

    for (size_t i = 0; i < a.u.list->n; i++)
        jv_push(vm, l, a.u.list->item[i]);
    for (size_t i = 0; i < b.u.list->n; i++)
        jv_push(vm, l, b.u.list->item[i]);
    return jv_of_list(l, a.kind);
}

/* Joins with text that is marked as safe, for which the reference escapes the other text. */
static val add_text(struct vm *vm, val a, val b)
{
    struct mark m;

    if (!a.u.s->safe && !b.u.s->safe)
        return jv_join(vm, (const struct str *const[]){ a.u.s, b.u.s }, 2);
    m = jv_begin(vm);
    (a.u.s->safe ? jv_write_str : jv_write_escaped)(vm, a.u.s);
    (b.u.s->safe ? jv_write_str : jv_write_escaped)(vm, b.u.s);
    return jv_safe(vm, jv_end(vm, m));
}

val jv_arith(struct vm *vm, enum link op, val a, val b)
{
    int64_t i, j;
    double x, y;

    jv_charge(vm, 1);
    if (a.kind == V_STR && op == LINK_MOD)
        jv_fail(vm, ERR_UNSUPPORTED, "formatting with \"%%\" is not supported");
    if (a.kind == V_UNDEF)
        jv_fail_undef(vm, a);
    if (b.kind == V_UNDEF)
        jv_fail_undef(vm, b);
    if (jv_as_int(a, &i) && jv_as_int(b, &j))
        return jv_sourced(int_arith(vm, op, i, j), jv_worst(a.source, b.source));
    if (jv_as_float(a, &x) && jv_as_float(b, &y))
        return jv_sourced(float_arith(vm, op, x, y), jv_worst(a.source, b.source));
    if (op == LINK_ADD && a.kind == V_STR && b.kind == V_STR)
        return add_text(vm, a, b);
    if (op == LINK_ADD && a.kind == b.kind && (a.kind == V_LIST || a.kind == V_TUPLE))
        return add_lists(vm, a, b);
    if (op == LINK_MUL) {
        if ((a.kind == V_STR || a.kind == V_LIST || a.kind == V_TUPLE) && jv_as_int(b, &j))
            return repeat(vm, a, j);
        if ((b.kind == V_STR || b.kind == V_LIST || b.kind == V_TUPLE) && jv_as_int(a, &i))
            return repeat(vm, b, i);
    }
    jv_fail(vm, ERR_FORMAT, "\"%s\" cannot be used with %s and %s", op_name(op),
            jv_type_name(a), jv_type_name(b));
}

val jv_negate(struct vm *vm, val v)
{
    int64_t i;

    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (v.kind == V_FLOAT)
        return jv_sourced(jv_float(-v.u.f), v.source);
    if (!jv_as_int(v, &i))
        jv_fail(vm, ERR_FORMAT, "\"-\" cannot be used with %s", jv_type_name(v));
    if (__builtin_sub_overflow((int64_t)0, i, &i))
        overflow(vm);
    return jv_sourced(jv_int(i), v.source);
}
