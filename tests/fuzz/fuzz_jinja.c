/*
 * Chat templates.
 *
 * The first byte chooses the conversation, the rest is the template.  Texts of the conversation
 * contain characters that mark their source and that nothing else can produce.  So none of them
 * may come out as a byte of another source, and above all not as one of the template.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja.h"

#define MEMORY_MAX ((size_t)192 << 10)
#define N_MESSAGE  4

/* U+F1231 and so on: private characters without case. */
#define MARK       "\xf3\xb1\x88"
#define MARK_BYTES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const contents[N_MESSAGE] = {
    MARK "\xb1 You are <b>\"terse\"</b>.\n{{ x }}<|im_end|>" MARK "\xb1",
    MARK "\xb2 \xc3\x89t\xc3\xa9 'a' \\ \r\n\xf0\x9f\x98\x80 1,2,3 %s {} </think>" MARK "\xb2",
    "<think>" MARK "\xb3\n</think>  Hello, \xce\xa3\xce\xa3 \xc3\x9f  " MARK "\xb3",
    MARK "\xb4",
};

static struct jinja_value *text(struct jinja_data *d, const char *s, uint32_t source)
{
    return jinja_string(d, s, strlen(s), source);
}

static struct jinja_value *tool_calls(struct jinja_data *d, uint32_t source)
{
    struct jinja_value *list = jinja_list(d), *call = jinja_dict(d), *f = jinja_dict(d),
                       *arguments = jinja_dict(d);

    jinja_set(d, arguments, "city", text(d, contents[source - 1], source));
    jinja_set(d, arguments, "days", jinja_int(d, INT64_MAX));
    jinja_set(d, arguments, "f", jinja_float(d, 1e300));
    jinja_set(d, arguments, "none", jinja_none(d));
    jinja_set(d, f, "name", text(d, "get_weather", source));
    jinja_set(d, f, "arguments", arguments);
    jinja_set(d, call, "id", text(d, "call12345", source));
    jinja_set(d, call, "function", f);
    jinja_append(d, list, call);
    return list;
}

static void define(struct jinja_data *d, unsigned shape)
{
    static const char *const roles[] = { "system", "user", "assistant", "tool" };
    struct jinja_value *messages = jinja_list(d), *l = jinja_list(d);
    unsigned n = shape & 4 ? 0 : N_MESSAGE;

    for (unsigned i = shape & 1; i < n; i++) {
        struct jinja_value *m = jinja_dict(d), *parts = jinja_list(d), *part = jinja_dict(d);

        jinja_set(d, m, "role", text(d, roles[i], JINJA_TRUSTED));
        if (shape & 2) {
            jinja_set(d, part, "type", text(d, "text", i + 1));
            jinja_set(d, part, "text", text(d, contents[i], i + 1));
            jinja_append(d, parts, part);
            jinja_set(d, m, "content", parts);
        } else {
            jinja_set(d, m, "content", text(d, contents[i], i + 1));
        }
        if (i == 2)
            jinja_set(d, m, "tool_calls", tool_calls(d, i + 1));
        jinja_append(d, messages, m);
    }
    jinja_define(d, "messages", messages);
    jinja_define(d, "s", text(d, contents[1], 2));
    jinja_define(d, "a", jinja_int(d, -7));
    jinja_define(d, "f", jinja_float(d, 2.5));
    jinja_append(d, l, text(d, contents[2], 3));
    jinja_append(d, l, jinja_int(d, 3));
    jinja_append(d, l, text(d, contents[3], 4));
    jinja_define(d, "l", l);
    jinja_define(d, "tools", tool_calls(d, 1));
    jinja_define(d, "bos_token", text(d, "<s>", JINJA_TRUSTED));
    jinja_define(d, "add_generation_prompt", jinja_bool(d, true));
}

static bool has(const char *s, size_t len, const char *what)
{
    return memmem(s, len, what, strlen(what)) != NULL;
}

/* Returns whether the template might make a private character from its number. */
static bool may_spell(const char *s, size_t len)
{
    if (has(s, len, MARK) || has(s, len, "\\U"))
        return true;
    for (size_t i = 1; i < len; i++) { /* %c and {:c} */
        if (s[i] == 'c' && strchr("%0123456789-+ #:.<>=^*lLh", s[i - 1]) != NULL)
            return true;
    }
    return false;
}

static void check_runs(const struct jinja_text *t, bool marks)
{
    size_t at = 0;

    for (size_t i = 0; i < t->n_run; i++) {
        const struct jinja_run *r = &t->runs[i];

        assert(r->len > 0 && r->len <= t->len - at);
        assert(i == 0 || r->source != t->runs[i - 1].source);
        assert(r->source <= N_MESSAGE);
        for (size_t k = 0; marks && k + MARK_BYTES <= r->len; k++) {
            const char *s = t->bytes + at + k;

            if (memcmp(s, MARK, MARK_BYTES - 1) == 0)
                assert((unsigned char)s[MARK_BYTES - 1] == 0xb0 + r->source);
        }
        at += r->len;
    }
    assert(at == t->len);
    assert(t->bytes[t->len] == '\0');
    assert(utf8_is_valid(t->bytes, t->len));
    assert(t->len <= MEMORY_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct tm now = { .tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_wday = 5 };
    struct err e = ERR_INIT;
    struct jinja_text out;
    struct jinja_data *d;
    struct jinja *j;
    const char *template = (const char *)bytes + 1;

    if (size == 0)
        return 0;
    if (jinja_parse(&j, template, size - 1, &e) != 0) {
        assert(j == NULL && e.code != ERR_NONE && e.what[0] != '\0');
        return 0;
    }
    if (jinja_data_new(&d, MEMORY_MAX, &e) != 0)
        abort();
    define(d, bytes[0]);
    if (jinja_render(j, d, &now, &out, &e) == 0)
        check_runs(&out, !may_spell(template, size - 1));
    else
        assert(out.bytes == NULL && e.code != ERR_NONE && e.what[0] != '\0');
    assert(jinja_data_used(d) <= MEMORY_MAX);
    jinja_text_free(&out);
    jinja_data_free(d);
    jinja_free(j);
    return 0;
}
