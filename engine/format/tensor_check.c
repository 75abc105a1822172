/*
 * Which tensors an architecture needs, with which shape.  The lists below are the
 * specification: one line a tensor, in the order of the forward pass.  A dimension
 * carries the word it comes from, so that a wrong shape names the key that disagrees.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/snapshot.h"

struct dim {
    uint64_t n;
    enum hparam_word word;
};

struct check {
    const struct catalogue *c;
    const struct hparams *h;
    struct err *e;
    bool failed;
    char prefix[24]; /* "blk.7." or "" */
};

enum need { OPTIONAL, REQUIRED };
enum kind { MATRIX, VECTOR }; /* vectors are floats: norms, biases, scales */

static bool wrong_type(enum tensor_type type, enum kind kind)
{
    bool is_float = type == TYPE_F32 || type == TYPE_F16 || type == TYPE_BF16;

    if (kind == VECTOR)
        return !is_float;
    return type == TYPE_I8 || type == TYPE_I16 || type == TYPE_I32 || type == TYPE_I64 ||
           type == TYPE_F64 || type == TYPE_Q8_1 || type == TYPE_Q8_K;
}

static void report(struct check *k, const struct tensor_info *t, const char *name)
{
    char field[96];

    catalogue_spell(k->c, name, field, sizeof field);
    err_at(k->e, t != NULL ? k->c->files[t->file].path : k->c->path,
           t != NULL ? t->offset : ERR_NO_OFFSET, field);
    k->failed = true;
}

/* One tensor: dims[n], fastest first.  Returns whether it is there. */
static bool want(struct check *k, const char *suffix, enum need need, enum kind kind,
                 const struct dim *dims, uint32_t n)
{
    const struct tensor_info *t;
    char name[96], word[96];

    if (k->failed)
        return false;
    snprintf(name, sizeof name, "%s%s", k->prefix, suffix);
    t = catalogue_find(k->c, name);
    if (t == NULL) {
        if (need == OPTIONAL)
            return false;
        err_set(k->e, ERR_FORMAT,
                k->c->n_tensor == 0
                    ? "the tensor is missing: the file has no tensors, only a vocabulary"
                    : "the tensor is missing");
        report(k, NULL, name);
        return false;
    }
    for (uint32_t i = 0; i < 4 && !k->failed; i++) {
        uint64_t wanted = i < n ? dims[i].n : 1;

        if (t->ne[i] == wanted)
            continue;
        hparam_spell(k->c, dims[i < n ? i : n - 1].word, word, sizeof word);
        err_set(k->e, ERR_FORMAT,
                "its shape is %llu x %llu x %llu, but dimension %u should be "
                "%llu (%s)",
                (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
                (unsigned long long)t->ne[2], i, (unsigned long long)wanted, word);
        report(k, t, name);
    }
    if (!k->failed && wrong_type(t->type, kind)) {
        err_set(k->e, ERR_UNSUPPORTED, "its type is %s; %s cannot be that",
                tensor_type_info(t->type)->name,
                kind == VECTOR ? "norms, scales and biases" : "weights");
        report(k, t, name);
    }
    return !k->failed;
}

static bool vector(struct check *k, const char *suffix, enum need need, struct dim a)
{
    return want(k, suffix, need, VECTOR, &a, 1);
}

static bool matrix(struct check *k, const char *suffix, enum need need, struct dim in,
                   struct dim out)
{
    struct dim dims[2] = { in, out };

    return want(k, suffix, need, MATRIX, dims, 2);
}

static bool experts(struct check *k, const char *suffix, enum need need, struct dim in,
                    struct dim out)
{
    struct dim dims[3] = { in, out, { k->h->n_expert, WORD_N_EXPERT } };

    return want(k, suffix, need, MATRIX, dims, 3);
}

/* A layer without attn_v takes its keys as values, so both have one size. */
static void keys_are_no_values(struct check *k, const struct layer_hparams *y)
{
    char word[96], name[96];

    if (k->failed)
        return;
    hparam_spell(k->c, WORD_HEAD_DIM_V, word, sizeof word);
    err_set(k->e, ERR_FORMAT,
            "the tensor is missing, and keys of %u cannot serve as values of %u (%s)",
            y->head_dim_k, y->head_dim_v, word);
    snprintf(name, sizeof name, "%sattn_v.weight", k->prefix);
    report(k, NULL, name);
}

static void check_attention(struct check *k, uint32_t i)
{
    const struct hparams *h = k->h;
    const struct arch *a = h->arch;
    const struct layer_hparams *y = &h->layers[i];
    struct dim embd = { h->n_embd, WORD_N_EMBD };
    struct dim q = { (uint64_t)y->n_head * y->head_dim_k, WORD_N_HEAD };
    struct dim kk = { (uint64_t)y->n_head_kv * y->head_dim_k, WORD_N_HEAD_KV };
    struct dim v = { (uint64_t)y->n_head_kv * y->head_dim_v, WORD_N_HEAD_KV };
    struct dim out = { (uint64_t)y->n_head * y->head_dim_v, WORD_N_HEAD };
    struct dim qkv = { q.n + kk.n + v.n, WORD_N_HEAD };
    struct dim head = { y->head_dim_k, WORD_HEAD_DIM_K };
    enum need bias = arch_has(a, TRAIT_QKV_BIAS) || h->attn_bias >= BIAS_QKV ? REQUIRED : OPTIONAL;
    enum need bias_o = h->attn_bias == BIAS_ALL ? REQUIRED : OPTIONAL;
    /* Layers that read another's keys need none; nobody reads what is there. */
    bool owns = i < h->n_layer - h->n_layer_kv_shared;
    /* Gemma 4's global layers may take their keys as values. */
    bool may_lack_v = arch_has(a, TRAIT_KEYS_AS_VALUES) && !y->is_sliding &&
                      (k->c->kind == CATALOGUE_GGUF || h->no_values);
    enum need own = owns ? REQUIRED : OPTIONAL;
    enum need own_bias = owns ? bias : OPTIONAL;
    bool has_v = true;

    vector(k, "attn_norm.weight", REQUIRED, embd);
    if (matrix(k, "attn_qkv.weight", OPTIONAL, embd, qkv)) {
        vector(k, "attn_qkv.bias", bias, qkv);
    } else {
        matrix(k, "attn_q.weight", REQUIRED, embd, q);
        vector(k, "attn_q.bias", bias, q);
        matrix(k, "attn_k.weight", own, embd, kk);
        vector(k, "attn_k.bias", own_bias, kk);
        has_v = !(may_lack_v && h->no_values) &&
                matrix(k, "attn_v.weight", may_lack_v ? OPTIONAL : own, embd, v);
        vector(k, "attn_v.bias", has_v ? own_bias : OPTIONAL, v);
    }
    if (owns && !has_v && y->head_dim_k != y->head_dim_v)
        keys_are_no_values(k, y);
    if (arch_has(a, TRAIT_QK_NORM)) {
        vector(k, "attn_q_norm.weight", REQUIRED, head);
        vector(k, "attn_k_norm.weight", own, head);
    }
    matrix(k, "attn_output.weight", REQUIRED, out, embd);
    vector(k, "attn_output.bias", bias_o, embd);
    if (arch_has(a, TRAIT_POST_NORMS))
        vector(k, "post_attention_norm.weight", REQUIRED, embd);
}

static void check_feed_forward(struct check *k, uint32_t i)
{
    const struct hparams *h = k->h;
    const struct arch *a = h->arch;
    struct dim embd = { h->n_embd, WORD_N_EMBD };
    struct dim ff = { h->layers[i].n_ff, WORD_N_FF };
    struct dim twice = { 2 * (uint64_t)h->layers[i].n_ff, WORD_N_FF };
    enum need bias = h->ffn_bias == BIAS_ALL ? REQUIRED : OPTIONAL;

    vector(k, "ffn_norm.weight", REQUIRED, embd);
    if (arch_has(a, TRAIT_FUSED_GATE_UP)) {
        matrix(k, "ffn_up.weight", REQUIRED, embd, twice);
    } else {
        matrix(k, "ffn_gate.weight", REQUIRED, embd, ff);
        matrix(k, "ffn_up.weight", REQUIRED, embd, ff);
    }
    matrix(k, "ffn_down.weight", REQUIRED, ff, embd);
    if (arch_has(a, TRAIT_FFN_BIAS)) {
        vector(k, "ffn_gate.bias", bias, ff);
        vector(k, "ffn_up.bias", bias, ff);
        vector(k, "ffn_down.bias", bias, embd);
    }
    if (arch_has(a, TRAIT_POST_NORMS))
        vector(k, "post_ffw_norm.weight", REQUIRED, embd);
}

static void check_experts(struct check *k)
{
    const struct hparams *h = k->h;
    struct dim embd = { h->n_embd, WORD_N_EMBD };
    struct dim n = { h->n_expert, WORD_N_EXPERT };
    struct dim ff = { h->n_ff_expert, WORD_N_FF_EXPERT };
    struct dim twice = { 2 * (uint64_t)h->n_ff_expert, WORD_N_FF_EXPERT };

    matrix(k, "ffn_gate_inp.weight", REQUIRED, embd, n);
    vector(k, "ffn_gate_inp.scale", REQUIRED, embd);
    vector(k, "ffn_down_exps.scale", REQUIRED, n);
    if (!experts(k, "ffn_gate_up_exps.weight", OPTIONAL, embd, twice)) {
        experts(k, "ffn_gate_exps.weight", REQUIRED, embd, ff);
        experts(k, "ffn_up_exps.weight", REQUIRED, embd, ff);
    }
    experts(k, "ffn_down_exps.weight", REQUIRED, ff, embd);
    vector(k, "pre_ffw_norm_2.weight", REQUIRED, embd);
    vector(k, "post_ffw_norm_1.weight", REQUIRED, embd);
    vector(k, "post_ffw_norm_2.weight", REQUIRED, embd);
}

static void check_per_layer_input(struct check *k)
{
    struct dim embd = { k->h->n_embd, WORD_N_EMBD };
    struct dim p = { k->h->n_embd_per_layer, WORD_N_EMBD_PER_LAYER };

    matrix(k, "inp_gate.weight", REQUIRED, embd, p);
    matrix(k, "proj.weight", REQUIRED, p, embd);
    vector(k, "post_norm.weight", REQUIRED, embd);
}

static void check_outside_layers(struct check *k)
{
    const struct hparams *h = k->h;
    struct dim embd = { h->n_embd, WORD_N_EMBD };
    struct dim vocab = { h->n_vocab, WORD_N_VOCAB };
    struct dim p = { h->n_embd_per_layer, WORD_N_EMBD_PER_LAYER };
    struct dim all_p = { (uint64_t)h->n_layer * h->n_embd_per_layer, WORD_N_EMBD_PER_LAYER };

    matrix(k, "token_embd.weight", REQUIRED, embd, vocab);
    vector(k, "output_norm.weight", REQUIRED, embd);
    matrix(k, "output.weight", h->own_head ? REQUIRED : OPTIONAL, embd, vocab);
    if (h->n_embd_per_layer > 0) {
        matrix(k, "per_layer_token_embd.weight", REQUIRED, all_p, vocab);
        matrix(k, "per_layer_model_proj.weight", REQUIRED, embd, all_p);
        vector(k, "per_layer_proj_norm.weight", REQUIRED, p);
    }
    if (h->arch->rope_dims == ROPE_PROPORTIONAL && k->c->kind == CATALOGUE_GGUF)
        vector(k, "rope_freqs.weight", REQUIRED, (struct dim){ h->rope.n_rot / 2, WORD_N_ROT });
}

int catalogue_check_tensors(const struct catalogue *c, struct err *e)
{
    struct check k = { .c = c, .h = &c->hparams, .e = e };

    check_outside_layers(&k);
    for (uint32_t i = 0; i < c->hparams.n_layer && !k.failed; i++) {
        snprintf(k.prefix, sizeof k.prefix, "blk.%u.", i);
        check_attention(&k, i);
        check_feed_forward(&k, i);
        if (c->hparams.n_expert > 0)
            check_experts(&k);
        if (c->hparams.n_embd_per_layer > 0)
            check_per_layer_input(&k);
        if (arch_has(c->hparams.arch, TRAIT_OUT_SCALE))
            vector(&k, "layer_output_scale.weight", OPTIONAL, (struct dim){ 1, WORD_N_LAYER });
    }
    return k.failed ? -1 : 0;
}

void catalogue_spell(const struct catalogue *c, const char *canonical, char *buf, size_t n)
{
    if (c->kind == CATALOGUE_SNAPSHOT)
        snapshot_from_canonical(c->hparams.arch, c->index->prefix, canonical, buf, n);
    else
        snprintf(buf, n, "%s", canonical);
}
