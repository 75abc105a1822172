/*
 * jinja_internal.h - declarations shared by the files of the template evaluator.
 *
 *   jinja_lex.c      text -> tokens
 *   jinja_expr.c     tokens -> expressions
 *   jinja_parse.c    tokens -> statements
 *   jinja_exec.c     runs statements
 *   jinja_eval.c     evaluates expressions
 *   jinja_call.c     macros, built-in functions, arguments
 *   jinja_ops.c      operators and comparison
 *   jinja_attr.c     attributes, items, slices
 *   jinja_str.c      strings with sources, and the buffer that they are built in
 *   jinja_value.c    lists, dicts, memory
 *   jinja_print.c    str(), repr(), JSON
 *   jinja_*.c        filters, tests and methods by subject
 *
 * Errors end a parse or a rendering by longjmp: everything that either of them allocates is in
 * an arena or in a buffer that its owner frees, so nothing is left to unwind.
 */
#ifndef MEMWALL_ENGINE_TEXT_JINJA_INTERNAL_H
#define MEMWALL_ENGINE_TEXT_JINJA_INTERNAL_H

#include <setjmp.h>

#include "engine/base/arena.h"
#include "engine/text/jinja.h"

#define JINJA_PARSE_DEPTH 200     /* nesting of expressions and statements in a template */
#define JINJA_EVAL_DEPTH  600     /* nesting while rendering, macro calls included */
#define JINJA_NAMES_MAX   1024    /* different variable names of a template */
#define JINJA_RANGE_MAX   100000  /* like the reference's sandbox */
#define JINJA_STEPS       3000000 /* limit for one rendering */
#define JINJA_STEPS_EACH  1000    /* added for each value and each 16 bytes of its data */

typedef struct jinja_value val;

enum val_kind {
    V_MISSING, /* a slot that holds no value; never visible to a template */
    V_UNDEF,
    V_NONE,
    V_BOOL,
    V_INT,
    V_FLOAT,
    V_STR,
    V_LIST,
    V_TUPLE,
    V_DICT,
    V_VIEW, /* flag: enum view_kind */
    V_ITER, /* a generator or iterator of Python: can be read once, has no length */
    V_RANGE,
    V_NAMESPACE,
    V_MACRO,
    V_FUNC, /* u.i: enum func_id */
    V_METHOD,
    V_LOOP,
};

enum view_kind { VIEW_ITEMS, VIEW_KEYS, VIEW_VALUES };

/* Why a value is undefined: flag of V_UNDEF. */
enum undef_kind {
    UNDEF_NAME,   /* u.s: variable */
    UNDEF_ATTR,   /* u.s: attribute; source: kind of the object */
    UNDEF_ITEM,   /* u.i: index; source: kind of the object */
    UNDEF_UNSAFE, /* u.s: attribute; source: kind of the object */
    UNDEF_HINT,   /* u.hint: sentence */
};

struct jinja_value {
    uint8_t kind, flag;
    uint32_t source; /* numbers, bools and none: where they come from */
    union {
        int64_t i;
        double f;
        bool b;
        const char *hint;
        const struct str *s;
        struct list *list; /* V_LIST, V_TUPLE, V_VIEW */
        struct dict *dict; /* V_DICT, V_NAMESPACE */
        struct iter *iter;
        struct range *range;
        struct macro *macro;
        struct method *method;
        struct loop *loop;
    } u;
};

/* ---- strings ---- */

struct seg {
    size_t end; /* first byte after this segment, counted from the store's first byte */
    uint32_t source;
};

/*
 * Bytes with several sources, or with room to grow.  Strings are slices of it.  A string that
 * ends where the store ends may be extended in place: no string sees bytes after its end.
 */
struct store {
    char *bytes;
    size_t used, cap;
    struct seg *seg; /* neighbours differ; ends grow; the last is used */
    size_t n_seg, cap_seg;
};

#define CP_UNKNOWN SIZE_MAX

struct str {
    const char *p;
    size_t len;
    size_t n_cp;         /* code points, or CP_UNKNOWN */
    struct store *store; /* NULL: all bytes have the same source */
    uint32_t first;      /* segment of the first byte */
    uint32_t source;
    bool safe;  /* marked by the filter of this name: joining it with text escapes the text */
    bool built; /* made by joining: worth room to grow when it is joined again */
};

/* Bytes of one source. */
struct piece {
    const char *p;
    size_t len;
    uint32_t source;
};

/* ---- containers ---- */

struct list {
    val *item;
    size_t n, cap;
};

struct dict {
    val *key, *value; /* in the order of insertion */
    size_t n, cap;
    uint32_t *index; /* NULL for small ones; 1 + position, 0 is free */
    size_t mask;
};

struct iter {
    struct list list;
    size_t at;
    const char *name; /* "generator" */
};

struct range {
    int64_t start, step;
    size_t n;
};

struct method {
    val self;
    int id;
};

/* ---- syntax tree ---- */

enum node_type {
    /* expressions */
    N_CONST,
    N_NAME,     /* name */
    N_LIST,     /* kids */
    N_TUPLE,    /* kids */
    N_DICT,     /* kids: key, value, key, value... */
    N_ATTR,     /* a.v */
    N_ITEM,     /* a[b] */
    N_SLICE,    /* a, b, c: each may be NULL; only as N_ITEM's b */
    N_CALL,     /* a(kids) */
    N_FILTER,   /* a|v(kids); a NULL: the text of a block.  id: enum filter_id */
    N_TEST,     /* a is v(kids).  id: enum test_id */
    N_NOT,      /* a */
    N_NEG,      /* a */
    N_POS,      /* a */
    N_AND,      /* kids */
    N_OR,       /* kids */
    N_CHAIN,    /* kids; link of each but the first says how it is joined: + - * / // % */
    N_CONCAT,   /* kids */
    N_COMPARE,  /* kids; link of each but the first */
    N_COND,     /* b if a else c; c may be NULL */
    N_KWARG,    /* v=a */
    N_NSREF,    /* name.v, as a target only */
    /* statements */
    N_TEXT,   /* v */
    N_PRINT,  /* kids */
    N_IF,     /* kids: N_BRANCH... */
    N_BRANCH, /* a (NULL: else), kids: body */
    N_FOR,  /* a target, b iterable, c condition, kids body, d else (N_BODY), id: is recursive */
    N_BODY, /* kids */
    N_SET,  /* a target, b value */
    N_SETBLOCK,    /* a target, b filter, kids body */
    N_MACRO,       /* name, v, c parameters (N_BODY of N_PARAM), kids body, id: uses caller */
    N_PARAM,       /* name, v, a default or NULL */
    N_CALLBLOCK,   /* a call, b macro of the caller */
    N_GENERATION,  /* kids body */
    N_FILTERBLOCK, /* b filter, kids body */
    N_BREAK,
    N_CONTINUE,
};

enum link {
    LINK_NONE,
    LINK_ADD,
    LINK_SUB,
    LINK_MUL,
    LINK_DIV,
    LINK_FLOORDIV,
    LINK_MOD,
    LINK_EQ,
    LINK_NE,
    LINK_LT,
    LINK_LE,
    LINK_GT,
    LINK_GE,
    LINK_IN,
    LINK_NOTIN,
};

struct node {
    uint8_t type, link;
    uint16_t depth; /* levels of nodes in here */
    uint32_t line;
    uint32_t name; /* index of a variable */
    int32_t id;
    uint32_t n_kid;
    struct node *next; /* sibling */
    struct node *kid;  /* first of a list */
    struct node *a, *b, *c, *d;
    val v;
};

struct jinja {
    struct arena memory;
    const struct node *body;
    const struct str **name; /* variables */
    uint32_t n_name;
};

/* Names built into the evaluator.  The parser assigns these indices to them. */
enum { NAME_LOOP, NAME_CALLER, NAME_KWARGS, NAME_VARARGS, N_OWN_NAMES };

/* ---- a rendering ---- */

struct binding {
    struct binding *next;
    uint32_t name;
    val v;
};

struct scope {
    struct scope *parent;
    struct binding *first;
    val *slot;     /* of the outermost scope: one for each name */
    bool captured; /* a macro refers to it, so it cannot be used for the next iteration */
};

struct macro {
    const struct node *node;
    struct scope *scope;
};

struct loop {
    val *item;
    size_t n, at;
    int64_t depth0;          /* calls of a recursive loop around it */
    const struct node *node; /* of a recursive loop; NULL: it cannot be called */
    struct scope *scope;     /* around the loop */
};

struct vm {
    const struct jinja *j;
    struct jinja_data *d;
    const struct tm *now;
    struct err *e;
    jmp_buf fail;
    uint64_t steps; /* left */
    unsigned depth;
    uint32_t line;
    struct scope *scope;
    val filtered; /* text of the filter block that is being filtered */
    /* Text that is being built, one string after the other; the output is the first. */
    char *out;
    size_t out_len, out_cap;
    struct jinja_run *run; /* len of each is its end, until the rendering is done */
    size_t n_run, cap_run;
    size_t run_base; /* first run of the innermost string */
};

struct jinja_data {
    struct arena memory;
    size_t max;    /* of arena and buffers */
    size_t buffer; /* bytes of the rendering's buffers */
    char *piece;   /* small pieces are carved from here */
    size_t piece_left;
    bool failed;      /* a builder returned NULL */
    struct err error; /* why */
    uint64_t size;    /* of the variables: values and bytes */
    struct dict variables;
    struct vm *vm; /* of the rendering in progress */
};

/* ---- jinja_value.c ---- */

/* Replace control bytes, and cut an incomplete character at the end. */
void jinja_clean_message(char *s);

/* End the rendering with an error of this line.  Never returns. */
_Noreturn void jv_fail(struct vm *vm, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Charge n steps.  One step is about one small operation or 16 bytes. */
static inline void jv_charge(struct vm *vm, uint64_t n)
{
    if (n > vm->steps) {
        vm->steps = 0;
        jv_fail(vm, ERR_BUDGET, "the template runs too long");
    }
    vm->steps -= n;
}

static inline void jv_charge_bytes(struct vm *vm, size_t n)
{
    jv_charge(vm, 1 + n / 16);
}

/* Limit the depth of recursion: call jv_enter before, jv_leave after. */
static inline void jv_enter(struct vm *vm)
{
    if (++vm->depth > JINJA_EVAL_DEPTH)
        jv_fail(vm, ERR_BUDGET, "the template nests too deeply");
}

static inline void jv_leave(struct vm *vm)
{
    vm->depth--;
}

void *jv_take(struct vm *vm, size_t n);

struct list *jv_list_new(struct vm *vm, size_t room);
void jv_push(struct vm *vm, struct list *l, val v);
val jv_of_list(struct list *l, enum val_kind kind);
val jv_iter(struct vm *vm, struct list *l, const char *name); /* takes ownership of l's items */

struct dict *jv_dict_new(struct vm *vm);
/* Returns the value of key, or NULL.  Fails if key has a type that cannot be a key. */
val *jv_dict_get(struct vm *vm, const struct dict *d, val key);
void jv_dict_set(struct vm *vm, struct dict *d, val key, val v);

static inline val jv_none(void)
{
    return (val){ .kind = V_NONE };
}

static inline val jv_bool(bool b)
{
    return (val){ .kind = V_BOOL, .u.b = b };
}

static inline val jv_int(int64_t i)
{
    return (val){ .kind = V_INT, .u.i = i };
}

static inline val jv_float(double f)
{
    return (val){ .kind = V_FLOAT, .u.f = f };
}

static inline val jv_str(const struct str *s)
{
    return (val){ .kind = V_STR, .u.s = s };
}

static inline val jv_hint(const char *hint)
{
    return (val){ .kind = V_UNDEF, .flag = UNDEF_HINT, .u.hint = hint };
}

static inline val jv_sourced(val v, uint32_t source)
{
    v.source = source;
    return v;
}

/* Returns the source of a byte that depends on both a and b: the untrusted one. */
static inline uint32_t jv_worst(uint32_t a, uint32_t b)
{
    return a != JINJA_TRUSTED ? a : b;
}

/* Returns Python's name of the type for messages: "int", "str". */
const char *jv_type_name(val v);
/* Fail because an undefined value was used. */
_Noreturn void jv_fail_undef(struct vm *vm, val v);

/* ---- jinja_str.c ---- */

val jv_new_str(struct vm *vm, const char *p, size_t len, uint32_t source); /* not copied */
size_t jv_cps(struct vm *vm, const struct str *s);
/* Returns the byte offset of code point i (0 to jv_cps). */
size_t jv_offset(struct vm *vm, const struct str *s, size_t i);
/* Returns bytes [from, to) of s. */
val jv_cut(struct vm *vm, const struct str *s, size_t from, size_t to);
/* Returns the next piece of bytes [at, to) of s and advances *at; false at the end. */
bool jv_piece(const struct str *s, size_t *at, size_t to, struct piece *out);
/* Returns the source of all bytes of s together, or of the byte at `at`. */
uint32_t jv_str_source(const struct str *s);
uint32_t jv_source_at(const struct str *s, size_t at);
/* Concatenate n parts (n > 0). */
val jv_join(struct vm *vm, const struct str *const *part, size_t n);
val jv_safe(struct vm *vm, val s);
void jv_refuse_safe(struct vm *vm, const struct str *s); /* fails if s is marked as safe */
bool jv_same(const struct str *a, const struct str *b);
bool jv_is(const struct str *s, const char *literal);

/*
 * The buffer.  Call jv_begin, write, then jv_end to get the text written since then as a
 * string.  Uses may nest.
 */
struct mark {
    size_t len, run, run_base;
};
struct mark jv_begin(struct vm *vm);
val jv_end(struct vm *vm, struct mark m);
void jv_drop(struct vm *vm, struct mark m);
/* Reserve space for len bytes after the text without writing. */
char *jv_reserve(struct vm *vm, size_t len);
void jv_write(struct vm *vm, const char *p, size_t len, uint32_t source);
void jv_puts(struct vm *vm, const char *literal, uint32_t source);
void jv_fill(struct vm *vm, const char *p, size_t len, uint32_t source, size_t times);
void jv_write_str(struct vm *vm, const struct str *s);
void jv_write_part(struct vm *vm, const struct str *s, size_t from, size_t to);
void jv_write_escaped(struct vm *vm, const struct str *s); /* for HTML */
void jv_write_cp(struct vm *vm, uint32_t cp, uint32_t source);

/* Returns the position of needle in bytes [from, to) of s, or SIZE_MAX. */
size_t jv_find(struct vm *vm, const struct str *s, size_t from, size_t to,
               const struct str *needle);
/* The same for the last one in bytes [0, to). */
size_t jv_rfind(struct vm *vm, const struct str *s, size_t to, const struct str *needle);

/* ---- jinja_print.c ---- */

void jv_print(struct vm *vm, val v); /* writes str(v) to the buffer */
void jv_repr(struct vm *vm, val v);
val jv_to_str(struct vm *vm, val v); /* returns str(v), or v if it is a string */

/* ---- jinja_ops.c ---- */

bool jv_true(struct vm *vm, val v);
bool jv_equal(struct vm *vm, val a, val b);
bool jv_identical(val a, val b);
/* Returns a < b.  op is for the error message. */
bool jv_less(struct vm *vm, val a, val b, const char *op);
bool jv_contains(struct vm *vm, val container, val v);
val jv_arith(struct vm *vm, enum link op, val a, val b);
val jv_negate(struct vm *vm, val v);
/* Sort n keys stably and store their positions in order[n]. */
void jv_sort(struct vm *vm, const val *key, size_t *order, size_t n, bool reverse);
bool jv_compare(struct vm *vm, enum link op, val a, val b);
/* Returns a hash of v.  Fails if v cannot be a key. */
uint64_t jv_hash(struct vm *vm, val v);
uint64_t jv_hash_text(const char *p, size_t len);
/* Returns the items of any value that Python can iterate over. */
struct list jv_items(struct vm *vm, val v);
bool jv_can_iterate(val v);
/* Returns len(v), or -1 if v has no length. */
int64_t jv_length(struct vm *vm, val v);
bool jv_as_int(val v, int64_t *out); /* true for bool and int */
bool jv_as_float(val v, double *out);
bool jv_is_number(val v);

/* ---- jinja_attr.c ---- */

val jv_attr(struct vm *vm, val v, const struct str *name);
val jv_item(struct vm *vm, val v, val key);
val jv_slice(struct vm *vm, val v, const val *start, const val *stop, const val *step);

/* ---- arguments ---- */

struct args {
    const val *pos;
    size_t n;
    const val *key; /* strings */
    const val *kw;
    size_t n_kw;
};

#define JV_ARGS_MAX 8

/*
 * Match arguments with the parameters in names ("width first blank", at most JV_ARGS_MAX);
 * out[i] is V_MISSING for a parameter without argument.  The first `need` are required.
 * Messages use the name in what.
 */
void jv_bind(struct vm *vm, const struct args *a, const char *what, const char *names,
             size_t need, val *out);
/* Returns an argument as text, number, ...  Fails if it has another type. */
const struct str *jv_want_str(struct vm *vm, val v, const char *what);
int64_t jv_want_int(struct vm *vm, val v, const char *what);

/* ---- jinja_exec.c, jinja_eval.c, jinja_call.c ---- */

enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE };

enum flow jv_exec(struct vm *vm, const struct node *kids);
enum flow jv_for(struct vm *vm, const struct node *n, val iterable, int64_t depth0);
val jv_eval(struct vm *vm, const struct node *n);
void jv_print_node(struct vm *vm, const struct node *n); /* writes its value to the buffer */
void jv_assign(struct vm *vm, const struct node *target, val v);
void jv_bind_name(struct vm *vm, uint32_t name, val v);
val jv_lookup(struct vm *vm, uint32_t name);
struct args jv_eval_args(struct vm *vm, const struct node *kids);
val jv_call(struct vm *vm, val f, const struct args *a);
/* caller: of a call block, or V_MISSING */
val jv_call_macro(struct vm *vm, const struct macro *m, const struct args *a, val caller);

enum func_id {
    FUNC_RANGE,
    FUNC_DICT,
    FUNC_NAMESPACE,
    FUNC_OUTSIDE,
    FUNC_RAISE,
    FUNC_STRFTIME_NOW,
};
/* Returns the V_FUNC of a global name, or V_MISSING. */
val jv_global(const struct str *name);

/* ---- filters, tests, methods ---- */

/* Returns the index of a filter or test, or -1. */
int jinja_filter_id(const char *name, size_t len);
int jinja_test_id(const char *name, size_t len);
val jv_filter(struct vm *vm, int id, const struct str *name, val v, const struct args *a);
bool jv_test(struct vm *vm, int id, const struct str *name, val v, const struct args *a);

typedef val filter_fn(struct vm *vm, val v, const struct args *a);

filter_fn jf_abs, jf_capitalize, jf_default, jf_dictsort, jf_first, jf_float, jf_indent, jf_int,
    jf_items, jf_join, jf_last, jf_length, jf_list, jf_lower, jf_map, jf_max, jf_min, jf_reject,
    jf_rejectattr, jf_replace, jf_reverse, jf_safe, jf_select, jf_selectattr, jf_sort, jf_string,
    jf_sum, jf_title, jf_tojson, jf_trim, jf_unique, jf_upper;

/* Returns the index of a method of this kind of value, or -1.  -2: the method changes the
 * value.  -3: Python has the method, but the subset does not. */
int jv_method_id(enum val_kind kind, const struct str *name);
val jv_call_method(struct vm *vm, val self, int id, const struct args *a);

/* Replace old by new in s, at most count times (negative: everywhere). */
val jv_replace(struct vm *vm, const struct str *s, const struct str *old, const struct str *new,
               int64_t count);
/* Find the line of s that begins at *next, bytes [*at, *end).  Moves *next past its break. */
bool jv_next_line(struct vm *vm, const struct str *s, size_t *at, size_t *end, size_t *next);
/* Returns key and value of every member as tuples. */
struct list *jv_pairs(struct vm *vm, const struct dict *d);

/* ---- jinja_case.c ---- */

enum str_case { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITALIZE };
/* Write s with another case to the buffer. */
void jv_write_case(struct vm *vm, const struct str *s, enum str_case c);
bool jv_is_space(uint32_t cp);
bool jv_is_printable(uint32_t cp);
bool jv_is_word(uint32_t cp);
/* Returns s without the code points of chars (NULL: white space) at its ends. */
val jv_strip(struct vm *vm, const struct str *s, const struct str *chars, bool left,
             bool right);

/* ---- the parser ---- */

enum tok {
    T_EOF,
    T_DATA,
    T_VAR_BEGIN,
    T_VAR_END,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_NAME,
    T_STRING,
    T_INT,
    T_FLOAT,
    T_OP, /* op holds the characters; "**" is '*' << 8 | '*' */
};

struct token {
    enum tok type;
    uint32_t line;
    int op;
    const char *p; /* name, data; string after unescaping */
    size_t len;
    int64_t i;
    double f;
};

struct parser {
    struct jinja *j;
    struct err *e;
    jmp_buf fail;
    char *text; /* line breaks normalised */
    size_t len, at;
    uint32_t line;
    bool in_tag, tag_is_block, line_starting;
    unsigned n_open;
    char open[JINJA_PARSE_DEPTH * 2]; /* open brackets of the tag */
    struct token now, ahead;
    bool has_ahead;
    unsigned depth;  /* recursion depth */
    unsigned n_loop; /* enclosing loops in this macro */
    bool in_macro, uses_caller;
    uint32_t bucket[256]; /* 1 + name */
    uint32_t chain[JINJA_NAMES_MAX];
    char *piece;
    size_t piece_left;
};

_Noreturn void jp_fail(struct parser *p, enum err_code code, uint32_t line, const char *fmt,
                       ...) __attribute__((format(printf, 4, 5)));
void *jp_take(struct parser *p, size_t n);
void jp_start(struct parser *p);
void jp_next(struct parser *p); /* advances p->now */
const struct token *jp_look(struct parser *p);
bool jp_is_name(const struct token *t, const char *name);
bool jp_is_op(const struct token *t, int op);
bool jp_skip_name(struct parser *p, const char *name);
bool jp_skip_op(struct parser *p, int op);
void jp_expect_op(struct parser *p, int op);
void jp_expect_name(struct parser *p, const char *name);
_Noreturn void jp_unexpected(struct parser *p, const char *expected);
/* Write a token the way messages show it. */
void jp_describe(const struct token *t, char *buf, size_t n);

struct node *jp_node(struct parser *p, enum node_type type, uint32_t line);
/* Add k to n: jp_add after the last kid so far, which is *tail, jp_child as a single child.
 * Both update the depth of n. */
void jp_add(struct parser *p, struct node *n, struct node **tail, struct node *k);
struct node *jp_child(struct parser *p, struct node *n, struct node *k);
uint32_t jp_name(struct parser *p, const char *s, size_t len);
val jp_str(struct parser *p, const char *s, size_t len); /* s is not copied */

struct node *jp_expression(struct parser *p, bool with_cond);
/* Parse a tuple.  The name `end`, if not NULL, ends it, too. */
struct node *jp_tuple(struct parser *p, bool with_cond, bool parentheses, const char *end);
struct node *jp_target(struct parser *p, bool with_namespace, const char *end);
struct node *jp_filters(struct parser *p, struct node *n, bool start_inline);

static inline void jp_enter(struct parser *p)
{
    if (++p->depth > JINJA_PARSE_DEPTH)
        jp_fail(p, ERR_BUDGET, p->now.line, "expressions nest too deeply");
}

static inline void jp_leave(struct parser *p)
{
    p->depth--;
}

#endif
