/*
 * program.h - a grammar in the form that the machine runs.
 *
 *     root ::= "[" (num ("," num)*)? "]"      rule 0: [ REPEAT 0..1 of rule 1 ] END
 *                                             rule 1: CALL num, REPEAT 0..* of rule 2, END
 *                                             rule 2: , CALL num END
 *     num  ::= [0-9]+                         rule 3: REPEAT 1..* of rule 4, END
 *                                             rule 4: 0-9 END
 *
 * A rule is a list of alternatives, and an alternative is a run of elements up to END.  Groups,
 * repeated items and sets of characters are rules without a name.  Characters are runs of byte
 * ranges, since tokens may begin and end inside a character.
 *
 * Grammars come from the network.  All sizes are bounded, and a repetition is one element
 * whatever its counts are.
 */
#ifndef MEMWALL_ENGINE_GRAMMAR_PROGRAM_H
#define MEMWALL_ENGINE_GRAMMAR_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/grammar/grammar.h"

#define PROGRAM_MAX_TEXT    MW_GRAMMAR_BYTES
#define PROGRAM_MAX_ELEMENT 65536
#define PROGRAM_MAX_RULE    16384
#define PROGRAM_MAX_TOKEN   64 /* different ones that a grammar names */
#define PROGRAM_NO_LIMIT    UINT32_MAX

enum element_kind {
    ELEMENT_END,    /* of an alternative */
    ELEMENT_RANGE,  /* one byte from value & 255 to value >> 8 */
    ELEMENT_CALL,   /* rule `value` */
    ELEMENT_REPEAT, /* rule `value`, from min to max times; PROGRAM_NO_LIMIT: any number */
    ELEMENT_TOKEN,  /* token[value] */
};

struct element {
    enum element_kind kind;
    uint32_t value, min, max;
};

struct rule {
    uint32_t first, n; /* alternatives */
    bool is_nullable;  /* it matches the empty text */
};

struct program {
    struct element *element;
    uint32_t n_element;
    uint32_t *alternative; /* [n_alternative] index of its first element */
    uint32_t n_alternative;
    struct rule *rule;
    uint32_t n_rule, root;
    uint32_t token[PROGRAM_MAX_TOKEN]; /* ids of tokens that the grammar names */
    uint32_t n_token;
    /* Bytes that no range tells apart are one symbol. */
    uint8_t symbol_of[256], byte_of[256];
    uint32_t n_symbol;
};

/* The most memory that a program takes, also while it is made. */
#define PROGRAM_BYTES ((uint64_t)6 << 20)

void program_free(struct program *p);

/*
 * Complete a program whose elements, alternatives and rules are there: find nullable rules, sort
 * bytes into symbols, and look for a rule that calls itself before it has matched a byte, which
 * the machine could not run.  Such a rule is stored in *endless; otherwise *endless is n_rule.
 * -1 with *e without memory.
 */
int program_complete(struct program *p, uint32_t *endless, struct err *e);

#endif
