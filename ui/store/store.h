/*
 * store.h - chats on disk: append-only JSON lines that a person can read.
 *
 *     {"memwall":"chat","version":1,"created":"2026-08-01T12:00:00Z","model":"Gemma …"}
 *     {"role":"system","text":"…"}
 *     {"role":"user","time":"…","text":"…"}
 *     {"role":"assistant","time":"…","thinking":"…","text":"…","done":"stop"}
 *     {"receipt":{"n_prompt":34,…,"context":2140}}
 *     {"role":"assistant","continues":true,"text":"…","done":"stop"}
 *     {"notice":"dropped the 3 oldest turns"}
 *     {"rewind":4}
 *     {"queued":"…"}
 *     {"role":"user","queued":true,"time":"…","text":"…"}
 *     {"unqueued":1}
 *
 * An answer's line is written while it streams: its beginning with the first piece, each
 * piece as it comes, its end when it is over.  A program that is killed leaves a line
 * without its end; store_open takes what is there and closes it.  So at most the token in
 * flight is lost.  rewind keeps the first N messages (user and assistant) and what stands
 * before the next one; the lines stay in the file.  queued is a message that waits for its
 * turn; the user's message with "queued":true is the first of them, and unqueued takes the
 * first N back.  Readers that do not know these keys pass over them.  Text has every character
 * escaped that a terminal would obey, so that `cat` is safe.
 *
 * Nothing that was said is given up.  A line that cannot be written (a full disk) waits in
 * memory and is tried again with the next one and by store_sync.  A file that another program
 * removed, moved or changed is noticed before the next line, and the whole chat is written to
 * a new file: store_take_moved reports it.
 *
 * Files are 0600, locked while open (a second program is refused), synced per turn.  What
 * is read is hostile: line length, nesting and counts are bounded; an error names file
 * and line.
 */
#ifndef MEMWALL_UI_STORE_STORE_H
#define MEMWALL_UI_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "engine/memwall.h"

#define STORE_MAX_LINE        ((size_t)2 << 20)
#define STORE_MAX_ITEMS       (1 << 24)
#define STORE_MAX_QUEUE       32
#define STORE_MAX_QUEUE_LINES 64   /* of one message that waits */
#define STORE_KEPT_ITEMS      4096 /* about so many are known without reading the file again */
#define STORE_MEMORY_BYTES    ((size_t)1 << 20) /* text that no file holds; in the plan */
#define STORE_NO_ITEM         UINT32_MAX

struct store;

enum store_kind { STORE_SYSTEM, STORE_USER, STORE_ANSWER, STORE_NOTICE };

/* What can be said of an item without reading its text again. */
struct store_item {
    enum store_kind kind;
    uint32_t text_bytes, thinking_bytes;
    enum mw_done done; /* of an answer */
    bool has_receipt;
    struct mw_receipt receipt;
    uint64_t context; /* tokens in the context after it; 0: not known */
};

/* Text of one item; for malloc, freed by store_text_free. */
struct store_text {
    char *text, *thinking; /* end in NUL; thinking NULL if there is none */
    size_t len, thinking_len;
    uint64_t n_left; /* bytes that were not asked for */
};

struct store_head {
    char model[128];
    char created[32]; /* "2026-08-01T12:00:00Z" */
};

/*
 * Begin a new chat in folder dir, which is made if it is not there.  No file before the
 * first message: chats in which nothing was said leave nothing.  dir NULL: the chat is kept
 * in memory only, about its newest STORE_MEMORY_BYTES.
 */
int store_new(struct store **out, const char *dir, const char *model, struct err *e);
/* Open path to go on with it. */
int store_open(struct store **out, const char *path, struct err *e);
/* The same for reading only: neither locked nor repaired. */
int store_open_read(struct store **out, const char *path, struct err *e);
/* Write what is not written yet and close an unfinished answer as cancelled.  -1 with *e: the
 * file does not hold all of the chat. */
int store_finish(struct store *s, struct err *e);
void store_close(struct store *s); /* the same, and s is gone */

const char *store_path(const struct store *s); /* "" as long as there is no file */
const char *store_name(const struct store *s); /* the file without folder and .jsonl */
const struct store_head *store_head(const struct store *s);

/* ---- writing; *item (may be NULL) is the item's number ---- */

int store_add(struct store *s, enum store_kind kind, const char *text, size_t n, uint32_t *item,
              struct err *e);
/* A piece of an answer, at once in the file.  The first one begins the answer, or goes on
 * with the last one if resume is set. */
int store_piece(struct store *s, const char *text, size_t n, bool is_thinking, bool resume,
                uint32_t *item, struct err *e);
/* The answer is over.  Synced. */
int store_done(struct store *s, const struct mw_receipt *r, uint64_t context, struct err *e);
/* Keep the first n messages (user and assistant). */
int store_rewind(struct store *s, size_t n, struct err *e);
/* Try again to write what could not be written; synced.  0 if all is in the file (or nothing
 * was said yet). */
int store_sync(struct store *s, struct err *e);
/* Is there room for more messages?  -1 with *e: more than STORE_MEMORY_BYTES wait for a file
 * that cannot be written. */
int store_check_room(const struct store *s, struct err *e);
/* Was the chat written to a new file since the last call, because the old one was removed or
 * changed?  *n_lost: messages whose text could not be recovered. */
bool store_take_moved(struct store *s, uint32_t *n_lost);

/* ---- messages that wait: at most STORE_MAX_QUEUE ---- */

int store_queue(struct store *s, const char *text, size_t n, struct err *e);
/* The first of them is sent: it becomes the user's message text[0 .. n). */
int store_add_queued(struct store *s, const char *text, size_t n, uint32_t *item,
                     struct err *e);
/* The first n wait no more. */
int store_unqueue(struct store *s, size_t n, struct err *e);
uint32_t store_queue_count(const struct store *s);
uint64_t store_queue_bytes(const struct store *s); /* of all their texts */
int store_queue_text(const struct store *s, uint32_t i, struct store_text *out, struct err *e);

/* ---- reading ---- */

uint32_t store_count(const struct store *s);
/* User and assistant messages, and who spoke. */
uint32_t store_messages(const struct store *s);
bool store_is_user(const struct store *s, uint32_t message);
/* The item that a message is. */
int store_item_of(const struct store *s, uint32_t message, uint32_t *item, struct err *e);
/* Valid until the next call.  An old item is read again; one that cannot be is an empty
 * notice. */
const struct store_item *store_item(const struct store *s, uint32_t item);
int store_text(const struct store *s, uint32_t item, struct store_text *out, struct err *e);
/* At most its first max bytes, thinking included, and no half of a character. */
int store_text_start(const struct store *s, uint32_t item, size_t max, struct store_text *out,
                     struct err *e);
/* The oldest item whose text there is: not 0 only if the chat is in memory alone and has grown
 * beyond STORE_MEMORY_BYTES. */
uint32_t store_oldest(const struct store *s);
void store_text_free(struct store_text *t);

/* ---- all chats ---- */

struct store_entry {
    char name[64];
    char title[96]; /* the beginning of the first message, clean, one line */
    char model[64]; /* clean */
    time_t changed;
    uint64_t context; /* tokens; 0: not known */
    uint64_t bytes;
};

/* The chats in dir, newest first, for free().  A folder that is not there holds none;
 * files that are no chats are passed over. */
int store_list(const char *dir, struct store_entry **out, size_t *n, struct err *e);
/* The path of chat name in dir (NULL or "": the last one; the beginning of a name is
 * enough where only one has it). */
int store_find(const char *dir, const char *name, char *path, size_t n, struct err *e);

/* ---- export: written to a temporary name, synced, renamed ---- */

enum store_format { STORE_MARKDOWN, STORE_JSON };
/* By the end of a file's name: .json, else Markdown. */
enum store_format store_format_of(const char *path);
int store_export(const struct store *s, const char *path, enum store_format format,
                 bool replace, struct err *e);

#endif
