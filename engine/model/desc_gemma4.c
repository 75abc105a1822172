/*
 * Gemma 4: per-head norms, four norms a layer, one factor on the whole stream at the end of
 * each layer, values normed without weights, factor 1 in attention; per-layer inputs
 * (E2B, E4B), keys as values in global layers (12B, 31B), experts beside a dense branch
 * (26B-A4B).
 */
#include "config.h"

#include <math.h>

#include "engine/model/desc_internal.h"

static void describe_experts(struct finder *f, struct model_desc *d, struct layer_desc *layer)
{
    const struct hparams *hp = d->hp;
    struct experts_desc *x = &layer->experts;

    x->n_expert = hp->n_expert;
    x->n_used = hp->n_expert_used;
    x->n_ff = hp->n_ff_expert;
    x->router = find_vec(f, "ffn_gate_inp.weight", (uint64_t)hp->n_expert * d->n_embd, true);
    x->router_scale = find_vec(f, "ffn_gate_inp.scale", d->n_embd, true);
    x->expert_scale = find_vec(f, "ffn_down_exps.scale", hp->n_expert, true);
    x->pre_norm = find_vec(f, "pre_ffw_norm_2.weight", d->n_embd, true);
    x->post_norm_dense = find_vec(f, "post_ffw_norm_1.weight", d->n_embd, true);
    x->post_norm_experts = find_vec(f, "post_ffw_norm_2.weight", d->n_embd, true);
    x->gate_up = find_experts(f, "ffn_gate_up_exps.weight", 2ull * x->n_ff * x->n_expert,
                              d->n_embd, false);
    if (x->gate_up == NULL) {
        uint64_t n_row = (uint64_t)x->n_ff * x->n_expert;

        x->gate = find_experts(f, "ffn_gate_exps.weight", n_row, d->n_embd, true);
        x->up = find_experts(f, "ffn_up_exps.weight", n_row, d->n_embd, true);
        if (!f->failed && x->gate->type != x->up->type) {
            f->failed = true;
            err_set(f->e, ERR_UNSUPPORTED, "has another type than the experts' gate");
            err_at(f->e, f->c->path, ERR_NO_OFFSET, x->up->name);
        }
    }
    x->down = find_experts(f, "ffn_down_exps.weight", (uint64_t)d->n_embd * x->n_expert,
                           x->n_ff, true);
}

static void describe_per_layer_input(struct finder *f, struct model_desc *d, uint32_t l)
{
    struct layer_desc *layer = &d->layers[l];
    uint64_t n_ple = d->n_embd_per_layer;
    uint64_t n_all = n_ple * d->n_layer;

    f->layer = -1;
    layer->ple_proj =
        find_slice(f, "per_layer_model_proj.weight", l * n_ple, n_ple, n_all, d->n_embd, true);
    f->layer = (int)l;
    layer->ple_gate = find_mat(f, "inp_gate.weight", n_ple, d->n_embd, true);
    layer->ple_out = find_mat(f, "proj.weight", d->n_embd, n_ple, true);
    layer->post_ple_norm = find_vec(f, "post_norm.weight", d->n_embd, true);
}

void describe_gemma4(struct finder *f, struct model_desc *d)
{
    d->embd_scale = sqrtf((float)d->n_embd);
    d->act = ACT_KIND_GELU;
    if (d->n_embd_per_layer > 0) {
        uint64_t n_all = (uint64_t)d->n_embd_per_layer * d->n_layer;

        d->ple_embd =
            find_mat(f, "per_layer_token_embd.weight", d->n_vocab, n_all, true).tensor;
        d->ple_norm = find_vec(f, "per_layer_proj_norm.weight", d->n_embd_per_layer, true);
    }
    for (uint32_t l = 0; l < d->n_layer && !f->failed; l++) {
        struct layer_desc *layer = &d->layers[l];

        f->layer = (int)l;
        describe_attention(f, d, l, layer->owns_kv && d->hp->layers[l].is_sliding);
        layer->has_v_norm = true;
        layer->post_attn_norm = find_vec(f, "post_attention_norm.weight", d->n_embd, true);
        layer->ffn_norm = find_vec(f, "ffn_norm.weight", d->n_embd, true);
        layer->gate = find_mat(f, "ffn_gate.weight", layer->n_ff, d->n_embd, true);
        layer->up = find_mat(f, "ffn_up.weight", layer->n_ff, d->n_embd, true);
        layer->down = find_mat(f, "ffn_down.weight", d->n_embd, layer->n_ff, true);
        layer->post_ffn_norm = find_vec(f, "post_ffw_norm.weight", d->n_embd, true);
        layer->out_scale = find_vec(f, "layer_output_scale.weight", 1, false);
        if (d->hp->n_expert > 0)
            describe_experts(f, d, layer);
        if (d->n_embd_per_layer > 0)
            describe_per_layer_input(f, d, l);
    }
    f->layer = -1;
}
