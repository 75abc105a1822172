#include "config.h"

#include "engine/http/sse.h"

#include <stdlib.h>
#include <string.h>

/* Append a byte.  One more stays free for a NUL. */
static int add(struct sse *s, char c, struct err *e)
{
    if (s->n > SSE_EVENT_MAX)
        return err_set(e, ERR_FORMAT, "an event of the stream has more than %zu bytes",
                       SSE_EVENT_MAX);
    if (s->n + 2 > s->room) {
        size_t room = s->room * 2 + 1024;
        char *larger = realloc(s->data, room);

        if (larger == NULL)
            return err_memory(e, "an event of the stream");
        s->data = larger;
        s->room = room;
    }
    s->data[s->n++] = c;
    return 0;
}

/* The bytes [line, n) are a field: keep the value of data, and drop the others. */
static int take_field(struct sse *s, struct err *e)
{
    static const char name[] = "data";
    const char *line = s->data + s->line;
    size_t len = s->n - s->line, at = sizeof name - 1;
    bool is_data = len >= at && memcmp(line, name, at) == 0 && (len == at || line[at] == ':');

    if (!is_data) {
        s->n = s->line;
        return 0;
    }
    at += len > at;
    at += len > at && line[at] == ' ';
    memmove(s->data + s->line, line + at, len - at);
    s->n = s->line + len - at;
    s->has_data = true;
    if (add(s, '\n', e) != 0)
        return -1;
    s->line = s->n;
    return 0;
}

static int take_event(struct sse *s, sse_fn *take, void *ctx, struct err *e)
{
    bool has_data = s->has_data;
    size_t n = s->line;

    s->n = s->line = 0;
    s->has_data = false;
    if (!has_data)
        return 0;
    s->data[--n] = '\0'; /* in place of the end of the last line */
    return take(ctx, s->data, n, e);
}

static int end_line(struct sse *s, sse_fn *take, void *ctx, struct err *e)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t len = s->n - s->line;

    if (!s->has_begun && len >= 3 && memcmp(s->data, mark, 3) == 0) {
        memmove(s->data, s->data + 3, len - 3);
        s->n -= 3;
        len -= 3;
    }
    s->has_begun = true;
    return len == 0 ? take_event(s, take, ctx, e) : take_field(s, e);
}

int sse_feed(struct sse *s, const char *bytes, size_t n, sse_fn *take, void *ctx, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        bool skips = s->skips_lf && bytes[i] == '\n';
        int rc = 0;

        s->skips_lf = bytes[i] == '\r';
        if (bytes[i] == '\r' || (bytes[i] == '\n' && !skips))
            rc = end_line(s, take, ctx, e);
        else if (!skips)
            rc = add(s, bytes[i], e);
        if (rc != 0)
            return -1;
    }
    return 0;
}

int sse_end(struct sse *s, sse_fn *take, void *ctx, struct err *e)
{
    return take_event(s, take, ctx, e); /* without a line that has no end */
}

void sse_free(struct sse *s)
{
    free(s->data);
    *s = (struct sse){ 0 };
}
