#include "config.h"

#include "ui/text/body.h"

#include <stdlib.h>
#include <string.h>

#include "ui/text/markdown.h"

#define MAX_TEXT (1u << 31)

static const struct rich empty;

static void count(struct body *b)
{
    /* Renderings of closed segments are accounted for where they are made and dropped. */
    b->bytes = b->room + b->segs.room * sizeof *b->segs.seg + b->room_rich * sizeof *b->rich +
               rich_bytes(&b->tail) + rich_bytes(&b->spare);
    for (uint32_t i = 0; i < b->room_rich; i++)
        if (b->rich[i] != NULL)
            b->bytes += rich_bytes(b->rich[i]);
}

void body_start(struct body *b, bool markdown)
{
    b->markdown = markdown;
    segments_start(&b->segs, markdown);
    count(b);
}

void body_free(struct body *b)
{
    body_forget(b, 1, 0);
    segments_free(&b->segs);
    rich_free(&b->tail);
    rich_free(&b->spare);
    free(b->rich);
    free(b->text);
    *b = (struct body){ 0 };
}

bool body_append(struct body *b, const char *text, size_t n)
{
    if (n > MAX_TEXT - 1 - b->n)
        return false;
    if (b->n + n + 1 > b->room) {
        uint32_t room = b->room < 128 ? 256 : b->room + b->room / 2;
        char *more;

        if (room < b->n + n + 1)
            room = (uint32_t)(b->n + n + 1);
        more = realloc(b->text, room);
        if (more == NULL)
            return false;
        b->bytes += room - b->room;
        b->text = more;
        b->room = room;
    }
    if (n > 0) /* an empty text may be NULL */
        memcpy(b->text + b->n, text, n);
    b->n += (uint32_t)n;
    b->text[b->n] = '\0';
    return true;
}

bool body_take(struct body *b, char *text, size_t n)
{
    if (n >= MAX_TEXT)
        return false;
    b->text = text;
    b->n = (uint32_t)n;
    b->room = b->n + 1;
    body_finish(b);
    return true;
}

/* Split the text that arrived since the last call. */
static void cut(struct body *b)
{
    uint32_t had = b->segs.room;

    if (b->text == NULL)
        return;
    if (b->finished)
        segments_finish(&b->segs, b->text, b->n);
    else
        segments_feed(&b->segs, b->text, b->n);
    if (b->segs.room > b->room_rich) {
        struct rich **more = realloc(b->rich, b->segs.room * sizeof *more);

        if (more == NULL)
            return;
        for (uint32_t i = b->room_rich; i < b->segs.room; i++)
            more[i] = NULL;
        b->rich = more;
        b->room_rich = b->segs.room;
    }
    if (b->segs.room != had)
        count(b);
}

static void cut_anew(struct body *b)
{
    body_forget(b, 1, 0);
    segments_start(&b->segs, b->markdown);
    b->tail_valid = false;
    cut(b);
}

void body_shorten(struct body *b, size_t n)
{
    if (n == 0 || n > b->n)
        return;
    b->n -= (uint32_t)n;
    b->text[b->n] = '\0';
    cut_anew(b);
}

void body_finish(struct body *b)
{
    b->finished = true;
    b->tail_valid = false;
    cut(b);
}

void body_reopen(struct body *b)
{
    if (!b->finished)
        return;
    b->finished = false;
    cut_anew(b);
}

void body_set_markdown(struct body *b, bool markdown)
{
    if (b->markdown == markdown)
        return;
    b->markdown = markdown;
    cut_anew(b);
}

static bool find_tail(struct body *b, struct segment *out)
{
    return b->text != NULL && !b->segs.failed && segments_tail(&b->segs, b->text, b->n, out);
}

uint32_t body_count(struct body *b)
{
    struct segment tail;

    cut(b);
    return b->segs.n_seg + (find_tail(b, &tail) ? 1 : 0);
}

const struct segment *body_segment(struct body *b, uint32_t seg)
{
    cut(b);
    if (seg < b->segs.n_seg)
        return &b->segs.seg[seg];
    if (!find_tail(b, &b->tail_seg))
        b->tail_seg = (struct segment){ .at = b->n };
    return &b->tail_seg;
}

uint32_t body_find(struct body *b, uint32_t src)
{
    uint32_t low = 0, high = body_count(b);

    while (high - low > 1 && high > 0) {
        uint32_t middle = low + (high - low) / 2;

        if (body_segment(b, middle)->at <= src)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static const struct rich *tail_rich(struct body *b, const struct body_look *look)
{
    struct rich was;

    if (b->tail_valid && b->tail_n == b->n)
        return &b->tail;
    was = b->tail;
    b->tail = b->spare;
    b->spare = was;
    markdown_render(&b->tail, b->text, body_segment(b, b->segs.n_seg), look->width, look->role,
                    look->ascii);
    rich_wrap(&b->tail, look->width, b->tail_valid ? &b->spare : NULL);
    b->tail_valid = true;
    b->tail_n = b->n;
    count(b);
    return &b->tail;
}

const struct rich *body_rich(struct body *b, uint32_t seg, const struct body_look *look)
{
    struct rich *r;

    cut(b);
    if (seg >= b->segs.n_seg)
        return b->text == NULL ? &empty : tail_rich(b, look);
    if (seg >= b->room_rich)
        return &empty;
    if (b->rich[seg] != NULL)
        return b->rich[seg];
    r = calloc(1, sizeof *r);
    if (r == NULL)
        return &empty;
    markdown_render(r, b->text, &b->segs.seg[seg], look->width, look->role, look->ascii);
    rich_wrap(r, look->width, NULL);
    rich_trim(r);
    b->rich[seg] = r;
    b->bytes += rich_bytes(r);
    return r;
}

void body_forget(struct body *b, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < b->room_rich; i++) {
        if (b->rich[i] == NULL || (i >= from && i <= to))
            continue;
        rich_free(b->rich[i]);
        free(b->rich[i]);
        b->rich[i] = NULL;
    }
    if (from > to) {
        b->tail_valid = false;
        rich_free(&b->tail);
        rich_free(&b->spare);
    }
    count(b);
}
