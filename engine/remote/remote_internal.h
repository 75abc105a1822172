/*
 * remote_internal.h - a chat with a model at a server, shared by the files of this module.
 *
 *     program --commands--> queue --> thread --events--> queue + descriptor --> program
 *                                       │ └── POST /v1/chat/completions, a stream of events
 *                                       └──── the conversation
 *
 * Commands run one after the other.  A cancel is not queued: it makes a descriptor readable, on
 * which the thread waits together with the connection, and marks the messages in the queue.
 * A server stops when its connection is closed.
 *
 *     remote.c           the side of the program
 *     remote_thread.c    the thread: one command after the other
 *     remote_answer.c    one answer: the request, and the stream of its pieces
 *     body.c             the JSON of a request
 *     remote_setting.c   a setting of the server
 */
#ifndef MEMWALL_ENGINE_REMOTE_REMOTE_INTERNAL_H
#define MEMWALL_ENGINE_REMOTE_REMOTE_INTERNAL_H

#include <pthread.h>

#include "engine/base/json_write.h"
#include "engine/remote/remote.h"
#include "engine/remote/server.h"
#include "engine/remote/watcher.h"
#include "engine/session/conversation.h"
#include "engine/session/events.h"
#include "engine/session/settings.h"

#define REMOTE_NAME 40 /* of a setting */

enum remote_kind {
    REMOTE_SEND,
    REMOTE_CONTINUE,
    REMOTE_RETRY,
    REMOTE_ASIDE,
    REMOTE_REWIND,
    REMOTE_STASH,
    REMOTE_UNSTASH,
    REMOTE_RESTORE,
    REMOTE_SET,
    REMOTE_SETTING,
};

struct remote_command {
    struct remote_command *next;
    enum remote_kind kind;
    bool is_cancelled; /* a message that the conversation does not get */
    char *text;        /* len bytes and a NUL */
    size_t len, n;
    struct turn *turns; /* [room] for those that are stashed */
    size_t room;
    struct conversation restored;
    struct settings settings;
    enum mw_setting_step step; /* of a setting: text is its value, n the tag */
    char name[REMOTE_NAME];
};
void remote_command_free(struct remote_command *c);

/* The answer that is being made, or the last one.  Written by the thread under the lock. */
struct remote_progress {
    enum mw_state state;
    bool has_usage, has_cached;
    uint32_t n_prompt, n_cached, n_decoded; /* of the usage */
    uint32_t n_piece;
    uint64_t start_ns, first_ns, last_ns; /* 0: not reached */
    double prompt_tps, answer_tps;        /* as the server measured them, or NaN */
};

/* The tokens of the conversation, as the server counted them. */
struct remote_count {
    uint32_t n_token; /* 0: not known */
    size_t n_turn;    /* turns of the conversation that were counted */
};

struct mw_remote {
    struct server server; /* does not change after opening */
    struct http *http;    /* of the thread */
    struct events *events;
    struct watcher *watcher;
    pthread_t thread;
    bool has_thread;
    int stop_fd; /* an eventfd: readable once the thread has to stop */

    _Atomic uint32_t n_ctx; /* that the server has now; 0: it does not report it */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    struct remote_command *first, *last;
    bool is_cancelled, quits;
    struct remote_progress now;
    struct remote_count count, stashed; /* stashed: before some turns were */

    /* Only the thread uses these. */
    struct conversation conversation;
    struct settings settings;
};

/* The thread.  ctx is a struct mw_remote. */
void *remote_thread(void *ctx);

/* Make an answer to the conversation and post its events; resumes: go on with its last turn.
 * n_predict: the most tokens; 0: as the options say. */
void remote_answer(struct mw_remote *r, bool resumes, uint32_t n_predict);

/* Turns were removed: the count is known only if they were not counted. */
void remote_recount(struct mw_remote *r);

/* Show or change a setting of the server, and post the event. */
void remote_setting(struct mw_remote *r, const struct remote_command *c);

/* Write the body of a request for an answer to the messages, and a NUL.  -1 with *e. */
int body_write(struct json *j, const struct mw_remote *r, bool resumes, uint32_t n_predict,
               uint32_t attempt, struct err *e);

#endif
