/* Reads the lines of a saved chat, from an untrusted file. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/utf8.h"
#include "ui/store/store_internal.h"

#define CHUNK 65536

static ssize_t read_at(int fd, char *buf, size_t n, uint64_t offset)
{
    ssize_t got;

    do
        got = pread(fd, buf, n, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got;
}

static int at_line(struct err *e, const struct store *s, uint64_t line)
{
    char where[40];

    snprintf(where, sizeof where, "line %llu", (unsigned long long)line);
    return err_at(e, s->path, ERR_NO_OFFSET, where);
}

/* State of the current line. */
struct reading {
    struct store *s;
    struct chatline_reader *r;
    uint64_t line, offset; /* its number, from 1, and its start */
    uint64_t bytes, solid; /* its length; up to its last byte that is not NUL */
    bool has_mark;         /* it has more than blanks */
    bool is_broken;        /* it cannot be read; why */
    struct err why;

    bool is_headless; /* line 1 is not the head of a chat; why is head */
    struct err head;
    bool has_own;      /* a line was written by memwall */
    uint64_t n_broken; /* bytes of damaged lines */
};

static int begin(struct reading *in, struct err *e)
{
    if (in->r == NULL)
        in->r = chatline_begin(false);
    return in->r == NULL ? err_memory(e, "reading a chat") : 0;
}

static int feed(struct reading *in, const char *s, size_t n, struct err *e)
{
    size_t solid = n;

    if (n == 0)
        return 0;
    while (solid > 0 && s[solid - 1] == '\0')
        solid--;
    if (solid > 0)
        in->solid = in->bytes + solid;
    in->bytes += n;
    for (size_t i = 0; i < n && !in->has_mark; i++)
        in->has_mark = s[i] != ' ' && s[i] != '\t' && s[i] != '\r';
    if (begin(in, e) != 0)
        return -1;
    if (in->bytes > STORE_MAX_LINE && !in->is_broken) {
        in->is_broken = true;
        err_set(&in->why, ERR_FORMAT, "is longer than %zu bytes", STORE_MAX_LINE);
    }
    if (in->is_broken && in->n_broken + in->bytes > STORE_MAX_DAMAGE)
        return err_set(e, ERR_FORMAT, "more than %zu MiB of the file are damaged",
                       STORE_MAX_DAMAGE >> 20);
    if (!in->is_broken)
        in->is_broken = chatline_feed(in->r, s, n, &in->why) != 0;
    return 0;
}

/* Line number in->line is damaged, in whole or in part; why, or l->wrong, says how. */
static void note_damage(struct reading *in, const char *why)
{
    struct store *s = in->s;

    if (s->n_damaged++ > 0)
        return;
    s->damaged = in->line;
    snprintf(s->damage, sizeof s->damage, "%s", why);
}

/* Line 1 is not a head.  Lines after it decide whether the file is a chat. */
static void go_on_without_head(struct reading *in)
{
    in->is_headless = true;
    in->head = in->why;
}

/* Line 1 can be read. */
static int head(struct reading *in, const struct chatline *l, struct err *e)
{
    struct store *s = in->s;

    if (l->is_other_file || !l->has_known_key)
        return err_set(e, ERR_FORMAT, "is not a memwall chat file");
    if (l->is_head && l->wrong[0] == '\0' && l->version != 1)
        return err_set(e, ERR_UNSUPPORTED, "chat version %lld is not supported by this memwall",
                       l->version);
    snprintf(s->head.model, sizeof s->head.model, "%s", l->model);
    snprintf(s->model.name, sizeof s->model.name, "%s", l->model);
    snprintf(s->head.created, sizeof s->head.created, "%s", l->created);
    if (l->is_head)
        return 0;
    err_set(&in->why, ERR_FORMAT, "is not a memwall chat file");
    go_on_without_head(in);
    if (l->wrong[0] == '\0')
        note_damage(in, "the first line of a chat is missing");
    return 0;
}

/* Use a line that can be read.  bytes: its length. */
static int use_line(struct reading *in, const struct chatline *l, uint32_t bytes, struct err *e)
{
    uint32_t item;
    int failed;

    if ((in->line == 1 || (in->is_headless && l->is_head)) && head(in, l, e) != 0)
        return -1;
    if (l->wrong[0] != '\0')
        note_damage(in, l->wrong);
    in->has_own |= chatline_is_own(l);
    failed = store_apply(in->s, l, in->offset, bytes, &item, e);
    in->s->is_torn = false;
    return failed;
}

/*
 * Pass over a damaged line, of which l was read.  If it began a message, the message stays,
 * without its text, so that later messages keep their numbers.  If its kind is unknown, it may
 * have begun the message that the next line continues.
 */
static int pass_over(struct reading *in, const struct chatline *l, struct err *e)
{
    struct chatline part = *l;
    struct store *s = in->s;
    uint32_t item;

    part.text = part.thinking = part.held = (struct text_of){ 0 };
    part.n_ids = 0;
    note_damage(in, in->why.what);
    in->n_broken += in->bytes;
    if (in->line == 1)
        go_on_without_head(in);
    if (part.is_message && part.continues)
        return 0;
    if (part.is_message && store_apply(s, &part, in->offset, 0, &item, e) != 0)
        return -1;
    s->is_torn = !part.is_message;
    return 0;
}

/* Empty lines are skipped; one ends the damage before it. */
static void empty_line(struct reading *in)
{
    chatline_drop(in->r);
    in->r = NULL;
    in->s->is_torn = false;
    if (in->line > 1)
        return;
    note_damage(in, "the first line of a chat is missing");
    err_set(&in->why, ERR_FORMAT, "is empty");
    go_on_without_head(in);
}

static int end_line(struct reading *in, struct err *e)
{
    struct err incomplete = ERR_INIT;
    struct chatline l;
    int failed;

    if (!in->has_mark) {
        empty_line(in);
        return 0;
    }
    failed = chatline_end(in->r, &l, &incomplete);
    in->r = NULL;
    if (failed != 0 && !in->is_broken)
        in->why = incomplete;
    if (failed != 0 || in->is_broken)
        return pass_over(in, &l, e);
    failed = use_line(in, &l, (uint32_t)in->bytes, e);
    chatline_free(&l);
    return failed;
}

static void next_line(struct reading *in)
{
    in->offset += in->bytes + 1;
    in->bytes = in->solid = 0;
    in->has_mark = in->is_broken = false;
    in->line++;
}

static int feed_chunk(struct reading *in, const char *s, size_t n, struct err *e)
{
    while (n > 0) {
        const char *newline = memchr(s, '\n', n);
        size_t len = newline == NULL ? n : (size_t)(newline - s);

        if (feed(in, s, len, e) != 0)
            return -1;
        if (newline == NULL)
            return 0;
        if (end_line(in, e) != 0)
            return -1;
        next_line(in);
        s += len + 1;
        n -= len + 1;
    }
    return 0;
}

static bool parse_line(const char *s, size_t n, bool keep_text, bool keep_ids,
                       struct chatline *l, size_t *used, const char **more)
{
    struct chatline_reader *r = chatline_begin(keep_text);
    struct err unused;

    if (!chatline_repair(s, n, used, more)) {
        *used = n;
        *more = "";
    }
    if (r == NULL)
        return false;
    if (keep_ids)
        chatline_keep_ids(r);
    if (chatline_feed(r, s, *used, &unused) != 0 ||
        chatline_feed(r, *more, strlen(*more), &unused) != 0) {
        chatline_drop(r);
        return false;
    }
    return chatline_end(r, l, &unused) == 0;
}

bool store_read_line(const char *s, size_t n, bool keep_text, struct chatline *l, size_t *used,
                     const char **more)
{
    return parse_line(s, n, keep_text, false, l, used, more);
}

bool store_read_ids_line(const char *s, size_t n, struct chatline *l, size_t *used,
                         const char **more)
{
    return parse_line(s, n, true, true, l, used, more);
}

/* Is s[0 .. n) damaged, and not only incomplete?  *l: what was read. */
static bool is_damaged(struct reading *in, const char *s, size_t n, struct chatline *l)
{
    struct chatline_reader *r = chatline_begin(false);
    struct err unused;
    bool is = r != NULL && chatline_feed(r, s, n, &in->why) != 0;

    if (r != NULL && chatline_end(r, l, &unused) == 0)
        chatline_free(l);
    return is;
}

/* used bytes of the last line followed by *more are l. */
static int last_line_read(struct reading *in, const struct chatline *l, size_t used,
                          uint64_t *keep, const char **more, struct err *e)
{
    bool is_cut = **more != '\0' && l->wrong[0] != '\0' && l->text.n == 0;

    if (l->is_head || (is_cut && in->line == 1))
        return err_set(e, ERR_FORMAT, "is not a memwall chat file");
    if (is_cut) {
        *more = ""; /* it was cut before its text began */
        return 0;
    }
    *keep = in->offset + used;
    return use_line(in, l, (uint32_t)used, e);
}

/*
 * The last line has no newline.  NULs at its end are what a loss of power leaves, and are cut
 * off.  If the rest is incomplete, it is completed or dropped.  If it is damaged, it stays in
 * the file as a line that cannot be read.
 */
static int last_line(struct reading *in, uint64_t *keep, const char **more, bool *is_answer,
                     struct err *e)
{
    bool is_long = in->solid > STORE_MAX_LINE;
    size_t n = is_long ? 0 : (size_t)in->solid, used;
    struct chatline l = { 0 };
    char *s = malloc(n + 1);
    int failed = 0;

    if (s == NULL)
        return err_memory(e, "reading a chat");
    *keep = in->offset;
    *more = "";
    if (store_bytes(in->s, in->offset, s, n, e) != 0) {
        failed = -1;
    } else if (n > 0 && store_read_line(s, n, false, &l, &used, more)) {
        failed = last_line_read(in, &l, used, keep, more, e);
        *is_answer = l.is_message && l.kind == STORE_ANSWER && !l.has_done && **more != '\0';
        chatline_free(&l);
    } else if (in->line == 1) {
        failed = err_set(e, ERR_FORMAT, "is not a memwall chat file");
    } else {
        *more = "";
        if (is_long || (n > 0 && is_damaged(in, s, n, &l))) {
            *keep = in->offset + in->solid;
            failed = pass_over(in, &l, e);
        }
    }
    free(s);
    return failed;
}

int store_load(struct store *s, uint64_t *keep, const char **more, bool *is_answer,
               struct err *e)
{
    struct reading in = { .s = s, .line = 1 };
    char *chunk = malloc(CHUNK);
    ssize_t got = 0;
    int failed = 0;

    *more = NULL;
    *is_answer = false;
    if (chunk == NULL)
        return err_memory(e, "reading a chat");
    while (failed == 0 && (got = read_at(s->fd, chunk, CHUNK, s->size)) > 0) {
        store_remember(s, chunk, (size_t)got);
        s->size += (uint64_t)got;
        failed = feed_chunk(&in, chunk, (size_t)got, e);
    }
    free(chunk);
    if (got < 0)
        failed = err_sys(e, "could not be read");
    *keep = s->size;
    if (failed == 0 && in.bytes > 0) {
        chatline_drop(in.r);
        in.r = NULL;
        failed = last_line(&in, keep, more, is_answer, e);
    } else if (failed == 0 && in.line == 1) {
        failed = err_set(e, ERR_FORMAT, "is empty");
    }
    chatline_drop(in.r);
    if (failed == 0 && in.is_headless && !in.has_own) {
        *e = in.head;
        in.line = 1;
        failed = -1;
    }
    if (failed == 0 && s->is_torn && *more == NULL)
        *more = ""; /* a line that is written later continues what is known now */
    return failed != 0 ? at_line(e, s, in.line) : 0;
}

int store_load_part(const struct store *s, uint64_t from, uint64_t to, struct store *v,
                    struct err *e)
{
    struct reading in = { .s = v, .line = 2, .offset = from };
    char *chunk = malloc(CHUNK);
    int failed = 0;

    if (chunk == NULL)
        return err_memory(e, "reading a chat");
    while (failed == 0 && from < to) {
        size_t n = to - from < CHUNK ? (size_t)(to - from) : CHUNK;

        failed = store_bytes(s, from, chunk, n, e);
        if (failed == 0 && feed_chunk(&in, chunk, n, e) != 0)
            failed = err_at(e, s->path, in.offset, NULL);
        from += n;
    }
    free(chunk);
    chatline_drop(in.r);
    return failed;
}

int store_bytes(const struct store *s, uint64_t offset, char *buf, size_t n, struct err *e)
{
    if (s->in_memory && offset < s->size)
        return err_set(e, ERR_IO,
                       "the older messages of an unsaved chat are no longer in memory");
    while (n > 0 && offset < s->size) {
        uint64_t tail_at = s->size - s->n_tail;
        size_t want = n < s->size - offset ? n : (size_t)(s->size - offset);
        ssize_t got;

        if (offset >= tail_at) {
            memcpy(buf, s->tail + (offset - tail_at), want);
            got = (ssize_t)want;
        } else {
            want = want < tail_at - offset ? want : (size_t)(tail_at - offset);
            got = read_at(s->fd, buf, want, offset);
        }
        if (got <= 0) {
            if (got == 0)
                err_set(e, ERR_IO, "has become shorter");
            else
                err_sys(e, "could not be read");
            return err_at(e, s->path, ERR_NO_OFFSET, NULL);
        }
        offset += (uint64_t)got;
        buf += got;
        n -= (size_t)got;
    }
    if (n > 0 && offset - s->size + n > s->out.used) {
        err_set(e, ERR_FORMAT, "the chat file was changed by another program");
        return err_at(e, s->path, offset, NULL);
    }
    if (n > 0)
        memcpy(buf, s->out.buf + (offset - s->size), n);
    return 0;
}

static bool join(char **to, size_t *n, struct text_of *more)
{
    char *all;

    if (more->s == NULL)
        return true;
    if (*to == NULL) {
        *to = more->s;
        *n = more->n;
        more->s = NULL;
        return true;
    }
    all = realloc(*to, *n + more->n + 1);
    if (all == NULL)
        return false;
    memcpy(all + *n, more->s, more->n + 1);
    *to = all;
    *n += more->n;
    return true;
}

bool store_join_held(struct chatline *l)
{
    struct text_of *to = l->holds_thinking ? &l->thinking : &l->text;

    return l->held.n == 0 || join(&to->s, &to->n, &l->held);
}

/* Read the line of a piece.  The caller frees *l. */
static int read_line(const struct store *s, const struct piece *p, bool keeps_ids,
                     struct chatline *l, struct err *e)
{
    size_t n = p->bytes > 0 ? p->bytes : (size_t)(s->size + s->out.used - p->offset), used;
    char *line = malloc(n + 1);
    const char *more;
    int failed = 0;

    if (line == NULL)
        return err_memory(e, "a text of the chat");
    if (store_bytes(s, p->offset, line, n, e) != 0) {
        failed = -1;
    } else if (!parse_line(line, n, true, keeps_ids, l, &used, &more)) {
        err_set(e, ERR_FORMAT, "the chat file was changed by another program");
        failed = err_at(e, s->path, p->offset, NULL);
    }
    free(line);
    return failed;
}

int store_read_piece(const struct store *s, const struct piece *p, bool is_last,
                     struct store_text *out, struct err *e)
{
    struct chatline l = { 0 };
    int failed = read_line(s, p, false, &l, e);

    if (failed == 0 && (!join(&out->thinking, &out->thinking_len, &l.thinking) ||
                        !join(p->was_thinking ? &out->thinking : &out->text,
                              p->was_thinking ? &out->thinking_len : &out->len, &l.text)))
        failed = err_memory(e, "a text of the chat");
    if (failed == 0 && is_last && l.kind == STORE_ANSWER && !l.is_notice && l.held.n > 0 &&
        !join(l.holds_thinking ? &out->thinking : &out->text,
              l.holds_thinking ? &out->thinking_len : &out->len, &l.held))
        failed = err_memory(e, "a text of the chat");
    if (failed == 0 && l.attached.bytes > 0)
        out->attached = l.attached;
    chatline_free(&l);
    return failed;
}

int store_ids(const struct store *s, uint32_t item, uint32_t **ids, size_t *n, struct err *e)
{
    const struct store *holder;
    const struct record *r = store_record(s, item, &holder, e);
    struct chatline l = { 0 };
    int failed;

    *ids = NULL;
    *n = 0;
    if (r == NULL)
        return -1;
    if (r->first == STORE_NO_PIECE)
        return 0;
    failed = read_line(s, &holder->piece[r->last], true, &l, e);
    if (failed == 0 && l.n_ids <= MW_CUT_IDS) {
        *ids = l.ids;
        *n = l.n_ids;
        l.ids = NULL;
    }
    chatline_free(&l);
    return failed;
}

static void cut(char *s, size_t *n, size_t max)
{
    *n = utf8_start(s, 0, max);
    s[*n] = '\0';
}

/* holder is the store with the pieces of r. */
static int record_text(const struct store *s, const struct store *holder,
                       const struct record *r, size_t max, struct store_text *out,
                       struct err *e)
{
    *out = (struct store_text){ 0 };
    for (uint32_t p = r->first; p != STORE_NO_PIECE && out->len + out->thinking_len < max;
         p = holder->piece[p].next)
        if (store_read_piece(s, &holder->piece[p], p == r->last, out, e) != 0) {
            store_text_free(out);
            return -1;
        }
    if (out->text == NULL)
        out->text = calloc(1, 1);
    if (out->thinking_len > max)
        cut(out->thinking, &out->thinking_len, max);
    if (out->len > max - out->thinking_len)
        cut(out->text, &out->len, max - out->thinking_len);
    if (out->attached.bytes > r->item.text_bytes) /* not written by memwall */
        out->attached.bytes = 0;
    if (out->attached.bytes > out->len)
        out->attached.bytes = (uint32_t)out->len;
    if (out->text != NULL)
        out->attached.bytes = (uint32_t)utf8_start(out->text, 0, out->attached.bytes);
    if (max < SIZE_MAX)
        out->n_left = (uint64_t)r->item.text_bytes + r->item.thinking_bytes - out->len -
                      out->thinking_len;
    return out->text != NULL ? 0 : err_memory(e, "a text of the chat");
}

int store_text_start(const struct store *s, uint32_t item, size_t max, struct store_text *out,
                     struct err *e)
{
    const struct store *holder;
    const struct record *r = store_record(s, item, &holder, e);

    return r == NULL ? -1 : record_text(s, holder, r, max, out, e);
}

int store_text(const struct store *s, uint32_t item, struct store_text *out, struct err *e)
{
    return store_text_start(s, item, SIZE_MAX, out, e);
}

int store_queue_text(const struct store *s, uint32_t i, struct store_text *out, struct err *e)
{
    return record_text(s, s, &s->queue[i], SIZE_MAX, out, e);
}

void store_text_free(struct store_text *t)
{
    free(t->text);
    free(t->thinking);
    *t = (struct store_text){ 0 };
}
