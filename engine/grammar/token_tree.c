/* See token_tree.h. */
#include "config.h"

#include "engine/grammar/token_tree.h"

#include <stdlib.h>
#include <string.h>

uint64_t token_tree_bytes(uint32_t n_vocab, uint64_t text_bytes)
{
    /* The tree, and while it is made, all texts with their places, and the copy of a sort. */
    return (uint64_t)n_vocab * (4 + 1 + 1 + 8 + 4) + 2 * text_bytes;
}

void token_tree_close(struct token_tree *t)
{
    free(t->id);
    free(t->shared);
    free(t->n_more);
    free(t->bytes);
    *t = (struct token_tree){ .n = 0 };
}

/* All texts, in order of id. */
struct texts {
    char *bytes;
    size_t n, room;
    struct place {
        uint32_t at, len;
    } *place; /* [n_vocab] */
};

static int add_text(struct texts *x, uint32_t id, const char *text, size_t len, struct err *e)
{
    if (x->n + len > x->room) {
        size_t room = 2 * x->room + 65536;
        char *more = realloc(x->bytes, room);

        if (more == NULL)
            return err_memory(e, "the texts of a vocabulary");
        x->bytes = more;
        x->room = room;
    }
    memcpy(x->bytes + x->n, text, len);
    x->place[id] = (struct place){ (uint32_t)x->n, (uint32_t)len };
    x->n += len;
    return 0;
}

static int collect(struct token_tree *t, struct texts *x, token_text_fn *text,
                   const void *ctx, struct err *e)
{
    char buf[TOKEN_TREE_LONGEST];

    for (uint32_t id = 0; id < t->n_vocab; id++) {
        size_t len = text(ctx, id, buf, sizeof buf);

        if (len == 0 || len > sizeof buf)
            continue;
        if (add_text(x, id, buf, len, e) != 0)
            return -1;
        t->id[t->n++] = id;
    }
    return 0;
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct texts *x = ctx;
    struct place p = x->place[*(const uint32_t *)a], q = x->place[*(const uint32_t *)b];
    int order = memcmp(x->bytes + p.at, x->bytes + q.at, p.len < q.len ? p.len : q.len);

    return order != 0 ? order : p.len < q.len ? -1 : p.len > q.len;
}

/* Write the bytes that are not shared, which are fewer than those that were read. */
static int write_bytes(struct token_tree *t, const struct texts *x, struct err *e)
{
    struct place before = { 0, 0 };
    size_t n = 0;

    t->bytes = malloc(x->n > 0 ? x->n : 1);
    if (t->bytes == NULL)
        return err_memory(e, "the texts of a vocabulary");
    for (uint32_t i = 0; i < t->n; i++) {
        struct place p = x->place[t->id[i]];
        uint32_t same = 0, most = p.len < before.len ? p.len : before.len;

        while (same < most && x->bytes[p.at + same] == x->bytes[before.at + same])
            same++;
        t->shared[i] = (uint8_t)same;
        t->n_more[i] = (uint8_t)(p.len - same);
        memcpy(t->bytes + n, x->bytes + p.at + same, p.len - same);
        n += p.len - same;
        before = p;
    }
    return 0;
}

int token_tree_open(struct token_tree *t, uint32_t n_vocab, token_text_fn *text,
                    const void *ctx, struct err *e)
{
    struct texts x = { .place = calloc(n_vocab, sizeof *x.place) };
    int rc = -1;

    *t = (struct token_tree){ .n_vocab = n_vocab };
    t->id = calloc(n_vocab, sizeof *t->id);
    t->shared = calloc(n_vocab, sizeof *t->shared);
    t->n_more = calloc(n_vocab, sizeof *t->n_more);
    if (x.place == NULL || t->id == NULL || t->shared == NULL || t->n_more == NULL) {
        err_memory(e, "the texts of a vocabulary");
    } else if (collect(t, &x, text, ctx, e) == 0) {
        qsort_r(t->id, t->n, sizeof *t->id, compare, &x);
        rc = write_bytes(t, &x, e);
    }
    free(x.bytes);
    free(x.place);
    if (rc != 0)
        token_tree_close(t);
    return rc;
}

/* ---- the walk ---- */

struct walk {
    struct machine *m;
    uint32_t at[TOKEN_TREE_LONGEST + 1]; /* states after each byte of path, up to n_alive bytes */
    unsigned n_alive;
    char path[TOKEN_TREE_LONGEST];
    bool drops_space;
};

static uint32_t step(struct walk *w, unsigned depth)
{
    if (depth == 0 && w->drops_space && w->path[0] == ' ')
        return w->at[0];
    return machine_byte(w->m, w->at[depth], w->path[depth]);
}

/* Follow path from byte `depth` to byte `end`, as far as the grammar allows it.  false: no
 * memory. */
static bool follow(struct walk *w, unsigned depth, unsigned end)
{
    for (; depth < end; depth++) {
        uint32_t next = step(w, depth);

        if (next == MACHINE_NONE)
            return false;
        if (next == MACHINE_DEAD)
            break;
        w->at[depth + 1] = next;
    }
    w->n_alive = depth;
    return true;
}

/* The same, and if there is no memory, with only the first state. */
static int follow_again(struct walk *w, unsigned depth, unsigned end, struct err *e)
{
    if (follow(w, depth, end))
        return 0;
    w->at[0] = machine_keep(w->m, w->at[0]);
    return w->at[0] != MACHINE_NONE && follow(w, 0, end) ? 0 : machine_refuse(w->m, e);
}

static void allow(uint64_t *bits, uint32_t id)
{
    bits[id / 64] |= (uint64_t)1 << id % 64;
}

/* Tokens that the grammar names. */
static int allow_named(const struct token_tree *t, struct walk *w, uint64_t *bits, struct err *e)
{
    const struct program *p = w->m->program;

    for (uint32_t i = 0; i < p->n_token; i++) {
        uint32_t next = machine_step(w->m, w->at[0], machine_token(w->m, i));

        if (next == MACHINE_NONE) {
            w->at[0] = machine_keep(w->m, w->at[0]);
            if (w->at[0] != MACHINE_NONE)
                next = machine_step(w->m, w->at[0], machine_token(w->m, i));
        }
        if (next == MACHINE_NONE)
            return machine_refuse(w->m, e);
        if (next != MACHINE_DEAD && p->token[i] < t->n_vocab)
            allow(bits, p->token[i]);
    }
    return 0;
}

int token_tree_walk(const struct token_tree *t, struct machine *m, uint32_t *state,
                    bool drops_space, uint64_t *bits, struct err *e)
{
    struct walk w = { .m = m, .drops_space = drops_space };
    const char *bytes = t->bytes;

    machine_begin(m);
    w.at[0] = *state;
    for (uint32_t i = 0; i < t->n; bytes += t->n_more[i], i++) {
        unsigned shared = t->shared[i], end = shared + t->n_more[i];

        if (shared > w.n_alive)
            continue;
        memcpy(w.path + shared, bytes, t->n_more[i]);
        if (follow_again(&w, shared, end, e) != 0)
            return -1;
        if (w.n_alive == end)
            allow(bits, t->id[i]);
    }
    if (allow_named(t, &w, bits, e) != 0)
        return -1;
    *state = w.at[0];
    return 0;
}
