/* See machine.h. */
#include "config.h"

#include "engine/grammar/machine.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/keyed_hash.h"

#define POOL   ((uint32_t)1 << 18) /* numbers */
#define STATES 16384
#define NODES  32768
#define VISITS 8192            /* of places, for one state */
#define WORK   ((uint64_t)1 << 22)

#define AT_END UINT32_MAX /* the element of a place where the grammar may end */
#define BOTTOM 0          /* the node of an empty stack */

static uint64_t mix(uint32_t a, uint32_t b, uint32_t c)
{
    return keyed_mix(hash_key(), ((uint64_t)a << 32 | b) + keyed_mix(hash_key(), c)) >> 16;
}

int machine_open(struct machine *m, const struct program *p, struct err *e)
{
    *m = (struct machine){ .program = p, .n_symbol = p->n_symbol + p->n_token };
    m->pool = calloc(POOL, sizeof *m->pool);
    m->state_at = calloc(2 * STATES, sizeof *m->state_at);
    m->node = calloc(NODES, sizeof *m->node);
    m->node_at = calloc(2 * NODES, sizeof *m->node_at);
    m->moved = calloc(NODES, sizeof *m->moved);
    m->todo = calloc(VISITS, sizeof *m->todo);
    m->found = calloc(VISITS, sizeof *m->found);
    m->visit = calloc(2 * VISITS, sizeof *m->visit);
    if (m->pool == NULL || m->state_at == NULL || m->node == NULL || m->node_at == NULL ||
        m->moved == NULL || m->todo == NULL || m->found == NULL || m->visit == NULL) {
        machine_close(m);
        return err_memory(e, "the states of a grammar");
    }
    return 0;
}

void machine_close(struct machine *m)
{
    free(m->pool);
    free(m->state_at);
    free(m->node);
    free(m->node_at);
    free(m->moved);
    free(m->todo);
    free(m->found);
    free(m->visit);
    *m = (struct machine){ .program = NULL };
}

void machine_begin(struct machine *m)
{
    m->work = 0;
}

int machine_refuse(const struct machine *m, struct err *e)
{
    if (m->work > WORK)
        return err_set(e, ERR_UNSUPPORTED, "the grammar takes too much time: it can be read in "
                                           "too many ways");
    return err_set(e, ERR_UNSUPPORTED, "the grammar takes too much memory: it can be read in too "
                                       "many ways, or is nested too deep");
}

/* ---- nodes ---- */

/* Returns the node, or BOTTOM if there is no memory for it. */
static uint32_t node_of(struct machine *m, uint32_t element, uint32_t count, uint32_t parent)
{
    size_t i = mix(element, parent, count) % (2 * NODES);

    for (; m->node_at[i] != BOTTOM; i = (i + 1) % (2 * NODES)) {
        const struct machine_node *n = &m->node[m->node_at[i]];

        if (n->element == element && n->count == count && n->parent == parent)
            return m->node_at[i];
    }
    if (m->n_node == NODES)
        return BOTTOM;
    m->node[m->n_node] = (struct machine_node){ element, count, parent };
    return m->node_at[i] = m->n_node++;
}

/* ---- states ---- */

static uint32_t *places_of(const struct machine *m, uint32_t state)
{
    return m->pool + state + m->n_symbol;
}

static uint32_t n_place(const struct machine *m, uint32_t state)
{
    return places_of(m, state)[0];
}

/* The number of places where the grammar may end. */
static uint32_t n_end(const struct machine *m, uint32_t state)
{
    const uint32_t *at = places_of(m, state);
    uint32_t n = 0;

    for (uint32_t i = 0; i < at[0]; i++)
        n += at[1 + 2 * i] == AT_END;
    return n;
}

bool machine_may_end(const struct machine *m, uint32_t state)
{
    return n_end(m, state) > 0;
}

bool machine_must_end(const struct machine *m, uint32_t state)
{
    return n_end(m, state) > 0 && n_end(m, state) == n_place(m, state);
}

static bool is_same(const struct machine *m, uint32_t state)
{
    const uint32_t *at = places_of(m, state);
    uint32_t i = 0;

    if (at[0] != m->n_found)
        return false;
    while (i < m->n_found && at[1 + 2 * i] == m->found[i].element &&
           at[2 + 2 * i] == m->found[i].node)
        i++;
    return i == m->n_found;
}

/* The state of the places that were found. */
static uint32_t state_of_found(struct machine *m)
{
    uint64_t hash = m->n_found;
    uint32_t size = m->n_symbol + 1 + 2 * m->n_found, state, *at;
    size_t i;

    for (uint32_t k = 0; k < m->n_found; k++)
        hash = mix((uint32_t)hash, m->found[k].element, m->found[k].node);
    i = hash % (2 * STATES);
    for (; m->state_at[i] != MACHINE_NONE; i = (i + 1) % (2 * STATES))
        if (is_same(m, m->state_at[i]))
            return m->state_at[i];
    if (m->n_state == STATES || size > POOL - m->n_pool)
        return MACHINE_NONE;
    state = m->n_pool;
    m->n_pool += size;
    m->n_state++;
    memset(m->pool + state, 0, m->n_symbol * sizeof *m->pool);
    at = places_of(m, state);
    at[0] = m->n_found;
    for (uint32_t k = 0; k < m->n_found; k++) {
        at[1 + 2 * k] = m->found[k].element;
        at[2 + 2 * k] = m->found[k].node;
    }
    return m->state_at[i] = state;
}

/* ---- from one state to the next ---- */

static void begin_places(struct machine *m)
{
    m->n_todo = m->n_found = m->n_visit = 0;
    m->stamp++;
    if (m->stamp == 0) { /* after 2^32 searches, old stamps could look new */
        memset(m->visit, 0, 2 * VISITS * sizeof *m->visit);
        m->stamp = 1;
    }
}

/*
 * Whether a lower count of a repetition allows all that a higher one does: its item may be empty,
 * so no count is too low.  Rounds without a byte then lead nowhere.
 */
static bool is_weak(const struct machine *m, uint32_t element)
{
    const struct element *x = &m->program->element[element];

    return x->kind == ELEMENT_REPEAT && m->program->rule[x->value].is_nullable;
}

/* Look at a place, unless it was looked at for this state.  false: too many. */
static bool go_to(struct machine *m, uint32_t element, uint32_t node, uint32_t count)
{
    bool any_count = is_weak(m, element);
    size_t i = mix(element, node, any_count ? 0 : count) % (2 * VISITS);

    for (; m->visit[i].stamp == m->stamp; i = (i + 1) % (2 * VISITS)) {
        const struct machine_place *at = &m->visit[i].at;

        if (at->element != element || at->node != node)
            continue;
        if (at->count == count || (any_count && at->count < count))
            return true;
        if (any_count)
            break; /* a lower count than before */
    }
    m->work++;
    if (m->n_visit == VISITS || m->work > WORK)
        return false;
    m->n_visit++;
    m->visit[i].at = m->todo[m->n_todo++] = (struct machine_place){ element, node, count };
    m->visit[i].stamp = m->stamp;
    return true;
}

/* Go to all alternatives of a rule, and afterwards to `next` with `count`. */
static bool call(struct machine *m, uint32_t rule, uint32_t next, uint32_t count, uint32_t node)
{
    const struct program *p = m->program;
    const struct rule *r = &p->rule[rule];
    /* The last call of an alternative needs no way back: lists written by rules that end with
     * themselves do not grow the stack. */
    bool is_last = p->element[next].kind == ELEMENT_END;
    uint32_t inner = is_last ? node : node_of(m, next, count, node);

    if (!is_last && inner == BOTTOM)
        return false;
    for (uint32_t a = r->first; a < r->first + r->n; a++)
        if (!go_to(m, p->alternative[a], inner, 0))
            return false;
    return true;
}

static bool repeat(struct machine *m, const struct machine_place *at)
{
    const struct element *x = &m->program->element[at->element];
    uint32_t count = at->count;

    if ((count >= x->min || m->program->rule[x->value].is_nullable) &&
        !go_to(m, at->element + 1, at->node, 0))
        return false;
    if (count == x->max)
        return true;
    /* Without a limit, counts above the least one are the same. */
    count = x->max == PROGRAM_NO_LIMIT && count == x->min ? count : count + 1;
    return call(m, x->value, at->element, count, at->node);
}

static void found(struct machine *m, uint32_t element, uint32_t node)
{
    m->found[m->n_found++] = (struct machine_place){ element, node, 0 };
}

/* Follow all places to be looked at, until each is at a byte, a token, or the end. */
static bool follow(struct machine *m)
{
    while (m->n_todo > 0) {
        struct machine_place at = m->todo[--m->n_todo];
        const struct element *x = &m->program->element[at.element];
        const struct machine_node *back = &m->node[at.node];

        switch (x->kind) {
        case ELEMENT_RANGE:
        case ELEMENT_TOKEN: found(m, at.element, at.node); break;
        case ELEMENT_CALL:
            if (!call(m, x->value, at.element + 1, 0, at.node))
                return false;
            break;
        case ELEMENT_REPEAT:
            if (!repeat(m, &at))
                return false;
            break;
        case ELEMENT_END:
            if (at.node == BOTTOM)
                found(m, AT_END, BOTTOM);
            else if (!go_to(m, back->element, back->parent, back->count))
                return false;
            break;
        }
    }
    return true;
}

static bool matches(const struct machine *m, const struct element *x, uint32_t symbol)
{
    unsigned byte;

    if (symbol >= m->program->n_symbol)
        return x->kind == ELEMENT_TOKEN && x->value == symbol - m->program->n_symbol;
    byte = m->program->byte_of[symbol];
    return x->kind == ELEMENT_RANGE && byte >= (x->value & 255) && byte <= x->value >> 8;
}

uint32_t machine_find(struct machine *m, uint32_t state, uint32_t symbol)
{
    uint32_t n = n_place(m, state), next;

    begin_places(m);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *at = places_of(m, state) + 1 + 2 * i;

        m->work++;
        if (at[0] != AT_END && matches(m, &m->program->element[at[0]], symbol) &&
            !go_to(m, at[0] + 1, at[1], 0))
            return MACHINE_NONE;
    }
    if (!follow(m))
        return MACHINE_NONE;
    next = state_of_found(m);
    if (next != MACHINE_NONE)
        m->pool[state + symbol] = next;
    return next;
}

/* ---- the beginning, and beginning again ---- */

static void forget(struct machine *m)
{
    memset(m->state_at, 0, 2 * STATES * sizeof *m->state_at);
    m->n_state = 0;
    m->n_pool = MACHINE_DEAD;
    m->generation++;
}

/* The state without places, to which every symbol leads back. */
static void add_dead(struct machine *m)
{
    uint32_t n = m->n_found;

    m->n_found = 0;
    state_of_found(m);
    m->n_found = n;
    for (uint32_t i = 0; i < m->n_symbol; i++)
        m->pool[MACHINE_DEAD + i] = MACHINE_DEAD;
}

uint32_t machine_start(struct machine *m)
{
    const struct rule *root = &m->program->rule[m->program->root];

    forget(m);
    memset(m->node_at, 0, 2 * NODES * sizeof *m->node_at);
    m->n_node = BOTTOM + 1;
    begin_places(m);
    add_dead(m);
    for (uint32_t a = root->first; a < root->first + root->n; a++)
        if (!go_to(m, m->program->alternative[a], BOTTOM, 0))
            return MACHINE_NONE;
    return follow(m) ? state_of_found(m) : MACHINE_NONE;
}

/* Keep the nodes of the places that were found.  A parent is older than its node. */
static void keep_nodes(struct machine *m)
{
    uint32_t n = BOTTOM + 1;

    memset(m->moved, 0, m->n_node * sizeof *m->moved);
    for (uint32_t i = 0; i < m->n_found; i++)
        m->moved[m->found[i].node] = 1;
    for (uint32_t i = m->n_node; i-- > BOTTOM + 1;)
        if (m->moved[i] != 0)
            m->moved[m->node[i].parent] = 1;
    m->moved[BOTTOM] = BOTTOM;
    for (uint32_t i = BOTTOM + 1; i < m->n_node; i++)
        if (m->moved[i] != 0) {
            m->node[n] = m->node[i];
            m->node[n].parent = m->moved[m->node[i].parent];
            m->moved[i] = n++;
        }
    for (uint32_t i = 0; i < m->n_found; i++)
        m->found[i].node = m->moved[m->found[i].node];
    m->n_node = BOTTOM + 1;
    memset(m->node_at, 0, 2 * NODES * sizeof *m->node_at);
    for (uint32_t i = BOTTOM + 1; i < n; i++) {
        struct machine_node x = m->node[i];

        node_of(m, x.element, x.count, x.parent);
    }
}

uint32_t machine_keep(struct machine *m, uint32_t state)
{
    const uint32_t *at = places_of(m, state);

    m->n_found = at[0];
    for (uint32_t i = 0; i < m->n_found; i++)
        m->found[i] = (struct machine_place){ at[1 + 2 * i], at[2 + 2 * i], 0 };
    keep_nodes(m);
    forget(m);
    add_dead(m);
    return state_of_found(m);
}
