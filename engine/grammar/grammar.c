/* See grammar.h. */
#include "config.h"

#include "engine/grammar/grammar.h"

#include <string.h>

#include "engine/base/json_write.h"
#include "engine/format/json.h"
#include "engine/grammar/gbnf.h"
#include "engine/grammar/schema_internal.h"

int mw_grammar_check(const char *text, size_t len, struct err *e)
{
    struct program *p;

    if (gbnf_parse(&p, text, len, NULL, NULL, e) != 0)
        return -1;
    program_free(p);
    return 0;
}

void mw_grammar_literal(struct json *out, const char *text, size_t len)
{
    json_raw(out, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c < 0x20 || c == 0x7f)
            json_print(out, "\\x%02x", c);
        else if (c == '"' || c == '\\')
            json_print(out, "\\%c", c);
        else
            json_raw(out, text + i, 1);
    }
    json_raw(out, "\"", 1);
}

void mw_grammar_without(struct json *out, const char *name, const char *mark)
{
    size_t n = strlen(mark);

    /* Rule k has matched k bytes of the mark. */
    for (size_t k = 0; k < n; k++) {
        json_print(out, "%s-%zu ::= \"\" | [^\\x%02x\\x%02x] %s-0", name, k,
                   (unsigned char)mark[0], (unsigned char)mark[k], name);
        if (k > 0)
            json_print(out, " | \"\\x%02x\" %s-1", (unsigned char)mark[0], name);
        if (k + 1 < n)
            json_print(out, " | \"\\x%02x\" %s-%zu", (unsigned char)mark[k], name, k + 1);
        json_raw(out, "\n", 1);
    }
}

/* ---- values ---- */

const char *mw_notation_prefix(enum mw_notation notation)
{
    static const char *const prefixes[] = { [MW_NOTATION_JSON] = "json",
                                            [MW_NOTATION_TAGGED] = "tagged",
                                            [MW_NOTATION_BARE] = "bare" };

    return prefixes[notation];
}

void grammar_write(struct json *out, enum mw_notation notation, const char *text)
{
    const char *prefix = mw_notation_prefix(notation);

    while (*text != '\0') {
        size_t n = strcspn(text, "@");

        json_raw(out, text, n);
        text += n;
        if (*text == '@') {
            json_raw(out, prefix, strlen(prefix));
            text++;
        }
    }
}

/*
 * White space is limited, since models that know nothing better fill pages with it.  So are the
 * digits of numbers.  An escape \u names no half of a surrogate pair.
 */
#define NUMBERS                                                                                \
    "@-integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"                                       \
    "@-number ::= @-integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?\n"                   \
    "@-other ::= \"true\" | \"false\" | \"null\"\n"                                            \
    "@-value ::= @-object | @-array | @-string | @-number | @-other\n"                         \
    "@-pair ::= @-name @-colon @-value\n"                                                      \
    "@-object ::= \"{\" @-space (@-pair (\",\" @-space @-pair)* @-space)? \"}\"\n"             \
    "@-array ::= \"[\" @-space (@-value (\",\" @-space @-value)* @-space)? \"]\"\n"

#define TEXTS(not_char)                                                                        \
    "@-space ::= (\" \" | \"\\n\" [ \\t]{0,20})?\n"                                            \
    "@-colon ::= \":\" \" \"?\n"                                                               \
    "@-hex ::= [0-9a-fA-F]\n"                                                                  \
    "@-code ::= [0-9a-cA-CefEF] @-hex{3} | [dD] [0-7] @-hex{2}\n"                              \
    "@-escape ::= \"\\\\\" ([\"\\\\/bfnrt] | \"u\" @-code)\n"                                  \
    "@-char ::= [^" not_char "\"\\\\\\x00-\\x1f\\x7f] | @-escape\n"                            \
    "@-text ::= @-char*\n"                                                                     \
    "@-string ::= \"\\\"\" @-text \"\\\"\"\n"                                                  \
    "@-name ::= @-string\n"

void mw_grammar_values(struct json *out, enum mw_notation notation)
{
    static const char *const rules[] = {
        [MW_NOTATION_JSON] = TEXTS("") NUMBERS,
        [MW_NOTATION_TAGGED] = TEXTS("<") NUMBERS,
        [MW_NOTATION_BARE] = "@-space ::= \"\"\n"
                             "@-colon ::= \":\"\n"
                             "@-hex ::= [0-9a-fA-F]\n"
                             "@-char ::= [^<]\n"
                             "@-text ::= @-text-0\n"
                             "@-string ::= <|\"|> @-text <|\"|>\n"
                             "@-name ::= [a-zA-Z0-9_]+\n" NUMBERS,
    };

    grammar_write(out, notation, rules[notation]);
    if (notation == MW_NOTATION_BARE)
        mw_grammar_without(out, "bare-text", "<|\"|>");
}

int mw_grammar_of_schema(struct json *out, const char *schema, size_t len, struct err *e)
{
    struct json_doc *doc = NULL;
    int rc = json_parse(&doc, schema, len, e);

    if (rc == 0)
        rc = mw_grammar_schema(out, "root", MW_NOTATION_JSON, json_root(doc), json_root(doc), NULL,
                               e);
    json_free(doc);
    if (rc != 0)
        return -1;
    mw_grammar_values(out, MW_NOTATION_JSON);
    return out->failed ? err_memory(e, "a grammar") : mw_grammar_check(out->buf, out->used, e);
}
