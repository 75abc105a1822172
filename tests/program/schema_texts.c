/*
 * Write random texts of the grammars of schemas, for test_schema_random.py.
 *
 *     schema_texts N SEED < FILE      a schema in each line
 *
 * For each schema: N lines "T text", or one line "E error"; then a line with a point.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_write.h"
#include "engine/grammar/gbnf.h"
#include "engine/grammar/grammar.h"
#include "engine/grammar/machine.h"

#define TEXT_MOST   4000
#define SHORT       60 /* a longer text is closed where it may be */
#define CLOSE_OFTEN 40

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* Append a byte that may come next.  Returns the state after it; MACHINE_DEAD if there is none. */
static uint32_t step(struct machine *m, uint32_t at, char *out, size_t used)
{
    static const char bytes[] = "\"{}[],:0123456789-.abcdefghijklmnopqrstuvwxyz";
    char may[sizeof bytes * CLOSE_OFTEN];
    size_t n = 0;

    for (size_t i = 0; i + 1 < sizeof bytes; i++) {
        size_t often = used > SHORT && strchr("\"}]", bytes[i]) != NULL ? CLOSE_OFTEN : 1;

        if (machine_byte(m, at, bytes[i]) > MACHINE_DEAD)
            while (often-- > 0)
                may[n++] = bytes[i];
    }
    if (n == 0)
        return MACHINE_DEAD;
    out[used] = may[below((uint32_t)n)];
    return machine_byte(m, at, out[used]);
}

static void write_text(struct machine *m)
{
    char text[TEXT_MOST];
    uint32_t at = machine_start(m);
    size_t n = 0;

    for (; n < TEXT_MOST && at > MACHINE_DEAD; n++) {
        machine_begin(m);
        if (machine_may_end(m, at) && (machine_must_end(m, at) || below(2) == 0)) {
            printf("T %.*s\n", (int)n, text);
            return;
        }
        at = step(m, at, text, n);
    }
    /* Some numbers, and texts of other characters, lead nowhere with the bytes above. */
}

static int write_texts(const char *schema, int n)
{
    struct machine m = { .program = NULL };
    struct program *p = NULL;
    struct json grammar;
    struct err e = ERR_INIT;
    int rc;

    json_start(&grammar);
    rc = mw_grammar_of_schema(&grammar, schema, strlen(schema), &e);
    if (rc != 0) {
        printf("E %s\n.\n", e.what);
        json_release(&grammar);
        return 0;
    }
    rc = gbnf_parse(&p, grammar.buf, grammar.used, NULL, NULL, &e);
    if (rc == 0)
        rc = machine_open(&m, p, &e);
    for (int i = 0; rc == 0 && i < n; i++)
        write_text(&m);
    printf(".\n");
    machine_close(&m);
    program_free(p);
    json_release(&grammar);
    return rc;
}

int main(int argc, char **argv)
{
    static char line[1 << 16];
    int rc = argc == 3 ? 0 : 2;

    if (rc == 0)
        state = strtoull(argv[2], NULL, 10);
    while (rc == 0 && fgets(line, sizeof line, stdin) != NULL)
        rc = write_texts(line, atoi(argv[1]));
    return rc != 0;
}
