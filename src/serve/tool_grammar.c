/* See tool_grammar.h. */
#include "config.h"

#include "src/serve/tool_grammar.h"

#include <stdio.h>
#include <string.h>

#include "src/serve/request_field.h"

#define MORE_CALLS 7

static void raw(struct json *out, const char *text)
{
    json_raw(out, text, strlen(text));
}

static bool has(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

enum call_form call_form_of(const char *text, size_t len)
{
    static const struct {
        const char *word;
        enum call_form form;
    } words[] = {
        { "to=functions.", CALLS_UNKNOWN }, /* gpt-oss: its calls begin in the thinking */
        { "<|tool_call>", CALLS_GEMMA },
        { "[ARGS]", CALLS_MISTRAL_ARGS },
        { "[TOOL_CALLS]", CALLS_MISTRAL },
        { "<function=", CALLS_TAGGED },
        { "<tool_call>", CALLS_HERMES },
        { "<|python_tag|>", CALLS_LLAMA },
        { "\"parameters\": dictionary", CALLS_LLAMA },
    };

    for (size_t i = 0; text != NULL && i < sizeof words / sizeof words[0]; i++)
        if (has(text, len, words[i].word))
            return words[i].form;
    return CALLS_UNKNOWN;
}

/* ---- arguments ---- */

static const struct json_node *parameters_of(const struct json_node *tool)
{
    return json_get(json_get(tool, "function"), "parameters");
}

static const char *name_of(const struct json_node *tool)
{
    return json_get(json_get(tool, "function"), "name")->text;
}

/* A JSON object: "args-3 ::= ..." */
static void write_json_arguments(struct json *out, const struct json_node *tool, size_t i)
{
    struct err ignored = ERR_INIT;
    struct json rules, all;
    char name[32];
    int rc = -1;

    snprintf(name, sizeof name, "args-%zu", i);
    json_start(&rules);
    json_start(&all);
    if (parameters_of(tool) != NULL && value_is(json_get(parameters_of(tool), "type"), "object"))
        rc = mw_grammar_schema(&rules, name, parameters_of(tool), &ignored);
    json_raw(&all, rules.used > 0 ? rules.buf : "", rules.used);
    json_print(&all, "root ::= %s\n", name);
    mw_grammar_json(&all);
    if (rc == 0 && !all.failed)
        rc = mw_grammar_check(all.buf, all.used, &ignored);
    if (rc == 0)
        json_raw(out, rules.buf, rules.used);
    else
        json_print(out, "%s ::= json-object\n", name);
    out->failed = out->failed || rules.failed || all.failed;
    json_release(&rules);
    json_release(&all);
}

/* A text that does not contain the mark that ends it: rule k has matched k bytes of the mark. */
static void write_value_text(struct json *out)
{
    static const char mark[] = "</parameter>";
    const size_t n = sizeof mark - 1;

    for (size_t k = 0; k < n; k++) {
        json_print(out, "value-%zu ::= \"\" | [^<%c] value-0", k, k > 0 ? mark[k] : '<');
        if (k > 0)
            json_print(out, " | \"<\" value-1");
        if (k + 1 < n)
            json_print(out, " | \"%c\" value-%zu", mark[k], k + 1);
        raw(out, "\n");
    }
}

static bool must_have(const struct json_node *parameters, const char *key)
{
    const struct json_node *required = json_get(parameters, "required");

    for (const struct json_node *r = required != NULL ? required->first : NULL; r != NULL;
         r = r->next)
        if (value_is(r, key))
            return true;
    return false;
}

/* "<parameter=a>\nVALUE\n</parameter>\n", in the order of the definition. */
static void write_tagged_arguments(struct json *out, const struct json_node *tool, size_t i)
{
    const struct json_node *all = json_get(parameters_of(tool), "properties");

    json_print(out, "args-%zu ::= \"\"", i);
    for (const struct json_node *p = all != NULL ? all->first : NULL; p != NULL; p = p->next) {
        raw(out, " (\"<parameter=\" ");
        mw_grammar_literal(out, p->key, strlen(p->key));
        raw(out, " \">\\n\" value-0 \"\\n</parameter>\\n\")");
        raw(out, must_have(parameters_of(tool), p->key) ? "" : "?");
    }
    raw(out, "\n");
}

/* "{a:1,b:<|"|>text<|"|>}" */
static void write_gemma_arguments(struct json *out, const struct json_node *tool, size_t i)
{
    const struct json_node *all = json_get(parameters_of(tool), "properties");

    json_print(out, "args-%zu ::= \"{\" (key-%zu \":\" gemma (\",\" key-%zu \":\" gemma)*)? "
                    "\"}\"\nkey-%zu ::= ", i, i, i, i);
    if (all == NULL || all->n == 0)
        raw(out, "gemma-key");
    for (const struct json_node *p = all != NULL ? all->first : NULL; p != NULL; p = p->next) {
        raw(out, p != all->first ? " | " : "");
        mw_grammar_literal(out, p->key, strlen(p->key));
    }
    raw(out, "\n");
}

static void write_gemma_values(struct json *out)
{
    raw(out, "gemma ::= <|\"|> .* <|\"|> | json-number | json-other | \"{\" (gemma-key \":\" gemma "
             "(\",\" gemma-key \":\" gemma)*)? \"}\" | \"[\" (gemma (\",\" gemma)*)? \"]\"\n"
             "gemma-key ::= [a-zA-Z0-9_]+\n");
}

/* ---- calls ---- */

/* "call-3 ::= ..." between the marks of the form. */
static void write_call(struct json *out, enum call_form form, const struct json_node *tool,
                       size_t i)
{
    const char *name = name_of(tool), *key = form == CALLS_LLAMA ? "parameters" : "arguments";
    struct json text;

    json_print(out, "call-%zu ::= ", i);
    json_start(&text);
    switch (form) {
    case CALLS_TAGGED:
        raw(&text, "<function=");
        raw(&text, name);
        raw(&text, ">\n");
        mw_grammar_literal(out, text.buf != NULL ? text.buf : "", text.used);
        json_print(out, " args-%zu \"</function>\"\n", i);
        break;
    case CALLS_GEMMA:
        raw(out, "\"call:\" ");
        mw_grammar_literal(out, name, strlen(name));
        json_print(out, " args-%zu\n", i);
        break;
    case CALLS_MISTRAL_ARGS:
        mw_grammar_literal(out, name, strlen(name));
        json_print(out, " <\"[ARGS]\"> args-%zu\n", i);
        break;
    case CALLS_UNKNOWN:
    case CALLS_HERMES:
    case CALLS_LLAMA:
    case CALLS_MISTRAL:
        raw(&text, "{\"name\": ");
        json_string(&text, NULL, name);
        json_print(&text, ", \"%s\": ", key);
        mw_grammar_literal(out, text.buf != NULL ? text.buf : "", text.used);
        json_print(out, " args-%zu \"}\"\n", i);
        break;
    }
    out->failed = out->failed || text.failed;
    json_release(&text);
}

static void write_root(struct json *out, enum call_form form, unsigned more)
{
    static const struct {
        const char *open, *between, *close; /* of all calls */
        const char *before, *after;         /* of each of them */
    } marks[] = {
        [CALLS_HERMES] = { "", "\"\\n\"", "", "<tool_call> \"\\n\"", "\"\\n\" </tool_call>" },
        [CALLS_TAGGED] = { "", "\"\\n\"", "", "<tool_call> \"\\n\"", "\"\\n\" </tool_call>" },
        [CALLS_MISTRAL] = { "<\"[TOOL_CALLS]\"> \"[\"", "\", \"", "\"]\"", "", "" },
        [CALLS_MISTRAL_ARGS] = { "", "", "", "<\"[TOOL_CALLS]\">", "" },
        [CALLS_GEMMA] = { "", "", "", "<|tool_call>", "<tool_call|>" },
        [CALLS_LLAMA] = { "", "", "", "", "" },
    };

    json_print(out, "one ::= %s call %s\n", marks[form].before, marks[form].after);
    json_print(out, "root ::= %s one (%s one){0,%u} %s\n", marks[form].open, marks[form].between,
               form == CALLS_LLAMA ? 0 : more, marks[form].close);
}

int tool_grammar(struct json *out, enum call_form form, const struct json_node *tools,
                 const char *only, bool one, struct err *e)
{
    size_t i = 0, n = 0;

    if (form == CALLS_UNKNOWN)
        return err_set(e, ERR_UNSUPPORTED,
                       "only \"none\" and \"auto\" are supported: calls cannot be forced in the "
                       "form of this model's chat template");
    write_root(out, form, only != NULL || one ? 0 : MORE_CALLS);
    raw(out, "call ::= ");
    for (const struct json_node *t = tools->first; t != NULL; t = t->next, i++)
        if (only == NULL || strcmp(only, name_of(t)) == 0)
            json_print(out, "%scall-%zu", n++ > 0 ? " | " : "", i);
    raw(out, "\n");
    if (n == 0)
        return err_set(e, ERR_ARGUMENT, "there is no tool \"%.100s\"", only != NULL ? only : "");
    i = 0;
    for (const struct json_node *t = tools->first; t != NULL; t = t->next, i++) {
        if (only != NULL && strcmp(only, name_of(t)) != 0)
            continue;
        write_call(out, form, t, i);
        if (form == CALLS_TAGGED)
            write_tagged_arguments(out, t, i);
        else if (form == CALLS_GEMMA)
            write_gemma_arguments(out, t, i);
        else
            write_json_arguments(out, t, i);
    }
    if (form == CALLS_TAGGED)
        write_value_text(out);
    if (form == CALLS_GEMMA)
        write_gemma_values(out);
    mw_grammar_json(out);
    return out->failed ? err_memory(e, "a grammar") : 0;
}
