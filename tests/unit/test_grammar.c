/*
 * Grammars: which texts a grammar has, what is wrong with one, and that hostile ones cost little.
 * Random grammars are compared with a matcher that tries everything.
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

#include "engine/grammar/gbnf.h"
#include "engine/grammar/grammar.h"
#include "engine/grammar/machine.h"
#include "engine/grammar/token_tree.h"

static struct err e;

static struct program *parse(const char *text)
{
    struct program *p;

    e = (struct err)ERR_INIT;
    if (gbnf_parse(&p, text, strlen(text), NULL, NULL, &e) != 0)
        fail_msg("%s: %s at %llu", text, e.what, (unsigned long long)e.offset);
    return p;
}

enum verdict { NO, BEGINNING, YES, TOO_MUCH };

/* Run n bytes, with all states but one forgotten before byte `forget`, and when it must be. */
static enum verdict run(struct machine *m, const char *text, size_t n, size_t forget)
{
    uint32_t state = machine_start(m), next;

    for (size_t i = 0; i < n && state != MACHINE_NONE; i++, state = next) {
        machine_begin(m);
        next = i == forget ? MACHINE_NONE : machine_byte(m, state, text[i]);
        if (next != MACHINE_NONE)
            continue;
        state = machine_keep(m, state);
        next = state != MACHINE_NONE ? machine_byte(m, state, text[i]) : MACHINE_NONE;
    }
    if (state == MACHINE_NONE)
        return TOO_MUCH;
    return state == MACHINE_DEAD ? NO : machine_may_end(m, state) ? YES : BEGINNING;
}

static enum verdict verdict_of(const char *grammar, const char *text, size_t n)
{
    struct program *p = parse(grammar);
    struct machine m;
    enum verdict v;

    assert_int_equal(machine_open(&m, p, &e), 0);
    v = run(&m, text, n, n / 2);
    machine_close(&m);
    program_free(p);
    return v;
}

static void has(const char *grammar, const char *text)
{
    if (verdict_of(grammar, text, strlen(text)) != YES)
        fail_msg("%s does not have \"%s\"", grammar, text);
}

static void begins(const char *grammar, const char *text)
{
    if (verdict_of(grammar, text, strlen(text)) != BEGINNING)
        fail_msg("\"%s\" does not only begin a text of %s", text, grammar);
}

static void lacks(const char *grammar, const char *text)
{
    if (verdict_of(grammar, text, strlen(text)) != NO)
        fail_msg("%s has \"%s\"", grammar, text);
}

/* ---- texts ---- */

static void matches_literals_and_alternatives(void **state)
{
    (void)state;
    has("root ::= \"ab\" | \"ac\" \"d\"", "ab");
    has("root ::= \"ab\" | \"ac\" \"d\"", "acd");
    begins("root ::= \"ab\" | \"ac\" \"d\"", "a");
    begins("root ::= \"ab\" | \"ac\" \"d\"", "ac");
    lacks("root ::= \"ab\" | \"ac\" \"d\"", "ad");
    lacks("root ::= \"ab\"", "abb");
    has("root ::= \"\"", "");
    has("root ::= \"\\x41\\u00e9\\U0001F600\\n\\t\\r\\\\\\\"\\[\\]\"",
        "A\xc3\xa9\xf0\x9f\x98\x80\n\t\r\\\"[]");
}

static void matches_repetitions(void **state)
{
    (void)state;
    has("root ::= \"a\"*", "");
    has("root ::= \"a\"*", "aaaaaaaa");
    begins("root ::= \"a\"+", "");
    has("root ::= \"a\"+", "aaa");
    has("root ::= \"a\"?", "");
    lacks("root ::= \"a\"?", "aa");
    begins("root ::= \"ab\"{2}", "ab");
    has("root ::= \"ab\"{2}", "abab");
    lacks("root ::= \"ab\"{2}", "ababa");
    has("root ::= \"a\"{2,}", "aaaaa");
    begins("root ::= \"a\"{ 2 , }", "a");
    has("root ::= [a-b]{0,3} \"c\"", "abac");
    lacks("root ::= [a-b]{0,3} \"c\"", "abaac");
    has("root ::= \"a\"{0} \"b\"", "b");
    lacks("root ::= \"a\"{0} \"b\"", "a");
    has("root ::= (\"a\"?){3} \"b\"", "aab");
    lacks("root ::= (\"a\"?){3} \"b\"", "aaaab");
    has("root ::= (\"a\"* \"b\"?)* \"c\"", "aabbac");
    has("root ::= (\"a\" | \"aa\"){2,3}", "aaaaa");
    lacks("root ::= (\"a\" | \"aa\"){2,3}", "aaaaaaa");
}

static void matches_sets_of_characters(void **state)
{
    (void)state;
    has("root ::= [a-z0-9_-]+", "a-9_z");
    lacks("root ::= [a-z]", "A");
    has("root ::= [^a-z]", "\xe2\x82\xac");
    lacks("root ::= [^a-z]", "q");
    begins("root ::= [^a-z]", "\xe2\x82");
    has("root ::= [\xc3\xa0-\xc3\xbf]", "\xc3\xa9");
    lacks("root ::= [\xc3\xa0-\xc3\xbf]", "\xc3\x9f");
    has("root ::= [\\]\\[\\\\^-]", "]");
    has("root ::= [\\]\\[\\\\^-]", "-");
    has("root ::= .", "\n");
    has("root ::= .", "\xf4\x8f\xbf\xbf");
    lacks("root ::= .", "\xf4\x90");
    lacks("root ::= .", "\xed\xa0"); /* half of a surrogate pair */
    lacks("root ::= .", "\xc0");
    lacks("root ::= .", "\xe0\x80");
}

/* Every code point is in exactly those sets that name it. */
static void sets_have_their_code_points_and_no_others(void **state)
{
    static const uint32_t edges[] = { 0x0,    0x7f,   0x80,   0x7ff,   0x800,    0xd7ff,
                                      0xe000, 0xffff, 0x10000, 0x10ffff, 0x3bc,  0x4e2d };
    char grammar[80], text[4];

    (void)state;
    for (size_t i = 0; i < 12; i++)
        for (size_t j = 0; j < 12; j++) {
            if (edges[i] > edges[j])
                continue;
            for (int inverted = 0; inverted < 2; inverted++) {
                struct program *p;
                struct machine m;

                if (inverted && edges[i] == 0 && edges[j] == 0x10ffff)
                    continue;
                snprintf(grammar, sizeof grammar, "root ::= [%s\\U%08x-\\U%08x]",
                         inverted ? "^" : "", edges[i], edges[j]);
                p = parse(grammar);
                assert_int_equal(machine_open(&m, p, &e), 0);
                for (size_t k = 0; k < 12 * 3; k++) {
                    uint32_t cp = edges[k / 3] + (uint32_t)(k % 3) - 1;
                    size_t n;

                    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
                        continue;
                    n = cp < 0x80      ? (text[0] = (char)cp, 1)
                        : cp < 0x800   ? (text[0] = (char)(0xc0 | cp >> 6),
                                          text[1] = (char)(0x80 | (cp & 63)), 2)
                        : cp < 0x10000 ? (text[0] = (char)(0xe0 | cp >> 12),
                                          text[1] = (char)(0x80 | (cp >> 6 & 63)),
                                          text[2] = (char)(0x80 | (cp & 63)), 3)
                                       : (text[0] = (char)(0xf0 | cp >> 18),
                                          text[1] = (char)(0x80 | (cp >> 12 & 63)),
                                          text[2] = (char)(0x80 | (cp >> 6 & 63)),
                                          text[3] = (char)(0x80 | (cp & 63)), 4);
                    if ((run(&m, text, n, n) == YES) !=
                        ((cp >= edges[i] && cp <= edges[j]) != inverted))
                        fail_msg("%s and U+%04x", grammar, cp);
                }
                machine_close(&m);
                program_free(p);
            }
        }
}

static void reads_lines_and_comments(void **state)
{
    static const char grammar[] = "# the beginning\n"
                                  "root ::= a-1 # after a rule\n"
                                  "  | (\n  b # in a group\n  |\n\n \"z\")\n"
                                  "a-1 ::=\n  \"x\" |\n  \"y\"\r\n"
                                  "\n\tb ::= \"w\"";

    (void)state;
    has(grammar, "x");
    has(grammar, "y");
    has(grammar, "w");
    has(grammar, "z");
    lacks(grammar, "b");
}

static void matches_recursion(void **state)
{
    static const char grammar[] = "root ::= \"(\" root \")\" root | \"\"";
    char deep[2001];

    (void)state;
    has(grammar, "(()(()))()");
    begins(grammar, "(()");
    lacks(grammar, "())");
    for (size_t i = 0; i < 2000; i++)
        deep[i] = i < 1000 ? '(' : ')';
    deep[2000] = '\0';
    has(grammar, deep);
    /* A list that ends with itself does not grow the stack. */
    has("root ::= \"a\" root | \"b\"", "aaaaaaaaaaaaaaaaaaaab");
}

/* ---- errors ---- */

static void names_what_is_wrong_and_where(void **state)
{
    static const struct {
        const char *grammar, *what;
        uint64_t offset;
    } wrong[] = {
        { "", "the grammar has no rule \"root\"", 0 },
        { "a ::= \"x\"", "the grammar has no rule \"root\"", 9 },
        { "root \"x\"", "expected a rule: NAME ::= ...", 0 },
        { "root ::= b c\nc ::= \"x\"", "the rule \"b\" is not defined", 9 },
        { "root ::= \"x\"\nroot ::= \"y\"", "the rule \"root\" is defined twice", 13 },
        { "root ::= \"x", "a text has no closing quote", 9 },
        { "root ::= [a", "a set of characters has no \"]\"", 9 },
        { "root ::= []", "a set of characters is empty", 9 },
        { "root ::= [^\\x00-\\U0010ffff]", "a set of characters is empty", 9 },
        { "root ::= [z-a]", "a range of characters ends before it begins", 10 },
        { "root ::= (\"x\"", "a group has no \")\"", 9 },
        { "root ::= \"x\")", "there is no \"(\" for this \")\"", 12 },
        { "root ::= *", "there is nothing to repeat before \"*\"", 9 },
        { "root ::= \"x\"{", "expected a number", 13 },
        { "root ::= \"x\"{3,2}", "the second count is smaller than the first one", 13 },
        { "root ::= \"x\"{3", "a count has no \"}\"", 13 },
        { "root ::= \"x\"{1000000001}", "a count is larger than 1000000000", 13 },
        { "root ::= \"\\q\"", "unknown escape", 10 },
        { "root ::= \"\\x1\"", "the escape needs 2 hexadecimal digits", 10 },
        { "root ::= \"\\ud800\"", "the escape names no character", 10 },
        { "root ::= \"\\U00110000\"", "the escape names no character", 10 },
        { "root ::= \"\\", "the grammar ends after \"\\\"", 11 },
        { "root ::= \"x\" & \"y\"", "unexpected character", 13 },
        { "root ::= <x", "a token has no \">\"", 9 },
        { "root ::= <[x]>", "a token by its id is written <[ID]>", 9 },
        { "root ::= <[99999999999999999999]>", "a token by its id is written <[ID]>", 9 },
        { "root ::= root \"x\"", "the rule \"root\" refers to itself before any character", 0 },
        { "root ::= a\na ::= b\nb ::= \"x\"? a", "the rule \"a\" refers to itself before any "
                                            "character", 9 },
        { "root ::= \"x\" | (\"y\"* root)", "the rule \"root\" refers to itself before any "
                                          "character", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct program *p;

        e = (struct err)ERR_INIT;
        assert_int_equal(
            gbnf_parse(&p, wrong[i].grammar, strlen(wrong[i].grammar), NULL, NULL, &e), -1);
        assert_null(p);
        assert_string_equal(e.what, wrong[i].what);
        assert_int_equal(e.code, ERR_ARGUMENT);
        assert_int_equal(e.offset, wrong[i].offset);
    }
    e = (struct err)ERR_INIT;
    assert_int_equal(mw_grammar_check("root ::= \"\xff\"", 12, &e), -1);
    assert_string_equal(e.what, "the grammar is not valid UTF-8");
    e = (struct err)ERR_INIT;
    assert_int_equal(mw_grammar_check("root ::= \"x\" #\0", 15, &e), -1);
    assert_string_equal(e.what, "the grammar contains a NUL");
}

/* ---- hostile grammars ---- */

/* As the buffer of a request without a byte has it. */
static void refuses_a_text_of_no_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        e = (struct err)ERR_INIT;
        assert_int_equal(mw_grammar_check(i == 0 ? "" : NULL, 0, &e), -1);
        assert_string_equal(e.what, "the grammar has no rule \"root\"");
        assert_int_equal(e.offset, 0);
    }
}

static void refuses_what_is_too_large(void **state)
{
    struct program *p;
    size_t room = PROGRAM_MAX_TEXT + 100, n;
    char *text = malloc(room);

    (void)state;
    assert_non_null(text);
    /* a text */
    n = (size_t)sprintf(text, "root ::= \"");
    memset(text + n, 'a', PROGRAM_MAX_ELEMENT + 1);
    e = (struct err)ERR_INIT;
    assert_int_equal(gbnf_parse(&p, text, n + PROGRAM_MAX_ELEMENT + 1, NULL, NULL, &e), -1);
    assert_string_equal(e.what, "the grammar is too large");
    /* groups */
    n = (size_t)sprintf(text, "root ::= ");
    memset(text + n, '(', 100000);
    e = (struct err)ERR_INIT;
    assert_int_equal(gbnf_parse(&p, text, n + 100000, NULL, NULL, &e), -1);
    assert_string_equal(e.what, "groups are nested more than 64 deep");
    /* rules */
    n = (size_t)sprintf(text, "root ::= ");
    for (size_t i = 0; i < PROGRAM_MAX_RULE; i++)
        n += (size_t)sprintf(text + n, "(\"a\")");
    e = (struct err)ERR_INIT;
    assert_int_equal(gbnf_parse(&p, text, n, NULL, NULL, &e), -1);
    assert_string_equal(e.what, "the grammar has more than 16384 rules, groups and sets");
    /* bytes */
    memset(text, ' ', room);
    e = (struct err)ERR_INIT;
    assert_int_equal(gbnf_parse(&p, text, PROGRAM_MAX_TEXT + 1, NULL, NULL, &e), -1);
    free(text);
}

/* A long chain of rules that may be empty is looked at once, whatever its order is. */
static void follows_long_chains(void **state)
{
    char *text = malloc(400000);
    size_t n = 0;

    (void)state;
    assert_non_null(text);
    for (int up = 0; up < 2; up++) {
        n = (size_t)sprintf(text, "root ::= r0 \"x\"\n");
        for (int i = 0; i < 8000; i++) {
            int at = up ? i : 7999 - i;

            n += at == 7999 ? (size_t)sprintf(text + n, "r%d ::= \"\"\n", at)
                            : (size_t)sprintf(text + n, "r%d ::= r%d\n", at, at + 1);
        }
        has(text, "x");
    }
    /* and a ring of them is found */
    sprintf(text + n, "r8000 ::= r8000");
    e = (struct err)ERR_INIT;
    assert_int_equal(mw_grammar_check(text, strlen(text), &e), -1);
    free(text);
}

static void counts_do_not_cost_memory(void **state)
{
    static char many[50001];

    (void)state;
    memset(many, 'a', sizeof many - 1);
    begins("root ::= \"a\"{1000000000}", many);
    has("root ::= ((\"a\"{0,1000}){0,1000}){0,1000} \"b\"?", "aab");
    begins("root ::= (\"a\"?){1000000} \"b\"", many);
    has("root ::= (\"a\"?){50000} \"b\"?", many);
    lacks("root ::= (\"a\"?){49999} \"b\"?", many);
    has("root ::= ((\"a\"{0,2}){3}){2} \"b\"", "aaaaaaaaaaaab");
    lacks("root ::= ((\"a\"{0,2}){3}){2} \"b\"", "aaaaaaaaaaaaab");
    begins("root ::= (\"a\"{1000000} | \"aa\"{1000000}) \"b\"", many);
}

static void refuses_what_is_too_ambiguous(void **state)
{
    static const char twice[] = "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"";
    char many[64];
    struct err why = ERR_INIT;
    struct program *p = parse(twice);
    struct machine m;

    (void)state;
    /* After n times "a" there are 2^n stacks. */
    memset(many, 'a', sizeof many);
    assert_int_equal(machine_open(&m, p, &e), 0);
    assert_int_equal(run(&m, many, 8, 8), BEGINNING);
    assert_int_equal(run(&m, many, sizeof many, sizeof many), TOO_MUCH);
    assert_int_equal(machine_refuse(&m, &why), -1);
    assert_int_equal(why.code, ERR_UNSUPPORTED);
    machine_close(&m);
    program_free(p);
}

/* ---- random grammars ---- */

static uint64_t random_state;

static uint32_t pick(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % n;
}

/* A tree of a grammar over "a" and "b", and its text. */
struct tree {
    enum { LEAF, SEQUENCE, CHOICE, REPEATED, RULE } kind;
    char byte;
    unsigned rule, min, max;
    struct tree *one, *two;
};

#define N_RULE 3
#define LENGTH 6

static struct tree nodes[4096];
static size_t n_node;
static struct tree *rules[N_RULE];
static char text[65536];
static size_t n_text;

static void say(const char *s)
{
    n_text += (size_t)sprintf(text + n_text, "%s", s);
}

/* from: the first rule that may be called without a byte before it, so that nothing is endless */
static struct tree *grow(unsigned depth, unsigned from)
{
    struct tree *t = &nodes[n_node++];
    char counts[24];

    *t = (struct tree){ .kind = depth == 0 ? LEAF : pick(5), .byte = "ab"[pick(2)] };
    switch (t->kind) {
    case LEAF: sprintf(text + n_text, "\"%c\" ", t->byte), n_text += 4; break;
    case SEQUENCE:
        say("(");
        t->one = grow(depth - 1, from);
        t->two = grow(depth - 1, from);
        say(") ");
        break;
    case CHOICE:
        say("(");
        t->one = grow(depth - 1, from);
        say("| ");
        t->two = grow(depth - 1, from);
        say(") ");
        break;
    case REPEATED:
        t->min = pick(3);
        t->max = pick(3) == 0 ? 99 : t->min + pick(3);
        say("(");
        t->one = grow(depth - 1, from);
        sprintf(counts, t->max == 99 ? "){%u,} " : "){%u,%u} ", t->min, t->max);
        say(counts);
        break;
    case RULE: /* after a byte, any rule may be called */
        t->kind = SEQUENCE;
        say("(");
        t->one = &nodes[n_node++];
        *t->one = (struct tree){ .kind = LEAF, .byte = t->byte };
        sprintf(text + n_text, "\"%c\" ", t->byte), n_text += 4;
        t->two = &nodes[n_node++];
        *t->two = (struct tree){ .kind = RULE, .rule = pick(N_RULE) };
        n_text += (size_t)sprintf(text + n_text, "r%u) ", t->two->rule);
        break;
    }
    return t;
}

/* The ends of a match that begins at one of the positions `from`, as a set of bits. */
static unsigned match(const struct tree *t, const char *s, size_t n, unsigned from)
{
    unsigned to = 0, at = from;

    if (from == 0)
        return 0;
    switch (t->kind) {
    case LEAF:
        for (size_t i = 0; i < n; i++)
            if ((from >> i & 1) != 0 && s[i] == t->byte)
                to |= 2u << i;
        return to;
    case SEQUENCE: return match(t->two, s, n, match(t->one, s, n, from));
    case CHOICE: return match(t->one, s, n, from) | match(t->two, s, n, from);
    case REPEATED:
        to = t->min == 0 ? from : 0;
        for (unsigned i = 1; i <= t->max && i <= t->min + LENGTH + 1; i++) {
            at = match(t->one, s, n, at);
            to |= i >= t->min ? at : 0;
        }
        return to;
    case RULE: return match(rules[t->rule], s, n, from);
    }
    return 0;
}

static void agrees_with_a_matcher_that_tries_everything(void **state)
{
    size_t n_yes = 0, n_no = 0;

    (void)state;
    random_state = 42;
    for (int round = 0; round < 250; round++) {
        struct program *p;
        struct machine m;

        n_node = n_text = 0;
        say("root ::= r0\n");
        for (unsigned r = 0; r < N_RULE; r++) {
            n_text += (size_t)sprintf(text + n_text, "r%u ::= ", r);
            rules[r] = grow(3, r + 1);
            say("\n");
        }
        p = parse(text);
        assert_int_equal(machine_open(&m, p, &e), 0);
        for (size_t n = 0; n <= LENGTH; n++)
            for (unsigned bits = 0; bits < 1u << n; bits++) {
                char s[LENGTH];
                bool is_text;

                for (size_t i = 0; i < n; i++)
                    s[i] = "ab"[bits >> i & 1];
                is_text = (match(rules[0], s, n, 1) >> n & 1) != 0;
                if ((run(&m, s, n, bits % (n + 1)) == YES) != is_text)
                    fail_msg("%s: %.*s", text, (int)n, s);
                n_yes += is_text;
                n_no += !is_text;
            }
        machine_close(&m);
        program_free(p);
    }
    assert_true(n_yes > 500 && n_no > 500);
}

/* ---- vocabularies ---- */

static const char *const vocabulary[] = {
    "a",     "ab",   "abc", "{",   "}",    "\"",  "\":", "\",", " \"",     " ",   ":",
    " {",    "[",    "]",   "1",   "12",   "true", "tr", "ue",  "\xc3",    "\xa9", "\xc3\xa9",
    "\xe2\x82", "\xac", "\\",  "\\n", "\n",   "\"}", "1]", "",     "[[1,2]]", "ab",  ","
};
#define N_TOKEN (sizeof vocabulary / sizeof vocabulary[0])

static size_t token_text(const void *ctx, uint32_t id, char *buf, size_t n)
{
    size_t len = strlen(vocabulary[id]);

    (void)ctx;
    memcpy(buf, vocabulary[id], len < n ? len : n);
    return len;
}

static bool is_allowed(struct machine *m, uint32_t state, const char *token, bool drops_space)
{
    if (drops_space && *token == ' ')
        token++;
    for (; *token != '\0'; token++)
        state = machine_byte(m, state, *token);
    return state != MACHINE_DEAD;
}

/* The walk finds the tokens that are found one by one. */
static void finds_the_tokens_that_may_follow(void **state)
{
    static const char grammar[] =
        "root ::= v\n"
        "v ::= \"{\" (s \":\" v (\",\" s \":\" v)*)? \"}\" | \"[\" (v (\",\" v)*)? \"]\" | s | "
        "[0-9]+ | \"true\"\n"
        "s ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" [n\"])* \"\\\"\"";
    struct program *p = parse(grammar);
    struct token_tree tree;
    struct machine m;
    size_t n_allowed = 0;

    (void)state;
    assert_int_equal(machine_open(&m, p, &e), 0);
    assert_int_equal(token_tree_open(&tree, N_TOKEN, token_text, NULL, &e), 0);
    assert_int_equal(tree.n, N_TOKEN - 1); /* one has no text */
    random_state = 7;
    for (int round = 0; round < 300; round++) {
        uint32_t at = machine_start(&m);

        for (int step = 0; step < 12; step++) {
            bool drops_space = step == 0;
            uint64_t bits[N_TOKEN / 64 + 1] = { 0 };
            uint32_t next = N_TOKEN, first = pick(N_TOKEN);

            assert_int_equal(token_tree_walk(&tree, &m, &at, drops_space, bits, &e), 0);
            for (uint32_t id = 0; id < N_TOKEN; id++) {
                bool expected = vocabulary[id][0] != '\0' &&
                                is_allowed(&m, at, vocabulary[id], drops_space);

                if (((bits[id / 64] >> id % 64 & 1) != 0) != expected)
                    fail_msg("token \"%s\"", vocabulary[id]);
                n_allowed += expected;
            }
            for (uint32_t i = 0; i < N_TOKEN && next == N_TOKEN; i++)
                if ((bits[(first + i) % N_TOKEN / 64] >> (first + i) % N_TOKEN % 64 & 1) != 0)
                    next = (first + i) % N_TOKEN;
            if (next == N_TOKEN)
                break;
            for (const char *c = vocabulary[next] + (drops_space && vocabulary[next][0] == ' ');
                 *c != '\0'; c++)
                at = machine_byte(&m, at, *c);
        }
    }
    assert_true(n_allowed > 10000);
    token_tree_close(&tree);
    machine_close(&m);
    program_free(p);
}

static int64_t find_token(const void *ctx, const char *name, size_t len)
{
    (void)ctx;
    return len == 6 && memcmp(name, "<call>", 6) == 0 ? 3 : -1;
}

/* A token by its text is spelled if the vocabulary lacks it. */
static void names_tokens(void **state)
{
    static const char grammar[] = "root ::= <call> | <[5]> <ab>";
    struct program *p;
    struct token_tree tree;
    struct machine m;
    uint64_t bits[1] = { 0 };
    uint32_t at;

    (void)state;
    e = (struct err)ERR_INIT;
    assert_int_equal(gbnf_parse(&p, grammar, sizeof grammar - 1, find_token, NULL, &e), 0);
    assert_int_equal(p->n_token, 2);
    assert_int_equal(machine_open(&m, p, &e), 0);
    assert_int_equal(token_tree_open(&tree, N_TOKEN, token_text, NULL, &e), 0);
    at = machine_start(&m);
    assert_int_equal(token_tree_walk(&tree, &m, &at, false, bits, &e), 0);
    assert_int_equal(bits[0], 1u << 3 | 1u << 5);
    assert_true(machine_must_end(&m, machine_step(&m, at, machine_token(&m, 0))));
    at = machine_step(&m, at, machine_token(&m, 1));
    assert_false(machine_may_end(&m, at));
    for (const char *c = "<ab>"; *c != '\0'; c++)
        at = machine_byte(&m, at, *c);
    assert_true(machine_must_end(&m, at));
    token_tree_close(&tree);
    machine_close(&m);
    program_free(p);
}

/* States that do not fit are forgotten in the middle of a walk, and nothing changes. */
static void forgets_states_and_finds_the_same(void **state)
{
    struct program *p = parse("root ::= [a-c]{0,100000} \"{\"");
    struct token_tree tree;
    struct machine m;
    uint32_t at, before;

    (void)state;
    assert_int_equal(machine_open(&m, p, &e), 0);
    assert_int_equal(token_tree_open(&tree, N_TOKEN, token_text, NULL, &e), 0);
    at = machine_start(&m);
    before = m.generation;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits[1] = { 0 };

        assert_int_equal(token_tree_walk(&tree, &m, &at, false, bits, &e), 0);
        if (bits[0] != (1ull << 0 | 1ull << 1 | 1ull << 2 | 1ull << 3 | 1ull << 31))
            if (i < 99997) /* the last tokens have less room */
                fail_msg("after %d characters: %llx", i, (unsigned long long)bits[0]);
        machine_begin(&m);
        at = machine_byte(&m, at, 'b');
        if (at == MACHINE_NONE)
            fail_msg("no memory after %d characters", i);
    }
    assert_true(m.generation > before);
    assert_int_equal(machine_byte(&m, at, 'a'), MACHINE_DEAD);
    assert_true(machine_must_end(&m, machine_byte(&m, at, '{')));
    token_tree_close(&tree);
    machine_close(&m);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_literals_and_alternatives),
        cmocka_unit_test(matches_repetitions),
        cmocka_unit_test(matches_sets_of_characters),
        cmocka_unit_test(sets_have_their_code_points_and_no_others),
        cmocka_unit_test(reads_lines_and_comments),
        cmocka_unit_test(matches_recursion),
        cmocka_unit_test(names_what_is_wrong_and_where),
        cmocka_unit_test(refuses_a_text_of_no_bytes),
        cmocka_unit_test(refuses_what_is_too_large),
        cmocka_unit_test(follows_long_chains),
        cmocka_unit_test(counts_do_not_cost_memory),
        cmocka_unit_test(refuses_what_is_too_ambiguous),
        cmocka_unit_test(agrees_with_a_matcher_that_tries_everything),
        cmocka_unit_test(finds_the_tokens_that_may_follow),
        cmocka_unit_test(names_tokens),
        cmocka_unit_test(forgets_states_and_finds_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
