/*
 * store.h - chats on disk: append-only JSON lines that a person can read.
 *
 *     {"memwall":"chat","version":1,"created":"2026-08-01T12:00:00Z","model":"Gemma …"}
 *     {"role":"system","time":"…","text":"…"}
 *     {"role":"user","time":"…","text":"…"}
 *     {"role":"assistant","time":"…","thinking":"…","text":"…","done":"stop"}
 *     {"receipt":{"n_prompt":34,…,"context":2140}}
 *     {"role":"assistant","time":"…","text":"…","done":"length","text_held":"…","ids":[…]}
 *     {"role":"assistant","continues":true,"text":"…","done":"stop"}
 *     {"role":"assistant","time":"…","help":true,"done":"stop","text":"From the help: …"}
 *     {"notice":"dropped the 3 oldest turns"}
 *     {"rewind":4}
 *     {"queued":"…"}
 *     {"role":"user","queued":true,"time":"…","text":"…"}
 *     {"unqueued":1}
 *     {"role":"user","attached":"notes.txt, …","attached_bytes":1300,"text":"…"}
 *     {"settings":"memory 600M, kv q8_0"}
 *     {"model_file":"ORG/NAME:Q8_0","model_name":"Gemma …"}
 *     {"role":"user","summary":2,"text":"…"}
 *     {"other_answer":"…","number":1,"thinking":"…","done":"stop","receipt":{…}}
 *     {"chosen_answer":1}
 *
 * The line of an answer is written while it streams: its start with the first piece, each
 * piece at once, and its end with the answer.  A killed program leaves a line without its end,
 * which store_open completes, so at most the token in flight is lost.
 *
 * An answer that was cut has its tokens in ids, unless they are more than MW_CUT_IDS, and in
 * text_held or thinking_held the text that struct mw_cut describes.  They follow text and
 * thinking, and a line that continues the answer replaces both.
 *
 * An answer with "help":true is from the help texts.  No model made it, and none sees it or the
 * question before it.
 *
 * The last system message is the one in force; an empty one removes it.
 *
 * rewind keeps the first N messages (user and assistant) and everything before the next one;
 * the lines stay in the file.  It does not take back a system message: one that it removes is
 * written again.  queued is a message that waits for its turn.  A user message
 * with "queued":true was the first of them, and unqueued removes the first N.  The first
 * attached_bytes of a text are files, which the screen folds.  settings are those that the chat
 * was held with from there on, as ui/options/kept.h writes them.  model_file is the model that
 * answers from there on: its name in the hub's cache or in Ollama's store, or an absolute path
 * (mw_models_lasting()).  model_name is the name in its file, as in the first line.  Older chats
 * have only that one.
 *
 * A message with "summary" asked for a summary of all messages before it, and the model sees it
 * and its answer in their place.  The next N messages after
 * that answer were there before, and were written again.  other_answer is an earlier answer to
 * the last question, and chosen_answer says that one of them is written again and is no other
 * answer from there on.  Readers skip unknown keys.
 * Control characters in text are escaped, so that `cat` is safe.
 *
 * A line that cannot be written (a full disk) stays in memory and is retried with the next
 * line and by store_sync.  If another program removes, moves or changes the file, the next
 * write notices it and writes the whole chat to a new file; store_take_moved reports that.
 *
 * The name of a file is the name of its chat: the time of the first message, or a name that a
 * person gave it.
 *
 * Files have mode 0600, are locked while open (a second program is refused), and are synced
 * after each turn.  Files are untrusted: line length, nesting and counts are limited, and an
 * error names file and line.  A line that cannot be read, for example after a loss of power, is
 * passed over and stays in the file.  An empty line after it means that later lines know of it.
 * A key of the wrong type or value damages only itself.  A chat without its first line is read,
 * too, if another line is that of a chat.
 */
#ifndef MEMWALL_UI_STORE_STORE_H
#define MEMWALL_UI_STORE_STORE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "engine/memwall.h"
#include "ui/store/attached.h"
#include "ui/store/kind.h"

#define STORE_MAX_LINE        ((size_t)2 << 20)
#define STORE_MAX_DAMAGE      ((size_t)64 << 20) /* of a file, beyond which it is refused */
#define STORE_MAX_ITEMS       (1 << 24)
#define STORE_MAX_QUEUE       32
#define STORE_MAX_QUEUE_LINES 64                /* of one queued message */
#define STORE_KEPT_ITEMS      512               /* about so many, the newest, are in memory */
#define STORE_MEMORY_BYTES    ((size_t)1 << 20) /* unsaved text; part of the plan */
#define STORE_NO_ITEM         UINT32_MAX
#define STORE_NAME_BYTES      64 /* with the suffix of the file, and NUL */
#define STORE_SETTINGS_BYTES  160
#define STORE_MAX_OTHERS      7 /* answers to the last question beside the one that is shown */
#define STORE_SUFFIX          ".jsonl"
#define STORE_NAME_ARROW      "->" /* "/rename OLD -> NEW" */
/* Shown and exported where a system message was removed. */
#define STORE_NO_SYSTEM "no system message from here on"

struct store;

/* An item without its text. */
struct store_item {
    enum store_kind kind;
    uint32_t text_bytes, thinking_bytes;
    uint32_t n_held; /* of them: text that struct mw_cut describes */
    bool holds_thinking;
    enum mw_done done; /* of an answer */
    bool is_help;      /* an answer from the help texts */
    bool is_summary;    /* a question for a summary of all messages before it */
    uint32_t n_carried; /* messages after the summary that were there before it */
    bool has_receipt;
    struct mw_receipt receipt;
    uint64_t context; /* tokens in the context after it; 0: not known */
};

/* The text of one item; free with store_text_free. */
struct store_text {
    char *text, *thinking; /* NUL-terminated; thinking is NULL if there is none */
    size_t len, thinking_len;
    uint64_t n_left;          /* bytes beyond the requested maximum */
    struct attached attached; /* at the start of text; its label is not clean */
};

struct store_head {
    char model[128];
    char created[32]; /* "2026-08-01T12:00:00Z" */
};

/* The model that answers at the end of a chat. */
struct store_model {
    char file[PATH_MAX]; /* "": not known */
    char name[128];
};

/*
 * Begin a new chat in folder dir, which is created if necessary.  The file is created with the
 * first message, so an empty chat leaves none.  dir NULL: keep about the newest
 * STORE_MEMORY_BYTES of the chat in memory only.
 */
int store_new(struct store **out, const char *dir, const char *model, struct err *e);
/* Open path to continue it. */
int store_open(struct store **out, const char *path, struct err *e);
/* Say in *e what path is, if store_open failed because it is another kind of file.  Returns -1. */
int store_explain(const char *path, struct err *e);
/* Returns how many lines of the opened file are damaged.  *line is the number of the first, and
 * *why what is wrong with it. */
uint32_t store_damage(const struct store *s, uint64_t *line, const char **why);
/* Write everything, and end an unfinished answer as cancelled.  Returns -1 with *e if the file
 * is incomplete. */
int store_finish(struct store *s, struct err *e);
void store_close(struct store *s); /* finish and free s */

const char *store_path(const struct store *s); /* "" without a file */
const struct store_head *store_head(const struct store *s);

/* ---- writing; *item (may be NULL) is the item's number ---- */

int store_add(struct store *s, enum store_kind kind, const char *text, size_t n, uint32_t *item,
              struct err *e);
/* Add a user message that begins with files; a may be NULL. */
int store_add_user(struct store *s, const char *text, size_t n, const struct attached *a,
                   uint32_t *item, struct err *e);
/* Add an answer from the help texts, and sync. */
int store_add_help(struct store *s, const char *text, size_t n, uint32_t *item, struct err *e);
/* The same for the question whose answer is a summary of all messages before it. */
int store_add_summary(struct store *s, const char *text, size_t n, const struct attached *a,
                      uint32_t n_carried, struct err *e);
/* Write a piece of an answer at once.  The first piece begins an answer, or continues the last
 * one if resume is set. */
int store_piece(struct store *s, const char *text, size_t n, bool is_thinking, bool resume,
                uint32_t *item, struct err *e);
/* Save that all text of the last answer was thinking. */
int store_thought(struct store *s, struct err *e);
/* How an answer ends. */
struct store_end {
    struct mw_cut cut;
    const char *held; /* the bytes that cut describes; no store_piece has them */
    bool resume;      /* as for store_piece, if no piece came */
};
/* End the answer and sync.  end may be NULL. */
int store_done(struct store *s, const struct mw_receipt *r, uint64_t context,
               const struct store_end *end, struct err *e);
/* The same for an answer that has no receipt. */
int store_done_bare(struct store *s, enum mw_done done, const struct store_end *end,
                    struct err *e);
/* ---- other answers to the last question, oldest first ---- */

/* Is a text short enough for the line of another answer?  Some 1.7 million bytes are. */
bool store_can_be_other(const struct store_text *text);
/* Keep an earlier answer, which a rewind has removed; of cut only the ids count.  One that is too
 * long for a line, and the oldest beyond STORE_MAX_OTHERS, are not kept. */
int store_add_other(struct store *s, uint32_t number, const struct store_text *text,
                    const struct store_item *item, const struct mw_cut *cut, struct err *e);
/* One of them will be written again. */
int store_choose_other(struct store *s, uint32_t number, struct err *e);
uint32_t store_others(const struct store *s);
uint32_t store_other_number(const struct store *s, uint32_t i);
/* Returns a number above the attempts of them, as their receipts have it; 0: there are none. */
uint32_t store_attempts(const struct store *s);
/* Read one of them with its receipt, and with the ids of one that was cut, for free(). */
int store_other(const struct store *s, uint32_t i, struct store_text *text,
                struct store_item *item, uint32_t **ids, size_t *n_ids, struct err *e);

/* Note the settings that the chat is held with from now on; "": none of its own. */
int store_set_settings(struct store *s, const char *text, struct err *e);
/* Note the model that answers from now on. */
int store_set_model(struct store *s, const char *file, const char *name, struct err *e);
/*
 * Changes between these calls belong together, such as messages that replace others: they are
 * written at once, so that neither a full disk nor the end of the program leaves a part of them.
 * Until then they cannot fail but for memory.  store_end_together() returns -1 with *e if they
 * are not in the file; as after any failure, the next call that writes tries again.
 */
void store_begin_together(struct store *s);
int store_end_together(struct store *s, struct err *e);
/* Keep the first n messages (user and assistant), and the system message. */
int store_rewind(struct store *s, size_t n, struct err *e);
/* Retry writing, and sync.  Returns 0 if the file is complete, or the chat is empty. */
int store_sync(struct store *s, struct err *e);
/* Can another message be kept?  Returns -1 with *e if more than STORE_MEMORY_BYTES could not be
 * written. */
int store_check_room(const struct store *s, struct err *e);
/* Was the chat moved to a new file since the last call, because the old one was removed or
 * changed?  *n_lost: messages whose text was lost. */
bool store_take_moved(struct store *s, uint32_t *n_lost);

/* ---- queued messages: at most STORE_MAX_QUEUE ---- */

int store_queue(struct store *s, const char *text, size_t n, const struct attached *a,
                struct err *e);
/* The first queued message was sent: it becomes the user message text[0 .. n). */
int store_add_queued(struct store *s, const char *text, size_t n, const struct attached *a,
                     uint32_t *item, struct err *e);
/* Remove the first n. */
int store_unqueue(struct store *s, size_t n, struct err *e);
uint32_t store_queue_count(const struct store *s);
uint64_t store_queue_bytes(const struct store *s); /* of all their texts */
int store_queue_text(const struct store *s, uint32_t i, struct store_text *out, struct err *e);

/* ---- reading ---- */

uint32_t store_count(const struct store *s);
const char *store_settings(const struct store *s); /* "": none */
const struct store_model *store_model(const struct store *s);
/* The number of user and assistant messages, and whether one is a user message. */
uint32_t store_messages(const struct store *s);
bool store_is_user(const struct store *s, uint32_t message);
/* Returns the item of the system message in force; an empty text: it was removed.  STORE_NO_ITEM:
 * the chat never had one. */
uint32_t store_system(const struct store *s);
/* Find the item of a message. */
int store_item_of(const struct store *s, uint32_t message, uint32_t *item, struct err *e);
/* Returns an item, valid until the next call.  Old items are read again; an unreadable one is
 * returned as an empty notice. */
const struct store_item *store_item(const struct store *s, uint32_t item);
int store_text(const struct store *s, uint32_t item, struct store_text *out, struct err *e);
/* Read at most the first max bytes, including thinking, cut between characters. */
int store_text_start(const struct store *s, uint32_t item, size_t max, struct store_text *out,
                     struct err *e);
/* Returns the oldest item with text: above 0 only if the chat is in memory alone and longer
 * than STORE_MEMORY_BYTES. */
uint32_t store_oldest(const struct store *s);
/* The number of messages before store_oldest, which an export lacks. */
uint32_t store_missing(const struct store *s);
void store_text_free(struct store_text *t);
/* Read the ids of an answer that was cut, for free(); NULL with *n 0 if it has none. */
int store_ids(const struct store *s, uint32_t item, uint32_t **ids, size_t *n, struct err *e);

/* ---- all chats ---- */

struct store_entry {
    char name[STORE_NAME_BYTES];
    bool is_named;  /* by a person; else the name is the time of the first message */
    bool is_damaged; /* no line at its start can be read */
    char title[96]; /* start of the first message, clean, one line */
    time_t changed;
    long changed_ns;  /* of that second */
    uint64_t context; /* tokens; 0: not known */
    uint64_t bytes;
};

/* List the chats in dir, newest first, for free(); NULL if there are none.  A missing folder has
 * none; other files are skipped. */
int store_list(const char *dir, struct store_entry **out, size_t *n, struct err *e);
/* Returns the chat of a list with this name, or with this unique start of a name; "" is the
 * first that is not damaged.  NULL with *e: there is none. */
const struct store_entry *store_choose(const struct store_entry *all, size_t n,
                                       const char *name, struct err *e);
/* Open the newest chat in dir that can be read.  Calls passed(ctx, name, why) for each newer
 * one that cannot. */
typedef void store_passed_fn(void *ctx, const char *name, const struct err *why);
int store_open_newest(struct store **out, const char *dir, store_passed_fn *passed, void *ctx,
                      struct err *e);
/* Find a chat in dir by name or by a unique prefix; NULL or "" is the newest one. */
int store_find(const char *dir, const char *name, char *path, size_t n, struct err *e);

/*
 * The name of a chat is that of its file without the suffix.  store_check_name: -1 with *e for
 * a name that cannot be one, or that could harm the list or a command line.
 */
int store_check_name(const char *name, struct err *e);
/* Name an open chat.  The file gets the name at once; another chat is never replaced. */
int store_rename(struct store *s, const char *name, struct err *e);
/* Name or delete a chat in dir that no memwall has open; old and name are complete names. */
int store_rename_saved(const char *dir, const char *old, const char *name, struct err *e);
int store_delete(const char *dir, const char *name, struct err *e);
/* Facts at the end of a chat that need not be opened for them; "": none, or it cannot be read.
 * The whole file is read. */
struct store_facts {
    char settings[STORE_SETTINGS_BYTES];
    struct store_model model;
};
void store_facts_of(const char *path, struct store_facts *out);
/* Count the messages of a chat in dir.  Returns false if the file is too long for a list, or is
 * not a chat. */
bool store_count_saved(const char *dir, const char *name, uint32_t *n_message);

/* ---- export: written to a temporary name, synced, renamed ---- */

enum store_format { STORE_MARKDOWN, STORE_JSON };
/* JSON if the name ends in .json, else Markdown. */
enum store_format store_format_of(const char *path);
int store_export(const struct store *s, const char *path, enum store_format format,
                 bool replace, struct err *e);

#endif
