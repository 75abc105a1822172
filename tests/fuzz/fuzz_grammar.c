/*
 * Grammars and JSON schemas of other programs.
 *
 * The first byte is "g" for a grammar, which a text follows after a NUL, or anything else for a
 * schema.  A text that a grammar allows is allowed with all other states forgotten at any byte.
 * A text that is made from a schema, with its bytes chosen by the input, is JSON if it ends.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_write.h"
#include "engine/format/json.h"
#include "engine/grammar/gbnf.h"
#include "engine/grammar/grammar.h"
#include "engine/grammar/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_MOST 400

/* Returns the state, or MACHINE_NONE: the grammar is too expensive. */
static uint32_t follow(struct machine *m, const char *text, size_t n, size_t forget)
{
    uint32_t at = machine_start(m);

    for (size_t i = 0; i < n && at != MACHINE_NONE && at != MACHINE_DEAD; i++) {
        machine_begin(m);
        if (i == forget)
            at = machine_keep(m, at);
        if (at != MACHINE_NONE)
            at = machine_byte(m, at, text[i]);
    }
    return at;
}

static void check_text(struct machine *m, const char *text, size_t n)
{
    uint32_t at = follow(m, text, n, n), again;
    bool may_end = at != MACHINE_NONE && machine_may_end(m, at), is_dead = at == MACHINE_DEAD;

    if (at == MACHINE_NONE)
        return;
    again = follow(m, text, n, n / 2);
    if (again == MACHINE_NONE || (again == MACHINE_DEAD) != is_dead ||
        machine_may_end(m, again) != may_end)
        abort();
}

static void check_grammar(const char *text, size_t n)
{
    const char *end = memchr(text, '\0', n);
    size_t len = end != NULL ? (size_t)(end - text) : n;
    struct program *p;
    struct machine m;
    struct err e = ERR_INIT;

    if (gbnf_parse(&p, text, len, NULL, NULL, &e) != 0) {
        if (e.code != ERR_ARGUMENT || e.what[0] == '\0')
            abort();
        return;
    }
    if (machine_open(&m, p, &e) != 0)
        abort();
    if (end != NULL)
        check_text(&m, end + 1, n - len - 1);
    machine_close(&m);
    program_free(p);
}

/* Make a text: at each byte, one of those that are allowed. */
static size_t make_text(struct machine *m, const uint8_t *data, size_t size, char *text,
                        bool *is_whole)
{
    uint32_t at = machine_start(m);
    size_t n = 0;

    *is_whole = false;
    while (at != MACHINE_NONE && n < TEXT_MOST && !*is_whole) {
        unsigned first = n < size ? data[n] : n % 7 == 0 ? '"' : '}';
        uint32_t next = MACHINE_DEAD;

        machine_begin(m);
        for (unsigned i = 0; i < 256 && next == MACHINE_DEAD; i++) {
            text[n] = (char)(first + i);
            next = machine_byte(m, at, text[n]);
        }
        *is_whole = machine_may_end(m, at) && (next == MACHINE_DEAD || n % 3 == 0);
        if (next == MACHINE_DEAD && !*is_whole)
            abort(); /* a schema whose grammar cannot go on */
        if (!*is_whole) {
            at = next;
            n++;
        }
    }
    return n;
}

static void check_schema(const uint8_t *data, size_t size)
{
    char text[TEXT_MOST];
    struct json grammar;
    struct json_doc *doc = NULL;
    struct program *p;
    struct machine m;
    struct err e = ERR_INIT;
    bool is_whole;
    size_t n;

    json_start(&grammar);
    if (mw_grammar_of_schema(&grammar, (const char *)data, size, &e) == 0) {
        if (gbnf_parse(&p, grammar.buf, grammar.used, NULL, NULL, &e) != 0 ||
            machine_open(&m, p, &e) != 0)
            abort();
        n = make_text(&m, data, size, text, &is_whole);
        if (is_whole && json_parse(&doc, text, n, &e) != 0 && strstr(e.what, "deep") == NULL)
            abort();
        json_free(doc);
        machine_close(&m);
        program_free(p);
    } else if (e.code == ERR_NONE || e.what[0] == '\0') {
        abort();
    }
    json_release(&grammar);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] == 'g')
        check_grammar((const char *)data + 1, size - 1);
    else
        check_schema(data + 1, size - 1);
    return 0;
}
