/* See constraint.h. */
#include "config.h"

#include "engine/session/constraint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/gbnf.h"
#include "engine/session/model.h"

#define KEPT     64 /* states of the last tokens: more than a pass has drafts */
#define STOP_IDS 64

/* Where an answer is. */
struct cursor {
    enum { AT_BEGINNING, IN_THINKING, IN_TEXT } part;
    bool drops_space; /* the next token is the first one of the text */
    uint32_t state, generation; /* of the machine, in the text */
    uint32_t id;                /* the token that led here */
    struct answer_parser parser; /* before the text */
};

struct constraint {
    struct constraint_options o;
    struct program *program;
    struct machine machine;
    uint32_t stop_ids[STOP_IDS];
    size_t from; /* tokens of the prompt */
    struct cursor first;
    struct cursor kept[KEPT]; /* after i tokens of the answer: kept[i % KEPT] */
    size_t n;                 /* tokens of the answer that were followed */
    size_t reached;           /* the greatest i that is kept: those up to reached - KEPT are not */
    uint64_t *bits;           /* tokens that may follow the state `masked` */
    size_t n_word;
    uint32_t masked, masked_generation;
};

/* ---- the vocabulary ---- */

/* Tokens that match raw text, such as "<think>", are marks as well if they look like one.  Their
 * text can be written with other tokens. */
static bool is_mark(const struct tokenizer *t, uint32_t id, const char *text, size_t n)
{
    return tokenizer_kind(t, id) == TOKEN_USER && n > 2 &&
           ((text[0] == '<' && text[n - 1] == '>') || (text[0] == '[' && text[n - 1] == ']'));
}

static size_t text_of(const void *ctx, uint32_t id, char *buf, size_t n)
{
    size_t len;

    if (tokenizer_is_unusable(ctx, id))
        return 0;
    len = tokenizer_piece(ctx, id, false, buf, n);
    return len <= n && is_mark(ctx, id, buf, len) ? 0 : len;
}

int constraint_tree(struct token_tree *out, const struct tokenizer *t, struct err *e)
{
    return token_tree_open(out, tokenizer_info(t)->n_token, text_of, t, e);
}

/* Two copies of the text are with the options: those in force and those of a request. */
uint64_t mw_grammar_bytes(const struct mw_model *m)
{
    return 2 * PROGRAM_MAX_TEXT + PROGRAM_BYTES + MACHINE_BYTES +
           token_tree_bytes(m->vocab.n_token, m->vocab.text_bytes);
}

static int64_t find_token(const void *ctx, const char *text, size_t len)
{
    return tokenizer_find(ctx, text, len);
}

/* Tokens that a grammar names by their ids may be any numbers. */
static int check_tokens(const struct constraint *c, struct err *e)
{
    const struct program *p = c->program;

    for (uint32_t i = 0; i < p->n_token; i++)
        if (p->token[i] >= tokenizer_info(c->o.tokenizer)->n_token)
            return err_set(e, ERR_ARGUMENT, "the vocabulary has no token <[%u]>", p->token[i]);
    return 0;
}

int constraint_new(struct constraint **out, const struct constraint_options *o, struct err *e)
{
    struct constraint *c = calloc(1, sizeof *c);

    *out = NULL;
    if (c == NULL)
        return err_memory(e, "a grammar");
    c->o = *o;
    c->o.n_stop_id = o->n_stop_id < STOP_IDS ? o->n_stop_id : STOP_IDS;
    memcpy(c->stop_ids, o->stop_ids, c->o.n_stop_id * sizeof *c->stop_ids);
    c->n_word = o->tree->n_vocab / 64 + 1;
    c->bits = calloc(c->n_word, sizeof *c->bits);
    if (c->bits == NULL)
        err_memory(e, "a grammar");
    else if (gbnf_parse(&c->program, o->grammar, strlen(o->grammar), find_token,
                        o->tokenizer, e) == 0 &&
             check_tokens(c, e) == 0 && machine_open(&c->machine, c->program, e) == 0) {
        *out = c;
        return 0;
    }
    if (e->code == ERR_ARGUMENT || e->code == ERR_UNSUPPORTED)
        err_at(e, NULL, ERR_NO_OFFSET, "grammar");
    constraint_free(c);
    return -1;
}

void constraint_free(struct constraint *c)
{
    if (c == NULL)
        return;
    machine_close(&c->machine);
    program_free(c->program);
    free(c->bits);
    free(c);
}

/* ---- following an answer ---- */

/* Whether the decoder leaves out the space that the first text begins with. */
static bool drops_space(const struct constraint *c, const struct answer_parser *p)
{
    const struct vocab_info *info = tokenizer_info(c->o.tokenizer);

    return info->add_space_prefix && info->model != VOCAB_BPE_BYTES && !p->decoder.is_started;
}

/* MACHINE_NONE: *e is set. */
static int begin_text(struct constraint *c, struct cursor *at, struct err *e)
{
    machine_begin(&c->machine);
    at->part = IN_TEXT;
    at->state = machine_start(&c->machine);
    at->generation = c->machine.generation;
    at->drops_space = drops_space(c, &at->parser);
    return at->state != MACHINE_NONE ? 0 : machine_refuse(&c->machine, e);
}

/* The state after a symbol.  *at may get another number for the state that it is at. */
static int next_of(struct constraint *c, struct cursor *at, uint32_t symbol, uint32_t *next,
                   struct err *e)
{
    *next = machine_step(&c->machine, at->state, symbol);
    if (*next == MACHINE_NONE) {
        at->state = machine_keep(&c->machine, at->state);
        at->generation = c->machine.generation;
        if (at->state != MACHINE_NONE)
            *next = machine_step(&c->machine, at->state, symbol);
    }
    return *next != MACHINE_NONE ? 0 : machine_refuse(&c->machine, e);
}

static int follow_bytes(struct constraint *c, struct cursor *at, const char *text, size_t n,
                        struct err *e)
{
    uint32_t next;

    for (size_t i = 0; i < n; i++) {
        if (next_of(c, at, c->program->symbol_of[(unsigned char)text[i]], &next, e) != 0)
            return -1;
        at->state = next;
    }
    return 0;
}

/* A token of the text: one that the grammar names here, or its bytes. */
static int follow_token(struct constraint *c, struct cursor *at, uint32_t id, struct err *e)
{
    char text[VOCAB_MAX_TEXT];
    size_t n = text_of(c->o.tokenizer, id, text, sizeof text);
    size_t skip = at->drops_space && n > 0 && text[0] == ' ';
    uint32_t next;

    at->drops_space = false;
    for (uint32_t i = 0; i < c->program->n_token; i++) {
        if (c->program->token[i] != id)
            continue;
        if (next_of(c, at, machine_token(&c->machine, i), &next, e) != 0)
            return -1;
        if (next != MACHINE_DEAD) {
            at->state = next;
            return 0;
        }
    }
    if (n > 0 && n <= TOKEN_TREE_LONGEST)
        return follow_bytes(c, at, text + skip, n - skip, e);
    at->state = MACHINE_DEAD;
    return 0;
}

/* A token of thinking, or the one that ends it.  Text that comes with the end is text. */
static int follow_thinking(struct constraint *c, struct cursor *at, uint32_t id, struct err *e)
{
    char text[ANSWER_TEXT_MAX];
    bool is_thinking;
    size_t n = answer_parser_push(&at->parser, id, text, &is_thinking), white = 0;

    if (answer_parser_hides(&at->parser)) {
        at->part = IN_THINKING;
        return 0;
    }
    if (begin_text(c, at, e) != 0)
        return -1;
    while (!is_thinking && white < n && (text[white] == '\n' || text[white] == ' '))
        white++;
    return is_thinking ? 0 : follow_bytes(c, at, text + white, n - white, e);
}

static bool begins_thinking(const struct constraint *c, struct cursor *at, uint32_t id)
{
    bool is_one = false;

    for (uint32_t mark, i = 0; !is_one && answer_parser_mark(&at->parser, i, &mark); i++)
        is_one = mark == id;
    return is_one && at->part == AT_BEGINNING && c->o.may_think;
}

static int follow(struct constraint *c, struct cursor *at, uint32_t id, struct err *e)
{
    at->id = id;
    if (at->part == IN_THINKING || begins_thinking(c, at, id))
        return follow_thinking(c, at, id, e);
    at->part = IN_TEXT;
    return follow_token(c, at, id, e);
}

void constraint_begin(struct constraint *c, const uint32_t *prompt, size_t n)
{
    struct answer_parser *p = &c->first.parser;

    *p = (struct answer_parser){ .format = c->o.format, .tokenizer = c->o.tokenizer };
    answer_parser_start(p, prompt, n, false);
    c->first.part = answer_parser_hides(p) ? IN_THINKING : AT_BEGINNING;
    c->from = n;
    c->n = c->reached = 0;
    c->masked = MACHINE_NONE;
}

/* The place after `n` tokens is kept, and can be gone on from. */
static bool is_kept(const struct constraint *c, size_t n)
{
    const struct cursor *at = &c->kept[n % KEPT];

    return n > 0 && n <= c->n && n + KEPT > c->reached &&
           (at->part == IN_THINKING || at->generation == c->machine.generation);
}

/* Returns how many of the answer's first n tokens were followed before, as far as is known. */
static size_t known(const struct constraint *c, const uint32_t *answer, size_t n)
{
    size_t same = n < c->n ? n : c->n, low = c->reached > KEPT ? c->reached - KEPT : 0;

    for (size_t i = low; i < same; i++)
        if (c->kept[(i + 1) % KEPT].id != answer[i])
            same = i;
    return is_kept(c, same) ? same : 0;
}

static void keep(struct constraint *c, const struct cursor *at)
{
    c->kept[c->n % KEPT] = *at;
    c->reached = c->n > c->reached ? c->n : c->reached;
}

/* Go to the place after n tokens of the answer.  Returns it, or NULL with *e. */
static struct cursor *go_to(struct constraint *c, const uint32_t *answer, size_t n, struct err *e)
{
    struct cursor at;

    c->n = known(c, answer, n);
    at = c->n > 0 ? c->kept[c->n % KEPT] : c->first;
    machine_begin(&c->machine);
    if (c->n == 0) {
        c->reached = 0;
        if (at.part == AT_BEGINNING && begin_text(c, &at, e) != 0)
            return NULL;
        at.part = c->first.part;
        keep(c, &at);
    }
    while (c->n < n) {
        machine_begin(&c->machine);
        if (follow(c, &at, answer[c->n], e) != 0)
            return NULL;
        c->n++;
        keep(c, &at);
    }
    return &c->kept[c->n % KEPT];
}

/* ---- what may follow ---- */

static void allow(struct constraint *c, uint32_t id)
{
    if (id / 64 < c->n_word)
        c->bits[id / 64] |= (uint64_t)1 << id % 64;
}

static int find_bits(struct constraint *c, struct cursor *at, struct err *e)
{
    memset(c->bits, 0, c->n_word * sizeof *c->bits);
    c->masked = MACHINE_NONE;
    if (token_tree_walk(c->o.tree, &c->machine, &at->state, at->drops_space, c->bits, e) != 0)
        return -1;
    at->generation = c->machine.generation;
    if (machine_may_end(&c->machine, at->state))
        for (size_t i = 0; i < c->o.n_stop_id; i++)
            allow(c, c->stop_ids[i]);
    if (at->part == AT_BEGINNING && c->o.may_think) {
        for (uint32_t id, i = 0; answer_parser_mark(&at->parser, i, &id); i++)
            allow(c, id);
    } else if (!at->drops_space) {
        c->masked = at->state;
        c->masked_generation = c->machine.generation;
    }
    return 0;
}

static int refuse_all(const struct cursor *at, struct err *e)
{
    if (at->state == MACHINE_DEAD)
        return err_set(e, ERR_ARGUMENT, "the answer is not one of the grammar");
    return err_set(e, ERR_UNSUPPORTED,
                   "no token of the vocabulary goes on as the grammar demands");
}

static int mask_text(struct constraint *c, struct cursor *at, float *logits, uint32_t n_vocab,
                     struct err *e)
{
    bool is_any = false;

    if ((c->masked != at->state || c->masked_generation != at->generation ||
         at->part == AT_BEGINNING || at->drops_space) &&
        find_bits(c, at, e) != 0)
        return -1;
    for (size_t w = 0; w < c->n_word; w++)
        is_any = is_any || c->bits[w] != 0;
    if (!is_any)
        return refuse_all(at, e);
    for (uint32_t id = 0; id < n_vocab && id < c->o.tree->n_vocab; id++)
        logits[id] = (c->bits[id / 64] >> id % 64 & 1) != 0 ? logits[id] : -INFINITY;
    return 0;
}

int constraint_mask(struct constraint *c, const uint32_t *before, size_t n, float *logits,
                    uint32_t n_vocab, struct err *e)
{
    struct cursor *at = go_to(c, before + c->from, n - c->from, e);

    if (at == NULL)
        return -1;
    if (at->part != IN_THINKING)
        return mask_text(c, at, logits, n_vocab, e);
    for (size_t i = 0; i < c->o.n_stop_id; i++)
        if (c->stop_ids[i] < n_vocab)
            logits[c->stop_ids[i]] = -INFINITY;
    return 0;
}

bool constraint_ends_with(struct constraint *c, const uint32_t *before, size_t n, uint32_t id)
{
    struct err ignored = ERR_INIT;
    struct cursor *at = go_to(c, before + c->from, n - c->from, &ignored), next;

    if (at == NULL)
        return false;
    next = *at;
    machine_begin(&c->machine);
    return follow(c, &next, id, &ignored) == 0 && next.part == IN_TEXT &&
           machine_must_end(&c->machine, next.state);
}
