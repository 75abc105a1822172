/*
 * test_jinja.c - parts that the comparison with the reference does not cover: sources of bytes,
 * bounds, messages and building values.
 */
#include "config.h"

#include <sys/mman.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/format/json.h"
#include "engine/text/jinja.h"

#define MEMORY  ((size_t)4 << 20)
#define TEXT(s) s, sizeof(s) - 1

static const struct tm now = { .tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_wday = 5 };

/* m and k are texts of sources 1 and 2, i is a number of source 3, and l has both texts and the
 * number. */
static void define(struct jinja_data *d)
{
    struct jinja_value *list = jinja_list(d), *dict = jinja_dict(d);

    jinja_define(d, "m", jinja_string(d, TEXT("<|Ab|>"), 1));
    jinja_define(d, "k", jinja_string(d, TEXT(" \xc3\xa9\"z "), 2));
    jinja_define(d, "lines", jinja_string(d, TEXT("a\nb\n\nc"), 1));
    jinja_append(d, list, jinja_string(d, TEXT("x y"), 1));
    jinja_append(d, list, jinja_string(d, TEXT("Q"), 2));
    jinja_define(d, "l", list);
    jinja_set(d, dict, "key", jinja_string(d, TEXT("val"), 1));
    jinja_set(d, dict, "n", jinja_int(d, 7));
    jinja_define(d, "dict", dict);
}

static int render(const char *template, size_t memory, struct jinja_text *out, struct err *e)
{
    struct jinja_data *d = NULL;
    struct jinja *j = NULL;
    int got = jinja_parse(&j, template, strlen(template), e);

    *out = (struct jinja_text){ 0 };
    if (got == 0)
        got = jinja_data_new(&d, memory, e);
    if (got == 0) {
        define(d);
        got = jinja_render(j, d, &now, out, e);
        assert_true(jinja_data_used(d) <= memory);
    }
    jinja_data_free(d);
    jinja_free(j);
    return got;
}

/* ---- sources ---- */

/* sources has a digit for each byte of text. */
static const struct {
    const char *template, *text, *sources;
} sourced[] = {
    { "a{{ m }}b", "a<|Ab|>b", "01111110" },
    { "{{ m }}{{ k }}", "<|Ab|> \xc3\xa9\"z ", "111111222222" },
    { "{{ '<|' + m[2:4] + '|>' }}", "<|Ab|>", "001100" },
    { "{{ 'a' ~ m[0] ~ 'b' ~ 1 ~ none }}", "a<b1None", "01000000" },
    { "{{ (m + k)[5:8] }}", "> \xc3\xa9", "1222" },
    { "{{ (m + k)[::-1] }}", " z\"\xc3\xa9 >|bA|<", "222222111111" },
    { "{{ ('<' + m + k)|trim }}", "<<|Ab|> \xc3\xa9\"z", "011111122222" },
    { "{{ m|upper }}{{ m.lower() }}{{ ('a' + m)|title }}", "<|AB|><|ab|>A<|ab|>",
      "1111111111110111111" },
    { "{{ m|replace('A', 'xx') }}", "<|xxb|>", "1100111" },
    { "{{ 'aAa'|replace('A', m) }}", "a<|Ab|>a", "01111110" },
    { "{{ m.replace('', '-') }}", "-<-|-A-b-|->-", "0101010101010" },
    { "{{ m.split('A')|join('+') }}", "<|+b|>", "110111" },
    { "{{ m.rsplit('A', 1)|join('+') }}", "<|+b|>", "110111" },
    { "{{ m.removeprefix('<') ~ m.removesuffix('|>') }}", "|Ab|><|Ab", "111111111" },
    { "{{ 'a{}{x}'.format(m, x=k[2]) }}", "a<|Ab|>\"", "01111112" },
    { "{{ [m, 'z']|min }}", "<|Ab|>", "111111" },
    { "{% macro f() %}[{{ caller(m) }}]{% endmacro %}{% call(x) f() %}a{{ x }}{% endcall %}",
      "[a<|Ab|>]", "001111110" },
    { "{% for x in [m, [k[2]]] recursive %}-{{ x if x is string else loop(x) }}{% endfor %}",
      "-<|Ab|>--\"", "0111111002" },
    { "{{ l|join(m) }}", "x y<|Ab|>Q", "1111111112" },
    { "{{ l[0].split()|list }}", "['x', 'y']", "0111001110" },
    { "{{ l }}", "['x y', 'Q']", "011111002220" },
    { "{{ l|tojson }}", "[\"x y\", \"Q\"]", "011111002220" },
    { "{{ dict|tojson }}", "{\"key\": \"val\", \"n\": 7}", "0000000011111000000000" },
    { "{{ k|tojson }}", "\" \xc3\xa9\\\"z \"", "222222222" },
    { "{{ 'q\"' ~ k[3] }}{{ ('\"' ~ k)|tojson }}", "q\"z\"\\\" \xc3\xa9\\\"z \"",
      "00220022222222" },
    { "{{ lines|indent(2) }}", "a\n  b\n\n  c", "1100111001" },
    { "{{ m[0] * 3 }}", "<<<", "111" },
    { "{% set x %}a{{ m }}{% endset %}{{ x }}{{ x[1:3] }}", "a<|Ab|><|", "011111111" },
    { "{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(m) }}{{ f('a') }}", "[<|Ab|>][a]",
      "01111110000" },
    { "{% filter upper %}a{{ m }}{% endfilter %}", "A<|AB|>", "0111111" },
    { "{% generation %}{{ m }}{% endgeneration %}", "<|Ab|>", "111111" },
    { "{{ m if m == '<|Ab|>' else 'no' }}", "<|Ab|>", "111111" },
    { "{{ 'yes' if m in ['<|Ab|>'] }}{{ m|length }}{{ m is string }}", "yes6True", "00000000" },
    { "{% for c in m[:3] %}{{ loop.index }}{{ c }}{% endfor %}", "1<2|3A", "010101" },
    { "{{ {m: 1} }}", "{'<|Ab|>': 1}", "0111111110000" },
    { "{{ ['a', m, 'b']|sort|join }}{{ [m, m]|unique|join }}", "<|Ab|>ab<|Ab|>",
      "11111100111111" },
    { "{{ l|map('upper')|join(' ') }}", "X Y Q", "11102" },
    { "{{ [m]|first }}{{ m|first }}{{ m|last }}{{ m|list|join('.') }}", "<|Ab|><><.|.A.b.|.>",
      "1111111110101010101" },
    { "{{ (m|safe) + '<' }}{{ ('<'|safe) + m }}", "<|Ab|>&lt;<&lt;|Ab|&gt;",
      "11111100000111111111111" },
    { "{{ '12'|int + 1 }}", "13", "00" },
    { "{{ m|string|default('x') }}{{ nope|default(m) }}", "<|Ab|><|Ab|>", "111111111111" },
    { "{{ strftime_now('%d') }}{{ strftime_now(m[2:3]) }}", "26A", "001" },
    { "{% set ns = namespace(t='') %}{% for x in l %}{% set ns.t = ns.t + '-' + x %}{% endfor "
      "%}"
      "{{ ns.t }}",
      "-x y-Q", "011102" },
    { "{% set a = m + 'a' %}{% set b = a + 'b' %}{% set c = a + k %}{{ b }}{{ c }}{{ a }}",
      "<|Ab|>ab<|Ab|>a \xc3\xa9\"z <|Ab|>a", "1111110011111102222221111110" },
};

static void sources_survive(void **state)
{
    unsigned n_wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof sourced / sizeof sourced[0]; i++) {
        struct err e = ERR_INIT;
        struct jinja_text out;
        char found[256] = "";
        size_t at = 0;
        int got = render(sourced[i].template, MEMORY, &out, &e);

        if (sourced[i].text == NULL) {
            assert_int_equal(got, -1);
            continue;
        }
        if (got != 0)
            fail_msg("%s: %s", sourced[i].template, e.what);
        for (size_t k = 0; k < out.n_run; k++) {
            assert_true(out.runs[k].len > 0);
            assert_true(k == 0 || out.runs[k].source != out.runs[k - 1].source);
            for (size_t b = 0; b < out.runs[k].len; b++)
                found[at++] = (char)('0' + out.runs[k].source);
        }
        assert_int_equal(at, out.len);
        if (strcmp(out.bytes, sourced[i].text) != 0 || strcmp(found, sourced[i].sources) != 0) {
            print_error("%s\n  text    %s\n  not     %s\n  sources %s\n  not     %s\n",
                        sourced[i].template, out.bytes, sourced[i].text, found,
                        sourced[i].sources);
            n_wrong++;
        }
        jinja_text_free(&out);
    }
    assert_int_equal(n_wrong, 0);
}

/* ---- bounds ---- */

/* Each template ends with the given error. */
static const struct {
    const char *template;
    enum err_code code;
} hostile[] = {
    { "{{ 'a' * 1000000000 }}", ERR_BUDGET },
    { "{{ 'a' * 1000000000000000000 * 1000000000000000000 }}", ERR_BUDGET },
    { "{{ ('a' * 1000) * 9223372036854775807 }}", ERR_BUDGET },
    { "{{ [1] * 1000000000000 }}", ERR_BUDGET },
    { "{{ 9223372036854775807 * 2 }}", ERR_BUDGET },
    { "{{ -9223372036854775807 - 2 }}", ERR_BUDGET },
    { "{{ (-9223372036854775807 - 1) // -1 }}", ERR_BUDGET },
    { "{{ range(1000000000000)|list }}", ERR_BUDGET },
    { "{{ range(-9223372036854775807, 9223372036854775807) }}", ERR_BUDGET },
    { "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}x"
      "{% endfor %}{% endfor %}{% endfor %}",
      ERR_BUDGET },
    { "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      ERR_BUDGET },
    { "{% set ns = namespace(t='ab') %}{% for i in range(99) %}{% set ns.t = ns.t + ns.t %}"
      "{% endfor %}{{ ns.t }}",
      ERR_BUDGET },
    { "{% set ns = namespace(t='ab') %}{% for i in range(99) %}{% set ns.t = ns.t ~ ns.t %}"
      "{% endfor %}",
      ERR_BUDGET },
    { "{% set ns = namespace(t='ab') %}{% for i in range(99) %}"
      "{% set ns.t = ns.t|replace('a', ns.t) %}{% endfor %}",
      ERR_BUDGET },
    { "{% set ns = namespace(t=['ab']) %}{% for i in range(99) %}{% set ns.t = ns.t + ns.t %}"
      "{% endfor %}",
      ERR_BUDGET },
    { "{% set ns = namespace(t=[1]) %}{% for i in range(99) %}{% set ns.t = [ns.t, ns.t] %}"
      "{% endfor %}{{ ns.t }}",
      ERR_BUDGET },
    { "{% set ns = namespace(t=[1]) %}{% for i in range(99) %}{% set ns.t = [ns.t, ns.t] %}"
      "{% endfor %}{{ ns.t == [ns.t[0], ns.t[1]] }}{% set u = namespace(t=[1]) %}"
      "{% for i in range(99) %}{% set u.t = [u.t, u.t] %}{% endfor %}{{ u.t == ns.t }}",
      ERR_BUDGET },
    { "{% set ns = namespace(t=1) %}{% for i in range(9999) %}{% set ns.t = [ns.t] %}"
      "{% endfor %}{{ ns.t }}",
      ERR_BUDGET },
    { "{% set ns = namespace(t=1) %}{% for i in range(9999) %}{% set ns.t = {'a': ns.t} %}"
      "{% endfor %}{{ ns.t|tojson }}",
      ERR_BUDGET },
    { "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", ERR_BUDGET },
    { "{% macro f() %}{{ caller() }}{% call f() %}{% endcall %}{% endmacro %}"
      "{% call f() %}{% endcall %}",
      ERR_BUDGET },
    { "{% for x in [1, 2] recursive %}{{ loop([x, x]) }}{% endfor %}", ERR_BUDGET },
    { "{% for x in range(9999) %}{{ ('a' * 99999).rsplit('b' * 9999) }}{% endfor %}", ERR_BUDGET },
    { "{% macro f(x) %}{{ x }}{% endmacro %}{% macro g() %}{{ f(g()) }}{% endmacro %}{{ g() }}",
      ERR_BUDGET },
    { "{% macro f() %}{% for i in [1, 2] %}{{ f() }}{% endfor %}{% endmacro %}{{ f() }}",
      ERR_BUDGET },
    { "{{ 'a\nb'|indent(1000000000000000) }}", ERR_BUDGET },
    { "{{ [1]|tojson(indent=1000000000000000) }}", ERR_BUDGET },
    { "{{ ('a' * 100000).replace('', 'b' * 10000) }}", ERR_BUDGET },
    { "{{ ('a' * 10000)|join('b' * 10000) }}", ERR_BUDGET },
    { "{% set s = 'a' * 99999 %}{% for i in range(99999) %}{{ s.find('ab') }}{% endfor %}",
      ERR_BUDGET },
    { "{% set s = '\u00e9' * 50000 %}{% for i in range(49999) %}{{ s[i] }}{% endfor %}",
      ERR_BUDGET },
    { "{% set l = range(30000)|list %}{% for i in l %}{{ i in l }}{% endfor %}", ERR_BUDGET },
    { "{% set ns = namespace(t=[]) %}{% for i in range(30000) %}{% set ns.t = ns.t + [i] %}"
      "{% endfor %}",
      ERR_BUDGET },
    { "{{ ('9' * 5000)|int }}", ERR_BUDGET },
};

static void hostile_templates_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        struct err e = ERR_INIT;
        struct jinja_text out;

        if (render(hostile[i].template, MEMORY, &out, &e) != -1 || e.code != hostile[i].code)
            fail_msg("%s: wrong error %d, %s", hostile[i].template, e.code, e.what);
        assert_null(out.bytes);
    }
}

/* Repeat part n times between prefix and end: every kind of nesting is refused before the stack
 * is used up. */
static void deep_templates_are_refused(void **state)
{
    static const char *const parts[][3] = {
        { "{{ ", "(", "" },
        { "{{ ", "[", "" },
        { "{{ ", "{1:", "" },
        { "{{ ", "-", "1 }}" },
        { "{{ ", "not ", "1 }}" },
        { "{{ a", ".b", " }}" },
        { "{{ a", "[0]", " }}" },
        { "{{ a", "()", " }}" },
        { "{{ a", "|trim", " }}" },
        { "{{ a", "(a", " }}" },
        { "{{ 1", " if 1 else 1", " }}" },
        { "{{ 1", " is defined", " }}" },
        { "", "{% if 1 %}", "" },
        { "", "{% for a in b %}", "" },
        { "", "{% set a %}", "" },
        { "", "{% macro a() %}", "" },
        { "", "{% call a() %}", "" },
        { "{% for ", "(", "" },
        { "{% set ", "(a,", "" },
    };
    size_t n = 100000;
    char *text = malloc(n * 20 + 100);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t len = strlen(parts[i][1]), at = strlen(parts[i][0]);
        size_t times = n * len < JINJA_TEMPLATE_MAX ? n : (JINJA_TEMPLATE_MAX - 100) / len;
        struct jinja *j;
        struct err e = ERR_INIT;

        strcpy(text, parts[i][0]);
        for (size_t k = 0; k < times; k++, at += len)
            memcpy(text + at, parts[i][1], len);
        strcpy(text + at, parts[i][2]);
        assert_int_equal(jinja_parse(&j, text, strlen(text), &e), -1);
        assert_null(j);
        if (e.code != ERR_BUDGET && e.code != ERR_FORMAT)
            fail_msg("%s: %s", parts[i][1], e.what);
    }
    free(text);
}

static void long_chains_are_not_deep(void **state)
{
    char *text = malloc(200000);
    struct err e = ERR_INIT;
    struct jinja_text out;
    size_t at;

    (void)state;
    assert_non_null(text);
    at = (size_t)sprintf(text, "{{ 'a'");
    for (int i = 0; i < 2000; i++)
        at += (size_t)sprintf(text + at, " + 'b'");
    sprintf(text + at, " }}{%% if 1 == 2 %%}");
    at = strlen(text);
    for (int i = 0; i < 600; i++)
        at += (size_t)sprintf(text + at, "{%% elif 0 %%}x");
    sprintf(text + at, "{%% endif %%}");
    assert_int_equal(render(text, MEMORY, &out, &e), 0);
    assert_int_equal(out.len, 2001);
    jinja_text_free(&out);
    free(text);
}

static void templates_have_a_size(void **state)
{
    size_t n = JINJA_TEMPLATE_MAX;
    char *text = calloc(1, n + 1);
    struct err e = ERR_INIT;
    struct jinja *j;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', n + 1);
    assert_int_equal(jinja_parse(&j, text, n + 1, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    assert_int_equal(jinja_parse(&j, text, n, &e), 0);
    jinja_free(j);
    memcpy(text, "{{ ", 3);
    for (size_t i = 3; i + 2 <= n; i += 2)
        memcpy(text + i, "1,", 2);
    assert_int_equal(jinja_parse(&j, text, n, &e), -1); /* never closed */
    for (size_t i = 0; i + 6 <= n; i += 6)
        sprintf(text + i, "%c%c%c%c{{", 'a' + (int)(i % 23), 'a' + (int)(i % 19),
                'a' + (int)(i % 17), '}');
    assert_int_equal(jinja_parse(&j, text, n, &e), -1);
    assert_int_equal(jinja_parse(&j, "\xff", 1, &e), -1);
    assert_int_equal(e.code, ERR_FORMAT);
    free(text);
}

/* The memory for a long conversation is a small multiple of its text. */
static void memory_follows_the_text(void **state)
{
    static const char template[] =
        "{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content|trim + '<|end|>\n' }}"
        "{% endfor %}";
    size_t n_message = 200, len = 10000;
    char *content = malloc(len);
    struct jinja_value *messages;
    struct err e = ERR_INIT;
    struct jinja_text out;
    struct jinja_data *d;
    struct jinja *j;

    (void)state;
    assert_non_null(content);
    memset(content, 'x', len);
    assert_int_equal(jinja_parse(&j, TEXT(template), &e), 0);
    assert_int_equal(jinja_data_new(&d, n_message * len * 5 / 2, &e), 0);
    messages = jinja_list(d);
    for (size_t i = 0; i < n_message; i++) {
        struct jinja_value *m = jinja_dict(d);

        jinja_set(d, m, "role", jinja_string(d, TEXT("user"), JINJA_TRUSTED));
        jinja_set(d, m, "content", jinja_string(d, content, len, (uint32_t)i + 1));
        jinja_append(d, messages, m);
    }
    jinja_define(d, "messages", messages);
    if (jinja_render(j, d, &now, &out, &e) != 0)
        fail_msg("%s", e.what);
    assert_true(out.len > n_message * len);
    assert_int_equal(out.n_run, n_message * 2 + 1);
    jinja_text_free(&out);
    jinja_data_free(d);
    jinja_free(j);
    free(content);
}

static void collecting_text_is_linear(void **state)
{
    struct err e = ERR_INIT;
    struct jinja_text out;

    (void)state;
    assert_int_equal(render("{% set ns = namespace(t='') %}{% for i in range(10000) %}"
                            "{% set ns.t = ns.t + 'abcdefghij' %}{% endfor %}{{ ns.t|length }}",
                            (size_t)16 << 20, &out, &e),
                     0);
    assert_string_equal(out.bytes, "100000");
    jinja_text_free(&out);
}

static void builders_report_their_bound_once(void **state)
{
    struct err e = ERR_INIT;
    struct jinja_data *d;
    struct jinja_text out;
    struct jinja_value *list;
    struct jinja *j;

    (void)state;
    assert_int_equal(jinja_data_new(&d, 1, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    assert_int_equal(jinja_data_new(&d, 20000, &e), 0);
    list = jinja_list(d);
    for (int i = 0; i < 10000; i++)
        jinja_append(d, list, jinja_string(d, TEXT("x"), 1));
    assert_null(jinja_none(d));
    jinja_define(d, "x", list);
    assert_true(jinja_data_used(d) <= 20000);
    assert_int_equal(jinja_parse(&j, "x", 1, &e), 0);
    assert_int_equal(jinja_render(j, d, &now, &out, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    assert_null(out.bytes);
    jinja_free(j);
    jinja_data_free(d);
    jinja_free(NULL);
    jinja_data_free(NULL);
}

/* ---- values of JSON ---- */

static int render_json(const char *template, const char *json, struct jinja_text *out,
                       struct err *e)
{
    int fd = memfd_create("json", 0), got;
    struct jinja_data *d;
    struct json_doc *doc;
    struct jinja *j;

    assert_int_equal(write(fd, json, strlen(json)), (ssize_t)strlen(json));
    assert_int_equal(json_read(&doc, fd, strlen(json), e), 0);
    assert_int_equal(jinja_parse(&j, template, strlen(template), e), 0);
    assert_int_equal(jinja_data_new(&d, MEMORY, e), 0);
    jinja_define(d, "messages", jinja_messages(d, json_root(doc), false));
    jinja_define(d, "other", jinja_from_json(d, json_root(doc), 9));
    got = jinja_render(j, d, &now, out, e);
    jinja_data_free(d);
    jinja_free(j);
    json_free(doc);
    close(fd);
    return got;
}

static void only_names_of_roles_are_trusted(void **state)
{
    static const char json[] = "[{\"role\": \"user\", \"content\": \"a\"},"
                               " {\"role\": \"<|x|>\", \"n\": [12, 1.5, null, true]}]";
    static const struct jinja_run expected[] = {
        { 0, 4 }, { 1, 1 }, { 2, 5 }, { 0, 1 }, { 2, 2 }, { 0, 1 },
        { 2, 3 }, { 0, 1 }, { 2, 8 }, { 9, 4 }, { 2, 4 },
    };
    struct err e = ERR_INIT;
    struct jinja_text out;

    (void)state;
    assert_int_equal(render_json("{{ messages[0].role }}{{ messages[0].content }}"
                                 "{% set m = messages[1] %}{{ m.role }}"
                                 "|{{ m.n[0] }}|{{ m.n[1] }}|{{ m.n[2] }}{{ m.n[3] }}"
                                 "{{ other[0].role }}{{ m|first }}",
                                 json, &out, &e),
                     0);
    assert_string_equal(out.bytes, "usera<|x|>|12|1.5|NoneTrueuserrole");
    assert_int_equal(out.n_run, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < out.n_run; i++) {
        assert_int_equal(out.runs[i].source, expected[i].source);
        assert_int_equal(out.runs[i].len, expected[i].len);
    }
    jinja_text_free(&out);
}

static void large_numbers_are_refused(void **state)
{
    struct err e = ERR_INIT;
    struct jinja_text out;

    (void)state;
    assert_int_equal(render_json("x", "[{\"n\": 99999999999999999999}]", &out, &e), -1);
    assert_string_equal(e.what, "the number 99999999999999999999 does not fit 64 bits");
    assert_int_equal(render_json("x", "{\"n\": 1}", &out, &e), -1);
    assert_string_equal(e.what, "the messages are not a JSON array");
}

/* ---- messages ---- */

static const struct {
    const char *template, *what;
    enum err_code code;
} messages[] = {
    { "a\nb{{ 1|foo }}", "line 2: unknown filter \"foo\"", ERR_UNSUPPORTED },
    { "{% if 1 is foo %}{% endif %}", "line 1: unknown test \"foo\"", ERR_UNSUPPORTED },
    { "\n\n{{ nope.x }}", "line 3: \"nope\" is undefined", ERR_FORMAT },
    { "{{ dict.x.y }}", "line 1: a value of type dict has no attribute \"x\"", ERR_FORMAT },
    { "{{ l[7].x }}", "line 1: a value of type list has no element 7", ERR_FORMAT },
    { "{{ dict.pop('x') }}", "line 1: a template may not use \"pop\" of a value of type dict",
      ERR_FORMAT },
    { "\r\n{{ raise_exception('no ' ~ m) }}", "line 2: no <|Ab|>", ERR_ARGUMENT },
    { "{{ raise_exception('\x1b[2J\t') }}", "line 1: ?[2J?", ERR_ARGUMENT },
    { "{{ 1 + 'a' }}", "line 1: \"+\" cannot be used with int and str", ERR_FORMAT },
    { "{{ 1 +\n }}", "line 2: unexpected \"}}\"", ERR_FORMAT },
    { "a\n{% if x %}\nb", "line 2: \"endif\" is missing", ERR_FORMAT },
    { "{% include 'x' %}", "line 1: the statement \"include\" is not supported",
      ERR_UNSUPPORTED },
    { "{% foo %}", "line 1: unknown statement \"foo\"", ERR_FORMAT },
    { "{{ 'a }}", "line 1: a string is never closed", ERR_FORMAT },
    { "{{ (1] }}", "line 1: unexpected ']', expected ')'", ERR_FORMAT },
    { "{{ 'a'.encode() }}", "line 1: the attribute \"encode\" of str is not supported",
      ERR_UNSUPPORTED },
    { "{{ 99999999999999999999 }}", "line 1: an integer does not fit 64 bits",
      ERR_UNSUPPORTED },
    { "{{ 'x'|wordcount }}", "line 1: unknown filter \"wordcount\"", ERR_UNSUPPORTED },
    { "{{ '%s' % 1 }}", "line 1: formatting with \"%\" is not supported", ERR_UNSUPPORTED },
    { "{{ '{:>4}'.format(1) }}",
      "line 1: a field of format with more than a name is not supported", ERR_UNSUPPORTED },
    { "{% for x in l %}{{ loop(l) }}{% endfor %}",
      "line 1: only a loop that is marked \"recursive\" can be called", ERR_FORMAT },
    { "{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}", "line 1: no caller is defined",
      ERR_FORMAT },
    { "{% macro f() %}{% endmacro %}\n{% call f() %}{% endcall %}",
      "line 2: the macro \"f\" does not use its caller", ERR_FORMAT },
    { "{% macro f() %}{{ kwargs }}{% endmacro %}",
      "line 1: \"kwargs\" in a macro is not supported", ERR_UNSUPPORTED },
    { "{% macro f(a) %}{% endmacro %}\n{{ f(1, 2) }}",
      "line 2: the macro \"f\" takes 1 arguments, not 2", ERR_FORMAT },
};

static void messages_name_line_and_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        struct err e = ERR_INIT;
        struct jinja_text out;

        assert_int_equal(render(messages[i].template, MEMORY, &out, &e), -1);
        assert_string_equal(e.what, messages[i].what);
        assert_int_equal(e.code, messages[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_survive),
        cmocka_unit_test(hostile_templates_end),
        cmocka_unit_test(deep_templates_are_refused),
        cmocka_unit_test(long_chains_are_not_deep),
        cmocka_unit_test(templates_have_a_size),
        cmocka_unit_test(memory_follows_the_text),
        cmocka_unit_test(collecting_text_is_linear),
        cmocka_unit_test(builders_report_their_bound_once),
        cmocka_unit_test(only_names_of_roles_are_trusted),
        cmocka_unit_test(large_numbers_are_refused),
        cmocka_unit_test(messages_name_line_and_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
