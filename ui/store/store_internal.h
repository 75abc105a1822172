/*
 * store_internal.h - between the files of the store: the file (store.c), its items
 * (store_items.c), reading (store_read.c), files that others spoil (store_rescue.c), lists of
 * chats (store_list.c), export (store_export.c).
 *
 *     file      head line │ lines … │ the answer's line that is open
 *     out                                                   │ bytes not in the file yet
 *
 * An item's text lies in one line or, when it was interrupted, in several: pieces, linked.
 */
#ifndef MEMWALL_UI_STORE_STORE_INTERNAL_H
#define MEMWALL_UI_STORE_STORE_INTERNAL_H

#include "engine/base/json_write.h"
#include "ui/store/chatline.h"
#include "ui/store/store.h"

#define STORE_NO_PIECE UINT32_MAX

struct piece {
    uint64_t offset; /* of the line */
    uint32_t bytes;  /* without its newline; 0: it is open and goes on to the end */
    uint32_t next;
};

struct record {
    struct store_item item;
    uint32_t first, last; /* pieces */
};

/* Items whose lines lie one after the other: where they begin. */
struct part {
    uint64_t offset;
    uint32_t item, message; /* how many are before it */
    uint32_t n_piece;       /* lines that became part of its items */
};

/* A part that was read again; view: its items. */
struct old_part {
    struct store *view;
    uint32_t number;
};

struct store {
    char dir[4096], path[4096], name[64];
    struct store_head head;
    int fd; /* -1: there is no file yet */
    bool read_only;
    bool in_memory;   /* there will never be a file */
    bool is_said;     /* the chat is to be saved in a file */
    bool is_nameless; /* the file had no name left when it was opened (/proc/self/fd/3) */
    bool is_lost;     /* the file is not what was written: a new one is needed */
    bool is_moved;    /* one was made, and nobody has asked yet */
    uint32_t n_lost;
    uint64_t size; /* of the file: what is known to be in it */
    struct json out;

    struct record *record; /* [n_record] items from first on; the first of part kept */
    uint32_t first, kept;
    struct part *part; /* [n_part] */
    uint32_t n_part, room_part;
    uint32_t n_message;
    uint8_t *is_user; /* a bit for each message */
    uint32_t room_user;
    struct old_part *old; /* never NULL, but in a view */
    uint64_t n_reread;

    /* A view: items [first, view_end) of another store.  Lines in their midst may be of later
     * items, which were taken back. */
    bool is_view;
    bool is_beyond; /* the last item is a later one */
    uint32_t view_end, first_message;
    uint32_t n_inside;      /* messages before the later ones ... */
    bool ends_with_message; /* ... the first of which is one */

    uint32_t n_record, room_record;
    struct piece *piece; /* [n_piece] */
    uint32_t n_piece, room_piece;
    struct record queue[STORE_MAX_QUEUE]; /* their items have lengths only */
    uint32_t n_queue;

    char *tail; /* the last bytes of the file, in case it is cut */
    size_t n_tail, room_tail;

    bool in_answer;  /* pieces belong to it until store_done */
    uint32_t answer; /* its item */
    /* Its line, while it is open. */
    bool is_open, in_thinking, has_text;
    uint64_t line_at; /* where it begins */
};

/* ---- store_items.c ---- */

/* A line that was read or written becomes part of the items.  *item: which one it made or
 * continued. */
int store_apply(struct store *s, const struct chatline *l, uint64_t offset, uint32_t bytes,
                uint32_t *item, struct err *e);

/* One more item, whose first line begins at offset. */
struct record *store_add_record(struct store *s, enum store_kind kind, uint64_t offset,
                                struct err *e);
/* The item that a line continues; NULL: the line begins one of its own. */
struct record *store_continued(struct store *s, enum store_kind kind);
/* A piece of an item. */
int store_add_line(struct store *s, struct record *r, uint64_t offset, uint32_t bytes,
                   struct err *e);
/* A piece of anything. */
int store_add_piece(struct store *s, struct record *r, uint64_t offset, uint32_t bytes,
                    struct err *e);
int store_keep_messages(struct store *s, uint64_t n, struct err *e);
void store_drop_queued(struct store *s, uint64_t n);
void store_apply_receipt(struct store *s, const struct chatline *l);
/* Any item and the store that has its pieces, until an item of another part is asked for.
 * NULL with *e: it cannot be read again. */
const struct record *store_record(const struct store *s, uint32_t item,
                                  const struct store **holder, struct err *e);

/* ---- store.c ---- */

struct store *store_blank(struct err *e); /* without file and items; NULL with *e */
void store_drop(struct store *s);         /* s may be NULL */
void store_print_head(struct store *s);
void store_print_receipt(struct store *s, const struct mw_receipt *r, uint64_t context);
/* Make a file of its own for s: at path if nothing is there (NULL: not tried), else in s->dir
 * under a name made of the time. */
int store_make_file(struct store *s, const char *path, struct err *e);
/* In the file, or kept for it; sync: safe from a loss of power too. */
int store_commit(struct store *s, bool sync, struct err *e);

/* ---- store_rescue.c ---- */

/* Keep the end of the file in memory: bytes that follow s->size. */
void store_remember(struct store *s, const char *bytes, size_t n);
/* The file ends at size from now on. */
void store_forget(struct store *s, uint64_t size);
/* Is the file still what was written, under its name? */
bool store_is_intact(const struct store *s);
/* Write all of the chat to a new file, which takes the place of the old one.  -1 with *e:
 * s is as it was. */
int store_rescue(struct store *s, struct err *e);

/* ---- store_read.c ---- */

/* Parse the line s[0 .. n), which may be cut: *used bytes of it and *more are a line.
 * false: nothing can be made of it. */
bool store_read_line(const char *s, size_t n, bool keep_text, struct chatline *l, size_t *used,
                     const char **more);

/* Read all lines of s->fd.  *keep: where the good part of the file ends; more (NULL: all is
 * well) must follow it. */
int store_load(struct store *s, uint64_t *keep, const char **more, bool *is_answer,
               struct err *e);
/* The lines [from, to) of s become items of the view v. */
int store_load_part(const struct store *s, uint64_t from, uint64_t to, struct store *v,
                    struct err *e);
/* The texts of one line. */
int store_read_piece(const struct store *s, const struct piece *p, struct store_text *out,
                     struct err *e);
/* Bytes of the file, or of what is not in it yet. */
int store_bytes(const struct store *s, uint64_t offset, char *buf, size_t n, struct err *e);

#endif
