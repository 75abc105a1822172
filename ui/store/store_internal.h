/*
 * store_internal.h - shared by the file (store.c), writing (store_write.c), items
 * (store_items.c), reading (store_read.c), damaged files (store_rescue.c), lists of chats
 * (store_list.c), their names (store_name.c) and export (store_export.c).
 *
 *     file      head line │ lines … │ open line of the answer
 *     out                                           │ bytes not written yet
 *
 * The text of an item is in one line or, if it was interrupted, in a linked list of pieces.
 */
#ifndef MEMWALL_UI_STORE_STORE_INTERNAL_H
#define MEMWALL_UI_STORE_STORE_INTERNAL_H

#include "engine/base/json_write.h"
#include "ui/store/chatline.h"
#include "ui/store/store.h"

#define STORE_NO_PIECE UINT32_MAX

struct piece {
    uint64_t offset; /* of the line */
    uint32_t bytes;  /* without newline; 0: open, up to the end */
    uint32_t next;
    bool was_thinking; /* a later line says that its text is thinking */
};

struct record {
    struct store_item item;
    uint32_t first, last; /* pieces */
};

/* The start of a group of items with adjacent lines. */
struct part {
    uint64_t offset;
    uint32_t item, message; /* their number before it */
    uint32_t n_piece;       /* lines of its items */
    uint32_t fewest;        /* messages that a rewind left since the next part began */
    uint32_t system;        /* the last system message before it, or STORE_NO_ITEM */
};

/* A part that was read again; view has its items. */
struct old_part {
    struct store *view;
    uint32_t number;
};

struct store {
    char dir[4096], path[4096], name[STORE_NAME_BYTES];
    struct store_head head;
    char settings[STORE_SETTINGS_BYTES];
    struct store_model model;
    int fd;           /* -1: no file yet */
    bool in_memory;   /* never has a file */
    bool is_held;     /* nothing is written: see store_begin_together() */
    bool is_said;     /* has a message, so it needs a file */
    bool is_nameless; /* the file had no name when it was opened (/proc/self/fd/3) */
    bool is_lost;     /* the file was changed: a new one is needed */
    bool is_moved;    /* a new file was made and not reported yet */
    uint32_t n_lost;
    uint64_t size; /* bytes known to be in the file */
    struct json out;

    struct record *record; /* [n_record] items from first on, the first one of part kept */
    uint32_t first, kept;
    struct part *part; /* [n_part] */
    uint32_t n_part, room_part;
    uint32_t n_message;
    uint8_t *is_user; /* a bit for each message */
    uint32_t room_user;
    struct old_part *old; /* NULL only in a view */
    uint64_t n_reread;

    /* A view: items [first, view_end) of another store.  Lines among them may be of later
     * items that a rewind removed. */
    bool is_view;
    bool is_beyond; /* the last line was of a later item */
    uint32_t view_end, first_message;
    uint32_t n_inside;      /* messages before the first later item */
    bool ends_with_message; /* the first later item is a message */

    uint32_t n_record, room_record;
    struct piece *piece; /* [n_piece] */
    uint32_t n_piece, room_piece;
    struct record queue[STORE_MAX_QUEUE]; /* their items have lengths only */
    uint32_t n_queue;

    struct {
        uint64_t offset;
        uint32_t bytes, number;
        uint32_t attempt; /* of its receipt */
    } other[STORE_MAX_OTHERS]; /* [n_other] lines */
    uint32_t n_other, others_at; /* the number of messages before these answers */

    uint32_t n_damaged; /* lines that cannot be read, at least in part */
    uint64_t damaged;   /* the first of them, counted from 1 */
    char damage[640];   /* what is wrong with it */
    bool is_torn;       /* the line before cannot be read: the next line continues nothing */

    char *tail; /* the last bytes of the file, in case it is truncated */
    size_t n_tail, room_tail;

    bool in_answer;  /* pieces belong to it until store_done */
    uint32_t answer; /* its item */
    /* Its line, while it is open. */
    bool is_open, in_thinking, has_text;
    uint64_t line_at; /* its start */
};

/* ---- store_items.c ---- */

/* Add a line that was read or written to the items.  *item: the item it made or continued.
 * bytes 0: the line is damaged, so the item gets no text. */
int store_apply(struct store *s, const struct chatline *l, uint64_t offset, uint32_t bytes,
                uint32_t *item, struct err *e);

/* Add an item whose first line begins at offset. */
struct record *store_add_record(struct store *s, enum store_kind kind, uint64_t offset,
                                struct err *e);
/* Returns the item that a line continues; NULL: the line begins an item. */
struct record *store_continued(struct store *s, enum store_kind kind);
/* The last line of an item ends with n bytes of text that were held back; or the item goes on,
 * and that text is no longer part of it. */
void store_hold(struct record *r, size_t n, bool holds_thinking);
void store_take_back(struct record *r);
/* Add a piece to an item. */
int store_add_line(struct store *s, struct record *r, uint64_t offset, uint32_t bytes,
                   struct err *e);
/* Add a piece to an item or a queued message. */
int store_add_piece(struct store *s, struct record *r, uint64_t offset, uint32_t bytes,
                    struct err *e);
int store_keep_messages(struct store *s, uint64_t n, struct err *e);
void store_drop_queued(struct store *s, uint64_t n);
void store_apply_receipt(struct store *s, const struct chatline *l);
/* Returns an item and the store with its pieces, valid until an item of another part is
 * requested.  NULL with *e: it cannot be read again. */
const struct record *store_record(const struct store *s, uint32_t item,
                                  const struct store **holder, struct err *e);

/* Copy the model of a line that names one. */
void store_take_model(struct store_model *to, const struct chatline *l);

/* ---- store_others.c ---- */

void store_apply_other(struct store *s, const struct chatline *l, uint64_t offset,
                       uint32_t bytes);
/* Only the first n messages are left. */
void store_keep_others(struct store *s, uint64_t n);

/* ---- store_write.c ---- */

/* End the open line of an answer that goes on with another line. */
void store_close_line(struct store *s);
/* Add the receipt to the object that is open. */
void store_print_figures(struct store *s, const struct mw_receipt *r, uint64_t context);
/* Add how an answer was cut. */
void store_print_cut(struct store *s, const struct store_end *end);
void store_print_receipt(struct store *s, const struct mw_receipt *r, uint64_t context);

/* ---- store.c ---- */

/* "2026-08-01T12:00:00Z", or "20260801-120000" as a sortable name */
void store_now(char buf[32], bool as_name);
struct store *store_blank(struct err *e); /* without file and items; NULL with *e */
void store_drop(struct store *s);         /* s may be NULL */
void store_print_head(struct store *s);
void store_print_settings(struct store *s);
void store_print_model(struct store *s);
/* Create a file for s: at path if it does not exist (NULL: not tried), else in s->dir with a
 * name made from the time. */
int store_make_file(struct store *s, const char *path, struct err *e);
/* Write out to the file, or keep it for later; sync: also survive a power failure. */
int store_commit(struct store *s, bool sync, struct err *e);

/* ---- store_rescue.c ---- */

/* Remember bytes that follow s->size, as the end of the file. */
void store_remember(struct store *s, const char *bytes, size_t n);
/* Set the end of the file to size. */
void store_forget(struct store *s, uint64_t size);
/* Is the file unchanged and at its path? */
bool store_is_intact(const struct store *s);
/* Write the whole chat to a new file and use it.  Returns -1 with *e, and s unchanged. */
int store_rescue(struct store *s, struct err *e);

/* ---- store_read.c ---- */

/* Parse the line s[0 .. n), which may be cut: *used of its bytes and *more are the line.
 * Returns false if nothing is usable. */
bool store_read_line(const char *s, size_t n, bool keep_text, struct chatline *l, size_t *used,
                     const char **more);
/* The same with texts and ids. */
bool store_read_ids_line(const char *s, size_t n, struct chatline *l, size_t *used,
                         const char **more);
/* Append the text that was held back to its text.  Returns false without memory. */
bool store_join_held(struct chatline *l);

/* Read all lines of s->fd; damaged lines are counted and passed over.  *keep: end of the part
 * of the file to keep; *more must follow it (NULL: nothing to repair). */
int store_load(struct store *s, uint64_t *keep, const char **more, bool *is_answer,
               struct err *e);
/* Add the lines in bytes [from, to) of s to the view v. */
int store_load_part(const struct store *s, uint64_t from, uint64_t to, struct store *v,
                    struct err *e);
/* Read the texts of one line; is_last: it is the last one of its item. */
int store_read_piece(const struct store *s, const struct piece *p, bool is_last,
                     struct store_text *out, struct err *e);
/* Read bytes of the file, or of out. */
int store_bytes(const struct store *s, uint64_t offset, char *buf, size_t n, struct err *e);

#endif
