/*
 * The items of a chat and the positions of their text.
 *
 * A chat may have millions of items, so only the newest are in memory.  Older ones are grouped
 * in parts: about PART_ITEMS items with adjacent lines in the file.  A part is read again when
 * one of its items is requested, and one such part stays in memory.
 *
 *     part      0          1          2        3        4
 *     items     ├──────────┼──────────┼────────┼────────┼───────┤
 *               only in the file      └─ s->record ─────────────┘
 *
 * Two rules make a part readable on its own.  A line continues an item of the current part, or
 * it begins another item.  A rewind removes parts without remaining items, so a later line
 * only changes the last part.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/store/store_internal.h"

#define PART_ITEMS  256
#define PART_PIECES 1024
/* Limit of the bytes that rewinds may read again, in addition to the size of the file: a file
 * with many rewinds could keep the reader busy for hours. */
#define REREAD_BYTES ((uint64_t)4 << 30)

static bool grow(void **items, uint32_t n, uint32_t *room, size_t size)
{
    uint32_t want = *room == 0 ? 16 : *room * 2;
    void *more;

    if (n < *room)
        return true;
    more = realloc(*items, want * size);
    if (more == NULL)
        return false;
    *items = more;
    *room = want;
    return true;
}

/* ---- pieces ---- */

static uint32_t count_pieces(const struct store *s, const struct record *r)
{
    uint32_t n = 0;

    for (uint32_t p = r->first; p != STORE_NO_PIECE; p = s->piece[p].next)
        n++;
    return n;
}

static void move_pieces(const struct store *s, struct record *r, struct piece *to, uint32_t *n)
{
    uint32_t p = r->first;

    if (p == STORE_NO_PIECE)
        return;
    r->first = *n;
    for (; p != STORE_NO_PIECE; p = s->piece[p].next) {
        to[*n] = s->piece[p];
        to[*n].next = s->piece[p].next == STORE_NO_PIECE ? STORE_NO_PIECE : *n + 1;
        r->last = (*n)++;
    }
}

/* Move the pieces in use to new memory of twice their size. */
static bool gather_pieces(struct store *s)
{
    uint32_t n = 0, room = 16;
    struct piece *to;

    for (uint32_t i = 0; i < s->n_record; i++)
        room += count_pieces(s, &s->record[i]);
    for (uint32_t i = 0; i < s->n_queue; i++)
        room += count_pieces(s, &s->queue[i]);
    room *= 2;
    to = malloc(room * sizeof *to);
    if (to == NULL)
        return false;
    for (uint32_t i = 0; i < s->n_record; i++)
        move_pieces(s, &s->record[i], to, &n);
    for (uint32_t i = 0; i < s->n_queue; i++)
        move_pieces(s, &s->queue[i], to, &n);
    free(s->piece);
    s->piece = to;
    s->n_piece = n;
    s->room_piece = room;
    return true;
}

int store_add_piece(struct store *s, struct record *r, uint64_t offset, uint32_t bytes,
                    struct err *e)
{
    if (s->n_piece == s->room_piece && !gather_pieces(s))
        return err_memory(e, "a chat");
    s->piece[s->n_piece] = (struct piece){
        .offset = offset, .bytes = bytes, .next = STORE_NO_PIECE
    };
    if (r->first == STORE_NO_PIECE)
        r->first = s->n_piece;
    else
        s->piece[r->last].next = s->n_piece;
    r->last = s->n_piece++;
    return 0;
}

/* ---- parts ---- */

static bool is_message(enum store_kind kind)
{
    return kind == STORE_USER || kind == STORE_ANSWER;
}

static struct part *last_part(const struct store *s)
{
    return s->n_part == 0 ? NULL : &s->part[s->n_part - 1];
}

static bool begins_part(const struct store *s, enum store_kind kind)
{
    const struct part *p = last_part(s);
    uint32_t n = p == NULL ? 0 : store_count(s) - p->item;

    return !s->is_view && (p == NULL || (n >= PART_ITEMS && kind == STORE_USER) ||
                           n >= 2 * PART_ITEMS || p->n_piece >= PART_PIECES);
}

/* Drop the oldest parts that are not needed in memory. */
static void forget_parts(struct store *s)
{
    uint32_t n, count = store_count(s);

    while (s->kept + 1 < s->n_part && count - s->part[s->kept + 1].item >= STORE_KEPT_ITEMS) {
        n = s->part[s->kept + 1].item - s->first;
        s->n_record -= n;
        s->first += n;
        memmove(s->record, s->record + n, s->n_record * sizeof *s->record);
        s->kept++;
    }
}

static int begin_part(struct store *s, uint64_t offset, struct err *e)
{
    uint32_t system = store_system(s);
    void *items = s->part;

    if (!grow(&items, s->n_part, &s->room_part, sizeof *s->part))
        return err_memory(e, "a chat");
    s->part = items;
    s->part[s->n_part++] =
        (struct part){ .offset = offset, .item = store_count(s), .message = s->n_message,
                       .fewest = UINT32_MAX, .system = system };
    forget_parts(s);
    return 0;
}

static int count_message(struct store *s, enum store_kind kind, struct err *e)
{
    uint32_t byte = s->n_message / 8, bit = 1u << s->n_message % 8;

    if (!is_message(kind))
        return 0;
    if (!s->is_view) {
        void *items = s->is_user;

        if (!grow(&items, byte, &s->room_user, 1))
            return err_memory(e, "a chat");
        s->is_user = items;
        s->is_user[byte] =
            (uint8_t)(kind == STORE_USER ? s->is_user[byte] | bit : s->is_user[byte] & ~bit);
    }
    s->n_message++;
    return 0;
}

struct record *store_add_record(struct store *s, enum store_kind kind, uint64_t offset,
                                struct err *e)
{
    void *items;

    if (store_count(s) >= STORE_MAX_ITEMS) {
        err_set(e, ERR_FORMAT, "a chat has more than %d items", STORE_MAX_ITEMS);
        return NULL;
    }
    if (begins_part(s, kind) && begin_part(s, offset, e) != 0)
        return NULL;
    items = s->record;
    if (!grow(&items, s->n_record, &s->room_record, sizeof *s->record)) {
        err_memory(e, "a chat");
        return NULL;
    }
    s->record = items;
    if (count_message(s, kind, e) != 0)
        return NULL;
    s->record[s->n_record] = (struct record){
        .item = { .kind = kind, .done = MW_DONE_CANCELLED },
        .first = STORE_NO_PIECE,
    };
    return &s->record[s->n_record++];
}

/* Returns the last record of a kind in the last part; NULL: none. */
static struct record *last_of(struct store *s, enum store_kind kind)
{
    uint32_t begin = s->n_part == 0 ? 0 : last_part(s)->item - s->first;

    for (uint32_t i = s->n_record; i-- > begin;)
        if (s->record[i].item.kind == kind)
            return &s->record[i];
    return NULL;
}

uint32_t store_system(const struct store *s)
{
    const struct part *p = last_part(s);

    if (p == NULL)
        return STORE_NO_ITEM;
    for (uint32_t i = store_count(s); i > p->item; i--)
        if (s->record[i - 1 - s->first].item.kind == STORE_SYSTEM)
            return i - 1;
    return p->system;
}

struct record *store_continued(struct store *s, enum store_kind kind)
{
    return !s->is_view && s->n_part > 0 && last_part(s)->n_piece >= PART_PIECES
               ? NULL
               : last_of(s, kind);
}

int store_add_line(struct store *s, struct record *r, uint64_t offset, uint32_t bytes,
                   struct err *e)
{
    if (store_add_piece(s, r, offset, bytes, e) != 0)
        return -1;
    if (!s->is_view)
        last_part(s)->n_piece++;
    return 0;
}

/* ---- parts that are not kept ---- */

/* After a rewind to n messages: those that are removed do not come back, so fewer of the messages
 * after a summary were there before it. */
static void limit_carried(struct store *s, uint32_t n)
{
    uint32_t message = 0;

    if (s->n_record > 0)
        message = s->is_view ? s->first_message : s->part[s->kept].message;
    for (uint32_t i = 0; i < s->n_record; i++) {
        struct store_item *item = &s->record[i].item;
        uint32_t left = n > message + 2 ? n - message - 2 : 0; /* not the request and the summary */

        if (item->is_summary && item->n_carried > left)
            item->n_carried = left;
        message += is_message(item->kind);
    }
}

static void forget_view(const struct store *s)
{
    store_drop(s->old->view);
    s->old->view = NULL;
}

/* Read a part again whose items are not in memory. */
static const struct store *view_of(const struct store *s, uint32_t p, struct err *e)
{
    struct old_part *old = s->old;
    struct store *v;

    if (old->view != NULL && old->number == p)
        return old->view;
    forget_view(s);
    if (p + 1 >= s->n_part) {
        err_set(e, ERR_IO, "the older messages of the chat are no longer in memory");
        return NULL;
    }
    v = store_blank(e);
    if (v == NULL)
        return NULL;
    v->is_view = true;
    v->first = s->part[p].item;
    v->n_message = v->first_message = s->part[p].message;
    v->view_end = s->part[p + 1].item;
    if (store_load_part(s, s->part[p].offset, s->part[p + 1].offset, v, e) != 0) {
        store_drop(v);
        return NULL;
    }
    if (store_count(v) != s->part[p + 1].item ||
        (!v->is_beyond && v->n_message != s->part[p + 1].message)) {
        store_drop(v);
        err_set(e, ERR_FORMAT, "was changed by another program");
        err_at(e, s->path, s->part[p].offset, NULL);
        return NULL;
    }
    limit_carried(v, s->part[p].fewest);
    old->view = v;
    old->number = p;
    return v;
}

/* Returns the last part that begins at or before item n, or message n. */
static uint32_t part_of(const struct store *s, uint64_t n, bool messages)
{
    uint32_t low = 0, high = s->n_part;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if ((messages ? s->part[middle].message : s->part[middle].item) <= n)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const struct record *store_record(const struct store *s, uint32_t item,
                                  const struct store **holder, struct err *e)
{
    *holder = s;
    if (item < s->first) {
        *holder = view_of(s, part_of(s, item, false), e);
        if (*holder == NULL)
            return NULL;
    }
    return &(*holder)->record[item - (*holder)->first];
}

/* Find the item of an existing message.  Returns -1 if its part cannot be read. */
static int item_of(const struct store *s, uint32_t n, uint32_t *item, struct err *e)
{
    const struct store *holder = s;
    uint32_t p = part_of(s, n, true), message = s->is_view ? s->first_message : 0;

    if (!s->is_view) {
        if (p < s->kept && (holder = view_of(s, p, e)) == NULL)
            return -1;
        message = s->part[p].message;
    }
    *item = s->is_view ? s->first : s->part[p].item;
    for (;; ++*item) {
        uint32_t i = *item - holder->first;

        if (i >= holder->n_record)
            return err_set(e, ERR_FORMAT, "a message is missing from the chat file");
        if (is_message(holder->record[i].item.kind) && message++ == n)
            return 0;
    }
}

int store_item_of(const struct store *s, uint32_t message, uint32_t *item, struct err *e)
{
    return message < s->n_message ? item_of(s, message, item, e)
                                  : err_set(e, ERR_ARGUMENT, "no such message");
}

/* ---- going back ---- */

/* Keep the first count items of part p. */
static int keep_part(struct store *s, uint32_t p, uint32_t count, struct err *e)
{
    uint64_t bytes = s->part[p + 1].offset - s->part[p].offset;
    struct store *v;

    s->n_reread += bytes;
    if (s->n_reread > REREAD_BYTES + 4 * s->size)
        return err_set(e, ERR_FORMAT, "has too many rewinds to be read");
    if (view_of(s, p, e) == NULL)
        return -1;
    v = s->old->view;
    s->old->view = NULL;
    /* The pieces of the queue are in the memory that is freed. */
    for (uint32_t i = 0; i < s->n_queue; i++) {
        struct record r = s->queue[i];
        uint32_t piece = r.first;

        r.first = STORE_NO_PIECE;
        for (; piece != STORE_NO_PIECE; piece = s->piece[piece].next)
            if (store_add_piece(v, &r, s->piece[piece].offset, s->piece[piece].bytes, e) != 0) {
                store_drop(v);
                return -1;
            }
        s->queue[i] = r;
    }
    free(s->record);
    free(s->piece);
    s->record = v->record;
    s->room_record = v->room_record;
    s->piece = v->piece;
    s->n_piece = v->n_piece;
    s->room_piece = v->room_piece;
    s->first = v->first;
    s->n_record = count - v->first;
    s->kept = p;
    v->record = NULL;
    v->piece = NULL;
    store_drop(v);
    return 0;
}

static int keep_in_view(struct store *s, uint64_t n, struct err *e)
{
    uint32_t item;

    if (n < s->first_message)
        return err_set(e, ERR_FORMAT, "a part of the chat file cannot be read again");
    if (s->is_beyond && n >= s->n_inside) {
        s->n_message = (uint32_t)n;
        s->is_beyond = n > s->n_inside || !s->ends_with_message;
        return 0;
    }
    if (item_of(s, (uint32_t)n, &item, e) != 0)
        return -1;
    s->n_record = item - s->first;
    s->n_message = (uint32_t)n;
    s->is_beyond = false;
    limit_carried(s, s->n_message);
    return 0;
}

int store_keep_messages(struct store *s, uint64_t n, struct err *e)
{
    uint32_t count, p;

    store_keep_others(s, n);
    if (n >= s->n_message)
        return 0;
    if (s->is_view)
        return keep_in_view(s, n, e);
    if (item_of(s, (uint32_t)n, &count, e) != 0)
        return -1;
    p = part_of(s, count > 0 ? count - 1 : 0, false);
    if (count > 0 && p < s->kept && keep_part(s, p, count, e) != 0)
        return -1;
    if (count == 0)
        s->first = s->kept = s->n_record = 0;
    else
        s->n_record = count - s->first;
    s->n_part = count > 0 ? p + 1 : 0;
    s->n_message = (uint32_t)n;
    limit_carried(s, s->n_message);
    for (uint32_t i = 0; i + 1 < s->n_part; i++)
        if (s->part[i].fewest > s->n_message)
            s->part[i].fewest = s->n_message;
    if (s->n_part > 0)
        last_part(s)->fewest = UINT32_MAX;
    if (s->old->number >= s->kept)
        forget_view(s);
    return 0;
}

/* ---- lines ---- */

void store_hold(struct record *r, size_t n, bool holds_thinking)
{
    r->item.n_held = (uint32_t)n;
    r->item.holds_thinking = holds_thinking;
    *(holds_thinking ? &r->item.thinking_bytes : &r->item.text_bytes) += (uint32_t)n;
}

void store_take_back(struct record *r)
{
    *(r->item.holds_thinking ? &r->item.thinking_bytes : &r->item.text_bytes) -= r->item.n_held;
    r->item.n_held = 0;
}

/* The text of the lines of r is thinking. */
static void take_for_thinking(struct store *s, struct record *r)
{
    for (uint32_t p = r->first; p != STORE_NO_PIECE; p = s->piece[p].next)
        s->piece[p].was_thinking = true;
    r->item.thinking_bytes += r->item.text_bytes;
    r->item.text_bytes = 0;
}

static int apply_text(struct store *s, const struct chatline *l, uint64_t offset,
                      uint32_t bytes, uint32_t *item, struct err *e)
{
    enum store_kind kind = l->is_notice ? STORE_NOTICE : l->kind;
    bool continues = l->continues && !s->is_torn;
    struct record *r = continues && !s->is_beyond ? store_continued(s, kind) : NULL;

    if (s->is_beyond && continues)
        return 0;
    if (r == NULL && s->is_view && store_count(s) == s->view_end) {
        if (!s->is_beyond) {
            s->n_inside = s->n_message;
            s->ends_with_message = is_message(kind);
        }
        s->is_beyond = true;
        s->n_message += is_message(kind);
        return 0;
    }
    if (r == NULL)
        r = store_add_record(s, kind, offset, e);
    if (r == NULL)
        return -1;
    store_take_back(r);
    if (kind == STORE_ANSWER && l->was_thinking)
        take_for_thinking(s, r);
    if (bytes > 0 && store_add_line(s, r, offset, bytes, e) != 0)
        return -1;
    r->item.text_bytes += (uint32_t)l->text.n;
    r->item.thinking_bytes += (uint32_t)l->thinking.n;
    if (kind == STORE_ANSWER)
        store_hold(r, l->held.n, l->holds_thinking);
    if (kind == STORE_ANSWER)
        r->item.done = l->has_done ? l->done : MW_DONE_CANCELLED;
    if (kind == STORE_ANSWER)
        r->item.is_help |= l->is_help;
    if (kind == STORE_USER && l->is_summary) {
        r->item.is_summary = true;
        r->item.n_carried = l->n_carried;
    }
    *item = s->first + (uint32_t)(r - s->record);
    return 0;
}

void store_drop_queued(struct store *s, uint64_t n)
{
    uint32_t gone = n < s->n_queue ? (uint32_t)n : s->n_queue;

    s->n_queue -= gone;
    memmove(s->queue, s->queue + gone, s->n_queue * sizeof *s->queue);
}

/* Lines beyond the limit are skipped: memwall never writes them. */
static int apply_queued(struct store *s, const struct chatline *l, uint64_t offset,
                        uint32_t bytes, struct err *e)
{
    bool is_new = !l->continues || s->is_torn || s->n_queue == 0;
    struct record *r;

    if (s->is_view || (is_new && s->n_queue == STORE_MAX_QUEUE))
        return 0;
    if (is_new)
        s->queue[s->n_queue++] =
            (struct record){ .item = { .kind = STORE_USER }, .first = STORE_NO_PIECE };
    r = &s->queue[s->n_queue - 1];
    if (count_pieces(s, r) == STORE_MAX_QUEUE_LINES)
        return 0;
    r->item.text_bytes += (uint32_t)l->text.n;
    return store_add_piece(s, r, offset, bytes, e);
}

void store_apply_receipt(struct store *s, const struct chatline *l)
{
    struct record *r = s->is_beyond || s->is_torn ? NULL : last_of(s, STORE_ANSWER);

    if (r == NULL)
        return;
    r->item.has_receipt = true;
    r->item.receipt = l->receipt;
    r->item.receipt.done = r->item.done;
    r->item.context = l->context;
}

void store_take_model(struct store_model *to, const struct chatline *l)
{
    snprintf(to->file, sizeof to->file, "%s", l->model_file);
    snprintf(to->name, sizeof to->name, "%s", l->model_name);
}

int store_apply(struct store *s, const struct chatline *l, uint64_t offset, uint32_t bytes,
                uint32_t *item, struct err *e)
{
    *item = STORE_NO_ITEM;
    if (l->is_message && l->from_queue && !l->continues)
        store_drop_queued(s, 1);
    if (l->is_other || l->is_chosen)
        store_apply_other(s, l, offset, bytes);
    else if (l->is_message || l->is_notice)
        return apply_text(s, l, offset, bytes, item, e);
    else if (l->is_queued)
        return apply_queued(s, l, offset, bytes, e);
    else if (l->is_receipt)
        store_apply_receipt(s, l);
    else if (l->is_rewind)
        return store_keep_messages(s, (uint64_t)l->rewind, e);
    else if (l->is_unqueued)
        store_drop_queued(s, (uint64_t)l->unqueued);
    else if (l->is_settings)
        snprintf(s->settings, sizeof s->settings, "%s", l->settings);
    else if (l->is_model)
        store_take_model(&s->model, l);
    return 0;
}

/* ---- what is in it ---- */

uint32_t store_count(const struct store *s)
{
    return s->first + s->n_record;
}

uint64_t store_queue_bytes(const struct store *s)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < s->n_queue; i++)
        n += s->queue[i].item.text_bytes;
    return n;
}

uint32_t store_oldest(const struct store *s)
{
    uint32_t i = s->first;

    if (!s->in_memory || s->size == 0)
        return 0;
    while (i < store_count(s) && s->record[i - s->first].first != STORE_NO_PIECE &&
           s->piece[s->record[i - s->first].first].offset < s->size)
        i++;
    return i;
}

uint32_t store_missing(const struct store *s)
{
    uint32_t missing = s->n_message;

    for (uint32_t i = store_oldest(s); i < store_count(s); i++) {
        enum store_kind kind = store_item(s, i)->kind;

        missing -= kind == STORE_USER || kind == STORE_ANSWER;
    }
    return missing;
}

uint32_t store_messages(const struct store *s)
{
    return s->n_message;
}

bool store_is_user(const struct store *s, uint32_t message)
{
    return (s->is_user[message / 8] >> message % 8 & 1) != 0;
}

const struct store_item *store_item(const struct store *s, uint32_t item)
{
    static const struct store_item unknown = { .kind = STORE_NOTICE };
    struct err unread = ERR_INIT;
    const struct store *holder;
    const struct record *r = store_record(s, item, &holder, &unread);

    return r == NULL ? &unknown : &r->item;
}
