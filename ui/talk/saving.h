/*
 * saving.h - the copy of a conversation on disk.
 *
 * The store has all of the conversation, whether it can be written or not.  When a write
 * fails, a notice reports once that saving is suspended.  Every later write, and
 * saving_tick from time to time, tries to write everything that is missing.
 *
 *     SAVING_WORKS <──> SAVING_SUSPENDED ──leave──> SAVING_GIVEN_UP ──leave──> the program ends
 *           └──────────────────<── a write succeeds ───────┘
 */
#ifndef MEMWALL_UI_TALK_SAVING_H
#define MEMWALL_UI_TALK_SAVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/store/store.h"
#include "ui/talk/front.h"
#include "ui/ui.h"

enum saving_state {
    SAVING_WORKS,
    SAVING_SUSPENDED,
    SAVING_GIVEN_UP, /* suspended, and the person was warned that leaving loses text */
};

struct saving {
    const struct talk_front *front;
    const struct ui_chat_options *o;
    struct store *store; /* NULL: there was no memory for one */
    bool is_new;         /* begun by this run; it has no name, and never had an answer */
    enum saving_state state;
    char why[300];     /* it is suspended */
    uint64_t tried_ns; /* the last write that failed */
    bool said_gone;    /* that the oldest text of a chat that is not saved is gone */
    char opened[1000]; /* lines for saving_say_opened() */
};

/* Begin a new chat; nothing is written before its first message.  -1 with *e: s has no
 * store. */
int saving_begin(struct saving *s, const char *model, struct err *e);
/* Open the saved chat with this name ("" for the newest one that can be read).  saving_adopt
 * continues it in place of the current chat, which is closed.  saving_say_opened reports damage
 * that was found meanwhile, when the screen shows the chat. */
int saving_open(struct saving *s, const char *name, struct store **out, struct err *e);
void saving_say_opened(struct saving *s);
void saving_adopt(struct saving *s, struct store *opened);
/* The system message of the opened chat, for free(); NULL: none.  If it cannot be used,
 * saving_say_opened() says so. */
char *saving_system_text(struct saving *s);
/* Close the chat.  The file of a new chat is removed if its messages were all taken back. */
void saving_close(struct saving *s);

/* The folder of all chats, and the file of this one ("" if there is none). */
void saving_folder(const struct saving *s, char *buf, size_t n);
const char *saving_path(const struct saving *s);
/* The folder of KV files, and that of the chat in chat_path, which need not exist.  False: keys
 * and values are not saved. */
#define KV_PATH_BYTES 4400
bool saving_kv_folder(const struct saving *s, char *buf, size_t n);
bool saving_kv_path(const struct saving *s, const char *chat_path, char *buf, size_t n);
/* A chat in the folder was renamed (NULL: deleted), and its KV file goes along, also if this run
 * saves none. */
void saving_kv_moved(const struct saving *s, const char *old, const char *name);
/* Write the command that opens the chat in path again: "memwall --open NAME".  Options that were
 * chosen follow, unless the chat keeps them: "--memory 600M --kv q8_0". */
void saving_resume(const struct saving *s, const char *path, const struct mw_options *o,
                   char *buf, size_t n);
/* Is path the file of this chat, under any name? */
bool saving_is_file(const struct saving *s, const char *path);
/* Name this chat, as store_rename. */
int saving_rename(struct saving *s, const char *name, struct err *e);

/* Try to write what is missing.  Returns whether the file has everything. */
bool saving_retry(struct saving *s);
/* The same if it is due; saving_wait: nanoseconds until then, UINT64_MAX for never. */
void saving_tick(struct saving *s);
uint64_t saving_wait(const struct saving *s);
/* Is there memory for another message?  Returns false, with a message to the user, if more than
 * STORE_MEMORY_BYTES wait for a file that cannot be written. */
bool saving_has_room(struct saving *s);
/* The person wants to leave.  Returns false if that would lose text, and says so; the second
 * time it returns true. */
bool saving_may_leave(struct saving *s);
/* The last attempt, before the program ends.  Stores the file's path, "" if there is none.
 * -1 with *e: the file does not have everything. */
int saving_finish(struct saving *s, char *path, size_t n, struct err *e);

/* Save an event of the conversation.  Functions that return its item return STORE_NO_ITEM if
 * there is no store. */
uint32_t saving_user(struct saving *s, const char *text, size_t n, const struct attached *a);
uint32_t saving_queued_user(struct saving *s, const char *text, size_t n,
                            const struct attached *a); /* it was queued */
void saving_system(struct saving *s, const char *text); /* "": none; if the chat has another */
uint32_t saving_notice(struct saving *s, const char *text);
uint32_t saving_help(struct saving *s, const char *text); /* an answer from the help texts */
void saving_piece(struct saving *s, const char *text, size_t n, bool is_thinking, bool resumes);
void saving_thought(struct saving *s); /* all text of the answer so far was thinking */
/* The answer is over, as the event reports; r: its receipt with all figures; context: tokens in
 * the context after it. */
uint32_t saving_done(struct saving *s, const struct mw_receipt *r, const struct mw_event *ev,
                     uint64_t context, bool resumes);
void saving_rewind(struct saving *s, size_t n);
/* The store was written to with this result: report failures and losses as for others. */
void saving_noted(struct saving *s, int result, const struct err *e);
void saving_settings(struct saving *s, const char *text); /* of the chat, if they are others */
/* The model that answers, if it is another. */
void saving_model(struct saving *s, const char *file, const char *name);
void saving_queue(struct saving *s, const char *text, const struct attached *a);
void saving_unqueue(struct saving *s, size_t n); /* the first n no longer wait */

/* Whether message n can be read, to go back to it.  -1 with *e: it cannot. */
int saving_find(const struct saving *s, size_t n, struct err *e);
/* The first max bytes of message n, to be freed; NULL if it is not available. */
char *saving_text(const struct saving *s, size_t n, size_t max);
/* The files at the start of message n; no bytes if there are none, or the text is gone. */
struct attached saving_attached(const struct saving *s, size_t n, size_t max);

#endif
