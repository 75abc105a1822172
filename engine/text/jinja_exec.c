/*
 * Statements, and the rendering as a whole.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/text/jinja_internal.h"

static struct scope *new_scope(struct vm *vm, struct scope *parent)
{
    struct scope *s = jv_take(vm, sizeof *s);

    *s = (struct scope){ .parent = parent };
    return s;
}

void jv_bind_name(struct vm *vm, uint32_t name, val v)
{
    struct scope *s = vm->scope;
    struct binding *b;

    if (s->slot != NULL) {
        s->slot[name] = v;
        return;
    }
    for (b = s->first; b != NULL; b = b->next) {
        jv_charge(vm, 1);
        if (b->name == name) {
            b->v = v;
            return;
        }
    }
    b = jv_take(vm, sizeof *b);
    *b = (struct binding){ s->first, name, v };
    s->first = b;
}

static void assign_tuple(struct vm *vm, const struct node *target, val v)
{
    const struct node *k = target->kid;
    struct list items = jv_items(vm, v);

    if (items.n != target->n_kid)
        jv_fail(vm, ERR_FORMAT, "%zu values cannot be assigned to %u names", items.n,
                target->n_kid);
    for (size_t i = 0; i < items.n; i++, k = k->next)
        jv_assign(vm, k, items.item[i]);
}

void jv_assign(struct vm *vm, const struct node *target, val v)
{
    val ns;

    switch (target->type) {
    case N_NAME: jv_bind_name(vm, target->name, v); return;
    case N_TUPLE:
        jv_enter(vm);
        assign_tuple(vm, target, v);
        jv_leave(vm);
        return;
    default: /* N_NSREF */
        ns = jv_lookup(vm, target->name);
        if (ns.kind != V_NAMESPACE)
            jv_fail(vm, ERR_FORMAT, "attributes can only be set on a namespace, not on %s",
                    jv_type_name(ns));
        jv_dict_set(vm, ns.u.dict, target->v, v);
    }
}

/* ---- loops ---- */

/* Returns the items that satisfy the condition of the loop. */
static struct list select_items(struct vm *vm, const struct node *n, struct list items)
{
    struct scope *outer = vm->scope;
    struct list kept = { 0 };

    for (size_t i = 0; i < items.n; i++) {
        vm->scope = new_scope(vm, outer);
        jv_assign(vm, n->a, items.item[i]);
        if (jv_true(vm, jv_eval(vm, n->c)))
            jv_push(vm, &kept, items.item[i]);
    }
    vm->scope = outer;
    return kept;
}

enum flow jv_for(struct vm *vm, const struct node *n, val iterable, int64_t depth0)
{
    struct scope *outer = vm->scope;
    enum flow flow = FLOW_ON;
    struct list items;
    struct loop *loop;

    vm->line = n->line;
    items = jv_items(vm, iterable);
    if (n->c != NULL)
        items = select_items(vm, n, items);
    loop = jv_take(vm, sizeof *loop);
    *loop = (struct loop){ .item = items.item,
                           .n = items.n,
                           .depth0 = depth0,
                           .node = n->id != 0 ? n : NULL,
                           .scope = outer };
    vm->scope = NULL;
    for (; loop->at < loop->n && flow != FLOW_BREAK; loop->at++) {
        jv_charge(vm, 1);
        if (vm->scope == NULL || vm->scope->captured)
            vm->scope = new_scope(vm, outer);
        vm->scope->first = NULL;
        jv_bind_name(vm, NAME_LOOP, (val){ .kind = V_LOOP, .u.loop = loop });
        jv_assign(vm, n->a, loop->item[loop->at]);
        flow = jv_exec(vm, n->kid);
    }
    vm->scope = outer;
    if (loop->n == 0 && n->d != NULL) {
        vm->scope = new_scope(vm, outer);
        flow = jv_exec(vm, n->d->kid);
        vm->scope = outer;
        return flow;
    }
    return FLOW_ON;
}

/* ---- other statements ---- */

static enum flow exec_if(struct vm *vm, const struct node *n)
{
    for (const struct node *k = n->kid; k != NULL; k = k->next) {
        if (k->a == NULL || jv_true(vm, jv_eval(vm, k->a)))
            return jv_exec(vm, k->kid);
    }
    return FLOW_ON;
}

/* Run a body in its own scope.  *out is its text, unless a jump left the body. */
static enum flow capture(struct vm *vm, const struct node *kids, val *out)
{
    struct scope *outer = vm->scope;
    struct mark m = jv_begin(vm);
    enum flow flow;

    vm->scope = new_scope(vm, outer);
    flow = jv_exec(vm, kids);
    vm->scope = outer;
    if (flow == FLOW_ON)
        *out = jv_end(vm, m);
    else
        jv_drop(vm, m);
    return flow;
}

static enum flow exec_setblock(struct vm *vm, const struct node *n)
{
    val v;
    enum flow flow = capture(vm, n->kid, &v);

    if (flow != FLOW_ON)
        return flow;
    if (n->b != NULL) {
        vm->filtered = v;
        v = jv_eval(vm, n->b);
    }
    jv_assign(vm, n->a, v);
    return FLOW_ON;
}

static enum flow exec_filterblock(struct vm *vm, const struct node *n)
{
    val v;
    enum flow flow = capture(vm, n->kid, &v);

    if (flow != FLOW_ON)
        return flow;
    vm->filtered = v;
    jv_print(vm, jv_eval(vm, n->b));
    return FLOW_ON;
}

/* Keep all scopes that are visible here.  Loops must not reuse them. */
static void capture_scopes(struct vm *vm)
{
    for (struct scope *s = vm->scope; s != NULL && !s->captured; s = s->parent)
        s->captured = true;
}

static val make_macro(struct vm *vm, const struct node *n)
{
    struct macro *m = jv_take(vm, sizeof *m);

    *m = (struct macro){ n, vm->scope };
    capture_scopes(vm);
    return (val){ .kind = V_MACRO, .u.macro = m };
}

static void exec_callblock(struct vm *vm, const struct node *n)
{
    val caller = make_macro(vm, n->b), f = jv_eval(vm, n->a->a);
    struct args a = jv_eval_args(vm, n->a->kid);

    vm->line = n->line;
    if (f.kind == V_UNDEF)
        jv_fail_undef(vm, f);
    if (f.kind != V_MACRO)
        jv_fail(vm, ERR_UNSUPPORTED, "a call block can only call a macro, not %s",
                jv_type_name(f));
    jv_print(vm, jv_call_macro(vm, f.u.macro, &a, caller));
}

/* {% generation %} */
static void exec_generation(struct vm *vm, const struct node *n)
{
    struct scope *outer = vm->scope;

    vm->scope = new_scope(vm, outer);
    (void)jv_exec(vm, n->kid);
    vm->scope = outer;
}

static enum flow exec(struct vm *vm, const struct node *n)
{
    switch (n->type) {
    case N_TEXT: jv_write_str(vm, n->v.u.s); return FLOW_ON;
    case N_PRINT:
        for (const struct node *k = n->kid; k != NULL; k = k->next)
            jv_print_node(vm, k);
        return FLOW_ON;
    case N_IF: return exec_if(vm, n);
    case N_FOR: {
        val v = jv_eval(vm, n->b);

        return jv_for(vm, n, v, 0);
    }
    case N_SET: {
        val v = jv_eval(vm, n->b);

        vm->line = n->line;
        jv_assign(vm, n->a, v);
        return FLOW_ON;
    }
    case N_SETBLOCK: return exec_setblock(vm, n);
    case N_MACRO: jv_bind_name(vm, n->name, make_macro(vm, n)); return FLOW_ON;
    case N_CALLBLOCK: exec_callblock(vm, n); return FLOW_ON;
    case N_GENERATION: exec_generation(vm, n); return FLOW_ON;
    case N_FILTERBLOCK: return exec_filterblock(vm, n);
    case N_BREAK: return FLOW_BREAK;
    case N_CONTINUE: return FLOW_CONTINUE;
    default: jv_fail(vm, ERR_FORMAT, "this is not a statement");
    }
}

enum flow jv_exec(struct vm *vm, const struct node *kids)
{
    enum flow flow = FLOW_ON;

    jv_enter(vm);
    for (const struct node *k = kids; k != NULL && flow == FLOW_ON; k = k->next) {
        jv_charge(vm, 1);
        vm->line = k->line;
        flow = exec(vm, k);
    }
    jv_leave(vm);
    return flow;
}

/* ---- a rendering ---- */

static void define_variables(struct vm *vm)
{
    const struct dict *d = &vm->d->variables;
    struct scope *s = jv_take(vm, sizeof *s);
    size_t n = vm->j->n_name;

    *s = (struct scope){ .slot = jv_take(vm, n * sizeof s->slot[0]) };
    memset(s->slot, 0, n * sizeof s->slot[0]);
    for (uint32_t i = 0; i < n && d->n > 0; i++) {
        const val *v = jv_dict_get(vm, d, jv_str(vm->j->name[i]));

        if (v != NULL)
            s->slot[i] = *v;
    }
    vm->scope = s;
}

/* Move the output to *out, and convert the ends of runs to lengths. */
static void hand_over(struct vm *vm, struct jinja_text *out)
{
    size_t last = 0;

    (void)jv_reserve(vm, 1);
    vm->out[vm->out_len] = '\0';
    for (size_t i = 0; i < vm->n_run; i++) {
        size_t end = vm->run[i].len;

        vm->run[i].len = end - last;
        last = end;
    }
    *out = (struct jinja_text){ vm->out, vm->out_len, vm->run, vm->n_run };
    vm->out = NULL;
    vm->run = NULL;
}

static int render(struct vm *vm, struct jinja_text *out)
{
    if (setjmp(vm->fail) != 0)
        return -1;
    define_variables(vm);
    (void)jv_exec(vm, vm->j->body);
    hand_over(vm, out);
    return 0;
}

int jinja_render(const struct jinja *j, struct jinja_data *d, const struct tm *now,
                 struct jinja_text *out, struct err *e)
{
    struct vm *vm;
    int got;

    *out = (struct jinja_text){ 0 };
    if (d->failed) {
        *e = d->error;
        return -1;
    }
    vm = calloc(1, sizeof *vm);
    if (vm == NULL)
        return err_memory(e, "a chat template");
    vm->j = j;
    vm->d = d;
    vm->now = now;
    vm->e = e;
    vm->line = 1;
    vm->steps = (d->max < JINJA_STEPS ? d->max : JINJA_STEPS) + d->size * JINJA_STEPS_EACH;
    got = render(vm, out);
    free(vm->out);
    free(vm->run);
    free(vm);
    d->buffer = 0;
    return got;
}

void jinja_text_free(struct jinja_text *t)
{
    free(t->bytes);
    free(t->runs);
    *t = (struct jinja_text){ 0 };
}
