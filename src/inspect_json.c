/* The JSON of memwall inspect; names are those of memwall-inspect(1). */
#include "config.h"

#include <stdio.h>

#include "src/inspect_print.h"
#include "src/json_out.h"

/* "key":value, with a comma before all but the first member. */
static void member(FILE *to, bool *first, const char *key)
{
    fprintf(to, "%s\"%s\":", *first ? "" : ",", key);
    *first = false;
}

static void number(FILE *to, bool *first, const char *key, uint64_t v)
{
    member(to, first, key);
    fprintf(to, "%llu", (unsigned long long)v);
}

static void text_member(FILE *to, bool *first, const char *key, const char *v)
{
    member(to, first, key);
    json_out_string(to, v);
}

static void sums(FILE *to, bool *first, const struct summary *s)
{
    const struct {
        const char *key;
        uint64_t v;
    } rows[] = {
        { "n_file", s->n_file },
        { "file_bytes", s->file_bytes },
        { "n_tensor", s->n_tensor },
        { "n_layer", s->n_layer },
        { "n_embd", s->n_embd },
        { "n_vocab", s->n_vocab },
        { "n_ctx_train", s->n_ctx_train },
        { "n_swa", s->n_swa },
        { "n_expert", s->n_expert },
        { "n_expert_used", s->n_expert_used },
        { "n_param", s->n_param },
        { "n_param_active", s->n_param_active },
        { "n_param_embd", s->n_param_embd },
        { "hot_bytes", s->hot_bytes },
        { "head_bytes", s->head_bytes },
        { "resident_bytes", s->resident_bytes },
        { "lookup_row_bytes", s->lookup_row_bytes },
        { "kv_global_values", s->kv_global_values },
        { "kv_sliding_values", s->kv_sliding_values },
        { "n_unread", s->n_unread },
        { "unread_bytes", s->unread_bytes },
        { "n_other", s->n_other },
        { "other_bytes", s->other_bytes },
        { "n_unknown", s->n_unknown },
        { "unknown_bytes", s->unknown_bytes },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        number(to, first, rows[i].key, rows[i].v);
}

static void types(FILE *to, const struct summary *s)
{
    for (uint32_t i = 0; i < s->n_type; i++) {
        bool first = true;

        fputs(i > 0 ? ",{" : "{", to);
        text_member(to, &first, "name", s->types[i].name);
        number(to, &first, "n_tensor", s->types[i].n_tensor);
        number(to, &first, "bytes", s->types[i].bytes);
        number(to, &first, "n_param", s->types[i].n_param);
        fputc('}', to);
    }
}

static void tables(FILE *to, const struct summary *s)
{
    for (uint32_t i = 0; i < s->n_table; i++) {
        const struct summary_table *t = &s->tables[i];
        bool first = true;

        fputs(i > 0 ? ",{" : "{", to);
        text_member(to, &first, "name", t->name);
        text_member(to, &first, "type", t->type);
        number(to, &first, "bytes", t->bytes);
        number(to, &first, "row_bytes", t->row_bytes);
        member(to, &first, "is_head");
        fputs(t->is_head ? "true}" : "false}", to);
    }
}

/* Of a model that memwall does not run: the sizes that its keys state. */
static void foreign_sizes(FILE *to, bool *first, const struct summary *s)
{
    number(to, first, "n_head", s->n_head);
    number(to, first, "n_head_kv", s->n_head_kv);
    number(to, first, "n_ff", s->n_ff);
}

static void foreign_layers(FILE *to, const struct summary *s)
{
    for (uint32_t i = 0; i < s->n_layer; i++) {
        bool first = true;

        fputs(i > 0 ? ",{" : "{", to);
        number(to, &first, "n_param", s->layers[i].n_param);
        number(to, &first, "bytes", s->layers[i].bytes);
        fputc('}', to);
    }
}

static void layers(FILE *to, const struct summary *s)
{
    for (uint32_t i = 0; i < s->n_layer; i++) {
        const struct summary_layer *y = &s->layers[i];
        bool first = true;

        fputs(i > 0 ? ",{" : "{", to);
        text_member(to, &first, "kind", y->is_sliding ? "sliding" : "global");
        number(to, &first, "n_head", y->n_head);
        number(to, &first, "n_head_kv", y->n_head_kv);
        number(to, &first, "head_dim_k", y->head_dim_k);
        number(to, &first, "head_dim_v", y->head_dim_v);
        number(to, &first, "n_ff", y->n_ff);
        number(to, &first, "n_param", y->n_param);
        number(to, &first, "bytes", y->bytes);
        number(to, &first, "hot_bytes", y->hot_bytes);
        number(to, &first, "kv_values", y->kv_values);
        number(to, &first, "kv_from", (uint64_t)y->kv_from);
        fputc('}', to);
    }
}

static void tensors(FILE *to, const struct mw_inspect *i)
{
    struct summary_tensor t;

    for (uint32_t n = 0; mw_inspect_tensor(i, n, &t); n++) {
        bool first = true;

        fputs(n > 0 ? ",{" : "{", to);
        text_member(to, &first, "name", t.name);
        text_member(to, &first, "type", t.type);
        member(to, &first, "shape");
        for (uint32_t k = 0; k < t.n_dims; k++)
            fprintf(to, "%s%llu", k > 0 ? "," : "[", (unsigned long long)t.ne[k]);
        fputc(']', to);
        text_member(to, &first, "file", t.file);
        number(to, &first, "offset", t.offset);
        number(to, &first, "bytes", t.bytes);
        text_member(to, &first, "use", summary_use_name(t.use));
        member(to, &first, "layer");
        if (t.layer >= 0)
            fprintf(to, "%d}", t.layer);
        else
            fputs("null}", to);
    }
}

void inspect_print_json(FILE *to, const struct mw_inspect *i, const struct mw_text_info *text,
                        bool with_tensors)
{
    const struct summary *s = mw_inspect_summary(i);
    const struct err *problem;
    bool first = true;
    char why[600];

    fputc('{', to);
    text_member(to, &first, "name", s->name);
    text_member(to, &first, "arch", s->arch);
    text_member(to, &first, "form", s->is_snapshot ? "snapshot" : "gguf");
    problem = mw_inspect_problem(i);
    member(to, &first, "runs");
    fputs(problem == NULL ? "true" : "false", to);
    if (problem != NULL) {
        err_text(problem, why, sizeof why);
        text_member(to, &first, "problem", why);
    }
    sums(to, &first, s);
    if (s->is_foreign)
        foreign_sizes(to, &first, s);
    if (s->n_unknown_key > 0)
        text_member(to, &first, "unknown_keys", s->unknown_keys);
    if (text != NULL) {
        text_member(to, &first, "tokenizer", text->kind);
        number(to, &first, "n_token", text->n_token);
        number(to, &first, "n_merge", text->n_merge);
        text_member(to, &first, "chat_format", text->chat_format);
        text_member(to, &first, "chat_format_choice", text->chat_choice);
    }
    member(to, &first, "types");
    fputc('[', to);
    types(to, s);
    fputs("],\"tables\":[", to);
    tables(to, s);
    fputs("],\"layers\":[", to);
    if (s->is_foreign)
        foreign_layers(to, s);
    else
        layers(to, s);
    fputc(']', to);
    if (with_tensors) {
        fputs(",\"tensors\":[", to);
        tensors(to, i);
        fputc(']', to);
    }
    fputs("}\n", to);
}
