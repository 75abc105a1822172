/* The JSON of memwall inspect; memwall-inspect(1) documents the names. */
#include "config.h"

#include <stdio.h>

#include "engine/base/json_write.h"
#include "src/models/inspect_print.h"

static void sums(struct json *j, const struct summary *s)
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
        { "recurrent_values", s->recurrent_values },
        { "n_stream", s->n_stream },
        { "index_block", s->index_block },
        { "index_tokens", s->index_tokens },
        { "index_values", s->index_values },
        { "entry_values", s->entry_values },
        { "latent_values", s->latent_values },
        { "n_recurrent", s->n_recurrent },
        { "n_ngram", s->n_ngram },
        { "ngram_layer", s->ngram_layer },
        { "n_unread", s->n_unread },
        { "unread_bytes", s->unread_bytes },
        { "n_other", s->n_other },
        { "other_bytes", s->other_bytes },
        { "n_unknown", s->n_unknown },
        { "unknown_bytes", s->unknown_bytes },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        json_u64(j, rows[i].key, rows[i].v);
}

static void types(struct json *j, const struct summary *s)
{
    json_array(j, "types");
    for (uint32_t i = 0; i < s->n_type; i++) {
        json_object(j, NULL);
        json_string(j, "name", s->types[i].name);
        json_u64(j, "n_tensor", s->types[i].n_tensor);
        json_u64(j, "bytes", s->types[i].bytes);
        json_u64(j, "n_param", s->types[i].n_param);
        json_end(j);
    }
    json_end(j);
}

static void tables(struct json *j, const struct summary *s)
{
    json_array(j, "tables");
    for (uint32_t i = 0; i < s->n_table; i++) {
        const struct summary_table *t = &s->tables[i];

        json_object(j, NULL);
        json_string(j, "name", t->name);
        json_string(j, "type", t->type);
        json_u64(j, "bytes", t->bytes);
        json_u64(j, "row_bytes", t->row_bytes);
        json_u64(j, "n_row", t->n_row);
        json_bool(j, "is_head", t->is_head);
        json_end(j);
    }
    json_end(j);
}

/* The sizes in the keys of a model that memwall cannot run. */
static void foreign_sizes(struct json *j, const struct summary *s)
{
    json_u64(j, "n_head", s->n_head);
    json_u64(j, "n_head_kv", s->n_head_kv);
    json_u64(j, "n_ff", s->n_ff);
}

static void foreign_layers(struct json *j, const struct summary *s)
{
    json_array(j, "layers");
    for (uint32_t i = 0; i < s->n_layer; i++) {
        json_object(j, NULL);
        json_u64(j, "n_param", s->layers[i].n_param);
        json_u64(j, "bytes", s->layers[i].bytes);
        json_end(j);
    }
    json_end(j);
}

static void layers(struct json *j, const struct summary *s)
{
    json_array(j, "layers");
    for (uint32_t i = 0; i < s->n_layer; i++) {
        const struct summary_layer *y = &s->layers[i];

        json_object(j, NULL);
        json_string(j, "kind", summary_layer_kind(y));
        json_u64(j, "n_head", y->n_head);
        json_u64(j, "n_head_kv", y->n_head_kv);
        json_u64(j, "head_dim_k", y->head_dim_k);
        json_u64(j, "head_dim_v", y->head_dim_v);
        json_u64(j, "n_ff", y->n_ff);
        json_u64(j, "n_param", y->n_param);
        json_u64(j, "bytes", y->bytes);
        json_u64(j, "hot_bytes", y->hot_bytes);
        json_u64(j, "kv_values", y->kv_values);
        json_u64(j, "kv_from", (uint64_t)y->kv_from);
        json_end(j);
    }
    json_end(j);
}

static void tensors(struct json *j, const struct mw_inspect *i)
{
    struct summary_tensor t;

    json_array(j, "tensors");
    for (uint32_t n = 0; mw_inspect_tensor(i, n, &t); n++) {
        json_object(j, NULL);
        json_string(j, "name", t.name);
        json_string(j, "type", t.type);
        json_array(j, "shape");
        for (uint32_t k = 0; k < t.n_dims; k++)
            json_u64(j, NULL, t.ne[k]);
        json_end(j);
        json_string(j, "file", t.file);
        json_u64(j, "offset", t.offset);
        json_u64(j, "bytes", t.bytes);
        json_string(j, "use", summary_use_name(t.use));
        if (t.layer >= 0)
            json_u64(j, "layer", (uint64_t)t.layer);
        else
            json_null(j, "layer");
        json_end(j);
    }
    json_end(j);
}

/* The values that the file leaves out. */
static void defaults(struct json *j, const struct summary *s)
{
    json_array(j, "defaults");
    for (uint32_t i = 0; i < s->n_default; i++) {
        json_object(j, NULL);
        json_string(j, "name", s->defaults[i].name);
        json_double(j, "value", s->defaults[i].value, 10);
        json_end(j);
    }
    json_end(j);
}

static void vocabulary(struct json *j, const struct mw_text_info *text)
{
    json_string(j, "tokenizer", text->kind);
    json_string(j, "tokenizer_notice", text->notice);
    json_u64(j, "n_token", text->n_token);
    json_u64(j, "n_merge", text->n_merge);
    json_string(j, "chat_format", text->chat_format);
    json_string(j, "chat_format_choice", text->chat_choice);
}

static void draft_head(struct json *j, const struct inspect_head *head)
{
    if (head->why_not[0] != '\0')
        json_string(j, "no_draft_head", head->why_not);
    if (!head->has_head)
        return;
    json_object(j, "draft_head");
    json_string(j, "name", head->info.name);
    json_string(j, "file", head->info.file);
    json_bool(j, "in_model", head->info.is_in_model);
    json_u64(j, "n_layer", head->info.n_layer);
    json_u64(j, "hot_bytes", head->info.hot_bytes);
    json_end(j);
}

void inspect_print_json(FILE *to, const struct mw_inspect *i, const struct mw_text_info *text,
                        const struct inspect_head *head, bool with_tensors)
{
    const struct summary *s = mw_inspect_summary(i);
    const struct err *problem = mw_inspect_problem(i);
    struct json j;
    char why[1024];

    json_start_stream(&j, to);
    json_object(&j, NULL);
    json_string(&j, "name", s->name);
    json_string(&j, "arch", s->arch);
    json_string(&j, "form", s->is_snapshot ? "snapshot" : "gguf");
    json_bool(&j, "runs", problem == NULL);
    if (problem != NULL) {
        err_text(problem, why, sizeof why);
        json_string(&j, "problem", why);
    }
    sums(&j, s);
    if (s->recurrence != NULL)
        json_string(&j, "recurrence", s->recurrence);
    if (s->is_foreign)
        foreign_sizes(&j, s);
    defaults(&j, s);
    if (s->n_unknown_key > 0)
        json_string(&j, "unknown_keys", s->unknown_keys);
    draft_head(&j, head);
    if (text != NULL)
        vocabulary(&j, text);
    types(&j, s);
    tables(&j, s);
    if (s->is_foreign)
        foreign_layers(&j, s);
    else
        layers(&j, s);
    if (with_tensors)
        tensors(&j, i);
    json_end(&j);
    json_line(&j);
}
