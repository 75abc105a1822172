/*
 * Expressions.
 */
#include "config.h"

#include <string.h>

#include "engine/text/jinja_internal.h"

#define CHAIN_PARTS 8

val jv_lookup(struct vm *vm, uint32_t name)
{
    uint64_t hops = 0;
    const struct scope *s;
    val got;

    for (s = vm->scope; s->slot == NULL; s = s->parent) {
        for (const struct binding *b = s->first; b != NULL; b = b->next, hops++) {
            if (b->name == name) {
                jv_charge(vm, hops / 4);
                return b->v;
            }
        }
        hops++;
    }
    jv_charge(vm, hops / 4);
    if (s->slot[name].kind != V_MISSING)
        return s->slot[name];
    got = jv_global(vm->j->name[name]);
    if (got.kind != V_MISSING)
        return got;
    return (val){ .kind = V_UNDEF, .flag = UNDEF_NAME, .u.s = vm->j->name[name] };
}

static val eval_list(struct vm *vm, const struct node *n, enum val_kind kind)
{
    struct list *l = jv_list_new(vm, n->n_kid);

    for (const struct node *k = n->kid; k != NULL; k = k->next)
        jv_push(vm, l, jv_eval(vm, k));
    return jv_of_list(l, kind);
}

static val eval_dict(struct vm *vm, const struct node *n)
{
    struct dict *d = jv_dict_new(vm);

    for (const struct node *k = n->kid; k != NULL; k = k->next->next) {
        val key = jv_eval(vm, k);

        jv_dict_set(vm, d, key, jv_eval(vm, k->next));
    }
    return (val){ .kind = V_DICT, .u.dict = d };
}

static val eval_item(struct vm *vm, const struct node *n)
{
    val of = jv_eval(vm, n->a), part[3];
    const struct node *slice = n->b;
    const struct node *const from[3] = { slice->a, slice->b, slice->c };

    if (slice->type != N_SLICE) {
        val key = jv_eval(vm, n->b);

        vm->line = n->line;
        return jv_item(vm, of, key);
    }
    for (int i = 0; i < 3; i++) {
        if (from[i] != NULL)
            part[i] = jv_eval(vm, from[i]);
    }
    vm->line = n->line;
    return jv_slice(vm, of, from[0] != NULL ? &part[0] : NULL,
                    from[1] != NULL ? &part[1] : NULL, from[2] != NULL ? &part[2] : NULL);
}

struct args jv_eval_args(struct vm *vm, const struct node *kids)
{
    struct list pos = { 0 }, key = { 0 }, value = { 0 };

    for (const struct node *k = kids; k != NULL; k = k->next) {
        if (k->type == N_KWARG) {
            jv_push(vm, &key, k->v);
            jv_push(vm, &value, jv_eval(vm, k->a));
        } else {
            jv_push(vm, &pos, jv_eval(vm, k));
        }
    }
    for (size_t i = 0; i < key.n; i++) {
        for (size_t k = 0; k < i; k++) {
            jv_charge(vm, 1);
            if (jv_same(key.item[i].u.s, key.item[k].u.s))
                jv_fail(vm, ERR_FORMAT, "an argument is passed twice");
        }
    }
    return (struct args){ pos.item, pos.n, key.item, value.item, key.n };
}

static val eval_call(struct vm *vm, const struct node *n)
{
    val f = jv_eval(vm, n->a);
    struct args a = jv_eval_args(vm, n->kid);

    vm->line = n->line;
    return jv_call(vm, f, &a);
}

static val eval_filter(struct vm *vm, const struct node *n)
{
    val v = n->a != NULL ? jv_eval(vm, n->a) : vm->filtered;
    struct args a = jv_eval_args(vm, n->kid);

    vm->line = n->line;
    return jv_filter(vm, n->id, n->v.u.s, v, &a);
}

static val eval_test(struct vm *vm, const struct node *n)
{
    val v = jv_eval(vm, n->a);
    struct args a = jv_eval_args(vm, n->kid);

    vm->line = n->line;
    return jv_bool(jv_test(vm, n->id, n->v.u.s, v, &a));
}

static bool is_plain_text(val v)
{
    return v.kind == V_STR && !v.u.s->safe;
}

/*
 * Evaluate the operands from left to right.  Neighbouring texts are joined at once.  If
 * print is set, they may be printed without joining.  Then the result is V_MISSING.
 */
static val eval_chain(struct vm *vm, const struct node *n, bool print)
{
    const struct str *part[CHAIN_PARTS];
    val got = jv_eval(vm, n->kid);
    size_t n_part = 0;

    for (const struct node *k = n->kid->next; k != NULL; k = k->next) {
        val v = jv_eval(vm, k);

        vm->line = n->line;
        if (k->link == LINK_ADD && is_plain_text(v) && (n_part > 0 || is_plain_text(got))) {
            if (n_part == 0)
                part[n_part++] = got.u.s;
            if (n_part == CHAIN_PARTS) {
                part[0] = jv_join(vm, part, n_part).u.s;
                n_part = 1;
            }
            part[n_part++] = v.u.s;
            continue;
        }
        if (n_part > 0)
            got = jv_join(vm, part, n_part);
        n_part = 0;
        got = jv_arith(vm, k->link, got, v);
    }
    if (n_part == 0)
        return got;
    if (!print)
        return jv_join(vm, part, n_part);
    for (size_t i = 0; i < n_part; i++)
        jv_write_str(vm, part[i]);
    return (val){ .kind = V_MISSING };
}

static val eval_concat(struct vm *vm, const struct node *n)
{
    struct mark m = jv_begin(vm);

    for (const struct node *k = n->kid; k != NULL; k = k->next)
        jv_print(vm, jv_eval(vm, k));
    return jv_end(vm, m);
}

static val eval_compare(struct vm *vm, const struct node *n)
{
    val left = jv_eval(vm, n->kid);

    for (const struct node *k = n->kid->next; k != NULL; k = k->next) {
        val right = jv_eval(vm, k);

        vm->line = n->line;
        if (!jv_compare(vm, k->link, left, right))
            return jv_bool(false);
        left = right;
    }
    return jv_bool(true);
}

/* "and" stops at the first value that is false, "or" at the first that is true. */
static val eval_logic(struct vm *vm, const struct node *n, bool stop)
{
    const struct node *k = n->kid;

    for (;; k = k->next) {
        val v = jv_eval(vm, k);

        if (k->next == NULL || jv_true(vm, v) == stop)
            return v;
    }
}

static val eval_cond(struct vm *vm, const struct node *n)
{
    if (jv_true(vm, jv_eval(vm, n->a)))
        return jv_eval(vm, n->b);
    if (n->c != NULL)
        return jv_eval(vm, n->c);
    return jv_hint("the condition is false and there is no \"else\"");
}

static val eval_sign(struct vm *vm, const struct node *n)
{
    val v = jv_eval(vm, n->a);
    int64_t i;

    vm->line = n->line;
    if (n->type == N_NEG)
        return jv_negate(vm, v);
    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (!jv_is_number(v))
        jv_fail(vm, ERR_FORMAT, "\"+\" cannot be used with %s", jv_type_name(v));
    return jv_as_int(v, &i) ? jv_sourced(jv_int(i), v.source) : v;
}

static val eval(struct vm *vm, const struct node *n)
{
    switch (n->type) {
    case N_CONST: return n->v;
    case N_NAME: return jv_lookup(vm, n->name);
    case N_LIST: return eval_list(vm, n, V_LIST);
    case N_TUPLE: return eval_list(vm, n, V_TUPLE);
    case N_DICT: return eval_dict(vm, n);
    case N_ATTR: {
        val of = jv_eval(vm, n->a);

        vm->line = n->line;
        return jv_attr(vm, of, n->v.u.s);
    }
    case N_ITEM: return eval_item(vm, n);
    case N_CALL: return eval_call(vm, n);
    case N_FILTER: return eval_filter(vm, n);
    case N_TEST: return eval_test(vm, n);
    case N_NOT: return jv_bool(!jv_true(vm, jv_eval(vm, n->a)));
    case N_NEG:
    case N_POS: return eval_sign(vm, n);
    case N_AND: return eval_logic(vm, n, false);
    case N_OR: return eval_logic(vm, n, true);
    case N_CHAIN: return eval_chain(vm, n, false);
    case N_CONCAT: return eval_concat(vm, n);
    case N_COMPARE: return eval_compare(vm, n);
    case N_COND: return eval_cond(vm, n);
    case N_SLICE: /* a slice with several parts, which no type of the subset supports */
        jv_fail(vm, ERR_FORMAT, "a slice cannot contain a comma");
    default: jv_fail(vm, ERR_FORMAT, "this is not an expression");
    }
}

val jv_eval(struct vm *vm, const struct node *n)
{
    val v;

    if (n->type == N_CONST)
        return n->v;
    jv_charge(vm, 1);
    jv_enter(vm);
    v = eval(vm, n);
    jv_leave(vm);
    return v;
}

void jv_print_node(struct vm *vm, const struct node *n)
{
    val v;

    jv_charge(vm, 1);
    jv_enter(vm);
    switch (n->type) {
    case N_CHAIN:
        v = eval_chain(vm, n, true);
        if (v.kind != V_MISSING)
            jv_print(vm, v);
        break;
    case N_CONCAT:
        for (const struct node *k = n->kid; k != NULL; k = k->next)
            jv_print_node(vm, k);
        break;
    case N_COND:
        if (jv_true(vm, jv_eval(vm, n->a)))
            jv_print_node(vm, n->b);
        else if (n->c != NULL)
            jv_print_node(vm, n->c);
        break;
    default: jv_print(vm, jv_eval(vm, n));
    }
    jv_leave(vm);
}
