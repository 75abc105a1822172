/*
 * Keys "ARCH.*" that memwall does not know.
 *
 * Such a key may be another name of a value that memwall reads and that the file seems to lack.
 * gguf_lookup.c notes every key that was looked up and not found, so this covers all values of
 * all families.  A key whose name resembles that of an absent one is refused.  Any other
 * unknown key gets a notice if a default stands for some absent value.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/catalogue_build.h"
#include "engine/format/gguf_lookup.h"
#include "engine/format/value_rules.h"

#define LONGEST_NAME 100 /* of a key that is looked at; hostile files have longer ones */

/* Names that config.json has for a value, whose words are others than those of the key. */
static const struct {
    const char *suffix, *field;
} fields[] = {
    { "attention.head_count_kv", "num_key_value_heads" },
    { "attention.scale", "query_pre_attn_scalar" },
    { "attention.scale", "attention_multiplier" },
    { "attention.shared_kv_layers", "num_kv_shared_layers" },
    { "attention.sliding_window_pattern", "layer_types" },
    { "attention.temperature_scale", "llama_4_scaling_beta" },
    { "attention.value_length", "v_head_dim" },
    { "embedding_scale", "embedding_multiplier" },
    { "expert_feed_forward_length", "moe_intermediate_size" },
    { "expert_gating_func", "scoring_func" },
    { "expert_gating_func", "score_function" },
    { "expert_group_count", "n_group" },
    { "expert_group_used_count", "topk_group" },
    { "expert_shared_feed_forward_length", "shared_expert_intermediate_size" },
    { "expert_used_count", "num_experts_per_tok" },
    { "expert_weights_norm", "norm_topk_prob" },
    { "expert_weights_norm", "moe_renormalize" },
    { "expert_weights_scale", "routed_scaling_factor" },
    { "expert_weights_scale", "route_scale" },
    { "final_logit_softcapping", "logits_soft_cap" },
    { "full_attention_interval", "layer_types" },
    { "logit_scale", "logits_scaling" },
    { "logit_scale", "lm_head_multiplier" },
    { "nextn_predict_layers", "mtp_num_hidden_layers" },
    { "residual_scale", "residual_multiplier" },
    { "rope.dimension_count", "partial_rotary_factor" },
    { "rope.dimension_count", "qk_rope_head_dim" },
    { "rope.dimension_count", "rotary_dim" },
    { "rope.freq_base", "rope_theta" },
    { "rope.freq_base", "rotary_emb_base" },
    { "rope.freq_base_swa", "rope_local_base_freq" },
    { "rope.scaling.original_context_length", "original_max_position_embeddings" },
    { "swiglu_clamp_exp", "swiglu_limit" },
};

/* Words of keys that mean the same. */
static const struct {
    const char *other, *usual;
} words[] = {
    { "attn", "attention" },   { "blocks", "block" }, { "cap", "softcapping" },
    { "eps", "epsilon" },      { "layer", "block" },  { "layers", "block" },
    { "limit", "clamp" },      { "local", "swa" },    { "moe", "expert" },
    { "multiplier", "scale" }, { "rotary", "rope" },  { "scaling", "scale" },
    { "theta", "base" },
};

/* Words that make no difference. */
static const char *const fillers[] = { "all", "count", "n",    "num", "number",
                                       "of",  "size",  "text", "the" };

#define LEAST_BEGINNING 4 /* letters of "norm", which is the beginning of "normalised" */

struct word {
    const char *s;
    size_t n;
};

static bool is_text(struct word w, const char *text)
{
    return strlen(text) == w.n && strncmp(w.s, text, w.n) == 0;
}

/* Take the next word of a name.  Words are separated by "." and "_".  Returns false at the end.
 */
static bool next_word(const char **name, struct word *w)
{
    *name += strspn(*name, "._");
    *w = (struct word){ *name, strcspn(*name, "._") };
    *name += w->n;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (is_text(*w, words[i].other)) {
            *w = (struct word){ words[i].usual, strlen(words[i].usual) };
            break;
        }
    return w->n > 0;
}

static bool is_filler(struct word w)
{
    for (size_t i = 0; i < sizeof fillers / sizeof fillers[0]; i++)
        if (is_text(w, fillers[i]))
            return true;
    return false;
}

/* Whether two words are the same, or one is a form of the other: "freq" and "frequency". */
static bool is_same_word(struct word a, struct word b)
{
    size_t n = a.n < b.n ? a.n : b.n;

    return strncmp(a.s, b.s, n) == 0 && (a.n == b.n || n >= LEAST_BEGINNING);
}

/* Returns the number of words of a that are also words of b; *n_word is that of all words but
 * fillers. */
static int words_in(const char *a, const char *b, int *n_word)
{
    struct word x, y;
    int n = 0;

    *n_word = 0;
    while (next_word(&a, &x)) {
        const char *at = b;
        bool is_in = false;

        if (is_filler(x))
            continue;
        while (!is_in && next_word(&at, &y))
            is_in = is_same_word(x, y);
        n += is_in;
        (*n_word)++;
    }
    return n;
}

/* Whether one name has all words of the other, which has two words or more. */
static bool resembles(const char *a, const char *b)
{
    int n_a, n_b, in_a = words_in(b, a, &n_b), in_b = words_in(a, b, &n_a);

    return (n_b >= 2 && in_a == n_b) || (n_a >= 2 && in_b == n_a);
}

/* Whether a key has a name of config.json, with any word before it. */
static bool is_config_name(const char *name, const char *suffix)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        size_t len = strlen(fields[i].field);

        if (strcmp(fields[i].suffix, suffix) != 0 || n < len)
            continue;
        if (strcmp(name + n - len, fields[i].field) == 0 &&
            (n == len || strchr("._", name[n - len - 1]) != NULL))
            return true;
    }
    return false;
}

int gguf_check_unknown(const struct catalogue *c, const char *suffix, const char *key,
                       const struct absent_list *absent, struct err *e)
{
    /* Without the architecture, only a name of config.json means this model for certain. */
    bool is_bare = suffix == NULL;
    const char *name = is_bare ? key : suffix;

    if (strlen(name) > LONGEST_NAME || (is_bare && strchr(key, '.') != NULL))
        return 0;
    for (uint32_t i = 0; i < absent->n; i++)
        if (is_config_name(name, absent->suffix[i]) ||
            (!is_bare && resembles(name, absent->suffix[i])))
            return err_set(
                e, ERR_UNSUPPORTED,
                "the key is unknown and may stand for %.40s.%.60s, which is missing; "
                "fetch a file that llama.cpp's converter made",
                gguf_prefix(c->gguf), absent->suffix[i]);
    return 0;
}

void gguf_unknown_notice(const struct catalogue *c, char *buf, size_t n)
{
    const struct default_list *d = &c->defaults;
    char names[112], list[480] = "";
    uint32_t n_key = c->kind == CATALOGUE_SNAPSHOT || d->n == 0
                         ? 0
                         : gguf_unknown_keys(c, names, sizeof names);

    buf[0] = '\0';
    if (n_key == 0)
        return;
    for (uint32_t i = 0; i < d->n; i++) {
        size_t used = strlen(list);

        if (used + strlen(d->v[i].name) + 32 < sizeof list)
            snprintf(list + used, sizeof list - used, "%s%s (%.10g)", used > 0 ? ", " : "",
                     d->v[i].name, d->v[i].value);
    }
    snprintf(
        buf, n,
        "memwall does not know %s of the model's file: %s. If it is another name of a value "
        "that the file leaves out, the answers are wrong; memwall uses %s.",
        n_key == 1 ? "a key" : "some keys", names, list);
}
