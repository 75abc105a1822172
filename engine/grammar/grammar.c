/* See grammar.h. */
#include "config.h"

#include "engine/grammar/grammar.h"

#include <string.h>

#include "engine/base/json_write.h"
#include "engine/format/json.h"
#include "engine/grammar/gbnf.h"

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

/*
 * White space is limited, since models that know nothing better fill pages with it.  So are the
 * digits of numbers.  An escape \u names no half of a surrogate pair.
 */
void mw_grammar_json(struct json *out)
{
    static const char rules[] =
        "json-space ::= (\" \" | \"\\n\" [ \\t]{0,20})?\n"
        "json-hex ::= [0-9a-fA-F]\n"
        "json-code ::= [0-9a-cA-CefEF] json-hex{3} | [dD] [0-7] json-hex{2}\n"
        "json-char ::= [^\"\\\\\\x00-\\x1f\\x7f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" json-code)\n"
        "json-string ::= \"\\\"\" json-char* \"\\\"\"\n"
        "json-integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"
        "json-number ::= json-integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?\n"
        "json-pair ::= json-string \":\" \" \"? json-value\n"
        "json-object ::= \"{\" json-space (json-pair (\",\" json-space json-pair)* "
        "json-space)? \"}\"\n"
        "json-array ::= \"[\" json-space (json-value (\",\" json-space json-value)* "
        "json-space)? \"]\"\n"
        "json-value ::= json-object | json-array | json-string | json-number | json-other\n"
        "json-other ::= \"true\" | \"false\" | \"null\"\n";

    json_raw(out, rules, sizeof rules - 1);
}

int mw_grammar_of_schema(struct json *out, const char *schema, size_t len, struct err *e)
{
    struct json_doc *doc = NULL;
    int rc = json_parse(&doc, schema, len, e);

    if (rc == 0)
        rc = mw_grammar_schema(out, "root", json_root(doc), e);
    json_free(doc);
    if (rc != 0)
        return -1;
    mw_grammar_json(out);
    return out->failed ? err_memory(e, "a grammar") : mw_grammar_check(out->buf, out->used, e);
}
