/*
 * Describes a model that memwall does not run: names and sizes from the keys that all
 * architectures share, and bytes per layer.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/visible.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/foreign_files.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/snapshot.h"
#include "engine/format/summary.h"

/* The source of the numbers: GGUF keys "ARCH.*" or fields of a configuration. */
struct source {
    const struct gguf *g;
    const struct json_node *text;
    const char *arch;
};

static uint32_t number(const struct source *s, const char *key, const char *field)
{
    struct err ignored = ERR_INIT;
    int64_t v = 0;
    char full[128];
    bool found;

    if (s->g != NULL) {
        snprintf(full, sizeof full, "%s.%s", s->arch, key);
        found = gguf_int(s->g, full, &v, &ignored) == 1;
    } else {
        found = json_as_int(json_get(s->text, field), &v);
    }
    return found && v > 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
}

/* Returns the layer in "blk.7.…" or "model.layers.7.…", or -1. */
static int32_t layer_of(const char *name, uint32_t n_layer)
{
    const char *at = strncmp(name, "blk.", 4) == 0 ? name + 4 : strstr(name, "layers.");
    uint32_t n = 0;

    if (at == NULL)
        return -1;
    if (*at == 'l')
        at += 7;
    if (*at < '0' || *at > '9')
        return -1;
    for (; *at >= '0' && *at <= '9' && n < SUMMARY_MAX_LAYER; at++)
        n = n * 10 + (uint32_t)(*at - '0');
    return *at == '.' && n < n_layer ? (int32_t)n : -1;
}

static void add_layers(struct summary *s, const struct catalogue *c)
{
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        const struct tensor_info *t = &c->tensors[i];
        int32_t layer = layer_of(t->name, s->n_layer);

        if (strcmp(t->name, "token_embd.weight") == 0 && tensor_rows(t) <= MAX_N_VOCAB)
            s->n_vocab = (uint32_t)tensor_rows(t);
        if (layer < 0)
            continue;
        s->layers[layer].bytes += t->bytes;
        s->layers[layer].n_param += t->ne[0] * tensor_rows(t);
    }
}

static void fill(struct summary *s, const struct catalogue *c, const struct source *from)
{
    s->n_layer = number(from, "block_count", "num_hidden_layers");
    if (s->n_layer > SUMMARY_MAX_LAYER)
        s->n_layer = 0;
    s->n_embd = number(from, "embedding_length", "hidden_size");
    s->n_ctx_train = number(from, "context_length", "max_position_embeddings");
    s->n_swa = number(from, "attention.sliding_window", "sliding_window");
    s->n_head = number(from, "attention.head_count", "num_attention_heads");
    s->n_head_kv = number(from, "attention.head_count_kv", "num_key_value_heads");
    s->n_ff = number(from, "feed_forward_length", "intermediate_size");
    s->n_expert = number(from, "expert_count", "num_experts");
    if (s->n_expert == 0)
        s->n_expert = number(from, "expert_count", "num_local_experts");
    s->n_expert_used = number(from, "expert_used_count", "num_experts_per_tok");
    s->n_vocab = number(from, "vocab_size", "vocab_size");
    visible_line(s->arch, sizeof s->arch, from->arch, strlen(from->arch));
    s->is_foreign = true;
    add_layers(s, c);
}

static bool from_gguf(struct summary *s, const struct catalogue *c)
{
    struct source from = { .g = c->gguf };
    struct err ignored = ERR_INIT;
    const char *arch = NULL, *key = "", *name = NULL;
    char is[200];
    size_t len = 0;

    if (gguf_string(c->gguf, "general.architecture", &arch, NULL, &ignored) != 1 ||
        c->n_tensor == 0 || strcmp(arch, "clip") == 0 || strstr(arch, "assistant") != NULL ||
        (foreign_gguf_is(c, is, sizeof is, &key) && strcmp(key, "general.architecture") != 0))
        return false;
    from.arch = arch;
    fill(s, c, &from);
    if (gguf_string(c->gguf, "general.name", &name, &len, &ignored) == 1)
        visible_line(s->name, sizeof s->name, name, len);
    return true;
}

static bool from_config(struct summary *s, const struct catalogue *c)
{
    struct err ignored = ERR_INIT;
    struct json_doc *doc = NULL;
    const struct json_node *root;
    struct source from = { .g = NULL };
    const char *type;
    bool ok = false;

    if (c->dir_fd < 0 || snapshot_json(c, "config.json", false, &doc, &ignored) != 1)
        return false;
    root = json_root(doc);
    from.text = json_get(root, "text_config") != NULL ? json_get(root, "text_config") : root;
    type = json_as_string(json_get(root, "model_type"));
    if (type != NULL && strstr(type, "assistant") == NULL && c->n_tensor > 0) {
        from.arch = type;
        fill(s, c, &from);
        ok = true;
    }
    json_free(doc);
    return ok;
}

bool summary_make_foreign(struct summary *s, const struct catalogue *c)
{
    summary_make(s, c);
    return c->kind == CATALOGUE_GGUF ? from_gguf(s, c) : from_config(s, c);
}
