/* See program.h. */
#include "config.h"

#include "engine/grammar/program.h"

#include <stdlib.h>
#include <string.h>

void program_free(struct program *p)
{
    if (p == NULL)
        return;
    free(p->element);
    free(p->alternative);
    free(p->rule);
    free(p);
}

/* ---- symbols ---- */

static void find_symbols(struct program *p)
{
    bool begins[257] = { [0] = true };
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_element; i++)
        if (p->element[i].kind == ELEMENT_RANGE) {
            begins[p->element[i].value & 255] = true;
            begins[(p->element[i].value >> 8) + 1] = true;
        }
    for (unsigned b = 0; b < 256; b++) {
        if (begins[b])
            p->byte_of[n++] = (uint8_t)b;
        p->symbol_of[b] = (uint8_t)(n - 1);
    }
    p->n_symbol = n;
}

/* ---- rules that match the empty text ---- */

/* Alternatives that wait for a rule: those of rule r are at[from[r + 1] .. from[r + 2]). */
struct waiting {
    uint32_t *from, *at;
    uint32_t *missing; /* [n_alternative] elements that match at least a byte, as far as known */
    uint32_t *rule_of; /* [n_alternative] */
    uint32_t *todo;    /* [n_rule] nullable rules whose callers do not know it yet */
};

static bool is_call(const struct element *x)
{
    return x->kind == ELEMENT_CALL || (x->kind == ELEMENT_REPEAT && x->min > 0);
}

static void count_missing(struct program *p, struct waiting *w)
{
    for (uint32_t r = 0; r < p->n_rule; r++)
        for (uint32_t a = p->rule[r].first; a < p->rule[r].first + p->rule[r].n; a++) {
            const struct element *x = &p->element[p->alternative[a]];

            w->rule_of[a] = r;
            for (; x->kind != ELEMENT_END; x++) {
                w->missing[a] += x->kind != ELEMENT_REPEAT || x->min > 0;
                if (is_call(x))
                    w->from[x->value + 1]++;
            }
        }
    for (uint32_t r = 0; r < p->n_rule; r++)
        w->from[r + 1] += w->from[r];
    w->from[p->n_rule + 1] = w->from[p->n_rule];
}

static void list_waiting(const struct program *p, struct waiting *w)
{
    for (uint32_t a = p->n_alternative; a-- > 0;)
        for (const struct element *x = &p->element[p->alternative[a]]; x->kind != ELEMENT_END;
             x++)
            if (is_call(x))
                w->at[--w->from[x->value + 1]] = a;
}

/* Each alternative is looked at once for each of its elements. */
static void find_nullable(struct program *p, struct waiting *w)
{
    uint32_t n = 0;

    count_missing(p, w);
    list_waiting(p, w);
    for (uint32_t a = 0; a < p->n_alternative; a++)
        if (w->missing[a] == 0 && !p->rule[w->rule_of[a]].is_nullable) {
            p->rule[w->rule_of[a]].is_nullable = true;
            w->todo[n++] = w->rule_of[a];
        }
    while (n > 0) {
        uint32_t r = w->todo[--n];

        for (uint32_t i = w->from[r + 1]; i < w->from[r + 2]; i++) {
            struct rule *caller = &p->rule[w->rule_of[w->at[i]]];

            if (--w->missing[w->at[i]] > 0 || caller->is_nullable)
                continue;
            caller->is_nullable = true;
            w->todo[n++] = w->rule_of[w->at[i]];
        }
    }
}

/* ---- rules that never get to a byte ---- */

/* A walk over the calls before the first byte, without recursion: chains may be long. */
struct walk {
    uint8_t *state; /* [n_rule] */
    struct place {
        uint32_t rule, alternative, element;
    } *path; /* [n_rule] */
};

enum { NEW, OPEN, CLOSED };

/* Go to the next call of a place.  Returns the rule, or n_rule: there is none. */
static uint32_t next_call(const struct program *p, struct place *at)
{
    const struct rule *r = &p->rule[at->rule];

    while (at->alternative < r->n) {
        const struct element *x =
            &p->element[p->alternative[r->first + at->alternative]] + at->element;
        bool is_past = x->kind == ELEMENT_CALL ? p->rule[x->value].is_nullable
                                               : x->kind == ELEMENT_REPEAT &&
                                                     (x->min == 0 || p->rule[x->value].is_nullable);

        if (is_past) {
            at->element++;
        } else {
            at->alternative++;
            at->element = 0;
        }
        if (x->kind == ELEMENT_CALL || x->kind == ELEMENT_REPEAT)
            return x->value;
    }
    return p->n_rule;
}

static uint32_t find_endless(const struct program *p, struct walk *w)
{
    for (uint32_t start = 0; start < p->n_rule; start++) {
        uint32_t n = 0;

        if (w->state[start] != NEW)
            continue;
        w->path[n++] = (struct place){ .rule = start };
        w->state[start] = OPEN;
        while (n > 0) {
            uint32_t r = next_call(p, &w->path[n - 1]);

            if (r == p->n_rule) {
                w->state[w->path[--n].rule] = CLOSED;
            } else if (w->state[r] == OPEN) {
                return r;
            } else if (w->state[r] == NEW) {
                w->state[r] = OPEN;
                w->path[n++] = (struct place){ .rule = r };
            }
        }
    }
    return p->n_rule;
}

int program_complete(struct program *p, uint32_t *endless, struct err *e)
{
    struct waiting w = { .from = calloc(p->n_rule + 2, sizeof *w.from),
                         .at = calloc(p->n_element + 1, sizeof *w.at),
                         .missing = calloc(p->n_alternative + 1, sizeof *w.missing),
                         .rule_of = calloc(p->n_alternative + 1, sizeof *w.rule_of),
                         .todo = calloc(p->n_rule + 1, sizeof *w.todo) };
    struct walk walk = { .state = calloc(p->n_rule + 1, 1),
                         .path = calloc(p->n_rule + 1, sizeof *walk.path) };
    int rc = -1;

    if (w.from != NULL && w.at != NULL && w.missing != NULL && w.rule_of != NULL &&
        w.todo != NULL && walk.state != NULL && walk.path != NULL) {
        find_symbols(p);
        find_nullable(p, &w);
        *endless = find_endless(p, &walk);
        rc = 0;
    } else {
        err_memory(e, "a grammar");
    }
    free(w.from);
    free(w.at);
    free(w.missing);
    free(w.rule_of);
    free(w.todo);
    free(walk.state);
    free(walk.path);
    return rc;
}
