/* Opening models: the catalogue describes files whose contents are known. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_path.h"

/* Open a conformance model; skip the test if it is missing. */
static struct catalogue *open_model(const char *name)
{
    const char *path = model_path(name);
    struct err e = ERR_INIT;
    struct catalogue *c = NULL;

    if (path == NULL)
        skip();
    if (catalogue_open(&c, path, &e) != 0)
        fail_with(&e);
    return c;
}

static void a_gemma_4_file_is_described_layer_by_layer(void **state)
{
    struct catalogue *c = open_model("gemma4-tiny.gguf");
    const struct hparams *h = &c->hparams;
    const struct tensor_info *t;

    (void)state;
    assert_string_equal(h->arch->name, "gemma4");
    assert_string_equal(h->name, "gemma4-tiny");
    assert_int_equal(h->n_layer, 10);
    assert_int_equal(h->n_embd, 56);
    assert_int_equal(h->n_vocab, 420);
    assert_int_equal(h->n_ctx_train, 8192);
    assert_int_equal(h->n_swa, 16);
    assert_int_equal(h->n_layer_kv_shared, 5);
    assert_int_equal(h->n_embd_per_layer, 16);
    assert_true(h->attn_scale == 1.0f);
    assert_true(h->softcap_final == 30.0f);
    assert_true(h->layers[0].is_sliding);
    assert_false(h->layers[4].is_sliding);
    assert_int_equal(h->layers[0].head_dim_k, 16);
    assert_int_equal(h->layers[4].head_dim_v, 32);
    assert_int_equal(h->layers[4].n_ff, 56);
    assert_int_equal(h->layers[5].n_ff, 112);
    assert_int_equal(h->layers[9].n_head_kv, 1);
    assert_true(h->rope.base == 1e6 && h->rope_swa.base == 1e4);
    assert_int_equal(h->rope.n_rot, 32);
    assert_int_equal(h->rope_swa.n_rot, 16);
    assert_int_equal(h->rope.n_factor, 16);
    assert_true(h->rope.factors[0] == 1.0f && h->rope.factors[15] >= 1e20f);
    assert_int_equal(h->rope_swa.n_factor, 0);
    assert_false(h->rope_interleaved);
    t = catalogue_find(c, "blk.9.ffn_down.weight");
    assert_non_null(t);
    assert_true(t->is_text && t->ne[0] == 112 && t->ne[1] == 56 && t->bytes == 112 * 56 * 4);
    assert_null(catalogue_find(c, "blk.10.ffn_down.weight"));
    assert_int_equal(c->n_tensor_other, 0);
    catalogue_close(c);
}

static void a_mixture_of_experts_is_described(void **state)
{
    struct catalogue *c = open_model("gemma4-moe-tiny.gguf");
    const struct hparams *h = &c->hparams;

    (void)state;
    assert_int_equal(h->n_expert, 8);
    assert_int_equal(h->n_expert_used, 3);
    assert_int_equal(h->n_ff_expert, 32);
    assert_int_equal(h->layers[0].n_head_kv, 2);
    assert_int_equal(h->layers[5].n_head_kv, 1);
    catalogue_close(c);
}

static void a_llama_3_file_divides_its_frequencies(void **state)
{
    struct catalogue *c = open_model("llama31-tiny.gguf");
    const struct hparams *h = &c->hparams;

    (void)state;
    assert_string_equal(h->arch->name, "llama");
    assert_true(h->rope_interleaved);
    assert_int_equal(h->rope.n_factor, h->rope.n_rot / 2);
    assert_true(fabs((double)h->attn_scale - 1 / sqrt(32)) < 1e-6);
    assert_false(h->layers[0].is_sliding);
    catalogue_close(c);
}

static void longrope_is_recognised_by_its_tensors(void **state)
{
    struct catalogue *c = open_model("phi3-longrope-tiny.gguf");
    const struct rope_hparams *r = &c->hparams.rope;

    (void)state;
    assert_int_equal(r->scaling, ROPE_LONGROPE);
    assert_int_equal(r->n_ctx_orig, 64);
    assert_int_equal(r->n_factor, 8);
    assert_true(r->factors[0] == 1.0f);
    assert_true(r->factors_long[7] == 6.0f);
    assert_true(fabs(r->attn_factor - 1.2909944) < 1e-6);
    assert_false(c->hparams.layers[0].is_sliding); /* the window is wider than the context */
    catalogue_close(c);
}

static void yarn_and_linear_scaling_are_read(void **state)
{
    struct catalogue *c = open_model("qwen2-yarn-tiny.gguf");

    (void)state;
    assert_int_equal(c->hparams.rope.scaling, ROPE_YARN);
    assert_true(c->hparams.rope.factor == 4.0);
    assert_true(fabs(c->hparams.rope.attn_factor - 1.138629) < 1e-6);
    catalogue_close(c);

    c = open_model("gemma3-tiny.gguf");
    assert_int_equal(c->hparams.rope.scaling, ROPE_LINEAR);
    assert_int_equal(c->hparams.rope_swa.scaling, ROPE_NONE);
    assert_true(c->hparams.rope_swa.base == 1e4);
    assert_true(c->hparams.layers[4].is_sliding && !c->hparams.layers[5].is_sliding &&
                c->hparams.layers[6].is_sliding);
    assert_int_equal(c->generation.n_stop, 2);
    catalogue_close(c);
}

static void every_conformance_file_opens(void **state)
{
    static const char *const names[] = {
        "gemma2-tiny",          "gemma3-tiny",         "gemma4-31b-tiny",
        "gemma4-moe-tiny-q4_0", "gemma4-tiny-q4_0",    "gemma4-tiny-q4_k_m",
        "gemma4-tiny-q6_k",     "gemma4-tiny-q8_0",    "gemma4-tiny2",
        "llama-tiny",           "llama-tiny-mix",      "llama-tiny-q4_k",
        "mistral-tiny",         "mistral-window-tiny", "phi3-longrope-short-tiny",
        "phi3-swa-tiny",        "phi3-tiny",           "qwen2-tiny",
        "qwen2-tiny-q8_0",      "qwen3-tiny",
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char file[64];
        struct catalogue *c;
        struct err e = ERR_INIT;

        snprintf(file, sizeof file, "%s.gguf", names[i]);
        c = open_model(file);
        assert_int_equal(c->n_tensor_other, 0);
        assert_true(c->hparams.attn_scale > 0);
        assert_int_equal(catalogue_check_files(c, &e), 0);
        catalogue_close(c);
    }
}

static void a_window_in_a_llama_file_applies_to_every_layer(void **state)
{
    struct catalogue *c = open_model("mistral-window-tiny.gguf");

    (void)state;
    assert_int_equal(c->hparams.n_swa, 12);
    for (uint32_t i = 0; i < c->hparams.n_layer; i++)
        assert_true(c->hparams.layers[i].is_sliding);
    assert_true(c->hparams.rope_swa.base == c->hparams.rope.base);
    catalogue_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gemma_4_file_is_described_layer_by_layer),
        cmocka_unit_test(a_mixture_of_experts_is_described),
        cmocka_unit_test(a_llama_3_file_divides_its_frequencies),
        cmocka_unit_test(longrope_is_recognised_by_its_tensors),
        cmocka_unit_test(yarn_and_linear_scaling_are_read),
        cmocka_unit_test(a_window_in_a_llama_file_applies_to_every_layer),
        cmocka_unit_test(every_conformance_file_opens),
    };

    return cmocka_run_group_tests_name("catalogue", tests, NULL, NULL);
}
