/* GGUF files that are not models, by their keys and tensors. */
#include "config.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/catalogue.h"
#include "engine/format/foreign_files.h"
#include "engine/format/gguf.h"
#include "engine/format/gguf_lookup.h"

enum kind { ADAPTER, IMATRIX, PROJECTOR, VECTOR, VOCABULARY, N_KIND };

static const struct {
    const char *is, *hint;
} kinds[N_KIND] = {
    [ADAPTER] = { "an adapter (LoRA), not a model",
                  "open the model that it was made for; memwall applies no adapters" },
    [IMATRIX] = { "an importance matrix, not a model",
                  "open a model that was quantised with it" },
    [PROJECTOR] = { "a vision or audio projector, not a text model",
                    "open the language model that it belongs to" },
    [VECTOR] = { "a control vector, not a model",
                 "open the model that it was made for; memwall applies no vectors" },
    [VOCABULARY] = { "a vocabulary only, not a model",
                     "use it with \"memwall tokenize\", or open the model" },
};

/* The signs of a kind: general.type, a key that no model has, or the name of a tensor. */
static const struct {
    const char *type, *key, *tensor;
    enum kind kind;
} signs[] = {
    { "adapter", "adapter.type", "*.lora_[ab]", ADAPTER },
    { NULL, "adapter.lora.alpha", NULL, ADAPTER },
    { "imatrix", "imatrix.datasets", "*.in_sum2", IMATRIX },
    { "mmproj", "clip.has_vision_encoder", NULL, PROJECTOR },
    { NULL, "clip.has_audio_encoder", NULL, PROJECTOR },
    { "controlvector", "controlvector.layer_count", "direction.[0-9]*", VECTOR },
    { NULL, "controlvector.model_hint", NULL, VECTOR },
    { "vocab", NULL, NULL, VOCABULARY },
};

static bool has_tensor(const struct catalogue *c, const char *pattern)
{
    for (uint32_t i = 0; pattern != NULL && i < c->n_tensor; i++)
        if (fnmatch(pattern, c->tensors[i].name, 0) == 0)
            return true;
    return false;
}

bool foreign_gguf_is(const struct catalogue *c, char *buf, size_t n, const char **key)
{
    const char *type = "", *is;
    struct err ignored = ERR_INIT;

    gguf_string(c->gguf, "general.type", &type, NULL, &ignored);
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        bool by_type = signs[i].type != NULL && strcmp(type, signs[i].type) == 0;
        bool by_key = signs[i].key != NULL && gguf_find(c->gguf, signs[i].key) != NULL;

        if (!by_type && !by_key && !has_tensor(c, signs[i].tensor))
            continue;
        *key = by_type ? "general.type" : by_key ? signs[i].key : "";
        snprintf(buf, n, "the file is %s; %s", kinds[signs[i].kind].is,
                 kinds[signs[i].kind].hint);
        return true;
    }
    *key = "";
    if (c->n_tensor == 0 && gguf_find(c->gguf, "tokenizer.ggml.tokens") != NULL) {
        snprintf(buf, n, "the file is %s (no token_embd.weight); %s", kinds[VOCABULARY].is,
                 kinds[VOCABULARY].hint);
        return true;
    }
    *key = "general.architecture";
    is = foreign_arch_is(gguf_prefix(c->gguf));
    if (is == NULL)
        return false;
    snprintf(buf, n, "the file is %s (%.40s); open a model that writes text", is,
             gguf_prefix(c->gguf));
    return true;
}
