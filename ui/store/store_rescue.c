/*
 * Rescues a chat whose file was removed, moved, truncated or changed by another program.
 *
 * The chat is written again, message by message, to a new file.  Texts come from the end of
 * the old file, which is in memory, and from the file itself: a removed file can still be
 * read.  Only texts at the start of a long truncated chat are lost.  Their messages stay,
 * without text, so that later messages keep their numbers.
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/store/store_internal.h"

#define TAIL_BYTES ((size_t)512 << 10)

/* ---- the end of the file ---- */

void store_remember(struct store *s, const char *bytes, size_t n)
{
    size_t keep;

    if (s->tail == NULL) {
        s->tail = malloc(2 * TAIL_BYTES);
        s->n_tail = 0;
    }
    if (s->tail == NULL)
        return; /* then only the file has it */
    if (n > TAIL_BYTES) {
        bytes += n - TAIL_BYTES;
        n = TAIL_BYTES;
        s->n_tail = 0;
    }
    if (s->n_tail + n > 2 * TAIL_BYTES) {
        keep = TAIL_BYTES - n;
        memmove(s->tail, s->tail + s->n_tail - keep, keep);
        s->n_tail = keep;
    }
    memcpy(s->tail + s->n_tail, bytes, n);
    s->n_tail += n;
}

void store_forget(struct store *s, uint64_t size)
{
    uint64_t gone = s->size - size;

    s->n_tail -= gone < s->n_tail ? (size_t)gone : s->n_tail;
    s->size = size;
}

bool store_is_intact(const struct store *s)
{
    struct stat open, named;

    if (s->fd < 0 || fstat(s->fd, &open) != 0)
        return true; /* no file, or unknown */
    if ((open.st_nlink == 0 && !s->is_nameless) || (uint64_t)open.st_size != s->size)
        return false;
    if (stat(s->path, &named) != 0)
        return errno != ENOENT && errno != ENOTDIR;
    return named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

/* ---- writing all of it again ---- */

static const char *key_of(const struct store_item *item, bool is_queued)
{
    static const char *const keys[] = { [STORE_SYSTEM] = "\"role\":\"system\",\"text\"",
                                        [STORE_USER] = "\"role\":\"user\",\"text\"",
                                        [STORE_ANSWER] = "\"role\":\"assistant\",\"text\"",
                                        [STORE_NOTICE] = "\"notice\"" };

    if (item->is_help)
        return "\"role\":\"assistant\",\"help\":true,\"text\"";
    return is_queued ? "\"queued\"" : keys[item->kind];
}

/* Is this still a line of the item?  Adds the lengths of its texts.  *n_held: of the text that
 * the line holds back. */
static bool is_line_of(const struct store_item *item, bool is_queued, const char *line,
                       size_t n, uint64_t *text_bytes, size_t *n_held)
{
    struct chatline l = { 0 };
    const char *more;
    size_t used;
    bool is;

    if (!store_read_line(line, n, false, &l, &used, &more))
        return false;
    is = is_queued                    ? l.is_queued
         : item->kind == STORE_NOTICE ? l.is_notice
                                      : l.is_message && l.kind == item->kind;
    *text_bytes += l.text.n + l.thinking.n;
    *n_held = l.held.n;
    chatline_free(&l);
    return is;
}

/* Append the complete lines of a record to n.  *open: its incomplete line. */
static int copy_lines(const struct store *s, const struct store *holder,
                      const struct record *from, bool is_queued, struct store *n,
                      struct record *to, uint32_t *open, struct err *e)
{
    uint64_t text_bytes = 0;
    size_t n_held = 0;
    bool is_open = false, is_lost = false;

    for (uint32_t p = from->first; p != STORE_NO_PIECE; p = holder->piece[p].next) {
        const struct piece *piece = &holder->piece[p];
        struct err unread = ERR_INIT;
        uint64_t at = n->size + n->out.used;
        char *line;

        if (piece->bytes == 0) {
            *open = p;
            is_open = true;
            continue;
        }
        line = malloc(piece->bytes);
        if (line == NULL)
            return err_memory(e, "writing the chat again");
        if (store_bytes(s, piece->offset, line, piece->bytes, &unread) == 0 &&
            is_line_of(&from->item, is_queued, line, piece->bytes, &text_bytes,
                       &n_held)) {
            json_raw(&n->out, line, piece->bytes);
        } else {
            json_print(&n->out, "{%s%s:\"\"}",
                       to->first != STORE_NO_PIECE ? "\"continues\":true," : "",
                       key_of(&from->item, is_queued));
            is_lost = true;
        }
        free(line);
        if ((is_queued ? store_add_piece : store_add_line)(
                n, to, at, (uint32_t)(n->size + n->out.used - at), e) != 0)
            return -1;
        n->piece[to->last].was_thinking = piece->was_thinking;
        json_raw(&n->out, "\n", 1);
        if (store_commit(n, false, e) != 0)
            return -1;
    }
    /* Another program may have written similar lines. */
    is_lost |=
        !is_open && text_bytes + n_held != (uint64_t)from->item.text_bytes + from->item.thinking_bytes;
    n->n_lost += is_lost;
    return 0;
}

/* Append the open line, without a newline. */
static int copy_open(const struct store *s, uint32_t p, struct store *n, struct record *to,
                     struct err *e)
{
    uint64_t offset = s->piece[p].offset, at = n->size + n->out.used;
    size_t bytes = (size_t)(s->size + s->out.used - offset);
    struct err unread = ERR_INIT;
    char *line = malloc(bytes + 1);

    if (line == NULL)
        return err_memory(e, "writing the chat again");
    if (store_bytes(s, offset, line, bytes, &unread) == 0) {
        json_raw(&n->out, line, bytes);
    } else {
        json_print(&n->out, "{\"role\":\"assistant\"%s,\"%s\":\"",
                   to->first != STORE_NO_PIECE ? ",\"continues\":true" : "",
                   s->in_thinking ? "thinking" : "text");
        n->n_lost++;
    }
    free(line);
    n->line_at = at;
    return store_add_line(n, to, at, 0, e);
}

/* Write a line without text for an item that has none. */
static int put_empty(struct store *n, struct record *to, struct err *e)
{
    uint64_t at = n->size + n->out.used;

    json_print(&n->out, "{%s:\"\"}", key_of(&to->item, false));
    if (store_add_line(n, to, at, (uint32_t)(n->size + n->out.used - at), e) != 0)
        return -1;
    json_raw(&n->out, "\n", 1);
    return store_commit(n, false, e);
}

/* Copy item i, whose part can be read. */
static int copy_item(const struct store *s, const struct store *holder,
                     const struct record *from, struct store *n, uint32_t *open, struct err *e)
{
    struct record *to = store_add_record(n, from->item.kind, n->size + n->out.used, e);

    if (to == NULL)
        return -1;
    to->item = from->item;
    if (from->first == STORE_NO_PIECE && put_empty(n, to, e) != 0)
        return -1;
    if (copy_lines(s, holder, from, false, n, to, open, e) != 0)
        return -1;
    if (from->item.has_receipt)
        store_print_receipt(n, &from->item.receipt, from->item.context);
    return 0;
}

/* Copy a part that cannot be read: its messages, then its notices, without text. */
static int copy_unknown(const struct store *s, const struct part *part, struct store *n,
                        struct err *e)
{
    for (uint32_t i = part->item, m = part->message; i < part[1].item; i++) {
        struct store_item item = { .kind = STORE_NOTICE, .done = MW_DONE_CANCELLED };
        struct record *to;

        if (m < part[1].message) {
            item.kind = store_is_user(s, m++) ? STORE_USER : STORE_ANSWER;
            n->n_lost++;
        }
        to = store_add_record(n, item.kind, n->size + n->out.used, e);
        if (to == NULL)
            return -1;
        to->item = item;
        if (put_empty(n, to, e) != 0)
            return -1;
    }
    return 0;
}

static int copy_all(const struct store *s, struct store *n, struct err *e)
{
    uint32_t open = STORE_NO_PIECE, of_open = 0, p = 0;

    store_print_head(n);
    if (n->settings[0] != '\0')
        store_print_settings(n);
    if (n->model.file[0] != '\0')
        store_print_model(n);
    for (uint32_t i = 0; i < store_count(s); i++) {
        const struct store *holder;
        struct err unread = ERR_INIT;
        const struct record *r = store_record(s, i, &holder, &unread);
        uint32_t found = STORE_NO_PIECE;

        while (p + 1 < s->n_part && s->part[p + 1].item <= i)
            p++;
        if (r == NULL) {
            if (copy_unknown(s, &s->part[p], n, e) != 0)
                return -1;
            i = s->part[p + 1].item - 1;
            continue;
        }
        if (copy_item(s, holder, r, n, &found, e) != 0)
            return -1;
        if (found != STORE_NO_PIECE) {
            open = found;
            of_open = i;
        }
    }
    for (uint32_t i = 0; i < s->n_queue; i++) {
        uint32_t none;

        n->queue[i] = s->queue[i];
        n->queue[i].first = n->queue[i].last = STORE_NO_PIECE;
        if (copy_lines(s, s, &s->queue[i], true, n, &n->queue[i], &none, e) != 0)
            return -1;
        n->n_queue++;
    }
    if (open != STORE_NO_PIECE && copy_open(s, open, n, &n->record[of_open - n->first], e) != 0)
        return -1;
    return store_commit(n, true, e);
}

/* Get the folder of path. */
static void folder_of(char *dir, size_t size, const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        snprintf(dir, size, ".");
    else
        snprintf(dir, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static void swap_files(struct store *s, struct store *n)
{
    struct store old = *s;

    memcpy(s->dir, n->dir, sizeof s->dir);
    memcpy(s->path, n->path, sizeof s->path);
    memcpy(s->name, n->name, sizeof s->name);
    s->fd = n->fd;
    s->size = n->size;
    s->out = n->out;
    s->record = n->record;
    s->n_record = n->n_record;
    s->room_record = n->room_record;
    s->first = n->first;
    s->kept = n->kept;
    s->part = n->part;
    s->n_part = n->n_part;
    s->room_part = n->room_part;
    s->old = n->old;
    s->piece = n->piece;
    s->n_piece = n->n_piece;
    s->room_piece = n->room_piece;
    memcpy(s->queue, n->queue, sizeof s->queue);
    s->tail = n->tail;
    s->n_tail = n->n_tail;
    s->line_at = n->line_at;
    s->is_lost = false;
    s->is_moved = true;
    s->n_lost += n->n_lost;
    n->fd = old.fd;
    n->out = old.out;
    n->record = old.record;
    n->part = old.part;
    n->old = old.old;
    n->piece = old.piece;
    n->tail = old.tail;
}

int store_rescue(struct store *s, struct err *e)
{
    struct store *n = store_blank(e);
    int failed;

    if (n == NULL)
        return -1;
    n->is_said = true;
    n->head = s->head;
    memcpy(n->settings, s->settings, sizeof n->settings);
    n->model = s->model;
    folder_of(n->dir, sizeof n->dir, s->path);
    failed = store_make_file(n, s->path, e);
    if (failed == 0) {
        failed = copy_all(s, n, e);
        if (failed == 0)
            swap_files(s, n);
        else
            (void)unlink(n->path);
    }
    store_drop(n);
    return failed;
}
