/* The totals of a model, compared with figures that were computed from its tensor table
 * separately. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/format/catalogue.h"
#include "engine/format/summary.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_path.h"

static struct summary s;

static struct catalogue *open_model(const char *name, bool bare)
{
    const char *path = model_path(name);
    struct err e = ERR_INIT;
    struct catalogue *c = NULL;

    if (path == NULL)
        skip();
    if ((bare ? catalogue_open_bare : catalogue_open)(&c, path, &e) != 0)
        fail_with(&e);
    summary_make(&s, c);
    return c;
}

static void keys_and_values_of_shared_layers_do_not_count(void **state)
{
    struct catalogue *c = open_model("gemma4-tiny.gguf", false);

    (void)state;
    assert_int_equal(s.n_param, 358658);
    assert_int_equal(s.n_param_active, 291458); /* without the per-layer table */
    assert_int_equal(s.unread_params, 10848);
    assert_int_equal(s.n_unread, 15);
    assert_int_equal(s.unread_bytes, 4 * 10848);
    assert_int_equal(s.hot_bytes, 1153152);
    assert_int_equal(s.head_bytes, 420 * 56 * 4);
    assert_int_equal(s.n_table, 2);
    assert_string_equal(s.tables[0].name, "token_embd.weight");
    assert_true(s.tables[0].is_head);
    assert_false(s.tables[1].is_head);
    assert_int_equal(s.lookup_row_bytes, 56 * 4 + 160 * 4);
    assert_int_equal(s.layers[4].kv_from, 4);
    assert_int_equal(s.layers[4].kv_values, 64);
    assert_int_equal(s.layers[5].kv_from, 3);
    assert_int_equal(s.layers[9].kv_from, 4);
    assert_int_equal(s.layers[9].kv_values, 0);
    assert_int_equal(s.kv_global_values, 64);
    assert_int_equal(s.kv_sliding_values, 4 * 32);
    catalogue_close(c);
}

static void a_token_reads_only_the_experts_it_uses(void **state)
{
    struct catalogue *c = open_model("gemma4-moe-tiny.gguf", false);
    uint64_t layers = 0;

    (void)state;
    assert_int_equal(s.n_param, 481878);
    assert_int_equal(s.n_param_active, 297558);
    assert_int_equal(s.hot_bytes, 582144);
    for (uint32_t i = 0; i < s.n_layer; i++) {
        assert_true(s.layers[i].hot_bytes < s.layers[i].bytes);
        layers += s.layers[i].hot_bytes;
    }
    assert_int_equal(layers + s.head_bytes, s.hot_bytes);
    catalogue_close(c);
}

static void a_separate_head_is_read_and_the_embedding_looked_up(void **state)
{
    struct catalogue *c = open_model("llama-tiny.gguf", false);

    (void)state;
    assert_int_equal(s.n_param, 142784);
    assert_int_equal(s.n_param_active, 122304);
    assert_int_equal(s.n_param_embd, 2 * 320 * 64);
    assert_int_equal(s.hot_bytes, 243712);
    assert_int_equal(s.n_table, 1);
    assert_false(s.tables[0].is_head);
    catalogue_close(c);
}

static void bytes_by_type_add_up(void **state)
{
    struct catalogue *c = open_model("llama-tiny-mix.gguf", false);
    uint64_t bytes = 0, n = 0;
    uint32_t n_tensor = 0;

    (void)state;
    assert_true(s.n_type > 8);
    for (uint32_t i = 0; i < s.n_type; i++) {
        if (i > 0)
            assert_true(s.types[i - 1].bytes >= s.types[i].bytes);
        bytes += s.types[i].bytes;
        n += s.types[i].n_param;
        n_tensor += s.types[i].n_tensor;
    }
    assert_int_equal(n_tensor, c->n_tensor);
    assert_int_equal(n, s.n_param);
    assert_int_equal(bytes, s.hot_bytes + s.resident_bytes + s.tables[0].bytes);
    catalogue_close(c);
}

static void a_snapshot_has_the_same_totals_as_its_gguf_file(void **state)
{
    struct catalogue *c = open_model("gemma4-tiny2.gguf", false);
    struct summary gguf = s;

    (void)state;
    catalogue_close(c);
    c = open_model("gemma4-tiny-hf", false);
    assert_int_equal(s.n_param, gguf.n_param);
    assert_int_equal(s.n_param_active, gguf.n_param_active);
    assert_int_equal(s.hot_bytes, gguf.hot_bytes);
    assert_int_equal(s.unread_params, gguf.unread_params);
    assert_true(s.n_other > 0);
    assert_memory_equal(&s.layers[3], &gguf.layers[3], sizeof s.layers[3]);
    catalogue_close(c);
}

static void every_tensor_has_a_use(void **state)
{
    struct catalogue *c = open_model("gemma4-moe-tiny.gguf", false);

    (void)state;
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        struct summary_tensor t;
        const char *use;

        summary_tensor_at(c, i, &t);
        use = summary_use_name(t.use);
        if (strstr(t.name, "_exps.weight") != NULL)
            assert_string_equal(use, "expert");
        else if (strcmp(t.name, "token_embd.weight") == 0)
            assert_string_equal(use, "lookup");
        else if (strstr(t.name, "norm") != NULL || strstr(t.name, "ffn_gate_inp") != NULL)
            assert_string_equal(use, "resident");
        assert_int_equal(t.layer, strncmp(t.name, "blk.", 4) == 0 ? t.name[4] - '0' : -1);
    }
    catalogue_close(c);
}

static void a_file_that_is_not_a_model_still_has_types(void **state)
{
    struct catalogue *c = open_model("gemma4-tiny-assistant.gguf", true);

    (void)state;
    assert_int_equal(s.n_layer, 0);
    assert_int_equal(s.n_type, 1);
    assert_string_equal(s.types[0].name, "F32");
    assert_int_equal(s.types[0].n_tensor, c->n_tensor);
    catalogue_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_values_of_shared_layers_do_not_count),
        cmocka_unit_test(a_token_reads_only_the_experts_it_uses),
        cmocka_unit_test(a_separate_head_is_read_and_the_embedding_looked_up),
        cmocka_unit_test(bytes_by_type_add_up),
        cmocka_unit_test(a_snapshot_has_the_same_totals_as_its_gguf_file),
        cmocka_unit_test(every_tensor_has_a_use),
        cmocka_unit_test(a_file_that_is_not_a_model_still_has_types),
    };

    return cmocka_run_group_tests_name("summary", tests, NULL, NULL);
}
