/*
 * The tests of the operator "is".
 */
#include "config.h"

#include <string.h>

#include "engine/text/jinja_internal.h"

enum test_id {
    TEST_BOOLEAN,
    TEST_DEFINED,
    TEST_DIVISIBLEBY,
    TEST_EQ,
    TEST_EVEN,
    TEST_FALSE,
    TEST_FLOAT,
    TEST_GE,
    TEST_GT,
    TEST_IN,
    TEST_INTEGER,
    TEST_ITERABLE,
    TEST_LE,
    TEST_LT,
    TEST_MAPPING,
    TEST_NE,
    TEST_NONE,
    TEST_NUMBER,
    TEST_ODD,
    TEST_SAMEAS,
    TEST_SEQUENCE,
    TEST_STRING,
    TEST_TRUE,
    TEST_UNDEFINED,
};

static const struct {
    const char *name;
    enum test_id id;
} tests[] = {
    { "boolean", TEST_BOOLEAN },
    { "defined", TEST_DEFINED },
    { "divisibleby", TEST_DIVISIBLEBY },
    { "eq", TEST_EQ },
    { "==", TEST_EQ },
    { "equalto", TEST_EQ },
    { "even", TEST_EVEN },
    { "false", TEST_FALSE },
    { "float", TEST_FLOAT },
    { "ge", TEST_GE },
    { ">=", TEST_GE },
    { "greaterthan", TEST_GT },
    { "gt", TEST_GT },
    { ">", TEST_GT },
    { "in", TEST_IN },
    { "integer", TEST_INTEGER },
    { "iterable", TEST_ITERABLE },
    { "le", TEST_LE },
    { "<=", TEST_LE },
    { "lessthan", TEST_LT },
    { "lt", TEST_LT },
    { "<", TEST_LT },
    { "mapping", TEST_MAPPING },
    { "ne", TEST_NE },
    { "!=", TEST_NE },
    { "none", TEST_NONE },
    { "number", TEST_NUMBER },
    { "odd", TEST_ODD },
    { "sameas", TEST_SAMEAS },
    { "sequence", TEST_SEQUENCE },
    { "string", TEST_STRING },
    { "true", TEST_TRUE },
    { "undefined", TEST_UNDEFINED },
};

int jinja_test_id(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (strlen(tests[i].name) == len && memcmp(tests[i].name, name, len) == 0)
            return (int)i;
    }
    return -1;
}

static bool is_sequence(val v)
{
    switch (v.kind) {
    case V_UNDEF:
    case V_STR:
    case V_LIST:
    case V_TUPLE:
    case V_DICT:
    case V_RANGE: return true;
    default: return false;
    }
}

/* Returns whether v % by == rest. */
static bool divides(struct vm *vm, val v, val by, int64_t rest)
{
    if (v.kind == V_STR) /* the reference formats it, then compares text with a number */
        jv_fail(vm, ERR_FORMAT, "text cannot be divided");
    return jv_equal(vm, jv_arith(vm, LINK_MOD, v, by), jv_int(rest));
}

bool jv_test(struct vm *vm, int id, const struct str *name, val v, const struct args *a)
{
    enum test_id test;
    val arg = { .kind = V_MISSING };

    jv_charge(vm, 1);
    if (id < 0)
        jv_fail(vm, ERR_UNSUPPORTED, "unknown test \"%.*s\"",
                (int)(name->len < 60 ? name->len : 60), name->p);
    test = tests[id].id;
    switch (test) {
    case TEST_EQ:
    case TEST_NE:
    case TEST_LT:
    case TEST_LE:
    case TEST_GT:
    case TEST_GE:
    case TEST_IN:
    case TEST_SAMEAS: jv_bind(vm, a, tests[id].name, "other", 1, &arg); break;
    case TEST_DIVISIBLEBY: jv_bind(vm, a, tests[id].name, "num", 1, &arg); break;
    default: jv_bind(vm, a, tests[id].name, "", 0, NULL);
    }
    switch (test) {
    case TEST_BOOLEAN: return v.kind == V_BOOL;
    case TEST_DEFINED: return v.kind != V_UNDEF;
    case TEST_DIVISIBLEBY: return divides(vm, v, arg, 0);
    case TEST_EQ: return jv_compare(vm, LINK_EQ, v, arg);
    case TEST_EVEN: return divides(vm, v, jv_int(2), 0);
    case TEST_FALSE: return v.kind == V_BOOL && !v.u.b;
    case TEST_FLOAT: return v.kind == V_FLOAT;
    case TEST_GE: return jv_compare(vm, LINK_GE, v, arg);
    case TEST_GT: return jv_compare(vm, LINK_GT, v, arg);
    case TEST_IN: return jv_compare(vm, LINK_IN, v, arg);
    case TEST_INTEGER: return v.kind == V_INT;
    case TEST_ITERABLE: return jv_can_iterate(v);
    case TEST_LE: return jv_compare(vm, LINK_LE, v, arg);
    case TEST_LT: return jv_compare(vm, LINK_LT, v, arg);
    case TEST_MAPPING: return v.kind == V_DICT;
    case TEST_NE: return jv_compare(vm, LINK_NE, v, arg);
    case TEST_NONE: return v.kind == V_NONE;
    case TEST_NUMBER: return jv_is_number(v);
    case TEST_ODD: return divides(vm, v, jv_int(2), 1);
    case TEST_SAMEAS: return jv_identical(v, arg);
    case TEST_SEQUENCE: return is_sequence(v);
    case TEST_STRING: return v.kind == V_STR;
    case TEST_TRUE: return v.kind == V_BOOL && v.u.b;
    case TEST_UNDEFINED: return v.kind == V_UNDEF;
    }
    return false;
}
