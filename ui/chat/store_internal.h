/*
 * store_internal.h - between the files of the store: the file and its items (store.c),
 * reading (store_read.c), lists of chats (store_list.c), export (store_export.c).
 *
 *     file      head line │ lines … │ the answer's line that is open
 *     out                                                   │ bytes not in the file yet
 *
 * An item's text lies in one line or, when it was interrupted, in several: pieces, linked.
 */
#ifndef MEMWALL_UI_CHAT_STORE_INTERNAL_H
#define MEMWALL_UI_CHAT_STORE_INTERNAL_H

#include "ui/chat/chatline.h"
#include "ui/chat/json_text.h"
#include "ui/chat/store.h"

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

struct store {
    char dir[4096], path[4096], name[64];
    struct store_head head;
    int fd; /* -1: there is no file yet */
    bool read_only;
    uint64_t size; /* of the file: what is known to be in it */
    struct json_text out;

    struct record *record; /* [n_record] */
    uint32_t n_record, room_record;
    struct piece *piece; /* [n_piece] */
    uint32_t n_piece, room_piece;

    bool in_answer;  /* pieces belong to it until store_done */
    uint32_t answer; /* its item */
    /* Its line, while it is open. */
    bool is_open, in_thinking, has_text;
    uint64_t line_at; /* where it begins */
};

/* ---- store.c ---- */

/* A line that was read or written becomes part of the items.  *item: which one it made or
 * continued. */
int store_apply(struct store *s, const struct chatline *l, uint64_t offset, uint32_t bytes,
                uint32_t *item, struct err *e);

/* ---- store_read.c ---- */

/* Read all lines of s->fd.  *keep: where the good part of the file ends; more (NULL: all is
 * well) must follow it. */
int store_load(struct store *s, uint64_t *keep, const char **more, bool *is_answer,
               struct err *e);
/* Bytes of the file, or of what is not in it yet. */
int store_bytes(const struct store *s, uint64_t offset, char *buf, size_t n, struct err *e);

#endif
