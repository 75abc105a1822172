/*
 * chatline.h - parses one line of a saved chat, from untrusted bytes.
 */
#ifndef MEMWALL_UI_STORE_CHATLINE_H
#define MEMWALL_UI_STORE_CHATLINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/store/attached.h"
#include "ui/store/kind.h"

struct text_of {
    char *s; /* from malloc; NULL if only lengths are read */
    size_t n, room;
};

struct chatline {
    /* The kind of the line; a line of an unknown kind is skipped. */
    bool is_head, is_message, is_notice, is_receipt, is_rewind, is_queued, is_unqueued;
    bool is_settings, is_model, is_summary;
    bool is_other, is_chosen; /* an earlier answer; one of them is shown again */
    uint32_t number;          /* of that answer, from 1 */
    uint32_t n_carried; /* of a summary */
    enum store_kind kind; /* of a message */
    bool continues;
    bool was_thinking; /* all text of the answer in the lines before was thinking */
    bool is_help;    /* an answer from the help texts */
    bool from_queue; /* a message that was queued before */
    bool has_done;
    enum mw_done done;
    long long version; /* of a head */
    long long rewind, unqueued;
    struct mw_receipt receipt;
    uint64_t context;
    char model[128], created[32];
    char settings[160];
    char model_file[PATH_MAX], model_name[128]; /* of the model that answers from there on */
    struct attached attached;      /* the start of the text of a message; not checked */
    struct text_of text, thinking; /* n: their lengths, joined if a key came twice */
    struct text_of held;           /* the text at the end of an answer that struct mw_cut has */
    bool holds_thinking;
    uint32_t *ids; /* [n_ids] from malloc; NULL if only their number is read */
    size_t n_ids, room_ids;
    /* The first key that no memwall writes like this, and why; "": there is none.  The rest
     * of the line is read. */
    char wrong[96];
    bool has_known_key, has_time;
    bool is_other_file; /* the head of another kind of file */
};

/* Did memwall write the line?  Other programs have files with roles and texts, too. */
static inline bool chatline_is_own(const struct chatline *l)
{
    return l->wrong[0] == '\0' &&
           (l->is_notice || l->is_queued || (l->is_message && l->has_time));
}

struct chatline_reader;

/* Begin a line.  keep: read texts, not only their lengths.  Returns NULL if out of memory. */
struct chatline_reader *chatline_begin(bool keep);
/* Read the ids, too. */
void chatline_keep_ids(struct chatline_reader *r);
/* Parse a part of the line.  Returns -1 with *e, without file and line. */
int chatline_feed(struct chatline_reader *r, const char *s, size_t n, struct err *e);
/* End the line and fill *out, whose texts the caller owns.  Always frees r.  If it returns -1,
 * *out is what was read before the damage, without texts. */
int chatline_end(struct chatline_reader *r, struct chatline *out, struct err *e);
void chatline_drop(struct chatline_reader *r);
void chatline_free(struct chatline *l);

/*
 * Repair a line that ends too early because the program was killed: *keep of its bytes followed
 * by *more are a valid object.  Returns false if nothing is usable.
 */
bool chatline_repair(const char *s, size_t n, size_t *keep, const char **more);

const char *chatline_done_name(enum mw_done d); /* "stop" */

#endif
