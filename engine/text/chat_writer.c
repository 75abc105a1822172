#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/text/chat_internal.h"
#include "engine/text/utf8.h"

/* The white space of Python's str.strip(): White_Space and four old separators. */
static bool is_trimmed(uint32_t cp)
{
    return utf8_is_white(cp) || (cp >= 0x1c && cp <= 0x1f);
}

static struct span strip(struct span s, bool (*is_space)(uint32_t), bool start, bool end)
{
    uint32_t cp;

    while (start && s.n > 0) {
        size_t n = utf8_decode(s.s, s.n, &cp);

        if (!is_space(cp))
            break;
        s.s += n;
        s.n -= n;
    }
    while (end && s.n > 0) {
        size_t last = s.n - 1;

        while (last > 0 && ((unsigned char)s.s[last] & 0xc0) == 0x80)
            last--;
        if (last + utf8_decode(s.s + last, s.n - last, &cp) != s.n || !is_space(cp))
            break;
        s.n = last;
    }
    return s;
}

struct span chat_trim(struct span s)
{
    return strip(s, is_trimmed, true, true);
}

static bool is_newline(uint32_t cp)
{
    return cp == '\n';
}

struct span chat_trim_newlines(struct span s, bool start, bool end)
{
    return strip(s, is_newline, start, end);
}

bool chat_find(struct span s, const char *what, bool last, size_t *at)
{
    size_t n = strlen(what);
    bool found = false;

    for (size_t i = 0; i + n <= s.n && (last || !found); i++)
        if (memcmp(s.s + i, what, n) == 0) {
            *at = i;
            found = true;
        }
    return found;
}

void chat_bytes(struct chat_writer *w, const char *text, size_t len)
{
    if (w->rc != 0 || len == 0)
        return;
    if (len > w->cap - w->len) {
        size_t cap = w->len + len + 256 + (w->len + len) / 2;
        char *more = realloc(w->text, cap);

        if (more == NULL) {
            w->rc = err_set(w->e, ERR_MEMORY, "no memory for a prompt of %zu bytes", cap);
            return;
        }
        w->text = more;
        w->cap = cap;
    }
    memcpy(w->text + w->len, text, len);
    w->len += len;
}

void chat_text(struct chat_writer *w, const char *text)
{
    if (text != NULL)
        chat_bytes(w, text, strlen(text));
}

void chat_flush(struct chat_writer *w, bool strip_end)
{
    struct span s =
        strip((struct span){ w->text, w->len }, utf8_is_white, w->strips, strip_end);

    if (w->rc == 0 && s.n > 0)
        w->rc = tokenizer_encode(w->t, s.s, s.n, false, w->out->n == w->start, w->out, w->e);
    w->len = 0;
}

static void put_control(struct chat_writer *w, uint32_t id)
{
    bool left, right;

    tokenizer_strips(w->t, id, &left, &right);
    chat_flush(w, left);
    if (w->rc == 0)
        w->rc = ids_push(w->out, id, w->e);
    w->strips = right;
}

void chat_control(struct chat_writer *w, const char *name)
{
    int64_t id = tokenizer_find(w->t, name, strlen(name));

    if (w->rc != 0 || name[0] == '\0')
        return;
    if (id < 0 || tokenizer_kind(w->t, (uint32_t)id) != TOKEN_CONTROL) {
        w->rc = err_set(w->e, ERR_UNSUPPORTED,
                        "the vocabulary has no control token %s, which the chat format \"%s\" "
                        "needs. --format chooses another",
                        name, w->format->name);
        return;
    }
    put_control(w, (uint32_t)id);
}

void chat_bos(struct chat_writer *w)
{
    static const char *const names[] = { "<bos>", "<s>", "<|begin_of_text|>" };
    int64_t id = tokenizer_info(w->t)->bos;

    for (size_t i = 0; id < 0 && i < sizeof names / sizeof names[0]; i++) {
        id = tokenizer_find(w->t, names[i], strlen(names[i]));
        if (id >= 0 && tokenizer_kind(w->t, (uint32_t)id) != TOKEN_CONTROL)
            id = -1;
    }
    if (w->rc == 0 && id >= 0)
        put_control(w, (uint32_t)id);
}

void chat_ids(struct chat_writer *w, const uint32_t *id, size_t n)
{
    chat_flush(w, false);
    if (w->rc == 0)
        w->rc = ids_append(w->out, id, n, w->e);
    w->strips = false;
}
