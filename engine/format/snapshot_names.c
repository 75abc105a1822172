/*
 * Translates tensor names of snapshots to canonical ones (those of GGUF) and back.  Both are in
 * the table of tensors.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/catalogue_build.h"
#include "engine/format/draft_head.h"
#include "engine/format/mixture.h"
#include "engine/format/snapshot.h"
#include "engine/format/tensor_table.h"

/* Beginnings of names, in the order in which they are tried. */
static const char *const prefixes[] = {
    "model.language_model.",
    "language_model.model.",
    "language_model.",
    "model.",
    "backbone.",
    "",
};

const char *snapshot_inner_name(const char *name)
{
    size_t i = 0;

    while (strncmp(name, prefixes[i], strlen(prefixes[i])) != 0)
        i++;
    return name + strlen(prefixes[i]);
}

/* Names of the parts of a mixture.  The table of tensors has those of EXPERTS_BESIDE. */
static const struct {
    enum expert_rule rule;
    enum tensor_id id;
    const char *name;
} expert_names[] = {
    { EXPERTS_MIXTRAL, T_ROUTER, "block_sparse_moe.gate.weight" },
    { EXPERTS_QWEN, T_ROUTER, "mlp.gate.weight" },
    { EXPERTS_QWEN, T_EXPERTS_GATE_UP, "mlp.experts.gate_up_proj" },
    { EXPERTS_QWEN, T_EXPERTS_DOWN, "mlp.experts.down_proj" },
    { EXPERTS_QWEN_SHARED, T_ROUTER, "mlp.gate.weight" },
    { EXPERTS_QWEN_SHARED, T_EXPERTS_GATE_UP, "mlp.experts.gate_up_proj" },
    { EXPERTS_QWEN_SHARED, T_EXPERTS_DOWN, "mlp.experts.down_proj" },
    { EXPERTS_GPT_OSS, T_ROUTER, "mlp.router.weight" },
    { EXPERTS_GPT_OSS, T_ROUTER_BIAS, "mlp.router.bias" },
    { EXPERTS_GPT_OSS, T_EXPERTS_GATE_UP, "mlp.experts.gate_up_proj" },
    { EXPERTS_GPT_OSS, T_EXPERTS_DOWN, "mlp.experts.down_proj" },
    { EXPERTS_GPT_OSS, T_EXPERTS_GATE_UP_BIAS, "mlp.experts.gate_up_proj_bias" },
    { EXPERTS_GPT_OSS, T_EXPERTS_DOWN_BIAS, "mlp.experts.down_proj_bias" },
};

/* Experts that are tensors of their own: prefix, number, and the word for gate, up or down. */
static const struct {
    enum expert_rule rule;
    const char *prefix, *words[3];
} piece_names[] = {
    { EXPERTS_MIXTRAL, "block_sparse_moe.experts.", { "w1.weight", "w3.weight", "w2.weight" } },
    { EXPERTS_QWEN,
      "mlp.experts.",
      { "gate_proj.weight", "up_proj.weight", "down_proj.weight" } },
    { EXPERTS_QWEN_SHARED,
      "mlp.experts.",
      { "gate_proj.weight", "up_proj.weight", "down_proj.weight" } },
};

/* Pieces of the table of n-grams, before their number. */
static const char table_piece[] = "ple.ple_embedding.ngram_embedding.shard_";

/* The two tensors of MXFP4 weights. */
static const struct {
    const char *snapshot, *suffix;
} mxfp4_names[] = {
    { "mlp.experts.gate_up_proj_blocks", "ffn_gate_up_exps" MXFP4_VALUES },
    { "mlp.experts.gate_up_proj_scales", "ffn_gate_up_exps" MXFP4_SCALES },
    { "mlp.experts.down_proj_blocks", "ffn_down_exps" MXFP4_VALUES },
    { "mlp.experts.down_proj_scales", "ffn_down_exps" MXFP4_SCALES },
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

#define NAME_BYTES 128

/* Write the name of a part of a mixture: a prefix and a word.  Returns NULL if it has none. */
static const char *routed_name(const struct mixture *m, enum tensor_id id, char *buf)
{
    static const struct {
        enum tensor_id id;
        int word;
        bool is_shared,
            is_fused; /* is_fused: of mixtures that have gate and up in one tensor */
    } parts[] = {
        { T_SHARED_GATE_UP, 0, true, true }, { T_SHARED_GATE, 0, true, false },
        { T_SHARED_UP, 1, true, false },     { T_SHARED_DOWN, 2, true, false },
        { T_SHARED_DOWN, 2, true, true },    { T_EXPERTS_GATE_UP, 0, false, true },
        { T_EXPERTS_DOWN, 2, false, true },
    };

    switch (id) {
    case T_ROUTER: return m->router;
    case T_CHOICE_BIAS: return m->bias;
    case T_SHARED_ROUTER: return m->shared_gate;
    default: break;
    }
    for (size_t i = 0; i < COUNT(parts); i++) {
        const char *prefix = parts[i].is_shared ? m->shared : m->experts;
        const char *word = (parts[i].is_shared ? m->shared_words : m->words)[parts[i].word];

        if (parts[i].id != id || parts[i].is_fused != m->is_fused || prefix == NULL)
            continue;
        snprintf(buf, NAME_BYTES, "%s%s", prefix, word);
        return buf;
    }
    return NULL;
}

/* Returns the name of a row in snapshots of architecture a, which may be in buf; NULL if they
 * do not have it. */
static const char *name_in(const struct arch *a, enum tensor_id id, char *buf)
{
    const struct tensor_spec *s = tensor_spec(id);
    enum expert_rule rule = arch_experts(a, false);

    if (!arch_has(a, s->traits) || (a->traits & s->unless) != 0)
        return NULL;
    for (const struct snapshot_name *n = a->names; n != NULL && n->name != NULL; n++)
        if (n->id == id)
            return n->name;
    if (rule == EXPERTS_ROUTED && (s->when & (FACT_HAS_EXPERTS | FACT_SHARED_EXPERT)) != 0)
        return routed_name(a->mixture, id, buf);
    for (size_t i = 0; i < COUNT(expert_names); i++)
        if (expert_names[i].rule == rule && expert_names[i].id == id)
            return expert_names[i].name;
    if ((s->when & FACT_HAS_EXPERTS) != 0 && rule != EXPERTS_BESIDE)
        return NULL;
    return s->plain != NULL && !arch_has(a, TRAIT_POST_NORMS) ? s->plain : s->snapshot;
}

/* Parses "layers.N." and returns the rest of the name, or NULL. */
static const char *skip_layer(const char *name, uint32_t *layer)
{
    const char *p = name + 7;

    *layer = 0;
    if (strncmp(name, "layers.", 7) != 0 || *p < '0' || *p > '9' ||
        (p[0] == '0' && p[1] != '.'))
        return NULL;
    for (; *p >= '0' && *p <= '9' && *layer < MAX_LAYER; p++)
        *layer = *layer * 10 + (uint32_t)(*p - '0');
    return *layer < MAX_LAYER && *p == '.' ? p + 1 : NULL;
}

/* Translates the name of a tensor of one expert: prefix, number, and a word. */
static bool one_expert(const char *suffix, const char *prefix, const char *const *words,
                       uint32_t layer, char *buf, size_t n)
{
    size_t len = strlen(prefix);
    unsigned long expert;
    char *end;

    if (strncmp(suffix, prefix, len) != 0 || suffix[len] < '0' || suffix[len] > '9')
        return false;
    expert = strtoul(suffix + len, &end, 10);
    for (int kind = 0; *end == '.' && kind < 3 && expert < UINT32_MAX; kind++)
        if (words[kind] != NULL && strcmp(end + 1, words[kind]) == 0) {
            tensor_piece_name(kind, layer, (uint32_t)expert, buf, n);
            return true;
        }
    return false;
}

/* Translates the name of a piece of a joined tensor. */
static bool translate_piece(const struct arch *a, const char *suffix, uint32_t layer, char *buf,
                            size_t n)
{
    enum expert_rule rule = arch_experts(a, false);

    for (size_t i = 0; rule == EXPERTS_GPT_OSS && i < COUNT(mxfp4_names); i++)
        if (strcmp(suffix, mxfp4_names[i].snapshot) == 0) {
            snprintf(buf, n, "blk.%u.%s", layer, mxfp4_names[i].suffix);
            return true;
        }
    if (arch_has(a, TRAIT_NGRAMS) && strncmp(suffix, table_piece, strlen(table_piece)) == 0) {
        char *end;
        unsigned long piece = strtoul(suffix + strlen(table_piece), &end, 10);

        if (strcmp(end, ".weight") != 0 || piece >= UINT32_MAX)
            return false;
        tensor_piece_name(PIECE_TABLE, 0, (uint32_t)piece, buf, n);
        return true;
    }
    if (rule == EXPERTS_ROUTED && !a->mixture->is_fused)
        return one_expert(suffix, a->mixture->experts, a->mixture->words, layer, buf, n);
    for (size_t i = 0; i < COUNT(piece_names); i++)
        if (piece_names[i].rule == rule &&
            one_expert(suffix, piece_names[i].prefix, piece_names[i].words, layer, buf, n))
            return true;
    return false;
}

/* Translates a name without its prefix. */
static bool translate(const struct arch *a, const char *name, char *buf, size_t n)
{
    uint32_t layer;
    const char *suffix = skip_layer(name, &layer);
    char known_name[NAME_BYTES];

    for (int i = suffix != NULL ? T_LAYER : 0; i < (suffix != NULL ? T_COUNT : T_OUTPUT); i++) {
        const char *known = name_in(a, (enum tensor_id)i, known_name);

        if (known == NULL || strcmp(known, suffix != NULL ? suffix : name) != 0)
            continue;
        tensor_name(a, (enum tensor_id)i, layer, buf, n);
        return true;
    }
    /* Another name of a tensor that has two. */
    for (const struct snapshot_name *o = a->names; o != NULL && o->name != NULL; o++)
        if (strcmp(o->name, suffix != NULL ? suffix : name) == 0 &&
            arch_has(a, tensor_spec(o->id)->traits) && (o->id >= T_LAYER) == (suffix != NULL)) {
            tensor_name(a, o->id, layer, buf, n);
            return true;
        }
    return suffix != NULL && translate_piece(a, suffix, layer, buf, n);
}

bool snapshot_to_canonical(const struct arch *a, const char *name, char *buf, size_t n,
                           char *prefix)
{
    const char *head = tensor_spec(T_OUTPUT)->snapshot;

    if (strcmp(name, head) == 0 ||
        (strncmp(name, "language_model.", 15) == 0 && strcmp(name + 15, head) == 0)) {
        tensor_name(a, T_OUTPUT, 0, buf, n);
        return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t len = strlen(prefixes[i]);

        if (strncmp(name, prefixes[i], len) == 0 && translate(a, name + len, buf, n)) {
            snprintf(prefix, 40, "%s", prefixes[i]);
            return true;
        }
    }
    return false;
}

void snapshot_from_canonical(const struct arch *a, const char *prefix, const char *canonical,
                             char *buf, size_t n)
{
    uint32_t layer;
    enum tensor_id id = tensor_id_of(a, canonical, 0, &layer);
    char in_buf[NAME_BYTES];
    const char *name = id != T_COUNT ? name_in(a, id, in_buf) : NULL;

    if (name == NULL)
        snprintf(buf, n, "%s", canonical);
    else if (id == T_OUTPUT)
        snprintf(buf, n, "%s", name);
    else if (id < T_LAYER)
        snprintf(buf, n, "%s%s", prefix, name);
    else
        snprintf(buf, n, "%slayers.%u.%s", prefix, layer, name);
}

void catalogue_spell(const struct catalogue *c, const char *canonical, char *buf, size_t n)
{
    if (c->kind == CATALOGUE_SNAPSHOT)
        snapshot_from_canonical(c->hparams.arch, c->index->prefix, canonical, buf, n);
    else if (c->hparams.arch != NULL && arch_has(c->hparams.arch, TRAIT_NEXTN))
        draft_head_spell(c, canonical, buf, n);
    else
        snprintf(buf, n, "%s", canonical);
}
