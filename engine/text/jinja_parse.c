/*
 * Statements of a template, and the memory of its tree.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/keyed_hash.h"
#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

#define TREE_BYTES_MAX ((size_t)2 << 20) /* published templates need 15 bytes per byte */
#define TREE_PER_BYTE  256 /* per byte of the template; more than any syntax needs */
#define TREE_BYTES_MIN ((size_t)64 << 10)
#define PIECE_BYTES    ((size_t)16 << 10)

void jp_fail(struct parser *p, enum err_code code, uint32_t line, const char *fmt, ...)
{
    char what[200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    jinja_clean_message(what);
    err_set(p->e, code, "line %u: %s", line, what);
    longjmp(p->fail, 1);
}

void *jp_take(struct parser *p, size_t n)
{
    n = (n + 15) / 16 * 16;
    if (n > p->piece_left || arena_size(1) > ARENA_ALIGN) {
        bool large = n > PIECE_BYTES / 4 || arena_size(1) > ARENA_ALIGN;
        char *got = arena_take(&p->j->memory, large ? n : PIECE_BYTES, p->e);

        if (got == NULL)
            jp_fail(p, ERR_BUDGET, p->now.line, "the template is too large");
        if (large)
            return got;
        p->piece = got;
        p->piece_left = PIECE_BYTES;
    }
    p->piece_left -= n;
    p->piece += n;
    return p->piece - n;
}

struct node *jp_node(struct parser *p, enum node_type type, uint32_t line)
{
    struct node *n = jp_take(p, sizeof *n);

    *n = (struct node){ .type = (uint8_t)type, .line = line, .depth = 1 };
    return n;
}

static void deepen(struct parser *p, struct node *n, const struct node *k)
{
    if (k->depth >= n->depth)
        n->depth = (uint16_t)(k->depth + 1);
    if (n->depth > JINJA_PARSE_DEPTH)
        jp_fail(p, ERR_BUDGET, n->line, "the template nests too deeply");
}

void jp_add(struct parser *p, struct node *n, struct node **tail, struct node *k)
{
    deepen(p, n, k);
    if (*tail == NULL)
        n->kid = k;
    else
        (*tail)->next = k;
    *tail = k;
    n->n_kid++;
}

struct node *jp_child(struct parser *p, struct node *n, struct node *k)
{
    deepen(p, n, k);
    return k;
}

val jp_str(struct parser *p, const char *s, size_t len)
{
    struct str *made = jp_take(p, sizeof *made);

    *made = (struct str){ .p = s, .len = len };
    for (size_t i = 0; i < len; i++)
        made->n_cp += ((unsigned char)s[i] & 0xc0u) != 0x80;
    return jv_str(made);
}

uint32_t jp_name(struct parser *p, const char *s, size_t len)
{
    size_t bucket = keyed_hash(hash_key(), s, len) % (sizeof p->bucket / sizeof p->bucket[0]);
    struct jinja *j = p->j;
    uint32_t at;

    for (at = p->bucket[bucket]; at != 0; at = p->chain[at - 1]) {
        const struct str *known = j->name[at - 1];

        if (known->len == len && memcmp(known->p, s, len) == 0)
            break;
    }
    if (at == 0) {
        if (j->n_name == JINJA_NAMES_MAX)
            jp_fail(p, ERR_BUDGET, p->now.line, "the template has more than %d variables",
                    JINJA_NAMES_MAX);
        j->name[j->n_name] = jp_str(p, s, len).u.s;
        p->chain[j->n_name] = p->bucket[bucket];
        at = p->bucket[bucket] = ++j->n_name;
    }
    p->uses_caller |= at - 1 == NAME_CALLER;
    if (p->in_macro && (at - 1 == NAME_KWARGS || at - 1 == NAME_VARARGS))
        jp_fail(p, ERR_UNSUPPORTED, p->now.line, "\"%.*s\" in a macro is not supported",
                (int)len, s);
    return at - 1;
}

/* ---- statements ---- */

static struct node *parse_statement(struct parser *p);

static void expect_block_end(struct parser *p)
{
    if (p->now.type != T_BLOCK_END)
        jp_unexpected(p, "\"%}\"");
    jp_next(p);
}

/*
 * Parse statements into the kids of n, up to "{% end %}" or "{% other %}" (NULL: the end of
 * the template).  Then p->now is that name.
 */
static void body(struct parser *p, struct node *n, const char *end, const char *other,
                 const char *third)
{
    struct node *tail = NULL, *print = NULL, *print_tail = NULL;
    uint32_t line = n->line;

    jp_enter(p);
    while (p->now.type != T_EOF) {
        struct node *k;

        switch (p->now.type) {
        case T_DATA:
            k = jp_node(p, N_TEXT, p->now.line);
            k->v = jp_str(p, p->now.p, p->now.len);
            jp_next(p);
            break;
        case T_VAR_BEGIN:
            k = jp_node(p, N_PRINT, p->now.line);
            jp_next(p);
            print = k;
            print_tail = NULL;
            jp_add(p, print, &print_tail, jp_tuple(p, true, false, NULL));
            if (p->now.type != T_VAR_END)
                jp_unexpected(p, "\"}}\"");
            jp_next(p);
            break;
        default: /* T_BLOCK_BEGIN */
            jp_next(p);
            if (end != NULL &&
                (jp_is_name(&p->now, end) || (other != NULL && jp_is_name(&p->now, other)) ||
                 (third != NULL && jp_is_name(&p->now, third)))) {
                jp_leave(p);
                return;
            }
            k = parse_statement(p);
            expect_block_end(p);
        }
        jp_add(p, n, &tail, k);
    }
    if (end != NULL)
        jp_fail(p, ERR_FORMAT, line, "\"%s\" is missing", end);
    jp_leave(p);
}

/* Parse the body of a statement whose tag is still open.  Skips the name of the end. */
static void body_to(struct parser *p, struct node *n, const char *end)
{
    jp_skip_op(p, ':');
    expect_block_end(p);
    body(p, n, end, NULL, NULL);
    jp_next(p);
}

static struct node *parse_for(struct parser *p)
{
    struct node *n = jp_node(p, N_FOR, p->now.line);

    jp_next(p);
    n->a = jp_child(p, n, jp_target(p, false, "in"));
    jp_expect_name(p, "in");
    n->b = jp_child(p, n, jp_tuple(p, false, false, "recursive"));
    if (jp_skip_name(p, "if"))
        n->c = jp_child(p, n, jp_expression(p, true));
    n->id = jp_skip_name(p, "recursive");
    jp_skip_op(p, ':');
    expect_block_end(p);
    p->n_loop++;
    body(p, n, "endfor", "else", NULL);
    p->n_loop--;
    if (jp_skip_name(p, "else")) {
        n->d = jp_node(p, N_BODY, p->now.line);
        body_to(p, n->d, "endfor");
        jp_child(p, n, n->d);
    } else {
        jp_next(p);
    }
    return n;
}

static struct node *parse_if(struct parser *p)
{
    struct node *n = jp_node(p, N_IF, p->now.line), *tail = NULL;

    for (bool more = true; more;) {
        struct node *branch = jp_node(p, N_BRANCH, p->now.line);

        if (jp_skip_name(p, "else")) {
            body_to(p, branch, "endif");
            more = false;
        } else {
            jp_next(p);
            branch->a = jp_child(p, branch, jp_tuple(p, false, false, NULL));
            jp_skip_op(p, ':');
            expect_block_end(p);
            body(p, branch, "endif", "elif", "else");
            more = !jp_skip_name(p, "endif");
        }
        jp_add(p, n, &tail, branch);
    }
    return n;
}

static struct node *parse_set(struct parser *p)
{
    struct node *n = jp_node(p, N_SET, p->now.line);

    jp_next(p);
    n->a = jp_child(p, n, jp_target(p, true, NULL));
    if (jp_skip_op(p, '=')) {
        n->b = jp_child(p, n, jp_tuple(p, true, false, NULL));
        return n;
    }
    n->type = N_SETBLOCK;
    if (jp_is_op(&p->now, '|'))
        n->b = jp_child(p, n, jp_filters(p, NULL, false));
    body_to(p, n, "endset");
    return n;
}

static struct node *parse_param(struct parser *p)
{
    struct node *n = jp_node(p, N_PARAM, p->now.line);

    if (p->now.type != T_NAME)
        jp_unexpected(p, "the name of a parameter");
    n->v = jp_str(p, p->now.p, p->now.len);
    n->name = jp_name(p, p->now.p, p->now.len);
    jp_next(p);
    return n;
}

/* Parse "(a, b=1)" after the name of a macro. */
static struct node *parse_signature(struct parser *p)
{
    struct node *n = jp_node(p, N_BODY, p->now.line), *tail = NULL;
    bool defaults = false;

    jp_expect_op(p, '(');
    while (!jp_is_op(&p->now, ')')) {
        struct node *param;

        if (tail != NULL)
            jp_expect_op(p, ',');
        param = parse_param(p);
        if (jp_skip_op(p, '=')) {
            param->a = jp_child(p, param, jp_expression(p, true));
            defaults = true;
        } else if (defaults) {
            jp_fail(p, ERR_FORMAT, param->line,
                    "a parameter without a default follows one with a default");
        }
        jp_add(p, n, &tail, param);
    }
    jp_next(p);
    return n;
}

/* Parse a body that jumps cannot leave to an outer loop. */
static void closed_body(struct parser *p, struct node *n, const char *end)
{
    unsigned n_loop = p->n_loop;

    p->n_loop = 0;
    body_to(p, n, end);
    p->n_loop = n_loop;
}

/* Parse the body of a macro or a call block. */
static void macro_body(struct parser *p, struct node *n, const char *end)
{
    bool in_macro = p->in_macro, uses_caller = p->uses_caller;

    p->in_macro = true;
    p->uses_caller = false;
    closed_body(p, n, end);
    n->id = p->uses_caller;
    p->in_macro = in_macro;
    p->uses_caller |= uses_caller; /* a use in an inner macro counts for the outer one, too */
    for (const struct node *k = n->c->kid; k != NULL && n->id != 0; k = k->next)
        if (k->name == NAME_CALLER && k->a == NULL)
            jp_fail(p, ERR_FORMAT, n->line, "the parameter \"caller\" needs a default");
}

static struct node *parse_macro(struct parser *p)
{
    struct node *n = jp_node(p, N_MACRO, p->now.line);

    jp_next(p);
    if (p->now.type != T_NAME)
        jp_unexpected(p, "the name of a macro");
    n->v = jp_str(p, p->now.p, p->now.len);
    n->name = jp_name(p, p->now.p, p->now.len);
    jp_next(p);
    n->c = jp_child(p, n, parse_signature(p));
    macro_body(p, n, "endmacro");
    return n;
}

/* Parse "{% call(a) f(b) %}": a macro without a name, which is the caller of f. */
static struct node *parse_call_block(struct parser *p)
{
    struct node *n = jp_node(p, N_CALLBLOCK, p->now.line);
    struct node *caller = jp_node(p, N_MACRO, p->now.line);

    jp_next(p);
    caller->name = NAME_CALLER;
    caller->v = jp_str(p, "caller", 6);
    caller->c = jp_is_op(&p->now, '(') ? jp_child(p, caller, parse_signature(p))
                                       : jp_node(p, N_BODY, p->now.line);
    n->a = jp_child(p, n, jp_expression(p, true));
    if (n->a->type != N_CALL)
        jp_fail(p, ERR_FORMAT, n->line, "\"call\" needs the call of a macro");
    macro_body(p, caller, "endcall");
    n->b = jp_child(p, n, caller);
    return n;
}

/* Parse transformers' extension: a body with variables of its own. */
static struct node *parse_generation(struct parser *p)
{
    struct node *n = jp_node(p, N_GENERATION, p->now.line);

    jp_next(p);
    closed_body(p, n, "endgeneration");
    return n;
}

static struct node *parse_filter_block(struct parser *p)
{
    struct node *n = jp_node(p, N_FILTERBLOCK, p->now.line);

    jp_next(p);
    n->b = jp_child(p, n, jp_filters(p, NULL, true));
    body_to(p, n, "endfilter");
    return n;
}

static struct node *parse_jump(struct parser *p)
{
    struct node *n =
        jp_node(p, jp_is_name(&p->now, "break") ? N_BREAK : N_CONTINUE, p->now.line);

    if (p->n_loop == 0)
        jp_fail(p, ERR_FORMAT, n->line, "\"%s\" is outside a loop",
                n->type == N_BREAK ? "break" : "continue");
    jp_next(p);
    return n;
}

static struct node *parse_statement(struct parser *p)
{
    static const struct {
        const char *name;
        struct node *(*parse)(struct parser *p);
    } statements[] = {
        { "if", parse_if },
        { "for", parse_for },
        { "set", parse_set },
        { "macro", parse_macro },
        { "call", parse_call_block },
        { "filter", parse_filter_block },
        { "generation", parse_generation },
        { "break", parse_jump },
        { "continue", parse_jump },
    };
    static const char *const outside[] = { "include", "import",     "from", "extends", "block",
                                           "do",      "autoescape", "with", "print" };
    char found[64];

    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        if (jp_is_name(&p->now, statements[i].name))
            return statements[i].parse(p);
    }
    jp_describe(&p->now, found, sizeof found);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        if (jp_is_name(&p->now, outside[i]))
            jp_fail(p, ERR_UNSUPPORTED, p->now.line, "the statement %s is not supported",
                    found);
    }
    jp_fail(p, ERR_FORMAT, p->now.line, "unknown statement %s", found);
}

static void parse(struct parser *p, const char *text, size_t len)
{
    static const char *const own[] = {
        [NAME_LOOP] = "loop",
        [NAME_CALLER] = "caller",
        [NAME_KWARGS] = "kwargs",
        [NAME_VARARGS] = "varargs",
    };
    struct node *root;

    p->text = jp_take(p, len + 1);
    if (len > 0)
        memcpy(p->text, text, len);
    p->len = len;
    p->j->name = jp_take(p, JINJA_NAMES_MAX * sizeof p->j->name[0]);
    for (size_t i = 0; i < N_OWN_NAMES; i++)
        jp_name(p, own[i], strlen(own[i]));
    jp_start(p);
    root = jp_node(p, N_BODY, 1);
    body(p, root, NULL, NULL, NULL);
    p->j->body = root->kid;
}

int jinja_parse(struct jinja **out, const char *text, size_t len, struct err *e)
{
    size_t tree = TREE_BYTES_MIN + len * TREE_PER_BYTE;
    struct parser *p;

    *out = NULL;
    if (len > JINJA_TEMPLATE_MAX)
        return err_set(e, ERR_BUDGET, "the chat template has %zu bytes; the limit is %zu", len,
                       JINJA_TEMPLATE_MAX);
    if (!utf8_is_valid(text, len))
        return err_set(e, ERR_FORMAT, "the chat template is not UTF-8");
    p = calloc(1, sizeof *p);
    if (p == NULL || (p->j = calloc(1, sizeof *p->j)) == NULL) {
        free(p);
        return err_memory(e, "a chat template");
    }
    p->e = e;
    if (arena_map(&p->j->memory, "chat template", tree < TREE_BYTES_MAX ? tree : TREE_BYTES_MAX,
                  false, e) != 0 ||
        setjmp(p->fail) != 0) {
        jinja_free(p->j);
        free(p);
        return -1;
    }
    parse(p, text, len);
    *out = p->j;
    free(p);
    return 0;
}

void jinja_free(struct jinja *j)
{
    if (j == NULL)
        return;
    arena_unmap(&j->memory);
    free(j);
}
