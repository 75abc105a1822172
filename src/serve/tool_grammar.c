/* See tool_grammar.h. */
#include "config.h"

#include "src/serve/tool_grammar.h"

#include <stdio.h>
#include <string.h>

#include "src/serve/request_field.h"
#include "src/serve/tool_types.h"

#define MORE_CALLS   7
#define MEMBERS_MOST 1024
#define CHECK_WORK   4096 /* a check clears tables: as much work as this many bytes of a grammar */
#define PARAMETER_END "</parameter>"

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
        { "<arg_key>", CALLS_UNKNOWN },     /* GLM: not JSON between the marks of Hermes */
        { "<seed:tool_call>", CALLS_UNKNOWN },
        { "<minimax:tool_call>", CALLS_UNKNOWN },
        { "<|tool_call_start|>", CALLS_UNKNOWN },
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

static enum mw_notation notation_of(enum call_form form)
{
    return form == CALLS_GEMMA    ? MW_NOTATION_BARE
           : form == CALLS_TAGGED ? MW_NOTATION_TAGGED
                                  : MW_NOTATION_JSON;
}

/* Write the rules "args-3" of a value by its schema, after having checked them.  *work counts for
 * all schemas of a request, because each of them may take nearly as much as is allowed. */
static int write_schema(struct json *out, const char *name, enum mw_notation notation,
                        const struct json_node *schema, const struct json_node *root,
                        uint64_t *work, struct err *e)
{
    struct json rules, all;
    int rc;

    if (out->used > MW_GRAMMAR_BYTES)
        return err_set(e, ERR_UNSUPPORTED, "the grammar of all tools has more than 1 MiB");
    json_start(&rules);
    json_start(&all);
    rc = mw_grammar_schema(&rules, name, notation, schema, root, work, e);
    json_raw(&all, rules.used > 0 ? rules.buf : "", rules.used);
    json_print(&all, "root ::= %s\n", name);
    mw_grammar_values(&all, notation);
    *work += all.used + CHECK_WORK;
    if (rc == 0 && (rules.failed || all.failed))
        rc = err_memory(e, "a grammar");
    if (rc == 0)
        rc = mw_grammar_check(all.buf, all.used, e);
    if (rc == 0)
        json_raw(out, rules.buf, rules.used);
    json_release(&rules);
    json_release(&all);
    return rc;
}

/* Arguments in one value: "args-3 ::= ..." */
static int write_arguments(struct json *out, const struct tool_use *u,
                           const struct json_node *tool, size_t i, uint64_t *work,
                           struct err *e)
{
    const struct json_node *parameters = parameters_of(tool);
    enum mw_notation notation = notation_of(u->form);
    bool is_object = value_is(json_get(parameters, "type"), "object");
    struct err ignored = ERR_INIT;
    char name[32];

    snprintf(name, sizeof name, "args-%zu", i);
    if (is_object && write_schema(out, name, notation, parameters, parameters, work,
                                  u->is_strict[i] == '1' ? e : &ignored) == 0)
        return 0;
    if (u->is_strict[i] == '1')
        return is_object ? -1
                         : err_set(e, ERR_ARGUMENT,
                                   "expected a schema with \"type\": \"object\"");
    json_print(out, "%s ::= %s-object\n", name, mw_notation_prefix(notation));
    return 0;
}

/* The keywords that name parameters, where they are not written by their schema. */
static int check_members(const struct json_node *parameters, struct err *e)
{
    static const struct {
        const char *keyword;
        enum json_kind kind;
        const char *what;
    } lists[] = {
        { "properties", JSON_IS_OBJECT, "an object" },
        { "required", JSON_IS_ARRAY, "a list of names" },
    };

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const struct json_node *n = json_get(parameters, lists[i].keyword);

        if (n != NULL && n->kind != lists[i].kind)
            return err_set(e, ERR_ARGUMENT, "the keyword \"%s\" at # is not %s",
                           lists[i].keyword, lists[i].what);
        if (n != NULL && n->n > MEMBERS_MOST)
            return err_set(e, ERR_UNSUPPORTED, "the keyword \"%s\" at # has more than %d members",
                           lists[i].keyword, MEMBERS_MOST);
    }
    return 0;
}

static bool must_have(const struct json_node *required, const char *key)
{
    for (const struct json_node *r = required != NULL ? required->first : NULL; r != NULL;
         r = r->next)
        if (value_is(r, key))
            return true;
    return false;
}

/* Whether a text that is not in quotes is read as this value. */
static bool can_be_read(const struct json_node *v, bool has_null)
{
    if (v->kind == JSON_IS_NULL)
        return has_null;
    return v->kind == JSON_IS_STRING && !has(v->text, v->len, PARAMETER_END) &&
           (!has_null || !value_is(v, "null"));
}

/* A text that is not in quotes: one of a list, or any. */
static int write_text_value(struct json *out, const struct json_node *p, bool has_null,
                            struct err *e)
{
    static const char *const known[] = { "type", "enum", "const", "title", "description",
                                         "default", "examples", NULL };
    const struct json_node *one = json_member(p, "const"), *list = json_get(p, "enum");
    const char *bar = "";

    if (p->kind == JSON_IS_OBJECT && request_known(p, known, e) != 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "the keyword \"%.60s\" at #/properties/%.60s is not supported in a text of "
                       "this model's form of calls",
                       e->field, p->key);
    if (one == NULL && list == NULL) {
        raw(out, "value-0\n");
        return 0;
    }
    for (const struct json_node *v = one != NULL ? one : list->first; v != NULL;
         v = one != NULL ? NULL : v->next) {
        if (!can_be_read(v, has_null))
            return err_set(e, ERR_UNSUPPORTED,
                           "a value at #/properties/%.60s is not a text that this model's form "
                           "of calls can have",
                           p->key);
        raw(out, bar);
        mw_grammar_literal(out, v->kind == JSON_IS_NULL ? "null" : v->text,
                           v->kind == JSON_IS_NULL ? strlen("null") : v->len);
        bar = " | ";
    }
    raw(out, "\n");
    return bar[0] != '\0' ? 0 : err_set(e, ERR_ARGUMENT, "the list at #/properties/%.60s is empty",
                                        p->key);
}

/* The value of parameter k of tool i: "args-3-p1 ::= ..." */
static int write_tagged_value(struct json *out, const struct json_node *tool,
                              const struct json_node *p, const char *name, uint64_t *work,
                              struct err *e)
{
    unsigned types = tool_types_of(p, parameters_of(tool));

    if ((types & TOOL_MAY_BE_TEXT) == 0)
        return write_schema(out, name, MW_NOTATION_TAGGED, p, parameters_of(tool), work, e);
    json_print(out, "%s ::= ", name);
    return write_text_value(out, p, (types & TOOL_MAY_BE_NULL) != 0, e);
}

/* "<parameter=a>\nVALUE\n</parameter>\n", in the order of the definition. */
static int write_tagged_arguments(struct json *out, const struct tool_use *u,
                                  const struct json_node *tool, size_t i, uint64_t *work,
                                  struct err *e)
{
    const struct json_node *all = json_get(parameters_of(tool), "properties"),
                           *required = json_get(parameters_of(tool), "required");
    bool is_strict = u->is_strict[i] == '1';
    struct json values;
    size_t k = 0;
    int rc = 0;

    json_start(&values);
    json_print(out, "args-%zu ::= \"\"", i);
    for (const struct json_node *p = all != NULL ? all->first : NULL; p != NULL && rc == 0;
         p = p->next, k++) {
        char name[48];

        snprintf(name, sizeof name, "args-%zu-p%zu", i, k);
        raw(out, " (\"<parameter=\" ");
        mw_grammar_literal(out, p->key, strlen(p->key));
        json_print(out, " \">\\n\" %s \"\\n" PARAMETER_END "\\n\")", is_strict ? name : "value-0");
        raw(out, must_have(required, p->key) ? "" : "?");
        if (is_strict)
            rc = write_tagged_value(&values, tool, p, name, work, e);
    }
    raw(out, "\n");
    json_raw(out, values.used > 0 ? values.buf : "", values.used);
    out->failed = out->failed || values.failed;
    json_release(&values);
    return rc;
}

/* "{a:1,b:<|"|>text<|"|>}" in any order. */
static void write_bare_arguments(struct json *out, const struct json_node *tool, size_t i)
{
    const struct json_node *all = json_get(parameters_of(tool), "properties");

    json_print(out, "args-%zu ::= \"{\" (key-%zu \":\" bare-value (\",\" key-%zu \":\" "
                    "bare-value)*)? \"}\"\nkey-%zu ::= ", i, i, i, i);
    if (all == NULL || all->n == 0)
        raw(out, "bare-name");
    for (const struct json_node *p = all != NULL ? all->first : NULL; p != NULL; p = p->next) {
        raw(out, p != all->first ? " | " : "");
        mw_grammar_literal(out, p->key, strlen(p->key));
    }
    raw(out, "\n");
}

static int write_args(struct json *out, const struct tool_use *u, const struct json_node *tool,
                      size_t i, uint64_t *work, struct err *e)
{
    bool is_bare = u->form == CALLS_GEMMA && u->is_strict[i] != '1';

    if ((u->form == CALLS_TAGGED || is_bare) && check_members(parameters_of(tool), e) != 0)
        return -1;
    if (u->form == CALLS_TAGGED)
        return write_tagged_arguments(out, u, tool, i, work, e);
    if (!is_bare)
        return write_arguments(out, u, tool, i, work, e);
    write_bare_arguments(out, tool, i);
    return 0;
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

/* A text, and then calls or none.  A call of Llama 3 is the whole answer, and begins with a brace.
 */
static void write_free_root(struct json *out, enum call_form form)
{
    static const char *const openers[] = {
        [CALLS_HERMES] = "<tool_call>",        [CALLS_TAGGED] = "<tool_call>",
        [CALLS_MISTRAL] = "[TOOL_CALLS]",      [CALLS_MISTRAL_ARGS] = "[TOOL_CALLS]",
        [CALLS_GEMMA] = "<|tool_call>",        [CALLS_LLAMA] = NULL,
    };

    if (form == CALLS_LLAMA) {
        raw(out, "root ::= calls | \"\" | plain\n"
                 "plain ::= [ \\t\\n\\x0b\\x0c\\r] plain | [^{ \\t\\n\\x0b\\x0c\\r] .*\n");
        return;
    }
    raw(out, "root ::= free-0 calls?\n");
    mw_grammar_without(out, "free", openers[form]);
}

static void write_root(struct json *out, const struct tool_use *u)
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
    unsigned more = u->only != NULL || u->one_call || u->form == CALLS_LLAMA ? 0 : MORE_CALLS;

    json_print(out, "one ::= %s call %s\n", marks[u->form].before, marks[u->form].after);
    json_print(out, "calls ::= %s one (%s one){0,%u} %s\n", marks[u->form].open,
               marks[u->form].between, more, marks[u->form].close);
    if (u->must_call)
        raw(out, "root ::= calls\n");
    else if (u->rules != NULL)
        raw(out, "root ::= calls | form\n");
    else
        write_free_root(out, u->form);
    if (!u->must_call && u->rules != NULL)
        json_raw(out, u->rules, u->rules_len);
}

static bool is_used(const struct tool_use *u, const struct json_node *tool)
{
    return u->only == NULL || strcmp(u->only, name_of(tool)) == 0;
}

int tool_grammar(struct json *out, const struct tool_use *u, bool *is_schema, struct err *e)
{
    size_t i = 0, n = 0;
    uint64_t work = 0;

    *is_schema = false;
    write_root(out, u);
    raw(out, "call ::= ");
    for (const struct json_node *t = u->tools->first; t != NULL; t = t->next, i++)
        if (is_used(u, t))
            json_print(out, "%scall-%zu", n++ > 0 ? " | " : "", i);
    raw(out, "\n");
    if (n == 0)
        return err_set(e, ERR_ARGUMENT, "there is no tool \"%.100s\"",
                       u->only != NULL ? u->only : "");
    i = 0;
    for (const struct json_node *t = u->tools->first; t != NULL; t = t->next, i++) {
        if (!is_used(u, t))
            continue;
        write_call(out, u->form, t, i);
        if (write_args(out, u, t, i, &work, e) != 0) {
            *is_schema = true;
            e->field[0] = '\0';
            return request_at(e, i);
        }
    }
    if (u->form == CALLS_TAGGED)
        mw_grammar_without(out, "value", PARAMETER_END);
    if (notation_of(u->form) != MW_NOTATION_JSON)
        mw_grammar_values(out, notation_of(u->form));
    mw_grammar_values(out, MW_NOTATION_JSON);
    return out->failed ? err_memory(e, "a grammar") : 0;
}
