/*
 * Calls: arguments, macros, and the built-in functions.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

/* ---- arguments ---- */

static bool is_word(const char *word, size_t len, const struct str *s)
{
    return s->len == len && memcmp(word, s->p, len) == 0;
}

void jv_bind(struct vm *vm, const struct args *a, const char *what, const char *names,
             size_t need, val *out)
{
    size_t n = 0, used = 0;

    for (const char *word = names; *word != '\0'; n++) {
        size_t len = strcspn(word, " ");

        out[n] = n < a->n ? a->pos[n] : (val){ .kind = V_MISSING };
        for (size_t i = 0; i < a->n_kw; i++) {
            if (!is_word(word, len, a->key[i].u.s))
                continue;
            if (out[n].kind != V_MISSING)
                jv_fail(vm, ERR_FORMAT, "%s got \"%.*s\" twice", what, (int)len, word);
            out[n] = a->kw[i];
            used++;
        }
        if (n < need && out[n].kind == V_MISSING)
            jv_fail(vm, ERR_FORMAT, "%s needs \"%.*s\"", what, (int)len, word);
        word += len + (word[len] == ' ');
    }
    if (a->n > n)
        jv_fail(vm, ERR_UNSUPPORTED, "%s with %zu arguments is not supported", what, a->n);
    if (used < a->n_kw)
        jv_fail(vm, ERR_UNSUPPORTED, "%s with this named argument is not supported", what);
}

const struct str *jv_want_str(struct vm *vm, val v, const char *what)
{
    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (v.kind != V_STR)
        jv_fail(vm, ERR_FORMAT, "%s must be text, not %s", what, jv_type_name(v));
    return v.u.s;
}

int64_t jv_want_int(struct vm *vm, val v, const char *what)
{
    int64_t i;

    if (v.kind == V_UNDEF)
        jv_fail_undef(vm, v);
    if (!jv_as_int(v, &i))
        jv_fail(vm, ERR_FORMAT, "%s must be an integer, not %s", what, jv_type_name(v));
    return i;
}

/* ---- macros ---- */

/* Finds the keyword argument of a parameter. */
static val take_keyword(struct vm *vm, const struct args *a, bool *taken,
                        const struct str *name)
{
    for (size_t i = 0; i < a->n_kw; i++) {
        jv_charge(vm, 1);
        if (!taken[i] && jv_same(a->key[i].u.s, name)) {
            taken[i] = true;
            return a->kw[i];
        }
    }
    return (val){ .kind = V_MISSING };
}

static void bind_params(struct vm *vm, const struct node *n, const struct args *a, val caller)
{
    bool *taken = jv_take(vm, a->n_kw + 1);
    const struct node *k = n->c->kid;
    bool has_param = false;

    memset(taken, 0, a->n_kw + 1);
    for (size_t i = 0; k != NULL; k = k->next, i++) {
        val v = i < a->n ? a->pos[i] : take_keyword(vm, a, taken, k->v.u.s);

        if (k->name == NAME_CALLER && !has_param) {
            has_param = true;
            if (v.kind == V_MISSING) {
                v = caller;
                caller.kind = V_MISSING;
            }
        }
        if (v.kind == V_MISSING && k->a != NULL)
            v = jv_eval(vm, k->a); /* sees the parameters before it */
        if (v.kind == V_MISSING)
            v = (val){ .kind = V_UNDEF, .flag = UNDEF_NAME, .u.s = k->v.u.s };
        jv_bind_name(vm, k->name, v);
    }
    if (n->id != 0 && !has_param) {
        val given = take_keyword(vm, a, taken, vm->j->name[NAME_CALLER]);

        if (caller.kind == V_MISSING)
            caller = given;
        jv_bind_name(vm, NAME_CALLER,
                     caller.kind != V_MISSING ? caller : jv_hint("no caller is defined"));
        caller.kind = V_MISSING;
    }
    if (caller.kind != V_MISSING)
        jv_fail(vm, ERR_FORMAT, "the macro \"%.*s\" does not use its caller",
                (int)n->v.u.s->len, n->v.u.s->p);
    for (size_t i = 0; i < a->n_kw; i++) {
        if (!taken[i])
            jv_fail(vm, ERR_FORMAT, "the macro \"%.*s\" got an unknown argument",
                    (int)n->v.u.s->len, n->v.u.s->p);
    }
    if (a->n > n->c->n_kid)
        jv_fail(vm, ERR_FORMAT, "the macro \"%.*s\" takes %u arguments, not %zu",
                (int)n->v.u.s->len, n->v.u.s->p, n->c->n_kid, a->n);
}

val jv_call_macro(struct vm *vm, const struct macro *macro, const struct args *a, val caller)
{
    struct scope *outer = vm->scope, *inner = jv_take(vm, sizeof *inner);
    uint32_t line = vm->line;
    struct mark m;
    val got;

    jv_enter(vm);
    *inner = (struct scope){ .parent = macro->scope };
    vm->scope = inner;
    m = jv_begin(vm);
    bind_params(vm, macro->node, a, caller);
    (void)jv_exec(vm, macro->node->kid);
    got = jv_end(vm, m);
    vm->scope = outer;
    vm->line = line;
    jv_leave(vm);
    return got;
}

/* ---- functions ---- */

val jv_global(const struct str *name)
{
    static const struct {
        const char *name;
        enum func_id id;
    } globals[] = {
        { "range", FUNC_RANGE },           { "dict", FUNC_DICT },
        { "namespace", FUNC_NAMESPACE },   { "cycler", FUNC_OUTSIDE },
        { "joiner", FUNC_OUTSIDE },        { "lipsum", FUNC_OUTSIDE },
        { "raise_exception", FUNC_RAISE }, { "strftime_now", FUNC_STRFTIME_NOW },
    };

    for (size_t i = 0; i < sizeof globals / sizeof globals[0]; i++) {
        if (jv_is(name, globals[i].name))
            return (val){ .kind = V_FUNC, .u.i = globals[i].id };
    }
    return (val){ .kind = V_MISSING };
}

static val call_range(struct vm *vm, const struct args *a)
{
    int64_t bound[3] = { 0, 0, 1 };
    struct range *r;
    uint32_t source = JINJA_TRUSTED;
    uint64_t n = 0;

    if (a->n < 1 || a->n > 3 || a->n_kw > 0)
        jv_fail(vm, ERR_FORMAT, "range takes 1 to 3 arguments");
    for (size_t i = 0; i < a->n; i++) {
        bound[a->n == 1 ? 1 : i] = jv_want_int(vm, a->pos[i], "an argument of range");
        source = jv_worst(source, a->pos[i].source);
    }
    if (bound[2] == 0)
        jv_fail(vm, ERR_FORMAT, "the step of range is 0");
    if (bound[2] > 0 && bound[0] < bound[1])
        n = ((uint64_t)bound[1] - (uint64_t)bound[0] - 1) / (uint64_t)bound[2] + 1;
    else if (bound[2] < 0 && bound[0] > bound[1])
        n = ((uint64_t)bound[0] - (uint64_t)bound[1] - 1) / (0 - (uint64_t)bound[2]) + 1;
    if (n > JINJA_RANGE_MAX)
        jv_fail(vm, ERR_BUDGET, "a range is longer than %d", JINJA_RANGE_MAX);
    r = jv_take(vm, sizeof *r);
    *r = (struct range){ bound[0], bound[2], (size_t)n };
    return (val){ .kind = V_RANGE, .source = source, .u.range = r };
}

/* dict(...) and namespace(...): a mapping or pairs, then keywords. */
static val call_dict(struct vm *vm, const struct args *a, enum val_kind kind)
{
    struct dict *d = jv_dict_new(vm);

    if (a->n > 1)
        jv_fail(vm, ERR_FORMAT, "%s takes one argument and keywords",
                kind == V_DICT ? "dict" : "namespace");
    if (a->n == 1 && a->pos[0].kind == V_DICT) {
        for (size_t i = 0; i < a->pos[0].u.dict->n; i++)
            jv_dict_set(vm, d, a->pos[0].u.dict->key[i], a->pos[0].u.dict->value[i]);
    } else if (a->n == 1) {
        struct list items = jv_items(vm, a->pos[0]);

        for (size_t i = 0; i < items.n; i++) {
            struct list pair = jv_items(vm, items.item[i]);

            if (pair.n != 2)
                jv_fail(vm, ERR_FORMAT, "dict needs pairs, not %zu values", pair.n);
            jv_dict_set(vm, d, pair.item[0], pair.item[1]);
        }
    }
    for (size_t i = 0; i < a->n_kw; i++)
        jv_dict_set(vm, d, a->key[i], a->kw[i]);
    return (val){ .kind = (uint8_t)kind, .u.dict = d };
}

_Noreturn static void raise(struct vm *vm, const struct args *a)
{
    struct mark m = jv_begin(vm);
    val arg[1];

    jv_bind(vm, a, "raise_exception", "message", 1, arg);
    jv_print(vm, arg[0]);
    jv_fail(vm, ERR_ARGUMENT, "%.*s",
            (int)(vm->out_len - m.len < 200 ? vm->out_len - m.len : 200),
            vm->out != NULL ? vm->out + m.len : "");
}

/* ---- time ---- */

static void write_number(struct vm *vm, int n, int width, char pad, uint32_t source)
{
    char buf[16];

    jv_write(vm, buf, (size_t)snprintf(buf, sizeof buf, pad == '0' ? "%0*d" : "%*d", width, n),
             source);
}

/* Write one conversion, in English regardless of the locale. */
static void write_time_part(struct vm *vm, char c, uint32_t source)
{
    static const char *const day[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday" };
    static const char *const month[] = { "January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December" };
    const struct tm *t = vm->now;
    const char *d = day[(unsigned)t->tm_wday % 7], *m = month[(unsigned)t->tm_mon % 12];

    switch (c) {
    case 'a': jv_write(vm, d, 3, source); break;
    case 'A': jv_puts(vm, d, source); break;
    case 'b':
    case 'h': jv_write(vm, m, 3, source); break;
    case 'B': jv_puts(vm, m, source); break;
    case 'd': write_number(vm, t->tm_mday, 2, '0', source); break;
    case 'e': write_number(vm, t->tm_mday, 2, ' ', source); break;
    case 'H': write_number(vm, t->tm_hour, 2, '0', source); break;
    case 'I': write_number(vm, (t->tm_hour + 11) % 12 + 1, 2, '0', source); break;
    case 'j': write_number(vm, t->tm_yday + 1, 3, '0', source); break;
    case 'm': write_number(vm, t->tm_mon + 1, 2, '0', source); break;
    case 'M': write_number(vm, t->tm_min, 2, '0', source); break;
    case 'S': write_number(vm, t->tm_sec, 2, '0', source); break;
    case 'p': jv_puts(vm, t->tm_hour < 12 ? "AM" : "PM", source); break;
    case 'y': write_number(vm, t->tm_year % 100, 2, '0', source); break;
    case 'Y': write_number(vm, t->tm_year + 1900, 4, '0', source); break;
    case '%': jv_puts(vm, "%", source); break;
    default: jv_fail(vm, ERR_UNSUPPORTED, "strftime_now does not support \"%%%c\"", c);
    }
}

static void write_time(struct vm *vm, const char *format, uint32_t source)
{
    for (; *format != '\0'; format++) {
        if (*format == '%' && format[1] == '-' && format[2] != '\0' &&
            strchr("demHIMSjy", format[2]) != NULL) { /* without padding */
            struct mark m = jv_begin(vm);
            const struct str *s;
            size_t blank = 0;

            format += 2;
            write_time_part(vm, *format, source);
            s = jv_end(vm, m).u.s;
            while (blank + 1 < s->len && (s->p[blank] == '0' || s->p[blank] == ' '))
                blank++;
            jv_write_part(vm, s, blank, s->len);
        } else if (*format == '%' && format[1] != '\0') {
            write_time_part(vm, *++format, source);
        } else {
            jv_write(vm, format, 1, source);
        }
    }
}

static val call_strftime(struct vm *vm, const struct args *a)
{
    struct mark m;
    char format[256];
    const struct str *s;
    val arg[1];

    jv_bind(vm, a, "strftime_now", "format", 1, arg);
    s = jv_want_str(vm, arg[0], "the format of strftime_now");
    if (s->len >= sizeof format || memchr(s->p, '\0', s->len) != NULL)
        jv_fail(vm, ERR_UNSUPPORTED, "the format of strftime_now is too long (%zu bytes)",
                s->len);
    memcpy(format, s->p, s->len);
    format[s->len] = '\0';
    m = jv_begin(vm);
    write_time(vm, format, jv_str_source(s));
    return jv_end(vm, m);
}

/* ---- calls ---- */

/* loop(...) in a recursive loop: run the same body for other items. */
static val recurse(struct vm *vm, const struct loop *l, const struct args *a)
{
    struct scope *outer = vm->scope;
    uint32_t line = vm->line;
    struct mark m;
    val got, arg[1];

    if (l->node == NULL)
        jv_fail(vm, ERR_FORMAT, "only a loop that is marked \"recursive\" can be called");
    jv_bind(vm, a, "loop", "iterable", 1, arg);
    jv_enter(vm);
    m = jv_begin(vm);
    vm->scope = l->scope;
    (void)jv_for(vm, l->node, arg[0], l->depth0 + 1);
    vm->scope = outer;
    vm->line = line;
    got = jv_end(vm, m);
    jv_leave(vm);
    return got;
}

val jv_call(struct vm *vm, val f, const struct args *a)
{
    jv_charge(vm, 1);
    switch (f.kind) {
    case V_MACRO: return jv_call_macro(vm, f.u.macro, a, (val){ .kind = V_MISSING });
    case V_LOOP: return recurse(vm, f.u.loop, a);
    case V_METHOD: return jv_call_method(vm, f.u.method->self, f.u.method->id, a);
    case V_UNDEF: jv_fail_undef(vm, f);
    case V_FUNC: break;
    default: jv_fail(vm, ERR_FORMAT, "a value of type %s cannot be called", jv_type_name(f));
    }
    switch (f.u.i) {
    case FUNC_RANGE: return call_range(vm, a);
    case FUNC_DICT: return call_dict(vm, a, V_DICT);
    case FUNC_NAMESPACE: return call_dict(vm, a, V_NAMESPACE);
    case FUNC_RAISE: raise(vm, a);
    case FUNC_STRFTIME_NOW: return call_strftime(vm, a);
    default:
        jv_fail(vm, ERR_UNSUPPORTED,
                "the functions cycler, joiner and lipsum are not supported");
    }
}
