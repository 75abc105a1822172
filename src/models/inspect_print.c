/* See inspect_print.h.  Tables are 80 columns wide.  Sizes use powers of 1024; counts of
 * parameters use powers of 1000 like model cards. */
#include "config.h"

#include "src/models/inspect_print.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "engine/base/visible.h"

static void print_text(FILE *to, const struct mw_text_info *text, const struct err *no_text)
{
    if (text == NULL) {
        fprintf(to, "  tokenizer     not read: %s\n", no_text->what);
        return;
    }
    fprintf(to, "  tokenizer     %s, %u tokens", text->kind, text->n_token);
    if (text->n_merge > 0)
        fprintf(to, ", %u merges", text->n_merge);
    fprintf(to, "\n");
    if (text->notice[0] != '\0')
        fprintf(to, "  notice        %s\n", text->notice);
    fprintf(to, "  chat format   %s\n", text->chat_choice);
}

static void print_experts_and_context(FILE *to, const struct summary *s)
{
    char ctx[24];

    if (s->n_expert > 0)
        fprintf(to, "  experts       %u, %u used per token\n", s->n_expert, s->n_expert_used);
    if (s->n_stream > 1)
        fprintf(to, "  streams       %u residual streams, mixed before each part of a layer\n",
                s->n_stream);
    if (s->index_block > 0)
        fprintf(to,
                "  attention     to %u positions, which index keys choose in blocks of %u\n",
                s->index_tokens, s->index_block);
    if (s->latent_values > 0)
        fprintf(to,
                "  latent keys   %u values for a position in a layer, which hold its value, too\n",
                s->latent_values);
    if (s->n_recurrent > 0)
        fprintf(to, "  states        %u of %u layers keep one for any context: %s\n",
                s->n_recurrent, s->n_layer, s->recurrence);
    if (s->n_ngram > 0)
        fprintf(to, "  n-grams       of up to %u tokens, from a table that layer %u adds\n",
                s->n_ngram, s->ngram_layer);
    fprintf(to, "  context       %s tokens", numbers_count(ctx, sizeof ctx, s->n_ctx_train));
    if (s->n_swa > 0)
        fprintf(to, ", window of sliding layers %u", s->n_swa);
    fprintf(to, "\n");
}

/* Print the values that the file leaves out, as many in a line as fit 80 columns. */
static void print_defaults(FILE *to, const struct summary *s)
{
    int used = 0;

    for (uint32_t i = 0; i < s->n_default; i++) {
        char text[80];
        int n = snprintf(text, sizeof text, "%s %.10g%s", s->defaults[i].name,
                         s->defaults[i].value, i + 1 < s->n_default ? "," : "");

        if (i > 0 && used + 1 + n > 80)
            fprintf(to, "\n");
        if (i == 0 || used + 1 + n > 80)
            used = fprintf(to, "  %-13s", i == 0 ? "defaults" : "");
        used += fprintf(to, " %s", text);
    }
    if (s->n_default > 0)
        fprintf(to, "\n");
}

/* Name the draft head of the model. */
static void print_drafts(FILE *to, const struct inspect_head *head)
{
    const struct mw_head_info *h = &head->info;
    char a[16];

    if (head->has_head)
        fprintf(to, "  draft head    %s%s, %u layer%s; a draft uses %s\n",
                h->is_in_model ? "in the file" : "beside it: ", h->is_in_model ? "" : h->file,
                h->n_layer, h->n_layer == 1 ? "" : "s",
                units_size(a, sizeof a, h->hot_bytes));
    else if (head->why_not[0] != '\0')
        fprintf(to, "  draft head    not used: %s\n", head->why_not);
}

static void print_head(FILE *to, const struct summary *s, const struct mw_text_info *text,
                       const struct err *no_text, const struct inspect_head *head)
{
    char a[16], b[16], c[16], read[40] = "";

    if (s->unread_params > 0)
        snprintf(read, sizeof read, ", %s of them read",
                 numbers_parameters(a, sizeof a, s->n_param));
    fprintf(to, "%s\n", s->name[0] != '\0' ? s->name : s->arch);
    fprintf(to, "  architecture  %s, %u layers, width %u%s\n", s->arch, s->n_layer, s->n_embd,
            s->is_snapshot ? ", a snapshot" : "");
    fprintf(to, "  files         %u, %s\n", s->n_file, units_size(a, sizeof a, s->file_bytes));
    fprintf(to, "  parameters    %s%s, %s used per token; embeddings %s\n",
            numbers_parameters(a, sizeof a, s->n_param + s->unread_params), read,
            numbers_parameters(b, sizeof b, s->n_param_active),
            numbers_parameters(c, sizeof c, s->n_param_embd));
    print_experts_and_context(to, s);
    print_drafts(to, head);
    print_text(to, text, no_text);
    print_defaults(to, s);
    if (s->n_unknown_key > 0)
        fprintf(to, "  unknown keys  %u, not used: %s\n", s->n_unknown_key, s->unknown_keys);
}

/* The same for a model that memwall cannot run, from its keys. */
static void print_foreign(FILE *to, const struct summary *s, const struct mw_text_info *text,
                          const struct err *no_text)
{
    char a[16];

    fprintf(to, "%s\n", s->name[0] != '\0' ? s->name : s->arch);
    fprintf(to, "  architecture  %s, which memwall cannot run%s\n", s->arch,
            s->is_snapshot ? "; a snapshot" : "");
    fprintf(to, "  files         %u, %s\n", s->n_file, units_size(a, sizeof a, s->file_bytes));
    fprintf(to, "  parameters    %s in %u tensors\n",
            numbers_parameters(a, sizeof a, s->n_param), s->n_tensor);
    fprintf(to, "  layers        %u, width %u", s->n_layer, s->n_embd);
    if (s->n_ff > 0)
        fprintf(to, ", feed-forward %u", s->n_ff);
    if (s->n_head > 0)
        fprintf(to, ", %u heads", s->n_head);
    if (s->n_head_kv > 0)
        fprintf(to, ", %u of keys and values", s->n_head_kv);
    fprintf(to, "\n");
    print_experts_and_context(to, s);
    print_text(to, text, no_text);
}

static void print_foreign_layers(FILE *to, const struct summary *s)
{
    char a[16], b[16];

    fprintf(to, "\nlayer       bytes  parameters\n");
    for (uint32_t i = 0; i < s->n_layer; i++)
        fprintf(to, "%5u  %10s  %10s\n", i, units_size(a, sizeof a, s->layers[i].bytes),
                numbers_parameters(b, sizeof b, s->layers[i].n_param));
}

static void print_sum(FILE *to, const char *name, uint64_t bytes, const char *what)
{
    char a[16];

    fprintf(to, "  %-9s %10s  %s\n", name, units_size(a, sizeof a, bytes), what);
}

static void print_sums(FILE *to, const struct summary *s)
{
    char line[120], a[16];

    fprintf(to, "\nweights\n");
    snprintf(line, sizeof line, "used by every token, including the output head of %s",
             units_size(a, sizeof a, s->head_bytes));
    print_sum(to, "hot", s->hot_bytes, line);
    print_sum(to, "resident", s->resident_bytes, "norms, scales and biases");
    if (s->n_unread > 0) {
        snprintf(line, sizeof line, "never read: %u tensors that are replaced or unused",
                 s->n_unread);
        print_sum(to, "unread", s->unread_bytes, line);
    }
    if (s->n_other > 0) {
        snprintf(line, sizeof line, "%u tensors outside the text model, not in any sum",
                 s->n_other);
        print_sum(to, "other", s->other_bytes, line);
    }
    if (s->n_unknown > 0) {
        snprintf(line, sizeof line, "%u tensors that memwall does not know", s->n_unknown);
        print_sum(to, "unknown", s->unknown_bytes, line);
    }
}

static void print_tables(FILE *to, const struct summary *s)
{
    char a[16], b[16];

    fprintf(to, "\nlookup tables                 type          bytes   per row\n");
    for (uint32_t i = 0; i < s->n_table; i++) {
        const struct summary_table *t = &s->tables[i];

        fprintf(to, "  %-27s %-8s %10s %9s%s", t->name, t->type,
                units_size(a, sizeof a, t->bytes), units_size(b, sizeof b, t->row_bytes),
                t->is_head ? "  also the output head" : "");
        if (t->n_row > 1)
            fprintf(to, "  %u rows per token", t->n_row);
        fprintf(to, "\n");
    }
}

static void print_types(FILE *to, const struct summary *s)
{
    uint64_t sum = 0;
    char a[16], b[16];

    for (uint32_t i = 0; i < s->n_type; i++)
        sum += s->types[i].bytes;
    fprintf(to, "\ntype      tensors       bytes   share  parameters\n");
    for (uint32_t i = 0; i < s->n_type; i++) {
        const struct summary_type *t = &s->types[i];

        fprintf(to, "  %-8s %6u  %10s %6.1f%%  %10s\n", t->name, t->n_tensor,
                units_size(a, sizeof a, t->bytes),
                sum > 0 ? 100 * (double)t->bytes / (double)sum : 0,
                numbers_parameters(b, sizeof b, t->n_param));
    }
}

static void print_layers(FILE *to, const struct summary *s)
{
    char a[16], b[16], kv[32];

    fprintf(to, "\nlayer  attention  heads  kv heads  size     ff       bytes%s\n",
            s->n_expert > 0 ? "   per token  KV, f16" : "   KV per token, f16");
    for (uint32_t i = 0; i < s->n_layer; i++) {
        const struct summary_layer *y = &s->layers[i];

        if (y->kv_values > 0)
            snprintf(kv, sizeof kv, "%10s", units_size(b, sizeof b, 2 * y->kv_values));
        else
            snprintf(kv, sizeof kv, "%10s", "");
        fprintf(to, "%5u  %-9s %6u %9u %5u %6u  %10s", i, summary_layer_kind(y), y->n_head,
                y->n_head_kv, y->head_dim_k, y->n_ff, units_size(a, sizeof a, y->bytes));
        if (s->n_expert > 0) /* bytes that one token reads */
            fprintf(to, "  %10s", units_size(a, sizeof a, y->hot_bytes));
        fprintf(to, " %s", kv);
        if (y->kv_values == 0 && y->attends)
            fprintf(to, "shared with %d", y->kv_from);
        fprintf(to, "\n");
    }
    fprintf(to, "\nKV per token, f16\n");
    print_sum(to, "global", 2 * s->kv_global_values, "grows with the context");
    if (s->kv_sliding_values > 0)
        fprintf(to, "  %-9s %10s  up to the window of %u tokens\n", "sliding",
                units_size(a, sizeof a, 2 * s->kv_sliding_values), s->n_swa);
    if (s->index_block > 0)
        fprintf(to, "  %-9s %10s  one key for %u positions, grows with the context\n", "index",
                units_size(a, sizeof a, 2 * s->index_values / s->index_block), s->index_block);
    if (s->entry_values > 0)
        print_sum(to, "entries", 2 * s->entry_values, "grows with the context");
    if (s->recurrent_values > 0)
        fprintf(to, "  %-9s %10s  in all, for any context\n", "recurrent",
                units_size(a, sizeof a, sizeof(float) * s->recurrent_values));
}

void inspect_print(FILE *to, const struct summary *s, const struct mw_text_info *text,
                   const struct err *no_text, const struct inspect_head *head)
{
    if (s->is_foreign) {
        print_foreign(to, s, text, no_text);
        print_types(to, s);
        print_foreign_layers(to, s);
        return;
    }
    print_head(to, s, text, no_text, head);
    print_sums(to, s);
    print_tables(to, s);
    print_types(to, s);
    print_layers(to, s);
}

static void shape_text(char *buf, size_t n, const struct summary_tensor *t)
{
    size_t used = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; i < t->n_dims && used < n; i++) {
        int more = snprintf(buf + used, n - used, "%s%llu", i > 0 ? " x " : "",
                            (unsigned long long)t->ne[i]);

        used += more > 0 ? (size_t)more : 0;
    }
}

void inspect_print_tensors(FILE *to, const struct mw_inspect *i)
{
    bool many = mw_inspect_summary(i)->n_file > 1;
    struct summary_tensor t;
    char name[128];
    int width = 4;

    for (uint32_t n = 0; mw_inspect_tensor(i, n, &t); n++) {
        int used = (int)visible_line(name, sizeof name, t.name, strlen(t.name));

        width = used > width ? used : width;
    }
    width = width < 72 ? width : 72;
    fprintf(to, "%-*s  %-6s %-22s %12s    %-12s %-*s%s\n", width, "name", "type", "shape",
            "bytes", "offset", many ? 8 : 0, "use", many ? "  file" : "");
    for (uint32_t n = 0; mw_inspect_tensor(i, n, &t); n++) {
        const char *file = strrchr(t.file, '/') != NULL ? strrchr(t.file, '/') + 1 : t.file;
        char shape[100], base[256];

        shape_text(shape, sizeof shape, &t);
        visible_line(name, sizeof name, t.name, strlen(t.name));
        visible_line(base, sizeof base, file, strlen(file));
        fprintf(to, "%-*s  %-6s %-22s %12llu at %-12llu %-*s%s%s\n", width, name, t.type, shape,
                (unsigned long long)t.bytes, (unsigned long long)t.offset, many ? 8 : 0,
                summary_use_name(t.use), many ? "  " : "", many ? base : "");
    }
}
