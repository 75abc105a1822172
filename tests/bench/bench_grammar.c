/*
 * Measure the cost of a grammar: the order of a vocabulary, once, and the mask of one token.
 *
 *     bench_grammar tokenizer.json       or a GGUF file
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/json_write.h"
#include "engine/grammar/grammar.h"
#include "engine/session/constraint.h"

#define ROUNDS 20

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":"
    "\"integer\"},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":400}},"
    "\"kind\":{\"enum\":[\"person\",\"animal\",\"plant\"]}},\"required\":[\"name\",\"kind\"]}";

/* A grammar, or NULL: the schema; and the answer so far. */
static const struct {
    const char *name, *grammar, *text;
} places[] = {
    { "the beginning of an object", NULL, "" },
    { "a name that must come", NULL, "{" },
    { "a text of any length", NULL, "{\"name\": \"A" },
    { "a text of at most 400", NULL, "{\"name\":\"A\",\"tags\":[\"some words" },
    { "a number", NULL, "{\"name\":\"A\",\"age\":4" },
    { "one of three words", NULL, "{\"name\":\"A\",\"kind\":\"" },
    { "any character", "root ::= .*", "some words" },
    { "words in 26 ways", "root ::= ([a-z]+ \" \")*", "some wo" },
    { "any number of the same", "root ::= \"a\"*", "aaa" },
};

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int measure(const struct tokenizer *t, const struct token_tree *tree, const char *grammar,
                   const char *name, const char *text, struct err *e)
{
    static const uint32_t stop[1];
    uint32_t n_vocab = tokenizer_info(t)->n_token, n_allowed = 0;
    struct constraint_options o = { .grammar = grammar, .tree = tree, .tokenizer = t,
                                    .stop_ids = stop };
    double first = 0, after = 0, same = 0;
    struct chat_choice *choice = NULL;
    struct ids ids = { 0 };
    float *logits = calloc(n_vocab, sizeof *logits);

    if (logits == NULL ||
        chat_choose(&choice, NULL, t, &(struct chat_wish){ .format = "raw" }, e) != 0 ||
        tokenizer_encode_on(t, text, strlen(text), &ids, e) != 0)
        return -1;
    o.format = chat_choice_format(choice);
    for (int i = 0; i < ROUNDS; i++) {
        struct constraint *c;
        double start;

        if (constraint_new(&c, &o, e) != 0)
            return -1;
        constraint_begin(c, NULL, 0);
        for (int k = 0; k < 3; k++) {
            memset(logits, 0, n_vocab * sizeof *logits);
            if (k == 1) /* the states are known, but the mask is not */
                constraint_mask(c, ids.id, ids.n > 0 ? ids.n - 1 : 0, logits, n_vocab, e);
            memset(logits, 0, n_vocab * sizeof *logits);
            start = cpu_ms();
            if (constraint_mask(c, ids.id, ids.n, logits, n_vocab, e) != 0)
                return -1;
            *(k == 0 ? &first : k == 1 ? &after : &same) += (cpu_ms() - start) / ROUNDS;
        }
        constraint_free(c);
    }
    for (uint32_t id = 0; id < n_vocab; id++)
        n_allowed += logits[id] == 0;
    printf("  %-28s %7u allowed   first %6.2f ms   states known %6.2f ms   same state %6.3f ms\n",
           name, n_allowed, first, after, same);
    ids_free(&ids);
    chat_choice_free(choice);
    free(logits);
    return 0;
}

static int run(const char *path, struct err *e)
{
    struct catalogue *c = NULL;
    struct tokenizer *t = NULL;
    struct token_tree tree;
    struct json made;
    double start;

    if (vocab_open(&c, path, e) != 0 || tokenizer_open(&t, c, e) != 0)
        return -1;
    start = cpu_ms();
    if (constraint_tree(&tree, t, e) != 0)
        return -1;
    printf("%u tokens, %u with text, in order after %.0f ms\n", tree.n_vocab, tree.n,
           cpu_ms() - start);
    json_start(&made);
    start = cpu_ms();
    if (mw_grammar_of_schema(&made, schema, sizeof schema - 1, e) != 0)
        return -1;
    printf("a schema of %zu bytes, read and checked in %.2f ms\n", sizeof schema - 1,
           cpu_ms() - start);
    json_raw(&made, "", 1);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (measure(t, &tree, places[i].grammar != NULL ? places[i].grammar : made.buf,
                    places[i].name, places[i].text, e) != 0)
            return -1;
    json_release(&made);
    token_tree_close(&tree);
    tokenizer_close(t);
    catalogue_close(c);
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    char text[900];

    if (argc != 2) {
        fprintf(stderr, "usage: bench_grammar VOCABULARY\n");
        return 2;
    }
    if (run(argv[1], &e) == 0)
        return 0;
    err_text(&e, text, sizeof text);
    fprintf(stderr, "bench_grammar: %s\n", text);
    return 1;
}
