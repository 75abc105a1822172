#include "config.h"

#include "ui/term/catch.h"

#include <sys/mman.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void catch_open(struct catch *c, int fd, int terminal, bool thins)
{
    c->fd = fd;
    c->thins = thins;
    c->terminal = terminal;
    c->file = memfd_create("memwall-frame", MFD_CLOEXEC);
}

void catch_close(struct catch *c)
{
    if (c->file >= 0)
        close(c->file);
    c->file = -1;
}

void catch_begin(struct catch *c)
{
    if (c->file >= 0 && dup3(c->file, c->fd, O_CLOEXEC) < 0)
        catch_close(c);
}

struct sink {
    struct catch *c;
    catch_send *send;
    void *ctx;
};

static void flush(struct sink *s)
{
    if (s->c->n_out > 0)
        s->send(s->ctx, s->c->out, s->c->n_out);
    s->c->n_out = 0;
}

/* Bytes of one call are sent in one write, so no character is cut. */
static void put(void *ctx, const char *bytes, size_t n)
{
    struct sink *s = ctx;

    if (n > sizeof s->c->out - s->c->n_out)
        flush(s);
    if (n > sizeof s->c->out) {
        s->send(s->ctx, bytes, n);
        return;
    }
    memcpy(s->c->out + s->c->n_out, bytes, n);
    s->c->n_out += n;
}

/* Returns n without the last character, which may be incomplete. */
static size_t whole_characters(const char *bytes, size_t n)
{
    while (n > 1 && ((unsigned char)bytes[n - 1] & 0xc0) == 0x80)
        n--;
    return n > 1 ? n - 1 : n;
}

void catch_end(struct catch *c, catch_send *send, void *ctx)
{
    struct sink s = { c, send, ctx };
    char bytes[4096];
    off_t at = 0;
    ssize_t got;

    if (c->file < 0)
        return;
    dup3(c->terminal, c->fd, O_CLOEXEC);
    while ((got = pread(c->file, bytes, sizeof bytes, at)) > 0) {
        size_t n =
            (size_t)got < sizeof bytes ? (size_t)got : whole_characters(bytes, (size_t)got);

        if (c->thins)
            sgr_pass(&c->filter, bytes, n, put, &s);
        else
            put(&s, bytes, n);
        at += (off_t)n;
    }
    flush(&s);
    if (at > 0 && (ftruncate(c->file, 0) != 0 || lseek(c->file, 0, SEEK_SET) != 0))
        catch_close(c);
}

void catch_settle(struct catch *c, catch_send *send, void *ctx)
{
    struct sink s = { c, send, ctx };

    if (c->thins)
        sgr_settle(&c->filter, put, &s);
    flush(&s);
}
