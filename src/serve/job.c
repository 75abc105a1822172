/* See job.h. */
#include "config.h"

#include "src/serve/job.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_FIXED 64 /* bytes of a piece beside its text */

struct job *job_new(struct request *request, struct room *room, struct err *e)
{
    uint64_t bytes = sizeof(struct job) + request->messages.size + request->text_len +
                     request->tools.size + request->grammar_len +
                     request->n_ids * sizeof *request->ids +
                     request->n_bias * sizeof *request->bias;
    struct job *j;

    if (!room_admit(room, bytes)) {
        err_set(e, ERR_MEMORY, "too many requests are held");
        return NULL;
    }
    j = calloc(1, sizeof *j);
    if (j == NULL) {
        room_give(room, bytes);
        err_memory(e, "a request");
        return NULL;
    }
    j->request = *request;
    *request = (struct request){ .n_stop = 0 };
    j->room = room;
    j->n_held = bytes;
    j->created = time(NULL);
    j->err = (struct err)ERR_INIT;
    return j;
}

void job_free(struct job *j)
{
    job_drop_all(j);
    room_give(j->room, j->n_held);
    request_free(&j->request);
    free(j);
}

static const char too_much[] = "the answers that are not read yet take too much memory";

/* Add a piece with space for len bytes, more than 0; NULL: there is no memory. */
static struct piece *add_piece(struct job *j, enum piece_kind kind, size_t len)
{
    struct piece *p;
    char *text;

    if (!room_take(j->room, PIECE_FIXED + len))
        return NULL;
    p = calloc(1, sizeof *p);
    text = malloc(len);
    if (p == NULL || text == NULL) {
        free(p);
        free(text);
        room_give(j->room, PIECE_FIXED + len);
        return NULL;
    }
    *p = (struct piece){ .kind = kind, .text = text, .size = len };
    j->n_held += PIECE_FIXED + len;
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

    if (!room_take(j->room, size - p->size))
        return false;
    more = realloc(p->text, size);
    if (more == NULL) {
        room_give(j->room, size - p->size);
        return false;
    }
    j->n_held += size - p->size;
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

/* The length of the part of a piece that begins at text and has n bytes at most: whole characters,
 * or all probabilities of each token. */
static size_t part_of(const struct job *j, enum piece_kind kind, const char *text, size_t n)
{
    size_t token = j->request.n_logprob * sizeof(struct mw_logprob), len = JOB_PART;

    if (n <= JOB_PART || (kind != PIECE_TEXT && kind != PIECE_THINKING && kind != PIECE_LOGPROBS))
        return n;
    if (kind == PIECE_LOGPROBS)
        return len - len % token;
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

/* Remove the first piece. */
static void drop_first(struct job *j)
{
    struct piece *p = j->first;

    j->first = p->next;
    if (j->first == NULL)
        j->last = NULL;
    room_give(j->room, PIECE_FIXED + p->size);
    j->n_held -= PIECE_FIXED + p->size;
    free(p->text);
    free(p);
}

void job_drop(struct job *j, const struct piece *part)
{
    j->first->from += part->len;
    if (j->first->from == j->first->len)
        drop_first(j);
}

void job_drop_all(struct job *j)
{
    while (j->first != NULL)
        drop_first(j);
}

bool job_has_error(const struct job *j)
{
    return j->state == JOB_ENDED && j->err.code != ERR_NONE &&
           !(j->has_begun && j->receipt.done == MW_DONE_CONTEXT);
}
