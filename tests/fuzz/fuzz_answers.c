/* Bytes from a server of models: a stream of events with pieces of an answer, and metrics. */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/halves.h"
#include "engine/base/utf8.h"
#include "engine/http/sse.h"
#include "engine/remote/chunk.h"
#include "engine/remote/server_metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t hash;
    size_t n;
    uint32_t half; /* of a character, that waits for the next text */
};

static void check_text(struct seen *s, const char *text, size_t len)
{
    char *joined = malloc(len + HALVES_MORE);
    size_t n;

    if (joined == NULL)
        abort();
    assert(halves_are_text(text, len));
    n = halves_join(&s->half, text, len, joined);
    assert(n <= len + HALVES_MORE && utf8_is_valid(joined, n));
    free(joined);
}

static int take(void *ctx, const char *data, size_t n, struct err *e)
{
    struct seen *s = ctx;
    struct err why = ERR_INIT;
    struct chunk c;

    (void)e;
    assert(data[n] == '\0');
    for (size_t i = 0; i < n; i++)
        s->hash = (s->hash ^ (unsigned char)data[i]) * 0x100000001b3u;
    s->n++;
    if (chunk_read(&c, data, n, &why) == 0) {
        assert(c.n_text <= CHUNK_TEXTS);
        for (size_t i = 0; i < c.n_text; i++)
            check_text(s, c.text[i].text, c.text[i].len);
        assert(!c.has_cached || c.n_cached <= c.n_prompt);
        assert(!c.has_progress || c.n_done <= c.n_all);
    } else {
        assert(why.code != ERR_NONE);
    }
    chunk_free(&c);
    return 0;
}

/* The events do not depend on where the stream is cut. */
static struct seen read_stream(const char *text, size_t n, size_t step)
{
    struct sse s = { 0 };
    struct seen seen = { .hash = 0xcbf29ce484222325u };
    struct err e = ERR_INIT;

    for (size_t at = 0; at < n; at += step)
        if (sse_feed(&s, text + at, step < n - at ? step : n - at, take, &seen, &e) != 0)
            break;
    if (e.code == ERR_NONE)
        (void)sse_end(&s, take, &seen, &e);
    sse_free(&s);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mw_server_figures f = { 0 };
    struct seen whole, cut;

    if (size == 0)
        return 0;
    whole = read_stream((const char *)data + 1, size - 1, size);
    cut = read_stream((const char *)data + 1, size - 1, data[0] % 13 + 1);
    assert(whole.n == cut.n && whole.hash == cut.hash);
    server_metrics_clear(&f);
    (void)server_metrics_read(&f, (const char *)data + 1, size - 1);
    return 0;
}
