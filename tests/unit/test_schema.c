/*
 * JSON schemas as grammars: which JSON texts an answer may be, and what is refused with its place.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/json_write.h"
#include "engine/format/json.h"
#include "engine/grammar/gbnf.h"
#include "engine/grammar/grammar.h"
#include "engine/grammar/machine.h"

/* The grammar of a schema, ready to run. */
struct form {
    struct json grammar;
    struct program *program;
    struct machine machine;
};

static void form_open(struct form *f, const char *schema)
{
    struct err e = ERR_INIT;

    json_start(&f->grammar);
    if (mw_grammar_of_schema(&f->grammar, schema, strlen(schema), &e) != 0)
        fail_msg("%s: %s\n%.*s", schema, e.what, (int)f->grammar.used, f->grammar.buf);
    assert_int_equal(
        gbnf_parse(&f->program, f->grammar.buf, f->grammar.used, NULL, NULL, &e), 0);
    assert_int_equal(machine_open(&f->machine, f->program, &e), 0);
}

static void form_close(struct form *f)
{
    machine_close(&f->machine);
    program_free(f->program);
    json_release(&f->grammar);
}

static bool is_text(struct form *f, const char *text)
{
    struct machine *m = &f->machine;
    uint32_t at = machine_start(m);

    for (; *text != '\0' && at != MACHINE_NONE; text++) {
        machine_begin(m);
        at = machine_byte(m, at, *text);
    }
    assert_int_not_equal(at, MACHINE_NONE);
    return machine_may_end(m, at);
}

/* Texts that match end with NULL, and then those that do not. */
struct example {
    const char *schema;
    const char *texts[16];
};

static const struct example examples[] = {
    { "{}", { "1", "\"a\"", "[1, {\"a\":null}]", "{}", "true", NULL, "", "[", "1 2", "tru" } },
    { "true", { "null", NULL, "nul" } },
    { "{\"title\":\"T\",\"description\":\"D\",\"$comment\":\"C\",\"default\":1}",
      { "12", NULL, "x" } },
    { "{\"type\":\"null\"}", { "null", NULL, "0" } },
    { "{\"type\":\"boolean\"}", { "true", "false", NULL, "\"true\"" } },
    { "{\"type\":\"integer\"}", { "0", "-12", "9007199254740993", NULL, "01", "1.5", "1e3", "-" } },
    { "{\"type\":\"number\"}", { "0", "-1.5e+10", "2E3", NULL, ".5", "1.", "+1", "NaN" } },
    { "{\"type\":\"string\"}",
      { "\"\"", "\"a\\n\\u00e9\xc3\xa9\\\"\"", NULL, "\"\n\"", "\"\\x\"", "\"\\ud800\"", "'a'" } },
    { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
      { "\"ab\"", "\"\xc3\xa9\xe2\x82\xac\\n\"", NULL, "\"a\"", "\"abcd\"" } },
    { "{\"type\":\"string\",\"format\":\"date\"}",
      { "\"2026-11-27\"", NULL, "\"2026-13-01\"", "\"26-11-27\"" } },
    { "{\"type\":\"string\",\"format\":\"date-time\"}",
      { "\"2026-11-27T10:00:00Z\"", "\"2026-11-27T10:00:00.5+01:00\"", NULL,
        "\"2026-11-27 10:00:00\"" } },
    { "{\"type\":\"string\",\"format\":\"time\"}", { "\"23:59:59Z\"", NULL, "\"24:00:00Z\"" } },
    { "{\"type\":\"string\",\"format\":\"uuid\"}",
      { "\"123e4567-e89b-12d3-a456-426614174000\"", NULL, "\"123\"" } },
    { "{\"type\":[\"string\",\"null\"]}", { "\"a\"", "null", NULL, "1" } },
    { "{\"enum\":[\"red\",\"\\\"q\\\"\",1,null,[1,{\"a\":true}]]}",
      { "\"red\"", "\"\\\"q\\\"\"", "1", "null", "[1,{\"a\":true}]", NULL, "\"blue\"", "2" } },
    { "{\"type\":\"number\",\"minimum\":-1E+00001,\"maximum\":1e00001}",
      { "-10", "9.5", "10", NULL, "-11", "10.5" } },
    { "{\"type\":\"integer\",\"minimum\":0e99999,\"maximum\":2000e-000003}",
      { "0", "2", NULL, "-1", "3" } },
    { "{\"type\":\"integer\",\"enum\":[1,\"a\",2.5,3]}", { "1", "3", NULL, "\"a\"", "2.5" } },
    { "{\"const\":\"x y\"}", { "\"x y\"", NULL, "\"x\"" } },
    { "{\"type\":\"array\"}", { "[]", "[1, \"a\"]", "[\n  1,\n  2\n]", NULL, "[1,]", "[,1]" } },
    { "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":1,\"maxItems\":3}",
      { "[true]", "[true,false]", "[ true, false, true ]", NULL, "[]", "[1]",
        "[true,true,true,true]" } },
    { "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"maxItems\":1}",
      { "[]", "[true]", NULL, "[true,true]" } },
    { "{\"type\":\"array\",\"maxItems\":0}", { "[]", NULL, "[1]" } },
    { "{\"type\":\"array\",\"items\":false}", { "[]", NULL, "[1]" } },
    { "{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":2}]}",
      { "[1,2]", NULL, "[1]", "[1,2,3]", "[2,1]" } },
    { "{\"prefixItems\":[{\"const\":1}],\"items\":{\"const\":2},\"minItems\":2,\"maxItems\":3}",
      { "[1,2]", "[1,2,2]", NULL, "[1]", "[1,2,2,2]", "[2]" } },
    { "{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"maxItems\":1}", { "[1]", NULL, "[1,2]" } },
    { "{\"prefixItems\":[{\"const\":1}],\"minItems\":2}", { "[1,\"x\"]", NULL, "[1]" } },
    { "{\"type\":\"object\"}", { "{}", "{\"a\": 1, \"b\": []}", NULL, "{a:1}", "{\"a\":1,}" } },
    { "{\"type\":\"object\",\"additionalProperties\":false}", { "{}", NULL, "{\"a\":1}" } },
    { "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
      { "{}", "{\"x\":1,\"y\": 2}", NULL, "{\"x\":\"1\"}" } },
    { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2},\"c\":{\"const\":3}},"
      "\"required\":[\"b\"],\"type\":\"object\"}",
      { "{\"b\":2}", "{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}",
        "{ \"a\": 1, \"b\": 2,\n  \"c\": 3 }", NULL, "{}", "{\"a\":1}", "{\"c\":3,\"b\":2}",
        "{\"b\":2,\"b\":2}" } },
    { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}",
      { "{}", "{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}", NULL, "{,\"b\":2}" } },
    { "{\"properties\":{\"a\\\"\\u00e9\":{\"const\":1}},\"required\":[\"a\\\"\\u00e9\"]}",
      { "{\"a\\\"\xc3\xa9\":1}", NULL, "{}" } },
    { "{\"properties\":{\"a\":{\"const\":1},\"a\":{\"const\":2}},\"required\":[\"a\"]}",
      { "{\"a\":2}", NULL, "{\"a\":1}" } },
    { "{\"type\":\"object\",\"required\":[\"x\",\"x\"]}", { "{\"x\":[1]}", NULL, "{}" } },
    { "{\"required\":[\"x\"],\"additionalProperties\":{\"type\":\"null\"}}",
      { "{\"x\":null}", NULL, "{\"x\":1}" } },
    { "{\"anyOf\":[{\"type\":\"null\"},{\"const\":3}]}", { "null", "3", NULL, "4" } },
    { "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}",
      { "1", "\"a\"", NULL, "null" } },
    { "{\"oneOf\":[{\"$ref\":\"#/$defs/p\"},{\"$ref\":\"#/$defs/q\"}],\"$defs\":{"
      "\"p\":{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"p\"}},\"required\":[\"k\"]},"
      "\"q\":{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[\"q\"]}},"
      "\"required\":[\"k\"]}}}",
      { "{\"k\":\"p\"}", "{\"k\":\"q\"}", NULL, "{\"k\":\"r\"}" } },
    { "{\"allOf\":[{\"type\":\"integer\"}]}", { "1", NULL, "\"a\"" } },
    { "{\"type\":\"object\",\"properties\":{\"next\":{\"$ref\":\"#\"},\"v\":{\"const\":1}}}",
      { "{}", "{\"next\":{\"next\":{\"v\":1}},\"v\":1}", NULL, "{\"next\":1}" } },
    { "{\"$ref\":\"#/definitions/a~1b~0c%20d\",\"definitions\":{\"a/b~c d\":{\"const\":7}}}",
      { "7", NULL, "8" } },
    { "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/l/1\"},"
      "\"$defs\":{\"l\":[0,{\"const\":5}]}}",
      { "[5,5]", NULL, "[0]" } },
    /* patterns: searched in the text, whose characters may be escaped */
    { "{\"pattern\":\"b+\"}", { "\"b\"", "\"xbbx\"", "\"\\nb\"", NULL, "\"\"", "\"x\"", "1" } },
    { "{\"type\":\"string\",\"pattern\":\"^[a-c]{2,3}$\"}",
      { "\"ab\"", "\"ccc\"", NULL, "\"a\"", "\"abca\"", "\"abd\"", "\"ab\\n\"" } },
    { "{\"pattern\":\"^a|b$\"}", { "\"ax\"", "\"xb\"", NULL, "\"bx\"", "\"xa\"" } },
    { "{\"pattern\":\"^(?:|x(?<n>yz)*?)$\"}", { "\"\"", "\"x\"", "\"xyzyz\"", NULL, "\"xy\"" } },
    { "{\"pattern\":\"^\\\\d{3}-\\\\w+\\\\s\\\\S$\"}",
      { "\"123-a_9 x\"", "\"123-a\\tx\"", "\"123-a \xc3\xa9\"", NULL, "\"12-a x\"", "\"123- x\"",
        "\"123-a  \"" } },
    { "{\"pattern\":\"^[\\\"\\\\\\\\/]$\"}",
      { "\"\\\"\"", "\"\\\\\"", "\"/\"", NULL, "\"a\"", "\"\"\"", "\"\\/\"" } },
    { "{\"pattern\":\"^[^\\\\n\\\\d]\\\\.$\"}",
      { "\"a.\"",
        "\"\\t.\"", "\"\\\".\"", "\"\xe2\x82\xac.\"", NULL, "\"\\n.\"", "\"1.\"", "\"aa\"" } },
    { "{\"pattern\":\"^.\\\\u00e9\\\\u{1f600}\\\\ud83d\\\\ude00[\\u00e0-\\u00ff]$\"}",
      { "\"x\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xc3\xa0\"", NULL, "\"\\n\xc3\xa9\"" } },
    { "{\"pattern\":\"^[^]$|^[a\\\\-z]-[+-]$\"}",
      { "\"--+\"", "\"z--\"", NULL, "\"b-+\"", "\"\"" } },
    { "{\"format\":\"ipv4\"}",
      { "\"10.0.255.1\"", NULL, "\"10.0.256.1\"", "\"1.2.3\"", "\"01.2.3.4\"" } },
    { "{\"format\":\"ipv6\"}", { "\"0:0:0:0:0:0:0:1\"", NULL, "\"1:2\"" } },
    { "{\"format\":\"email\"}", { "\"a.b@example.com\"", NULL, "\"a@\"", "\".a@b\"", "\"a\"" } },
    { "{\"format\":\"hostname\"}", { "\"a-b.example\"", NULL, "\"-a\"", "\"a.\"", "\"\"" } },
    { "{\"format\":\"uri\"}",
      { "\"https://example.com:80/a/b?c=d#e\"",
        "\"a://b/%20\"", NULL, "\"example.com\"", "\"a://b/%2\"" } },
    /* multiples */
    { "{\"type\":\"integer\",\"multipleOf\":7}",
      { "0", "7", "-14", "98", "100002", NULL, "1", "8", "100003", "07", "-7.0" } },
    { "{\"type\":\"integer\",\"multipleOf\":0.75}", { "3", "-9", "0", NULL, "1", "4" } },
    { "{\"type\":\"integer\",\"multipleOf\":5,\"exclusiveMinimum\":0}",
      { "5", "100", NULL, "0", "-5", "6" } },
    { "{\"type\":\"integer\",\"multipleOf\":100,\"minimum\":-250,\"maximum\":300}",
      { "-200", "0", "300", NULL, "-300", "250", "400" } },
    { "{\"type\":\"number\",\"multipleOf\":0.01}",
      { "0", "1.25", "-3.1", "7.00", "0.01", NULL, "1.255", "1.", "1e2" } },
    { "{\"multipleOf\":0.25,\"minimum\":0}",
      { "0", "0.0", "0.25", "3.5", "3.50", "12", "0.75", NULL, "-1", "0.2", "3.3", "0.1" } },
    { "{\"multipleOf\":2.5,\"exclusiveMinimum\":0}",
      { "2.5", "5", "7.5", "10.0", NULL, "0", "0.0", "2", "0.5" } },
    { "{\"multipleOf\":0.5,\"exclusiveMinimum\":0}", { "0.5", "1", NULL, "0", "0.0" } },
    { "{\"multipleOf\":0.1,\"minimum\":-0.25,\"exclusiveMaximum\":0.3}",
      { "-0.2", "-0.1", "0", "0.1", "0.2", NULL, "-0.3", "0.3", "0.25" } },
    /* different values */
    { "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[\"a\",\"b\",\"a\",1,1.0]}}",
      { "[]",
        "[\"a\"]", "[\"b\",\"a\"]", "[1,\"b\", \"a\"]", NULL, "[\"a\",\"a\"]", "[1.0]", "[,1]" } },
    { "{\"uniqueItems\":true,\"items\":{\"enum\":[1,2,3]},\"minItems\":1,\"maxItems\":2}",
      { "[3]", "[3,1]", NULL, "[]", "[1,2,3]", "[2,2]" } },
    { "{\"uniqueItems\":true,\"items\":{\"type\":\"string\",\"enum\":[1,\"x\"]}}",
      { "[\"x\"]", NULL, "[1]" } },
    { "{\"type\":\"array\",\"uniqueItems\":true,\"maxItems\":1}", { "[5]", NULL, "[5,5]" } },
    { "{\"type\":\"array\",\"uniqueItems\":false,\"maxItems\":2}", { "[5,5]", NULL, "[1,1,1]" } },
    /* what is left out */
    { "{\"not\":{\"type\":[\"object\",\"number\",\"null\"]}}",
      { "\"a\"", "true", "[1]", NULL, "1", "1.5", "null", "{}" } },
 
    { "{\"type\":[\"string\",\"null\",\"boolean\"],"
      "\"not\":{\"enum\":[null,\"ab\",\"b\",\"\",true]}}",
      { "\"a\"", "\"abc\"", "\"ba\"", "false", "\"\\n\"", NULL, "null", "\"ab\"", "\"b\"", "\"\"",
        "true" } },
    { "{\"type\":\"string\",\"not\":{\"const\":\"\xc3\xa9\\\"\"}}",
      { "\"\xc3\xa9\"", "\"x\"", "\"\"", NULL, "\"\xc3\xa9\\\"\"" } },
    { "{\"enum\":[1,2,\"a\"],\"not\":{\"enum\":[\"a\",1.0]}}", { "2", NULL, "1", "\"a\"" } },
    { "{\"enum\":[1,\"a\"],\"not\":{\"type\":\"string\"}}", { "1", NULL, "\"a\"" } },
    { "{\"type\":\"null\",\"not\":false}", { "null", NULL, "1" } },
    { "{\"type\":[\"integer\",\"null\"],\"not\":{\"enum\":[3,5,null,\"a\"]}}",
      { "2", "4", "-7", NULL, "3", "5", "null" } },
    /* parts that must all match */
    { "{\"allOf\":[{\"type\":[\"string\",\"integer\"],\"minimum\":3},{\"type\":[\"number\","
      "\"null\"],\"maximum\":7}]}",
      { "3", "7", NULL, "2", "8", "\"a\"", "null" } },
    { "{\"allOf\":[{\"type\":\"string\",\"minLength\":2},{\"minLength\":1,\"maxLength\":5},{"
      "\"maxLength\":3}]}",
      { "\"ab\"", "\"abc\"", NULL, "\"a\"", "\"abcd\"" } },
    { "{\"allOf\":[{\"enum\":[1,{\"a\":[1.0]},\"x\",null]},{\"enum\":[\"x\",{\"a\":[1]},2]}]}",
      { "\"x\"", "{\"a\":[1.0]}", NULL, "1", "2" } },
    { "{\"enum\":[\"a\",\"b\",\"c\"],\"const\":\"b\"}",
      { "\"b\"", NULL, "\"a\"" } },
    { "{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{"
      "\"const\":1}},\"required\":[\"a\"]},{\"properties\":{\"a\":{\"maxLength\":1},\"c\":{"
      "\"const\":2}},\"required\":[\"c\"]}]}",
      { "{\"a\":\"x\",\"c\":2}", "{\"a\":\"\",\"b\":1,\"c\":2}", NULL, "{\"a\":\"xy\"}",
        "{\"c\":2}", "{\"a\":\"x\"}" } },
    { "{\"allOf\":[{\"properties\":{\"a\":{\"const\":1}},\"additionalProperties\":false},{"
      "\"type\":\"object\",\"properties\":{\"b\":{\"const\":2}}}]}",
      { "{}", "{\"a\":1}", NULL, "{\"b\":2}" } },
    { "{\"allOf\":[{\"properties\":{\"a\":{\"const\":1}},\"additionalProperties\":{\"type\":["
      "\"integer\",\"null\"]}},{\"properties\":{\"b\":{\"type\":[\"null\",\"string\"]}},"
      "\"required\":[\"b\"]}]}",
      { "{\"b\":null}", "{\"a\":1,\"b\":null}", NULL, "{\"b\":1}", "{\"b\":\"x\"}" } },
    { "{\"allOf\":[{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1},{"
      "\"prefixItems\":[{\"maximum\":5}],\"items\":{\"minimum\":0},\"maxItems\":2}]}",
      { "[1]", "[-5,1]", NULL, "[]", "[6]", "[1,-1]", "[1,1,1]" } },
    { "{\"allOf\":[{\"multipleOf\":4},{\"multipleOf\":6},{\"type\":\"integer\"}]}",
      { "12", "-24", "0", NULL, "4", "6", "8" } },
    { "{\"allOf\":[{\"pattern\":\"^a+$\"},{\"pattern\":\"^a+$\",\"type\":[\"string\",\"null\"]}]}",
      { "\"a\"", "\"aa\"", NULL, "\"b\"" } },
    { "{\"allOf\":[{\"type\":\"string\",\"not\":{\"const\":\"a\"}},{\"not\":{\"enum\":[\"b\","
      "\"a\"]}}]}",
      { "\"c\"", "\"ab\"", NULL, "\"a\"", "\"b\"" } },
    { "{\"$ref\":\"#/$defs/a\",\"required\":[\"y\"],\"$defs\":{\"a\":{\"type\":\"object\","
      "\"properties\":{\"x\":{\"const\":1}}}}}",
      { "{\"y\":2}", "{\"x\":1,\"y\":[]}", NULL, "{}" } },
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1}},\"anyOf\":[{\"required\":["
      "\"a\"]},{\"properties\":{\"b\":{\"const\":2}},\"required\":[\"b\"]}]}",
      { "{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}", NULL, "{}" } },
    { "{\"allOf\":[{\"anyOf\":[{\"const\":1},{\"const\":2}]},{\"oneOf\":[{\"type\":\"integer\","
      "\"enum\":[2,3]},{\"type\":\"string\"}]}]}",
      { "2", NULL, "1", "3", "\"" } },
    { "{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/b\"}],\"$defs\":{\"a\":{"
      "\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/a\"},\"v\":{\"type\":"
      "\"integer\"}}},\"b\":{\"properties\":{\"n\":{\"$ref\":\"#/$defs/b\"},\"v\":{\"enum\":[1,"
      "\"x\"]}},\"required\":[\"v\"]}}}",
      { "{\"v\":1}", "{\"n\":{\"n\":{\"v\":1},\"v\":1},\"v\":1}", NULL, "{\"v\":\"x\"}",
        "{\"n\":{}}" } },
    { "{\"$ref\":\"#/$defs/a\",\"required\":[\"n\"],\"$defs\":{\"a\":{\"type\":\"object\","
      "\"properties\":{\"n\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/a\","
      "\"required\":[\"n\"]}]}}}}}",
      { "{\"n\":null}", "{\"n\":{\"n\":null}}", NULL, "{}", "{\"n\":{}}" } },
    /* parts that depend on others */
    { "{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"maximum\":9,\"if\":{\"enum\":[7,3,"
      "\"x\"]},\"else\":{\"maximum\":5}}",
      { "0", "3", "7", "5", "null", NULL, "6", "8" } },
    { "{\"properties\":{\"n\":{\"enum\":[1,2,3]}},\"required\":[\"n\"],\"if\":{\"properties\":{"
      "\"n\":{\"const\":2}}},\"else\":{\"properties\":{\"n\":{\"minimum\":2}}}}",
      { "{\"n\":2}", "{\"n\":3}", NULL, "{\"n\":1" } },
    { "{\"allOf\":[{\"enum\":[\"a\",\"\\u00e9\\u20ac\",\"abc\",5]},{\"minLength\":2,\"maximum\":"
      "4},{\"maxLength\":2}]}",
      { "\"\u00e9\u20ac\"", NULL, "\"a\"", "\"abc\"", "5" } },
    { "{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[\"a\",\"b\"]},\"x\":{\"type\":"
      "\"integer\"},\"y\":{\"const\":2}},\"required\":[\"k\"],\"if\":{\"properties\":{\"k\":{"
      "\"const\":\"a\"}}},\"then\":{\"required\":[\"x\"]},\"else\":{\"required\":[\"y\"],"
      "\"properties\":{\"x\":false}}}",
      { "{\"k\":\"a\",\"x\":1}", "{\"k\":\"b\",\"y\":2}", "{\"k\":\"a\",\"x\":1,\"y\":2}", NULL,
        "{\"k\":\"a\"}", "{\"k\":\"b\"}", "{\"k\":\"b\",\"x" } },
    { "{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[\"a\",\"b\"]},\"x\":{\"type\":"
      "\"integer\"},\"y\":{\"const\":2}},\"required\":[\"k\"],\"allOf\":[{\"if\":{"
      "\"properties\":{\"k\":{\"const\":\"a\"}},\"required\":[\"k\"]},\"then\":{\"properties\":"
      "{\"x\":{\"minimum\":5}},\"required\":[\"x\"]}},{\"if\":{\"properties\":{\"k\":{"
      "\"const\":\"b\"}},\"required\":[\"k\"]},\"then\":{\"properties\":{\"x\":{\"maximum\":"
      "5}},\"required\":[\"x\"]}}]}",
      { "{\"k\":\"a\",\"x\":7}", "{\"k\":\"b\",\"x\":-3}", "{\"k\":\"b\",\"x\":5,\"y\":2}", NULL,
        "{\"k\":\"a\",\"x\":4", "{\"k\":\"b\",\"x\":7", "{\"k\":\"a\"}" } },
    { "{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"boolean\"},\"x\":{\"const\":1}},"
      "\"if\":{\"required\":[\"f\"],\"properties\":{\"f\":{\"const\":true}}},\"then\":{"
      "\"required\":[\"x\"]}}",
      { "{}", "{\"f\":false}", "{\"x\":1}", "{\"f\":true,\"x\":1}", NULL, "{\"f\":true}" } },
    { "{\"type\":[\"integer\",\"string\"],\"if\":{\"minimum\":10,\"type\":\"number\"},\"then\":{"
      "\"multipleOf\":5,\"maximum\":30},\"else\":{\"not\":{\"const\":\"x\"}}}",
      { "10", "15", "9", "\"y\"", NULL, "11", "35", "\"x\"" } },
    { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2},\"c\":{\"const\":3}},"
      "\"dependentRequired\":{\"a\":[\"b\"]},\"dependentSchemas\":{\"b\":{\"required\":["
      "\"c\"]}}}",
      { "{}", "{\"c\":3}", "{\"b\":2,\"c\":3}", "{\"a\":1,\"b\":2,\"c\":3}", NULL, "{\"a\":1}",
        "{\"a\":1,\"c", "{\"b\":2}" } },
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}},\"not\":{"
      "\"required\":[\"a\",\"b\"]}}",
      { "{}", "{\"a\":1}", "{\"b\":2}", NULL, "{\"a\":1,\"b" } },
    { "{\"type\":\"object\",\"properties\":{\"a\":false,\"b\":{\"const\":2}}}",
      { "{}", "{\"b\":2}", NULL, "{\"a" } },
    { "{\"type\":\"integer\",\"not\":{\"anyOf\":[{\"minimum\":5},{\"exclusiveMaximum\":2}]}}",
      { "2", "4", NULL, "1", "5" } },
};

static void answers_match_the_schema(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *x = &examples[i];
        struct form form;
        bool expected = true;

        form_open(&form, x->schema);
        for (size_t k = 0; k < 16 && (expected || x->texts[k] != NULL); k++) {
            if (x->texts[k] == NULL)
                expected = false;
            else if (is_text(&form, x->texts[k]) != expected)
                fail_msg("%s %s %s", x->schema, expected ? "lacks" : "has", x->texts[k]);
        }
        form_close(&form);
    }
}

static void names_what_is_not_supported_and_its_place(void **state)
{
    static const struct {
        const char *schema, *what;
    } wrong[] = {
        { "1", "the schema at # is not an object" },
        { "null", "the schema at # is not an object" },
        { "false", "the schema at # allows no value" },
        { "{\"properties\":{\"a\":{\"items\":{\"contains\":1}}}}",
          "the keyword \"contains\" at #/properties/a/items is not supported" },
        { "{\"type\":\"number\",\"minimum\":\"1\"}",
          "the keyword \"minimum\" at # is not a number" },
        { "{\"type\":\"number\",\"minimum\":12345678901234567}",
          "the keyword \"minimum\" at # has more than 16 digits before or after the point" },
        { "{\"type\":\"number\",\"maximum\":1e-17}",
          "the keyword \"maximum\" at # has more than 16 digits before or after the point" },
        { "{\"type\":\"number\",\"maximum\":1e10001}",
          "the keyword \"maximum\" at # has more than 16 digits before or after the point" },
        { "{\"type\":\"number\",\"maximum\":1e-99999999999999999999}",
          "the keyword \"maximum\" at # has more than 16 digits before or after the point" },
        { "{\"type\":\"number\",\"minimum\":1.5,\"exclusiveMaximum\":1.5}",
          "the keyword \"maximum\" at # leaves no number" },
        { "{\"type\":\"integer\",\"minimum\":1.5,\"maximum\":1.75}",
          "the keyword \"maximum\" at # leaves no whole number" },
        { "{\"multipleOf\":0}", "the keyword \"multipleOf\" at # is not greater than 0" },
        { "{\"multipleOf\":-2}", "the keyword \"multipleOf\" at # is not greater than 0" },
        { "{\"multipleOf\":1e-7}",
          "the keyword \"multipleOf\" at # is not at most 1000000000 with 6 "
                                "digits after the point" },
        { "{\"multipleOf\":3,\"minimum\":1}",
          "the keyword \"multipleOf\" at # is not supported together with bounds that leave more "
          "than 256 numbers" },
        { "{\"multipleOf\":513}",
          "the keyword \"multipleOf\" at # has too many remainders: without "
                              "bounds, its digits may be a number up to 512" },
        { "{\"multipleOf\":5,\"minimum\":1,\"maximum\":4}",
          "the keyword \"multipleOf\" at # leaves no number" },
        { "{\"pattern\":1}", "the keyword \"pattern\" at # is not a text" },
        { "{\"pattern\":\"a\",\"maxLength\":5}",
          "the keyword \"pattern\" at # is not supported together with \"maxLength\"" },
        { "{\"pattern\":\"(?=a)b\"}", "the keyword \"pattern\" at # has a condition on the text "
                                    "around it before byte 2, which is not supported" },
        { "{\"pattern\":\"(a)\\\\1\"}",
          "the keyword \"pattern\" at # has an escape before byte 5, which "
                                     "is not supported" },
        { "{\"pattern\":\"a\\\\b\"}",
          "the keyword \"pattern\" at # has an escape before byte 3, which is "
                                   "not supported" },
        { "{\"pattern\":\"(^a)\"}",
          "the keyword \"pattern\" at # has an anchor inside before byte 1, "
                                  "which is not supported" },
        { "{\"pattern\":\"a$b\"}",
          "the keyword \"pattern\" at # has an anchor inside before byte 1, "
                                 "which is not supported" },
        { "{\"pattern\":\"*a\"}",
          "the keyword \"pattern\" at # has a lone repetition before byte 0, "
                                "which is not supported" },
        { "{\"pattern\":\"a**\"}",
          "the keyword \"pattern\" at # has a lone repetition before byte 2, "
                                 "which is not supported" },
        { "{\"pattern\":\"a{3,2}\"}",
          "the keyword \"pattern\" at # has a wrong count before byte 6, "
                                    "which is not supported" },
        { "{\"pattern\":\"[b-a]\"}", "the keyword \"pattern\" at # has a range that ends before it "
                                   "begins before byte 4, which is not supported" },
        { "{\"pattern\":\"[a\"}",
          "the keyword \"pattern\" at # has a \"[\" without \"]\" before byte 2, "
                                "which is not supported" },
        { "{\"pattern\":\"(a\"}",
          "the keyword \"pattern\" at # has a \"(\" without \")\" before byte 2, "
                                "which is not supported" },
        { "{\"pattern\":\"a)\"}",
          "the keyword \"pattern\" at # has a \")\" without \"(\" before byte 1, "
                                "which is not supported" },
        { "{\"pattern\":\"\\\\ud800\"}",
          "the keyword \"pattern\" at # has half of a character before "
                                     "byte 6, which is not supported" },
        { "{\"uniqueItems\":1}", "the keyword \"uniqueItems\" at # is not true or false" },
        { "{\"uniqueItems\":true,\"items\":{\"enum\":[1]},\"minItems\":2}",
          "the keyword \"minItems\" at # asks for more items than there are" },
        { "{\"not\":{}}", "the keyword \"not\" at # allows no value" },
        { "{\"not\":{\"const\":{}}}",
          "the keyword \"not\" at # is supported with \"type\", or with "
                                    "\"enum\" or \"const\" of texts, true, false and null only" },
        { "{\"type\":\"number\",\"not\":{\"type\":\"integer\"}}",
          "the keyword \"not\" at # is not supported for numbers" },
        { "{\"type\":\"null\",\"not\":{\"type\":\"null\"}}",
          "the keyword \"not\" at # leaves no type" },
        { "{\"type\":\"string\",\"maxLength\":3,\"not\":{\"const\":\"a\"}}",
          "the keyword \"not\" at # is not supported beside other keywords of texts" },
        { "{\"type\":\"integer\",\"minimum\":5,\"exclusiveMaximum\":5}",
          "the keyword \"maximum\" at # leaves no whole number" },
        { "{\"anyOf\":[{},{\"contains\":{}}]}",
          "the keyword \"contains\" at #/anyOf/1 is not supported" },
        { "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"uniqueItems\":true}}}",
          "the keyword \"uniqueItems\" at #/$defs/a is supported for items that are an \"enum\" of "
          "up to 8 short texts, numbers and the like only" },
        { "{\"type\":\"strnig\"}", "the keyword \"type\" at # does not name types of JSON" },
        { "{\"type\":[]}", "the keyword \"type\" at # does not name types of JSON" },
        { "{\"items\":{\"enum\":[1],\"type\":[\"null\",\"null\",\"null\",\"null\",\"null\","
          "\"null\",\"null\",\"number\"]}}",
          "the keyword \"type\" at #/items has more than 7 types" },
        { "{\"$ref\":\"#/$defs/%+41\",\"$defs\":{\"\\u00041\":{}}}",
          "the keyword \"$ref\" at # names nothing in the schema" },
        { "{\"type\":[\"string\",1]}", "the keyword \"type\" at # does not name types of JSON" },
        { "{\"enum\":[]}", "the keyword \"enum\" at # has no value of the type" },
        { "{\"enum\":1}", "the keyword \"enum\" at # is not a list of values" },
        { "{\"type\":\"null\",\"const\":1}",
          "the keyword \"const\" at # has no value of the type" },
        { "{\"enum\":[1],\"minLength\":1}",
          "the keyword \"minLength\" at # is not supported beside \"enum\"" },
        { "{\"$ref\":\"other.json#/a\"}",
          "the keyword \"$ref\" at # is supported inside the schema only: \"#/$defs/NAME\"" },
        { "{\"$ref\":\"https://example.com/s\"}",
          "the keyword \"$ref\" at # is supported inside the schema only: \"#/$defs/NAME\"" },
        { "{\"$ref\":\"#/$defs/a\"}", "the keyword \"$ref\" at # names nothing in the schema" },
        { "{\"$ref\":\"#a\"}", "the keyword \"$ref\" at # names nothing in the schema" },
        { "{\"$ref\":\"#\"}", "the rule \"root\" refers to itself before any character" },
        { "{\"anyOf\":[{\"$ref\":\"#/$defs/a\"}],\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},"
          "\"b\":{\"$ref\":\"#/$defs/a\"}}}",
          "the rule \"root-1\" refers to itself before any character" },
        { "{\"anyOf\":[]}", "the keyword \"anyOf\" at # is not a list of schemas" },
        { "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}",
          "the keyword \"oneOf\" at # has alternatives that one value may match both; use "
          "\"anyOf\", other types, or a required member with a \"const\"" },
        { "{\"oneOf\":[{\"type\":\"object\"},{\"type\":\"object\"}]}",
          "the keyword \"oneOf\" at # has alternatives that one value may match both; use "
          "\"anyOf\", other types, or a required member with a \"const\"" },
        { "{\"type\":\"string\",\"minLength\":-1}",
          "the keyword \"minLength\" at # is not a whole number from 0 to 1000000000" },
        { "{\"type\":\"string\",\"maxLength\":1e300}",
          "the keyword \"maxLength\" at # is not a whole number from 0 to 1000000000" },
        { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":1}",
          "the keyword \"maxLength\" at # is smaller than minLength" },
        { "{\"type\":\"string\",\"format\":\"regex\"}",
          "the keyword \"format\" at # is supported for date, time, date-time, uuid, ipv4, ipv6, "
          "hostname, email and uri only" },
        { "{\"type\":\"array\",\"minItems\":3,\"maxItems\":2}",
          "the keyword \"maxItems\" at # is smaller than minItems" },
        { "{\"prefixItems\":[{}],\"items\":false,\"minItems\":2}",
          "the keyword \"minItems\" at # asks for items that are not allowed" },
        { "{\"properties\":[]}", "the keyword \"properties\" at # is not an object" },
        { "{\"required\":[1]}", "the keyword \"required\" at # is not a list of names" },
        { "{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}",
          "the schema at # allows no value" },
        { "{\"allOf\":[{\"enum\":[1,2]},{\"enum\":[3]}]}",
          "the schema at # allows no value" },
        { "{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}",
          "the keyword \"pattern\" at # is not supported twice for one text,"
            " unless both are the same" },
        { "{\"allOf\":[{\"format\":\"date\"},{\"format\":\"time\"}]}",
          "the keyword \"format\" at # is not supported twice for one text,"
            " unless both are the same" },
        { "{\"allOf\":[{\"properties\":{\"a\":{\"format\":\"date\"}}},{\"properties\":{\"a\":{"
          "\"minLength\":1}}}]}",
          "the keyword \"format\" at #/allOf/0/properties/a is not supported together with \"min"
            "Length\"" },
        { "{\"allOf\":[{},{\"properties\":{\"a\":{\"contains\":{}}}}]}",
          "the keyword \"contains\" at #/allOf/1/properties/a is not supported" },
        { "{\"allOf\":[{},{\"patternProperties\":{}}]}",
          "the keyword \"patternProperties\" at #/allOf/1 is not supported" },
        { "{\"allOf\":[{\"enum\":[\"a\"]},{\"pattern\":\"a\"}]}",
          "the keyword \"pattern\" at # is not supported beside \"enum\"" },
        { "{\"allOf\":[{\"multipleOf\":999999937},{\"multipleOf\":999999929}]}",
          "the keyword \"multipleOf\" at # has two steps without a small common multiple" },
        { "{\"if\":{\"contains\":{}},\"then\":{}}",
          "the keyword \"contains\" at #/if is not supported" },
        { "{\"if\":{\"minLength\":1},\"then\":{\"maxLength\":3}}",
          "the keyword \"minLength\" at #/if is not supported where other values are asked for,"
            " in \"if\" and \"not\"" },
        { "{\"if\":{\"properties\":{\"a\":{\"items\":{}}}},\"else\":{}}",
          "the keyword \"items\" at #/if/properties/a is not supported where other values are as"
            "ked for, in \"if\" and \"not\"" },
        { "{\"then\":{}}",
          "the keyword \"then\" at # is not beside \"if\"" },
        { "{\"dependentRequired\":{\"a\":1}}",
          "the keyword \"dependentRequired\" at # is not a list of names" },
        { "{\"$ref\":\"#\",\"type\":\"null\"}",
          "the parts of the schema at # contain it, or are too many within each other" },
        { "{\"if\":{\"enum\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]},\"else\":true}",
          "the keyword \"enum\" at #/if has more than 16 numbers, or one of more than 16 digits,"
            " where other values are asked for" },
        { "{\"required\":[\"a\"],\"additionalProperties\":false}",
          "the keyword \"required\" at # names a member that additionalProperties forbids" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct json grammar;
        struct err e = ERR_INIT;

        json_start(&grammar);
        assert_int_equal(
            mw_grammar_of_schema(&grammar, wrong[i].schema, strlen(wrong[i].schema), &e), -1);
        assert_string_equal(e.what, wrong[i].what);
        json_release(&grammar);
    }
}

/* Every number near the bounds is in the right set. */
static void integers_keep_their_bounds(void **state)
{
    static const int64_t bounds[] = { -1205, -1000, -999, -100, -10, -9, -1, 0,
                                      1,     7,     9,    10,   99,  100, 238, 1000, 99999 };
    const size_t n = sizeof bounds / sizeof bounds[0];

    (void)state;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = i; j <= n; j++) {
            struct form form;
            char text[200];
            size_t len = (size_t)sprintf(text, "{\"type\":\"integer\"");

            if (i > 0)
                len += (size_t)sprintf(text + len, ",\"minimum\":%lld",
                                       (long long)bounds[i - 1]);
            if (j < n)
                len += (size_t)sprintf(text + len, ",\"exclusiveMaximum\":%lld",
                                       (long long)bounds[j] + 1);
            sprintf(text + len, "}");
            form_open(&form, text);
            for (size_t k = 0; k < 3 * n; k++) {
                int64_t v = bounds[k / 3] + (int64_t)(k % 3) - 1;
                char number[24];

                sprintf(number, "%lld", (long long)v);
                if (is_text(&form, number) !=
                    ((i == 0 || v >= bounds[i - 1]) && (j == n || v <= bounds[j])))
                    fail_msg("%s and %s", text, number);
            }
            assert_false(is_text(&form, "00"));
            assert_false(is_text(&form, "-0") && i > 0);
            assert_false(is_text(&form, "07"));
            form_close(&form);
        }
}

/* The same with digits after the point, in thousandths. */
static void numbers_keep_their_bounds(void **state)
{
    static const int bounds[] = { -12050, -12000, -1999, -1500, -1000, -250, -1, 0,
                                  1,      20,     250,   999,   1000,  1750, 2000, 12345 };
    const size_t n = sizeof bounds / sizeof bounds[0];

    (void)state;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = i; j <= n; j++) {
            bool is_open = (i + j) % 3 == 1 && i != j + 1;
            struct form form;
            char text[200];
            size_t len = (size_t)sprintf(text, "{\"type\":\"number\"");

            if (i > 0)
                len += (size_t)sprintf(text + len, ",\"%s\":%.3f",
                                       is_open ? "exclusiveMinimum" : "minimum",
                                       bounds[i - 1] / 1000.0);
            if (j < n)
                len += (size_t)sprintf(text + len, ",\"%s\":%.3fe0",
                                       is_open ? "exclusiveMaximum" : "maximum",
                                       bounds[j] / 1000.0);
            sprintf(text + len, "}");
            form_open(&form, text);
            for (size_t k = 0; k < 5 * n; k++) {
                int v = bounds[k / 5] + (int)(k % 5) * 5 - 10;
                bool is_in = (i == 0 || v > bounds[i - 1] - !is_open) &&
                             (j == n || v < bounds[j] + !is_open);
                char number[32];

                sprintf(number, "%s%d.%03d", v < 0 ? "-" : "", abs(v) / 1000, abs(v) % 1000);
                /* A bound is followed by no zeros. */
                while (number[strlen(number) - 1] == '0')
                    number[strlen(number) - 1] = '\0';
                if (number[strlen(number) - 1] == '.')
                    number[strlen(number) - 1] = '\0';
                if ((i > 0 || j < n) && is_text(&form, number) != is_in)
                    fail_msg("%s and %s", text, number);
            }
            if (i > 0 || j < n) {
                assert_false(is_text(&form, "00"));
                assert_false(is_text(&form, "1."));
                assert_false(is_text(&form, ".5"));
                assert_false(is_text(&form, "-"));
                assert_false(is_text(&form, "1e3"));
            }
            form_close(&form);
        }
}

/* ---- hostile schemas ---- */

static int grammar_of(const char *schema, size_t n, struct err *e)
{
    struct json grammar;
    int rc;

    *e = (struct err)ERR_INIT;
    json_start(&grammar);
    rc = mw_grammar_of_schema(&grammar, schema, n, e);
    json_release(&grammar);
    return rc;
}

static const char *dots(void)
{
    static char text[1000];

    memset(text, '.', sizeof text - 1);
    return text;
}

/* Append a text n times: digits of one number, or items with commas between. */
static size_t repeat(char *at, const char *text, size_t n)
{
    const char *comma = strcmp(text, "0") == 0 ? "" : ",";
    size_t used = 0;

    for (size_t i = 0; i < n; i++)
        used += (size_t)sprintf(at + used, "%s%s", i > 0 ? comma : "", text);
    return used;
}

/* Lists that are read for each item of another one. */
static void bounds_lists_within_lists(void **state)
{
    static const struct {
        const char *before, *many;
        size_t n;
        const char *between, *also;
        size_t n_also;
        const char *after;
    } hostile[] = {
        { "{\"enum\":[", "1", 30000, "],\"not\":{\"enum\":[", "2", 30000, "]}}" },
        { "{\"enum\":[", "\"a\"", 30000, "],\"not\":{\"enum\":[", "\"b\"", 30000, "]}}" },
        { "{\"const\":1", "0", 90000, ",\"not\":{\"enum\":[", "2", 300, "]}}" },
        { "{\"enum\":[", "1", 300, "],\"not\":{\"const\":2", "0", 90000, "}}" },
        { "{\"not\":{", "\"type\":\"null\"", 20000, "},\"enum\":[", "2", 1, "]}" },
        { "{\"allOf\":[{\"minimum\":1", "0", 90000, "},{\"enum\":[", "2", 3000, "]}]}" },
        { "{\"allOf\":[{\"enum\":[{", "\"a\":1", 20000, "}]},{\"enum\":[{", "\"a\":1", 1,
          "}]}]}" },
        { "{\"allOf\":[{\"enum\":[", "1", 9000, "]},{\"enum\":[", "2", 9000, "]}]}" },
        { "{\"uniqueItems\":true,\"items\":{\"enum\":[", "1", 30000, "],", "\"title\":\"\"", 20000,
          "}}" },
    };
    char *text = malloc(1 << 20);
    struct err e;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        size_t n = (size_t)sprintf(text, "%s", hostile[i].before);

        n += repeat(text + n, hostile[i].many, hostile[i].n);
        n += (size_t)sprintf(text + n, "%s", hostile[i].between);
        n += repeat(text + n, hostile[i].also, hostile[i].n_also);
        n += (size_t)sprintf(text + n, "%s", hostile[i].after);
        assert_int_equal(grammar_of(text, n, &e), -1);
        if (strstr(e.what, "the schema takes too much time: it has too many names or values") ==
            NULL)
            fail_msg("%zu: %s", i, e.what);
    }
    free(text);
}

static void bounds_what_hostile_schemas_cost(void **state)
{
    char *text = malloc(1 << 20);
    struct err e;
    size_t n;

    (void)state;
    assert_non_null(text);
    /* references to references, each named twice: 2^400 values if they were copied */
    n = (size_t)sprintf(text, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < 400; i++)
        n += (size_t)sprintf(text + n,
                             "\"d%d\":{\"prefixItems\":[{\"$ref\":\"#/$defs/d%d\"},"
                             "{\"$ref\":\"#/$defs/d%d\"}]},",
                             i, i + 1, i + 1);
    n += (size_t)sprintf(text + n, "\"d400\":{\"const\":0}}}");
    assert_int_equal(grammar_of(text, n, &e), 0);
    /* too many of them */
    n = (size_t)sprintf(text, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < 600; i++)
        n += (size_t)sprintf(text + n, "\"d%d\":{\"items\":{\"$ref\":\"#/$defs/d%d\"}},", i,
                             i + 1);
    n += (size_t)sprintf(text + n, "\"d600\":{}}}");
    assert_int_equal(grammar_of(text, n, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    /* short keywords with long rules: patterns, multiples, lists of different values */
    for (int kind = 0; kind < 3; kind++) {
        struct json grammar;

        n = (size_t)sprintf(text, "{\"properties\":{");
        for (int i = 0; i < 400; i++) {
            n += (size_t)sprintf(text + n, "%s\"m%d\":{\"type\":\"%s\",", i > 0 ? "," : "", i,
                                 kind == 0 ? "string" : kind == 1 ? "integer" : "array");
            if (kind == 0)
                n += (size_t)sprintf(text + n, "\"pattern\":\"%.*s\"}", 900, dots());
            else if (kind == 1)
                n += (size_t)sprintf(text + n, "\"multipleOf\":509}");
            else
                n += (size_t)sprintf(text + n, "\"uniqueItems\":true,\"items\":{\"enum\":[\"%.*s\","
                                               "1,2,3,4,5,6,7]}}", 200, dots());
        }
        n += (size_t)sprintf(text + n, "}}");
        e = (struct err)ERR_INIT;
        json_start(&grammar);
        assert_int_equal(mw_grammar_of_schema(&grammar, text, n, &e), -1);
        assert_non_null(strstr(e.what, "too large"));
        assert_true(grammar.used < (2 << 20));
        json_release(&grammar);
    }
    /* references to references whose parts are merged, each named twice */
    n = (size_t)sprintf(text, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < 40; i++)
        n += (size_t)sprintf(text + n,
                             "\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%d\"},"
                             "{\"$ref\":\"#/$defs/d%d\"},{\"title\":\"\"}]},",
                             i, i + 1, i + 1);
    n += (size_t)sprintf(text + n, "\"d40\":{\"const\":0}}}");
    assert_int_equal(grammar_of(text, n, &e), -1);
    assert_non_null(strstr(e.what, "too many within each other"));
    /* alternatives times alternatives, of one schema and of one member */
    for (int kind = 0; kind < 2; kind++) {
        n = (size_t)sprintf(text, "{\"allOf\":[");
        for (int i = 0; i < 30; i++)
            n += (size_t)sprintf(text + n,
                                 kind == 0 ? "{\"anyOf\":[{\"required\":[\"a%d\"]},"
                                             "{\"required\":[\"b%d\"]}]},"
                                           : "{\"properties\":{\"k\":{\"anyOf\":[{\"required\":"
                                             "[\"a%d\"]},{\"required\":[\"b%d\"]}]}}},", i, i);
        n += (size_t)sprintf(text + n, "{}]}");
        assert_int_equal(grammar_of(text, n, &e), -1);
        assert_non_null(strstr(e.what, "have more than 256 combinations"));
    }
    /* conditions on conditions */
    n = 0;
    for (int i = 0; i < 25; i++)
        n += (size_t)sprintf(text + n, "{\"if\":{\"required\":[\"a%d\",\"b%d\"]},\"else\":", i,
                             i);
    n += (size_t)sprintf(text + n, "{}");
    memset(text + n, '}', 25);
    n += 25;
    assert_int_equal(grammar_of(text, n, &e), -1);
    assert_non_null(strstr(e.what, "have more than 256 combinations"));
    /* many members in many schemas */
    n = (size_t)sprintf(text, "{\"allOf\":[");
    for (int i = 0; i < 200; i++) {
        n += (size_t)sprintf(text + n, "%s{\"properties\":{", i > 0 ? "," : "");
        for (int k = 0; k < 200; k++)
            n += (size_t)sprintf(text + n, "%s\"m%d\":{}", k > 0 ? "," : "", k + i);
        n += (size_t)sprintf(text + n, "}}");
    }
    n += (size_t)sprintf(text + n, "]}");
    assert_int_equal(grammar_of(text, n, &e), -1);
    assert_non_null(strstr(e.what, "the schema t"));
    /* circles whose members grow with each turn */
    n = (size_t)sprintf(text, "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"properties\":{\"n\":"
                              "{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"properties\":{\"n\":"
                              "{\"$ref\":\"#/$defs/b\"}}}]}}},\"b\":{\"properties\":{\"n\":{"
                              "\"$ref\":\"#/$defs/a\",\"required\":[\"n\"]}}}}}");
    assert_int_equal(grammar_of(text, n, &e), 0);
    /* depth */
    n = 0;
    for (int i = 0; i < 1000; i++)
        n += (size_t)sprintf(text + n, "{\"items\":");
    assert_int_equal(grammar_of(text, n, &e), -1);
    /* members that may all be left out */
    n = (size_t)sprintf(text, "{\"properties\":{");
    for (int i = 0; i < 1000; i++)
        n += (size_t)sprintf(text + n, "\"m%d\":{\"type\":\"null\"},", i);
    n += (size_t)sprintf(text + n, "\"z\":{}}}");
    assert_int_equal(grammar_of(text, n, &e), 0);
    /* one more than is supported */
    n = (size_t)sprintf(text, "{\"properties\":{");
    for (int i = 0; i < 1100; i++)
        n += (size_t)sprintf(text + n, "\"m%d\":{},", i);
    n += (size_t)sprintf(text + n, "\"z\":{}}}");
    assert_int_equal(grammar_of(text, n, &e), -1);
    assert_string_equal(e.what, "the keyword \"properties\" at # has too many members");
    /* alternatives that many names tell apart */
    n = (size_t)sprintf(text, "{\"oneOf\":[");
    for (int i = 0; i < 100; i++) {
        n += (size_t)sprintf(text + n, "%s{\"type\":\"object\",\"properties\":{",
                             i > 0 ? "," : "");
        for (int k = 0; k < 60; k++)
            n += (size_t)sprintf(text + n, "%s\"m%d\":{\"type\":\"null\"}", k > 0 ? "," : "", k);
        n += (size_t)sprintf(text + n, ",\"k\":{\"const\":\"%d\"}},\"required\":[\"k\"]}", i);
    }
    n += (size_t)sprintf(text + n, "]}");
    assert_int_equal(grammar_of(text, n, &e), -1);
    assert_non_null(strstr(e.what, "the schema takes too much time"));
    /* alternatives that have many members of their own */
    n = (size_t)sprintf(text, "{\"oneOf\":[");
    for (int i = 0; i < 256; i++) {
        n += (size_t)sprintf(text + n,
                             "%s{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"%d\"}},"
                             "\"required\":[\"k\"],", i > 0 ? "," : "", i);
        n += repeat(text + n, "\"title\":\"\"", 240);
        n += (size_t)sprintf(text + n, "}");
    }
    n += (size_t)sprintf(text + n, "]}");
    assert_int_equal(grammar_of(text, n, &e), -1);
    assert_non_null(strstr(e.what, "the schema takes too much time"));
    /* counts */
    n = (size_t)sprintf(text, "{\"type\":\"array\",\"minItems\":1000000000,\"items\":{\"type\":"
                              "\"string\",\"minLength\":1000000000}}");
    assert_int_equal(grammar_of(text, n, &e), 0);
    /* a text of a value that does not fit a grammar */
    n = (size_t)sprintf(text, "{\"const\":\"");
    memset(text + n, 'a', 100000);
    n += 100000;
    n += (size_t)sprintf(text + n, "\"}");
    assert_int_equal(grammar_of(text, n, &e), -1);
    assert_string_equal(e.what, "the grammar is too large");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_match_the_schema),
        cmocka_unit_test(names_what_is_not_supported_and_its_place),
        cmocka_unit_test(integers_keep_their_bounds),
        cmocka_unit_test(numbers_keep_their_bounds),
        cmocka_unit_test(bounds_lists_within_lists),
        cmocka_unit_test(bounds_what_hostile_schemas_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
