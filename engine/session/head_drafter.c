/* The head of a session as a drafter (drafter.h), with earlier text as the second one. */
#include "config.h"

#include "engine/session/session_head.h"

#include <stdlib.h>

#include "engine/draft/depth.h"
#include "engine/session/session_internal.h"

#define GOOD_TEXT 2 /* such a match is right more often than a head, and drafting costs nothing */

struct head_drafter {
    struct drafter drafter;
    struct mw_session *s;
    struct drafter *text;  /* or NULL */
    bool is_text;          /* the last look() was for it */
    bool pays;             /* the head was asked for drafts when it was last offered */
};

static struct head_drafter *of(struct drafter *d)
{
    return (struct head_drafter *)(void *)d;
}

static struct draft_look look(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    struct head_drafter *h = of(d);
    struct draft_look l = { .most = 0 };

    if (h->text != NULL)
        l = h->text->calls->look(h->text, ids, n);
    h->is_text = !head_is_ready(h->s->head) ||
                 (l.most > 0 && (l.quality >= GOOD_TEXT || !h->pays));
    if (h->is_text)
        return l;
    h->pays = false;
    return (struct draft_look){ .most = DRAFT_MOST, .quality = DEPTH_HEAD };
}

static int propose(struct drafter *d, uint32_t *ids, uint32_t n, uint32_t most,
                   const struct draft_choose *choose, uint32_t *n_draft, struct err *e)
{
    struct head_drafter *h = of(d);
    struct err failure = ERR_INIT;
    int got;

    if (h->is_text)
        return h->text->calls->propose(h->text, ids, n, most, choose, n_draft, e);
    h->pays = true;
    got = head_draft(h->s, ids[n - 1], most, ids + n, choose, NULL, NULL, &failure);
    *n_draft = got > 0 ? (uint32_t)got : 0;
    if (got >= 0)
        return 0;
    if (failure.code == ERR_CANCELLED) {
        *e = failure;
        return -1;
    }
    head_give_up(h->s, &failure); /* the answer goes on without it */
    return 0;
}

static int follow(struct drafter *d, const struct draft_pass *pass, struct err *e)
{
    (void)pass; /* the head has its rows */
    return head_follow(of(d)->s, e);
}

static void rewind_to(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    drafter_rewind(of(d)->text, ids, n);
}

/* The session counts the head itself. */
static uint64_t used(const struct drafter *d)
{
    return drafter_used(((const struct head_drafter *)(const void *)d)->text);
}

static void free_all(struct drafter *d)
{
    drafter_free(of(d)->text);
    free(d);
}

static const struct drafter_calls calls = { .name = "mtp",
                                            .look = look,
                                            .propose = propose,
                                            .follow = follow,
                                            .rewind = rewind_to,
                                            .used = used,
                                            .free = free_all };

int head_drafter_new(struct drafter **out, struct mw_session *s, struct drafter *text,
                     struct err *e)
{
    struct head_drafter *h = calloc(1, sizeof *h);

    *out = NULL;
    if (h == NULL) {
        drafter_free(text);
        return err_memory(e, "the drafter");
    }
    h->drafter.calls = &calls;
    h->s = s;
    h->text = text;
    h->pays = true;
    *out = &h->drafter;
    return 0;
}
