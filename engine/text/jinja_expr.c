/*
 * Expressions of a template, with Jinja's precedence: from weak to strong
 * "a if b else c", or, and, not, comparisons, + and -, ~, * / // %, unary - and +, then items,
 * calls, filters and tests.
 */
#include "config.h"

#include <string.h>

#include "engine/text/jinja_internal.h"

static struct node *parse_unary(struct parser *p, bool with_filter);

static struct node *parse_list(struct parser *p)
{
    struct node *n = jp_node(p, N_LIST, p->now.line), *tail = NULL;

    jp_expect_op(p, '[');
    while (!jp_is_op(&p->now, ']')) {
        if (tail != NULL)
            jp_expect_op(p, ',');
        if (jp_is_op(&p->now, ']'))
            break;
        jp_add(p, n, &tail, jp_expression(p, true));
    }
    jp_expect_op(p, ']');
    return n;
}

static struct node *parse_dict(struct parser *p)
{
    struct node *n = jp_node(p, N_DICT, p->now.line), *tail = NULL;

    jp_expect_op(p, '{');
    while (!jp_is_op(&p->now, '}')) {
        if (tail != NULL)
            jp_expect_op(p, ',');
        if (jp_is_op(&p->now, '}'))
            break;
        jp_add(p, n, &tail, jp_expression(p, true));
        jp_expect_op(p, ':');
        jp_add(p, n, &tail, jp_expression(p, true));
    }
    jp_expect_op(p, '}');
    return n;
}

/* Neighbouring strings form one string. */
static struct node *parse_string(struct parser *p)
{
    struct node *n = jp_node(p, N_CONST, p->now.line);
    const char *text = p->now.p;
    size_t len = p->now.len, cap = 0;
    char *joined = NULL;

    for (jp_next(p); p->now.type == T_STRING; jp_next(p)) {
        if (joined == NULL || len + p->now.len > cap) {
            cap = (len + p->now.len) * 2;
            joined = memcpy(jp_take(p, cap), text, len);
            text = joined;
        }
        if (p->now.len > 0)
            memcpy(joined + len, p->now.p, p->now.len);
        len += p->now.len;
    }
    n->v = jp_str(p, text, len);
    return n;
}

static struct node *parse_name(struct parser *p, bool with_namespace)
{
    struct node *n = jp_node(p, N_CONST, p->now.line);
    struct token t = p->now;

    jp_next(p);
    if (jp_is_name(&t, "true") || jp_is_name(&t, "True")) {
        n->v = jv_bool(true);
    } else if (jp_is_name(&t, "false") || jp_is_name(&t, "False")) {
        n->v = jv_bool(false);
    } else if (jp_is_name(&t, "none") || jp_is_name(&t, "None")) {
        n->v = jv_none();
    } else if (with_namespace && jp_is_op(&p->now, '.')) {
        jp_next(p);
        if (p->now.type != T_NAME)
            jp_unexpected(p, "the name of an attribute");
        n->type = N_NSREF;
        n->name = jp_name(p, t.p, t.len);
        n->v = jp_str(p, p->now.p, p->now.len);
        jp_next(p);
    } else {
        n->type = N_NAME;
        n->name = jp_name(p, t.p, t.len);
    }
    return n;
}

static struct node *parse_primary(struct parser *p, bool with_namespace)
{
    struct node *n;

    switch (p->now.type) {
    case T_NAME: return parse_name(p, with_namespace);
    case T_STRING: return parse_string(p);
    case T_INT:
    case T_FLOAT:
        n = jp_node(p, N_CONST, p->now.line);
        n->v = p->now.type == T_INT ? jv_int(p->now.i) : jv_float(p->now.f);
        jp_next(p);
        return n;
    default: break;
    }
    if (jp_skip_op(p, '(')) {
        n = jp_tuple(p, true, true, NULL);
        jp_expect_op(p, ')');
        return n;
    }
    if (jp_is_op(&p->now, '['))
        return parse_list(p);
    if (jp_is_op(&p->now, '{'))
        return parse_dict(p);
    jp_unexpected(p, NULL);
}

static bool ends_part(const struct parser *p)
{
    return jp_is_op(&p->now, ']') || jp_is_op(&p->now, ',');
}

/* Parse the brackets after a value: an expression or a slice. */
static struct node *parse_subscript(struct parser *p)
{
    struct node *n = NULL, *slice;
    uint32_t line = p->now.line;

    if (!jp_is_op(&p->now, ':')) {
        n = jp_expression(p, true);
        if (!jp_is_op(&p->now, ':'))
            return n;
    }
    jp_next(p);
    slice = jp_node(p, N_SLICE, line);
    if (n != NULL)
        slice->a = jp_child(p, slice, n);
    if (!jp_is_op(&p->now, ':') && !ends_part(p))
        slice->b = jp_child(p, slice, jp_expression(p, true));
    if (jp_skip_op(p, ':') && !ends_part(p))
        slice->c = jp_child(p, slice, jp_expression(p, true));
    return slice;
}

static struct node *parse_dot(struct parser *p, struct node *of)
{
    struct node *n = jp_node(p, N_ATTR, p->now.line);

    jp_next(p);
    n->a = jp_child(p, n, of);
    if (p->now.type == T_NAME) {
        n->v = jp_str(p, p->now.p, p->now.len);
    } else if (p->now.type == T_INT) {
        n->type = N_ITEM;
        n->b = jp_child(p, n, jp_node(p, N_CONST, p->now.line));
        n->b->v = jv_int(p->now.i);
    } else {
        jp_unexpected(p, "a name or number");
    }
    jp_next(p);
    return n;
}

static struct node *parse_brackets(struct parser *p, struct node *of)
{
    struct node *n = jp_node(p, N_ITEM, p->now.line), *tail = NULL;
    struct node *tuple = jp_node(p, N_TUPLE, p->now.line);

    n->a = jp_child(p, n, of);
    jp_next(p);
    while (!jp_is_op(&p->now, ']')) {
        if (tail != NULL)
            jp_expect_op(p, ',');
        jp_add(p, tuple, &tail, parse_subscript(p));
    }
    jp_next(p);
    n->b = jp_child(p, n, tuple->n_kid == 1 ? tuple->kid : tuple);
    return n;
}

/* Parse "(a, b=c)" into the kids of n. */
static void parse_args(struct parser *p, struct node *n)
{
    struct node *tail = NULL;
    bool keyword = false;

    jp_expect_op(p, '(');
    while (!jp_is_op(&p->now, ')')) {
        struct node *arg;

        if (tail != NULL) {
            jp_expect_op(p, ',');
            if (jp_is_op(&p->now, ')'))
                break;
        }
        if (jp_is_op(&p->now, '*') || jp_is_op(&p->now, '*' << 8 | '*'))
            jp_fail(p, ERR_UNSUPPORTED, p->now.line, "\"*\" before an argument is not supported");
        if (p->now.type == T_NAME && jp_is_op(jp_look(p), '=')) {
            keyword = true;
            arg = jp_node(p, N_KWARG, p->now.line);
            arg->v = jp_str(p, p->now.p, p->now.len);
            jp_next(p);
            jp_next(p);
            arg->a = jp_child(p, arg, jp_expression(p, true));
        } else if (!keyword) {
            arg = jp_expression(p, true);
        } else {
            jp_fail(p, ERR_FORMAT, p->now.line, "the arguments of a call are in the wrong order");
        }
        jp_add(p, n, &tail, arg);
    }
    jp_next(p);
}

static struct node *parse_call(struct parser *p, struct node *of)
{
    struct node *n = jp_node(p, N_CALL, p->now.line);

    n->a = jp_child(p, n, of);
    parse_args(p, n);
    return n;
}

static struct node *parse_postfix(struct parser *p, struct node *n)
{
    for (;;) {
        if (jp_is_op(&p->now, '.'))
            n = parse_dot(p, n);
        else if (jp_is_op(&p->now, '['))
            n = parse_brackets(p, n);
        else if (jp_is_op(&p->now, '('))
            n = parse_call(p, n);
        else
            return n;
    }
}

/* Parse the name of a filter or test, which may contain dots. */
static val parse_long_name(struct parser *p)
{
    char buf[128];
    size_t n = 0;

    for (;;) {
        if (p->now.type != T_NAME)
            jp_unexpected(p, "a name");
        if (n + p->now.len + 1 >= sizeof buf)
            jp_fail(p, ERR_UNSUPPORTED, p->now.line,
                    "the name of a filter or test is too long (%zu bytes)", n + p->now.len);
        memcpy(buf + n, p->now.p, p->now.len);
        n += p->now.len;
        jp_next(p);
        if (!jp_skip_op(p, '.'))
            break;
        buf[n++] = '.';
    }
    return jp_str(p, memcpy(jp_take(p, n), buf, n), n);
}

struct node *jp_filters(struct parser *p, struct node *of, bool start_inline)
{
    while (start_inline || jp_is_op(&p->now, '|')) {
        struct node *n = jp_node(p, N_FILTER, p->now.line);

        if (!start_inline)
            jp_next(p);
        if (of != NULL)
            n->a = jp_child(p, n, of);
        n->line = p->now.line;
        n->v = parse_long_name(p);
        n->id = jinja_filter_id(n->v.u.s->p, n->v.u.s->len);
        if (jp_is_op(&p->now, '('))
            parse_args(p, n);
        of = n;
        start_inline = false;
    }
    return of;
}

static bool starts_test_argument(const struct parser *p)
{
    switch (p->now.type) {
    case T_STRING:
    case T_INT:
    case T_FLOAT: return true;
    case T_OP: return p->now.op == '[' || p->now.op == '{';
    case T_NAME:
        return !jp_is_name(&p->now, "else") && !jp_is_name(&p->now, "or") &&
               !jp_is_name(&p->now, "and");
    default: return false;
    }
}

static struct node *parse_test(struct parser *p, struct node *of)
{
    struct node *n = jp_node(p, N_TEST, p->now.line), *tail = NULL, *not = NULL;

    jp_next(p);
    if (jp_is_name(&p->now, "not")) {
        not = jp_node(p, N_NOT, p->now.line);
        jp_next(p);
    }
    n->a = jp_child(p, n, of);
    n->v = parse_long_name(p);
    n->id = jinja_test_id(n->v.u.s->p, n->v.u.s->len);
    if (jp_is_op(&p->now, '(')) {
        parse_args(p, n);
    } else if (starts_test_argument(p)) {
        if (jp_is_name(&p->now, "is"))
            jp_fail(p, ERR_FORMAT, p->now.line, "tests with \"is\" cannot be chained");
        jp_add(p, n, &tail, parse_postfix(p, parse_primary(p, false)));
    }
    if (not == NULL)
        return n;
    not ->a = jp_child(p, not, n);
    return not ;
}

static struct node *parse_unary(struct parser *p, bool with_filter)
{
    struct node *n;

    jp_enter(p);
    if (jp_is_op(&p->now, '-') || jp_is_op(&p->now, '+')) {
        n = jp_node(p, p->now.op == '-' ? N_NEG : N_POS, p->now.line);
        jp_next(p);
        n->a = jp_child(p, n, parse_unary(p, false));
    } else {
        n = parse_primary(p, false);
    }
    n = parse_postfix(p, n);
    while (with_filter) {
        if (jp_is_op(&p->now, '|'))
            n = jp_filters(p, n, false);
        else if (jp_is_name(&p->now, "is"))
            n = parse_test(p, n);
        else if (jp_is_op(&p->now, '('))
            n = parse_call(p, n);
        else
            break;
    }
    jp_leave(p);
    return n;
}

/* ---- operators from strong to weak ---- */

enum level {
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_COMPARE,
    LEVEL_SUM,
    LEVEL_CONCAT,
    LEVEL_PRODUCT,
};

static enum link operator_of(struct parser *p, enum level level)
{
    static const struct {
        int op;
        enum level level;
        enum link link;
    } ops[] = {
        { '+', LEVEL_SUM, LINK_ADD },
        { '-', LEVEL_SUM, LINK_SUB },
        { '~', LEVEL_CONCAT, LINK_ADD },
        { '*', LEVEL_PRODUCT, LINK_MUL },
        { '/', LEVEL_PRODUCT, LINK_DIV },
        { '/' << 8 | '/', LEVEL_PRODUCT, LINK_FLOORDIV },
        { '%', LEVEL_PRODUCT, LINK_MOD },
        { '=' << 8 | '=', LEVEL_COMPARE, LINK_EQ },
        { '!' << 8 | '=', LEVEL_COMPARE, LINK_NE },
        { '<', LEVEL_COMPARE, LINK_LT },
        { '<' << 8 | '=', LEVEL_COMPARE, LINK_LE },
        { '>', LEVEL_COMPARE, LINK_GT },
        { '>' << 8 | '=', LEVEL_COMPARE, LINK_GE },
    };

    if (p->now.type == T_OP) {
        for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
            if (ops[i].op == p->now.op)
                return ops[i].level == level ? ops[i].link : LINK_NONE;
        }
        return LINK_NONE;
    }
    switch (level) {
    case LEVEL_OR: return jp_is_name(&p->now, "or") ? LINK_ADD : LINK_NONE;
    case LEVEL_AND: return jp_is_name(&p->now, "and") ? LINK_ADD : LINK_NONE;
    case LEVEL_COMPARE:
        if (jp_is_name(&p->now, "in"))
            return LINK_IN;
        return jp_is_name(&p->now, "not") && jp_is_name(jp_look(p), "in") ? LINK_NOTIN
                                                                          : LINK_NONE;
    default: return LINK_NONE;
    }
}

static struct node *parse_level(struct parser *p, enum level level);

static struct node *parse_operand(struct parser *p, enum level level)
{
    struct node *n;

    if (level == LEVEL_PRODUCT) {
        n = parse_unary(p, true);
        if (jp_is_op(&p->now, '*' << 8 | '*'))
            jp_fail(p, ERR_UNSUPPORTED, p->now.line, "\"**\" is not supported");
        return n;
    }
    if (level != LEVEL_AND)
        return parse_level(p, level + 1);
    if (!jp_is_name(&p->now, "not"))
        return parse_level(p, LEVEL_COMPARE);
    jp_enter(p);
    n = jp_node(p, N_NOT, p->now.line);
    jp_next(p);
    n->a = jp_child(p, n, parse_operand(p, LEVEL_AND));
    jp_leave(p);
    return n;
}

/* Parse the operands of one level of operators into a single node. */
static struct node *parse_level(struct parser *p, enum level level)
{
    static const enum node_type types[] = {
        [LEVEL_OR] = N_OR,       [LEVEL_AND] = N_AND,       [LEVEL_COMPARE] = N_COMPARE,
        [LEVEL_SUM] = N_CHAIN,   [LEVEL_CONCAT] = N_CONCAT, [LEVEL_PRODUCT] = N_CHAIN,
    };
    uint32_t line = p->now.line;
    struct node *first = parse_operand(p, level), *n = NULL, *tail = NULL;
    enum link link;

    while ((link = operator_of(p, level)) != LINK_NONE) {
        struct node *operand;

        if (n == NULL) {
            n = jp_node(p, types[level], line);
            jp_add(p, n, &tail, first);
        }
        jp_next(p);
        if (link == LINK_NOTIN)
            jp_next(p);
        operand = parse_operand(p, level);
        operand->link = (uint8_t)link;
        jp_add(p, n, &tail, operand);
    }
    return n != NULL ? n : first;
}

struct node *jp_expression(struct parser *p, bool with_cond)
{
    struct node *n, *cond;

    jp_enter(p);
    n = parse_level(p, LEVEL_OR);
    while (with_cond && jp_is_name(&p->now, "if")) {
        cond = jp_node(p, N_COND, p->now.line);
        jp_next(p);
        cond->b = jp_child(p, cond, n);
        cond->a = jp_child(p, cond, parse_level(p, LEVEL_OR));
        if (jp_skip_name(p, "else"))
            cond->c = jp_child(p, cond, jp_expression(p, true));
        n = cond;
    }
    jp_leave(p);
    return n;
}

static bool ends_tuple(const struct parser *p, const char *end)
{
    return p->now.type == T_VAR_END || p->now.type == T_BLOCK_END || jp_is_op(&p->now, ')') ||
           (end != NULL && jp_is_name(&p->now, end));
}

/* Parse one expression, or several with commas between them. */
static struct node *tuple(struct parser *p, bool simple, bool with_namespace, bool with_cond,
                          bool parentheses, const char *end)
{
    struct node *n = jp_node(p, N_TUPLE, p->now.line), *tail = NULL;
    bool is_tuple = false;

    for (;;) {
        if (tail != NULL)
            jp_expect_op(p, ',');
        if (ends_tuple(p, end))
            break;
        jp_add(p, n, &tail,
               simple ? parse_primary(p, with_namespace) : jp_expression(p, with_cond));
        if (!jp_is_op(&p->now, ','))
            break;
        is_tuple = true;
    }
    if (is_tuple)
        return n;
    if (n->n_kid > 0)
        return n->kid;
    if (!parentheses)
        jp_unexpected(p, "an expression");
    return n;
}

struct node *jp_tuple(struct parser *p, bool with_cond, bool parentheses, const char *end)
{
    return tuple(p, false, false, with_cond, parentheses, end);
}

static void check_target(struct parser *p, const struct node *n)
{
    if (n->type == N_NAME || n->type == N_NSREF)
        return;
    if (n->type != N_TUPLE)
        jp_fail(p, ERR_FORMAT, n->line, "a value can only be assigned to a name");
    for (const struct node *k = n->kid; k != NULL; k = k->next)
        check_target(p, k);
}

struct node *jp_target(struct parser *p, bool with_namespace, const char *end)
{
    struct node *n;

    jp_enter(p);
    n = tuple(p, true, with_namespace, false, false, end);
    check_target(p, n);
    jp_leave(p);
    return n;
}
