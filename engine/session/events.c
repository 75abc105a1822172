#include "config.h"

#include "engine/session/events.h"

#include <sys/eventfd.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Spare nodes, as many as the queue normally has, so that nothing is allocated while events are
 * taken as fast as they are posted.  The last N_KEPT are for events that end something, which
 * must be delivered even without memory. */
#define N_SPARE   8
#define N_KEPT    2
#define TEXT_ROOM 512
#define TEXT_KEPT ((size_t)64 << 10) /* nodes with more text are freed after use */

struct node {
    struct node *next;
    struct mw_event event;
    char *text;
    size_t len, cap;
    uint32_t *ids;
};

struct events {
    pthread_mutex_t lock;
    struct node *first, *last;
    struct node *taken; /* its text is in use by the program */
    struct node *spare;
    unsigned n_spare;
    int fd;
};

static void node_free(struct node *n)
{
    if (n != NULL) {
        free(n->text);
        free(n->ids);
    }
    free(n);
}

static struct node *node_new(void)
{
    struct node *n = calloc(1, sizeof *n);

    if (n != NULL)
        n->text = malloc(TEXT_ROOM);
    if (n == NULL || n->text == NULL) {
        free(n);
        return NULL;
    }
    n->cap = TEXT_ROOM;
    return n;
}

int events_new(struct events **out, struct err *e)
{
    struct events *q = calloc(1, sizeof *q);

    *out = NULL;
    if (q == NULL)
        return err_memory(e, "the event queue");
    pthread_mutex_init(&q->lock, NULL);
    q->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    while (q->n_spare < N_SPARE) {
        struct node *n = node_new();

        if (n == NULL)
            break;
        n->next = q->spare;
        q->spare = n;
        q->n_spare++;
    }
    if (q->fd < 0 || q->n_spare < N_SPARE) {
        err_sys(e, "cannot make the event queue");
        events_free(q);
        return -1;
    }
    *out = q;
    return 0;
}

static void list_free(struct node *first)
{
    while (first != NULL) {
        struct node *next = first->next;

        node_free(first);
        first = next;
    }
}

void events_free(struct events *q)
{
    if (q == NULL)
        return;
    list_free(q->first);
    list_free(q->spare);
    node_free(q->taken);
    if (q->fd >= 0)
        close(q->fd);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static struct node *take_node(struct events *q, bool is_end)
{
    struct node *n = q->spare;

    if (q->n_spare <= (is_end ? 0 : N_KEPT))
        return node_new();
    q->spare = n->next;
    q->n_spare--;
    return n;
}

static void give_node(struct events *q, struct node *n)
{
    if (n == NULL)
        return;
    if (q->n_spare == N_SPARE || n->cap > TEXT_KEPT) {
        node_free(n);
        return;
    }
    if (n->ids != NULL)
        free(n->ids);
    n->ids = NULL;
    n->len = 0;
    n->next = q->spare;
    q->spare = n;
    q->n_spare++;
}

static bool append_text(struct node *n, const char *text, size_t len)
{
    if (n->len + len > n->cap) {
        size_t cap = (n->len + len) * 2;
        char *grown = realloc(n->text, cap);

        if (grown == NULL)
            return false;
        n->text = grown;
        n->cap = cap;
    }
    if (len > 0)
        memcpy(n->text + n->len, text, len);
    n->len += len;
    return true;
}

/* Copy the ids of an answer that was cut.  Without memory, the event has none. */
static void copy_ids(struct node *n)
{
    struct mw_cut *cut = &n->event.cut;

    if (cut->n_ids > 0)
        n->ids = malloc(cut->n_ids * sizeof *n->ids);
    if (n->ids != NULL)
        memcpy(n->ids, cut->ids, cut->n_ids * sizeof *n->ids);
    else
        cut->n_ids = 0;
    cut->ids = n->ids;
}

/* Append a node and make the descriptor readable.  The lock is held. */
static void append(struct events *q, struct node *n)
{
    uint64_t one = 1;

    n->next = NULL;
    if (q->last != NULL)
        q->last->next = n;
    else
        q->first = n;
    q->last = n;
    /* A write that would block has failed: then the descriptor is readable already. */
    if (write(q->fd, &one, sizeof one) < 0)
        return;
}

static bool ends_something(enum mw_event_kind kind)
{
    return kind == MW_EVENT_READY || kind == MW_EVENT_THOUGHT || kind == MW_EVENT_DONE ||
           kind == MW_EVENT_PLAN || kind == MW_EVENT_REFUSED || kind == MW_EVENT_ERROR ||
           kind == MW_EVENT_SETTING;
}

void events_post(struct events *q, const struct mw_event *event)
{
    struct node *n;

    pthread_mutex_lock(&q->lock);
    if (event->kind == MW_EVENT_PROGRESS && q->last != NULL &&
        q->last->event.kind == MW_EVENT_PROGRESS) {
        q->last->event = *event;
        pthread_mutex_unlock(&q->lock);
        return;
    }
    n = take_node(q, ends_something(event->kind));
    if (n != NULL) {
        n->event = *event;
        if (event->text != NULL && !append_text(n, event->text, event->len))
            n->len = 0;
        copy_ids(n);
        append(q, n);
    }
    pthread_mutex_unlock(&q->lock);
}

static bool add_text(struct events *q, const char *text, size_t len, bool is_thinking)
{
    struct node *n = q->last;

    if (n != NULL && n->event.kind == MW_EVENT_TEXT && n->event.is_thinking == is_thinking)
        return append_text(n, text, len);
    n = take_node(q, false);
    if (n == NULL)
        return false;
    if (!append_text(n, text, len)) {
        give_node(q, n);
        return false;
    }
    n->event = (struct mw_event){ .kind = MW_EVENT_TEXT, .is_thinking = is_thinking };
    append(q, n);
    return true;
}

int events_text(struct events *q, const char *text, size_t len, bool is_thinking, struct err *e)
{
    bool ok;

    if (len == 0)
        return 0;
    pthread_mutex_lock(&q->lock);
    ok = add_text(q, text, len, is_thinking);
    pthread_mutex_unlock(&q->lock);
    return ok ? 0 : err_memory(e, "%zu bytes of the answer", len);
}

bool events_next(struct events *q, struct mw_event *out)
{
    struct node *n;
    uint64_t count;

    pthread_mutex_lock(&q->lock);
    give_node(q, q->taken);
    n = q->first;
    q->taken = n;
    if (n != NULL) {
        q->first = n->next;
        if (q->first == NULL)
            q->last = NULL;
        *out = n->event;
        out->text = n->text;
        out->len = n->len;
        n->next = NULL;
    }
    if (q->first == NULL && read(q->fd, &count, sizeof count) < 0)
        count = 0; /* it was not readable */
    pthread_mutex_unlock(&q->lock);
    return n != NULL;
}

int events_fd(const struct events *q)
{
    return q->fd;
}
