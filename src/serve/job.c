/* See job.h. */
#include "config.h"

#include "src/serve/job.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"

#define PIECE_FIXED 96 /* bytes of a piece beside its text, with those of malloc() */

/* ---- memory ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Hold so many bytes of an answer, and take `kept` at least. */
static bool charge(struct job *j, uint64_t held, uint64_t kept)
{
    uint64_t was = larger(j->n_held, j->n_kept), now = larger(held, kept);

    if (now > was && !room_take(&j->rooms->answers, now - was))
        return false;
    if (now < was)
        room_give(&j->rooms->answers, was - now);
    j->n_held = held;
    j->n_kept = kept;
    return true;
}

static bool take(struct job *j, uint64_t bytes)
{
    return charge(j, j->n_held + bytes, j->n_kept);
}

static void give(struct job *j, uint64_t bytes)
{
    charge(j, j->n_held - bytes, j->n_kept); /* less is always there */
}

/* Remove the first piece. */
static void drop_first(struct job *j)
{
    struct piece *p = j->first;

    j->first = p->next;
    if (j->first == NULL)
        j->last = NULL;
    give(j, PIECE_FIXED + p->size);
    free(p->text);
    free(p);
}

static void drop_all(struct job *j)
{
    while (j->first != NULL)
        drop_first(j);
}

/* ---- jobs ---- */

struct job *job_new(struct request *request, struct rooms *rooms, struct err *e)
{
    uint64_t bytes = sizeof(struct job) + request_texts(request);
    struct job *j;

    if (!room_take(&rooms->requests, bytes)) {
        err_set(e, ERR_MEMORY, "too many requests are held");
        return NULL;
    }
    j = calloc(1, sizeof *j);
    if (j == NULL) {
        room_give(&rooms->requests, bytes);
        err_memory(e, "a request");
        return NULL;
    }
    j->request = *request;
    *request = (struct request){ .n_stop = 0 };
    j->rooms = rooms;
    j->n_request = bytes;
    j->created = time(NULL);
    j->err = (struct err)ERR_INIT;
    return j;
}

void job_free(struct job *j)
{
    job_forget(j);
    room_give(&j->rooms->requests, j->n_request);
    request_free(&j->request);
    free(j);
}

bool job_begin(struct job *j)
{
    return charge(j, j->n_held, j->rooms->answer);
}

void job_taken(struct job *j)
{
    request_free_texts(&j->request);
    room_give(&j->rooms->requests, j->n_request - sizeof *j);
    j->n_request = sizeof *j;
}

void job_forget(struct job *j)
{
    job_taken(j);
    drop_all(j);
    j->n_reply = 0;
    charge(j, 0, 0);
}

/* Calls and ids are sent as one part, as JSON: up to 6 bytes for each of them, in a buffer that
 * may have grown by half. */
#define PART_AS_JSON 9

static bool is_one_part(enum piece_kind kind)
{
    return kind != PIECE_TEXT && kind != PIECE_THINKING && kind != PIECE_LOGPROBS;
}

void job_end(struct job *j)
{
    uint64_t most = 0;

    j->state = JOB_ENDED;
    j->ended_ns = clock_ns();
    job_taken(j); /* nothing of it is needed any longer */
    if (!j->request.stream && !job_has_error(j))
        return; /* the complete reply is made in the same memory */
    if (!j->request.stream)
        drop_all(j);
    for (const struct piece *p = j->first; p != NULL; p = p->next)
        if (is_one_part(p->kind))
            most = larger(most, p->len);
    charge(j, j->n_held, most > 0 ? j->n_held + PART_AS_JSON * most : 0);
}

bool job_hold(struct job *j, uint64_t bytes)
{
    if (!charge(j, j->n_held - j->n_reply + bytes, j->n_kept))
        return false;
    j->n_reply = bytes;
    return true;
}

bool job_replied(struct job *j, uint64_t bytes)
{
    bool fits;

    drop_all(j);
    fits = job_hold(j, bytes);
    charge(j, j->n_held, 0);
    return fits;
}

uint64_t job_left(const struct job *j)
{
    const struct room *r = &j->rooms->answers;

    return r->most - r->used + larger(j->n_held, j->n_kept);
}

/* ---- pieces ---- */

static const char too_much[] = "the answers that are not read yet take too much memory";

/* Add a piece with space for len bytes, more than 0; NULL: there is no memory. */
static struct piece *add_piece(struct job *j, enum piece_kind kind, size_t len)
{
    struct piece *p;
    char *text;

    if (!take(j, PIECE_FIXED + len))
        return NULL;
    p = calloc(1, sizeof *p);
    text = malloc(len);
    if (p == NULL || text == NULL) {
        free(p);
        free(text);
        give(j, PIECE_FIXED + len);
        return NULL;
    }
    *p = (struct piece){ .kind = kind, .text = text, .size = len };
    if (j->last != NULL)
        j->last->next = p;
    else
        j->first = p;
    j->last = p;
    return p;
}

static bool resize(struct job *j, struct piece *p, size_t size)
{
    char *more;

    if (!take(j, size - p->size))
        return false;
    more = realloc(p->text, size);
    if (more == NULL) {
        give(j, size - p->size);
        return false;
    }
    p->text = more;
    p->size = size;
    return true;
}

/* Make space for len more bytes: that of bytes that were taken out, twice as much as before, or as
 * much as is needed. */
static bool grow(struct job *j, struct piece *p, size_t len)
{
    if (p->len + len > p->size && p->from > 0) {
        memmove(p->text, p->text + p->from, p->len - p->from);
        p->len -= p->from;
        p->from = 0;
    }
    return p->len + len <= p->size ||
           (p->len + len <= 2 * p->size && resize(j, p, 2 * p->size)) ||
           resize(j, p, p->len + len);
}

int job_add(struct job *j, enum piece_kind kind, const char *text, size_t len, struct err *e)
{
    struct piece *p = j->last;
    bool is_new = p == NULL || p->kind != kind;

    if (len == 0)
        return 0;
    if (is_new)
        p = add_piece(j, kind, len);
    if (p == NULL || (!is_new && !grow(j, p, len)))
        return err_set(e, ERR_MEMORY, "%s", too_much);
    memcpy(p->text + p->len, text, len);
    p->len += len;
    return 0;
}

int job_add_call(struct job *j, const char *name, const char *arguments, size_t len,
                 struct err *e)
{
    size_t n = strlen(name) + 1;
    struct piece *p = add_piece(j, PIECE_CALL, n + len);

    if (p == NULL)
        return err_set(e, ERR_MEMORY, "%s", too_much);
    memcpy(p->text, name, n);
    memcpy(p->text + n, arguments, len);
    p->len = n + len;
    j->n_call++;
    return 0;
}

const char *piece_arguments(const struct piece *p, size_t *n)
{
    size_t name = strlen(p->text) + 1;

    *n = p->len - name;
    return p->text + name;
}

void job_was_thinking(struct job *j)
{
    for (struct piece *p = j->first; p != NULL; p = p->next)
        if (p->kind == PIECE_TEXT)
            p->kind = PIECE_THINKING;
        else if (p->kind == PIECE_LOGPROBS)
            p->len = p->from;
}

/* A probability takes some ten times as many bytes in a reply. */
#define LOGPROBS_PART (JOB_PART / 4)
_Static_assert(LOGPROBS_PART >= MW_LOGPROBS * sizeof(struct mw_logprob), "a token's fit");

/* The length of the part of a piece that begins at text and has n bytes at most: whole characters,
 * or all probabilities of each token. */
static size_t part_of(const struct job *j, enum piece_kind kind, const char *text, size_t n)
{
    size_t token = j->request.n_logprob * sizeof(struct mw_logprob), len = JOB_PART;

    if (kind == PIECE_LOGPROBS)
        return n < LOGPROBS_PART ? n : LOGPROBS_PART - LOGPROBS_PART % token;
    if (n <= len || is_one_part(kind))
        return n;
    while (len > 1 && (text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

bool job_next(const struct job *j, struct piece *out)
{
    const struct piece *p = j->first;

    if (p == NULL)
        return false;
    *out = (struct piece){ .kind = p->kind, .text = p->text + p->from };
    out->len = part_of(j, p->kind, out->text, p->len - p->from);
    return true;
}

void job_drop(struct job *j, const struct piece *part)
{
    j->first->from += part->len;
    if (j->first->from == j->first->len)
        drop_first(j);
}

bool job_has_error(const struct job *j)
{
    return j->state == JOB_ENDED && j->err.code != ERR_NONE &&
           !(j->has_begun && j->receipt.done == MW_DONE_CONTEXT);
}
