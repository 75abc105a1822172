/*
 * Llama and its relatives: Mistral, Qwen 2 and 3, Gemma 2 and 3, Phi 3.  They differ in
 * which tensors there are and in a few numbers; a tensor that is there is used.
 */
#include "config.h"

#include <math.h>

#include "engine/format/arch.h"
#include "engine/model/desc_internal.h"

void describe_llama(struct finder *f, struct model_desc *d)
{
    bool is_gemma = arch_has(d->hp->arch, TRAIT_POST_NORMS);

    if (is_gemma) {
        d->embd_scale = sqrtf((float)d->n_embd);
        d->act = ACT_KIND_GELU;
    }
    for (uint32_t l = 0; l < d->n_layer && !f->failed; l++) {
        struct layer_desc *layer = &d->layers[l];
        uint64_t n_ff = d->hp->layers[l].n_ff;

        f->layer = (int)l;
        describe_attention(f, d, l, true);
        if (is_gemma) {
            layer->post_attn_norm = find_vec(f, "post_attention_norm.weight", d->n_embd, true);
            layer->post_ffn_norm = find_vec(f, "post_ffw_norm.weight", d->n_embd, true);
        }
        layer->ffn_norm = find_vec(f, "ffn_norm.weight", d->n_embd, true);
        if (find_tensor(f, "ffn_gate.weight", false) != NULL) {
            layer->gate = find_mat(f, "ffn_gate.weight", n_ff, d->n_embd, true);
            layer->up = find_mat(f, "ffn_up.weight", n_ff, d->n_embd, true);
        } else { /* one tensor, gate rows first */
            layer->gate = find_slice(f, "ffn_up.weight", 0, n_ff, 2 * n_ff, d->n_embd, true);
            layer->up = find_slice(f, "ffn_up.weight", n_ff, n_ff, 2 * n_ff, d->n_embd, true);
        }
        layer->down = find_mat(f, "ffn_down.weight", d->n_embd, n_ff, true);
        if (arch_has(d->hp->arch, TRAIT_FFN_BIAS) && d->hp->ffn_bias != BIAS_NONE) {
            layer->bias_gate = find_vec(f, "ffn_gate.bias", n_ff, false);
            layer->bias_up = find_vec(f, "ffn_up.bias", n_ff, false);
            layer->bias_down = find_vec(f, "ffn_down.bias", d->n_embd, false);
        }
    }
    f->layer = -1;
}
