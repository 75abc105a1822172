/*
 * Opening a model while memory runs out: the n-th allocation fails, for every n until none
 * fails.  Each time there is an error, nothing leaks (a leak checker sees it), and the next try
 * works.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/base/json_write.h"
#include "engine/format/catalogue.h"
#include "engine/grammar/gbnf.h"
#include "engine/grammar/token_tree.h"
#include "engine/memwall.h"
#include "tests/lib/model_path.h"
#include "tests/lib/tree.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static long left = -1; /* allocations until one fails; -1: none fails */

static bool fails(void)
{
    if (left < 0)
        return false;
    return left-- == 0;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

static void every_allocation_may_fail(void **state)
{
    const char *path = model_path(*state);
    long n = 0;

    if (path == NULL)
        skip();
    for (;; n++) {
        struct catalogue *c = NULL;
        struct err e = ERR_INIT;
        int rc;

        left = n;
        rc = catalogue_open(&c, path, &e);
        if (left >= 0) { /* no allocation failed */
            left = -1;
            assert_int_equal(rc, 0);
            catalogue_close(c);
            break;
        }
        left = -1;
        assert_int_equal(rc, -1);
        assert_null(c);
        assert_int_equal(e.code, ERR_MEMORY);
        assert_true(e.what[0] != '\0');
    }
    assert_true(n > 10);
}

static void finding_models_may_fail(void **state)
{
    struct mw_place place = { MW_STORE_LM_STUDIO, tree_root };
    struct mw_places places = { &place, 1, NULL };
    struct mw_models *m = NULL;
    int rc = -1;
    long n = 0;

    (void)state;
    tree_put("/a/b/model.gguf", "");
    for (; rc != 0; n++) {
        struct err e = ERR_INIT;

        left = n;
        rc = mw_models_find(&m, &places, &e);
        left = -1;
        if (rc != 0) {
            assert_null(m);
            assert_int_equal(e.code, ERR_MEMORY);
        }
    }
    assert_true(n > 3);
    assert_int_equal(mw_models_count(m), 1);
    mw_models_free(m);
}

static size_t text_of(const void *ctx, uint32_t id, char *buf, size_t n)
{
    (void)ctx;
    return (size_t)snprintf(buf, n, "t%u", id);
}

/* A grammar, its states, and the order of a vocabulary. */
static void grammars_may_fail(void **state)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d\"},\"b\":{\"enum\":"
        "[1,\"x\"]},\"c\":{\"allOf\":[{\"required\":[\"x\"]},{\"properties\":{\"x\":{\"$ref\":"
        "\"#\"}}}],"
        "\"if\":{\"properties\":{\"y\":{\"const\":1}}},\"then\":{\"$ref\":\"#\"}}},"
        "\"required\":[\"a\"],\"$defs\":{\"d\":{\"type\":\"array\",\"items\":{}}}}";
    bool is_done = false;
    long n = 0;

    (void)state;
    for (; !is_done; n++) {
        struct json grammar;
        struct program *p = NULL;
        struct machine m = { .program = NULL };
        struct token_tree tree = { .n = 0 };
        struct err e = ERR_INIT;
        int rc;

        left = n;
        json_start(&grammar);
        rc = mw_grammar_of_schema(&grammar, schema, sizeof schema - 1, &e);
        if (rc == 0)
            rc = gbnf_parse(&p, grammar.buf, grammar.used, NULL, NULL, &e);
        if (rc == 0)
            rc = machine_open(&m, p, &e);
        if (rc == 0)
            rc = token_tree_open(&tree, 1000, text_of, NULL, &e);
        is_done = left >= 0;
        left = -1;
        assert_int_equal(rc, is_done ? 0 : -1);
        if (!is_done)
            assert_int_equal(e.code, ERR_MEMORY);
        token_tree_close(&tree);
        machine_close(&m);
        program_free(p);
        json_release(&grammar);
    }
    assert_true(n > 30);
}

static char gemma[] = "gemma4-tiny-q4_0.gguf", llama[] = "llama31-tiny.gguf";
static char snapshot[] = "gemma4-tiny-hf";

int main(void)
{
    const struct CMUnitTest tests[] = {
        { "gemma4-tiny-q4_0.gguf", every_allocation_may_fail, NULL, NULL, gemma },
        { "llama31-tiny.gguf", every_allocation_may_fail, NULL, NULL, llama },
        cmocka_unit_test_setup_teardown(finding_models_may_fail, tree_make, tree_drop),
        cmocka_unit_test(grammars_may_fail),
        { "gemma4-tiny-hf", every_allocation_may_fail, NULL, NULL, snapshot },
    };

    return cmocka_run_group_tests_name("no memory", tests, NULL, NULL);
}
