/*
 * chatline.h - one line of a saved chat, read: hostile bytes to a few plain fields.
 */
#ifndef MEMWALL_UI_STORE_CHATLINE_H
#define MEMWALL_UI_STORE_CHATLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/store/store.h"

struct text_of {
    char *s; /* for malloc; NULL while only lengths are wanted */
    size_t n, room;
};

struct chatline {
    /* What the line is; a line that is nothing known is passed over. */
    bool is_head, is_message, is_notice, is_receipt, is_rewind, is_queued, is_unqueued;
    enum store_kind kind; /* of a message */
    bool continues;
    bool from_queue; /* a message that was queued before */
    bool has_done;
    enum mw_done done;
    long long version; /* of a head */
    long long rewind, unqueued;
    struct mw_receipt receipt;
    uint64_t context;
    char model[128], created[32];
    struct text_of text, thinking; /* n: their lengths, joined if a key came twice */
};

struct chatline_reader;

/* keep: texts are wanted, not only their lengths.  NULL: no memory. */
struct chatline_reader *chatline_begin(bool keep);
/* A part of the line.  -1 with *e: what is wrong (no file or line yet). */
int chatline_feed(struct chatline_reader *r, const char *s, size_t n, struct err *e);
/* The line is over.  *out is filled, its texts are the caller's; r is gone either way. */
int chatline_end(struct chatline_reader *r, struct chatline *out, struct err *e);
void chatline_drop(struct chatline_reader *r);
void chatline_free(struct chatline *l);

/*
 * A line that ends too early (the program was killed): how many bytes of it can stay, and
 * what must follow them to make an object of it again.  false: nothing of it is of use.
 */
bool chatline_mend(const char *s, size_t n, size_t *keep, const char **more);

const char *chatline_done_name(enum mw_done d); /* "stop" */

#endif
