#include "config.h"

#include "engine/session/events.h"

#include <sys/eventfd.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
    struct node *next;
    struct mw_event event;
    char *text;
    size_t len, cap;
};

struct events {
    pthread_mutex_t lock;
    struct node *first, *last;
    struct node *taken;   /* the one whose text the program still reads */
    struct node *reserve; /* for an answer's end when memory is out */
    int fd;
};

int events_new(struct events **out, struct err *e)
{
    struct events *q = calloc(1, sizeof *q);

    *out = NULL;
    if (q == NULL)
        return err_sys(e, "cannot allocate the event queue");
    pthread_mutex_init(&q->lock, NULL);
    q->reserve = calloc(1, sizeof *q->reserve);
    q->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (q->fd < 0 || q->reserve == NULL) {
        err_sys(e, "cannot make the event queue");
        events_free(q);
        return -1;
    }
    *out = q;
    return 0;
}

static void node_free(struct node *n)
{
    if (n != NULL)
        free(n->text);
    free(n);
}

void events_free(struct events *q)
{
    if (q == NULL)
        return;
    while (q->first != NULL) {
        struct node *next = q->first->next;

        node_free(q->first);
        q->first = next;
    }
    node_free(q->taken);
    node_free(q->reserve);
    if (q->fd >= 0)
        close(q->fd);
    pthread_mutex_destroy(&q->lock);
    free(q);
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
    memcpy(n->text + n->len, text, len);
    n->len += len;
    return true;
}

/* With the lock held: at the end of the queue, and the descriptor becomes readable. */
static void append(struct events *q, struct node *n)
{
    uint64_t one = 1;

    if (q->last != NULL)
        q->last->next = n;
    else
        q->first = n;
    q->last = n;
    /* Non-blocking: a full counter is readable already. */
    if (write(q->fd, &one, sizeof one) < 0)
        return;
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
    n = calloc(1, sizeof *n);
    if (n == NULL && event->kind == MW_EVENT_DONE) {
        n = q->reserve;
        q->reserve = NULL;
    }
    if (n != NULL) {
        n->event = *event;
        if (event->text != NULL && !append_text(n, event->text, event->len))
            n->len = 0;
        append(q, n);
    }
    pthread_mutex_unlock(&q->lock);
}

void events_text(struct events *q, const char *text, size_t len, bool is_thinking)
{
    struct node *n;

    if (len == 0)
        return;
    pthread_mutex_lock(&q->lock);
    n = q->last;
    if (n != NULL && n->event.kind == MW_EVENT_TEXT && n->event.is_thinking == is_thinking) {
        append_text(n, text, len);
    } else {
        n = calloc(1, sizeof *n);
        if (n != NULL && append_text(n, text, len)) {
            n->event.kind = MW_EVENT_TEXT;
            n->event.is_thinking = is_thinking;
            append(q, n);
        } else {
            node_free(n);
        }
    }
    pthread_mutex_unlock(&q->lock);
}

bool events_next(struct events *q, struct mw_event *out)
{
    struct node *n;
    uint64_t count;

    pthread_mutex_lock(&q->lock);
    node_free(q->taken);
    n = q->first;
    q->taken = n;
    if (n != NULL) {
        q->first = n->next;
        if (q->first == NULL)
            q->last = NULL;
        *out = n->event;
        out->text = n->text != NULL ? n->text : "";
        out->len = n->len;
        n->next = NULL;
    }
    if (q->first == NULL && read(q->fd, &count, sizeof count) < 0)
        count = 0; /* nothing was pending */
    pthread_mutex_unlock(&q->lock);
    return n != NULL;
}

int events_fd(const struct events *q)
{
    return q->fd;
}
