/*
 * machine.h - where a text is in a grammar, byte after byte.
 *
 * A grammar may be at several places at once, each with a stack of the rules to go back to.  A
 * stack is a chain of nodes, and equal chains are the same node:
 *
 *     [[1,          in "value" in "array" in "value" in "array" in "value" in "root"
 *
 * A set of places is a state.  States are numbers, found when a text first gets there, with a
 * table of the states that follow: most bytes of most tokens cost one look at a table.  Inside a
 * JSON string, for example, there are a handful of states for any text.
 *
 * States and nodes are in a fixed amount of memory.  If it is full, the caller keeps one state
 * and all others are forgotten.  The work for one token is bounded, too: a grammar that is too
 * ambiguous is an error, not a long wait.
 */
#ifndef MEMWALL_ENGINE_GRAMMAR_MACHINE_H
#define MEMWALL_ENGINE_GRAMMAR_MACHINE_H

#include "engine/grammar/program.h"

struct machine {
    const struct program *program;
    uint32_t n_symbol; /* those of bytes, then tokens that the grammar names */
    uint32_t *pool;    /* states: what follows [n_symbol], is it an end, places */
    uint32_t n_pool;
    uint32_t *state_at; /* hash table */
    uint32_t n_state;
    struct machine_node {
        uint32_t element, count, parent;
    } *node;
    uint32_t n_node;
    uint32_t *node_at; /* hash table */
    uint32_t *moved;
    struct machine_place {
        uint32_t element, node, count;
    } *todo, *found;
    uint32_t n_todo, n_found;
    struct machine_visit {
        struct machine_place at;
        uint32_t stamp;
    } *visit; /* hash table */
    uint32_t stamp, n_visit;
    uint64_t work;       /* places visited since machine_begin() */
    uint32_t generation; /* how often states were forgotten */
};

#define MACHINE_NONE 0 /* no memory, or too much work */
#define MACHINE_DEAD 1 /* the grammar allows no such text */

/* The memory that a machine takes. */
#define MACHINE_BYTES ((uint64_t)5 << 19)

/* The program must outlive the machine. */
int machine_open(struct machine *m, const struct program *p, struct err *e);
void machine_close(struct machine *m);

/* Allow the work for another token. */
void machine_begin(struct machine *m);

/* The state before the first byte; MACHINE_NONE: the grammar begins in too many ways. */
uint32_t machine_start(struct machine *m);

/* Returns the state after a symbol, or MACHINE_NONE.  Use machine_step(). */
uint32_t machine_find(struct machine *m, uint32_t state, uint32_t symbol);

/* Forget all states but one, which gets another number.  MACHINE_NONE: it takes too much memory
 * itself. */
uint32_t machine_keep(struct machine *m, uint32_t state);

static inline uint32_t machine_step(struct machine *m, uint32_t state, uint32_t symbol)
{
    uint32_t next = m->pool[state + symbol];

    return next != MACHINE_NONE ? next : machine_find(m, state, symbol);
}

static inline uint32_t machine_byte(struct machine *m, uint32_t state, char byte)
{
    return machine_step(m, state, m->program->symbol_of[(unsigned char)byte]);
}

/* The symbol of a token that the grammar names. */
static inline uint32_t machine_token(const struct machine *m, uint32_t i)
{
    return m->program->n_symbol + i;
}

/* May the text end here?  Must it, since nothing may follow? */
bool machine_may_end(const struct machine *m, uint32_t state);
bool machine_must_end(const struct machine *m, uint32_t state);

/* Store the reason for MACHINE_NONE in *e.  Returns -1. */
int machine_refuse(const struct machine *m, struct err *e);

#endif
