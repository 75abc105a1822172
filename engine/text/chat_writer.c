/* The writer of a prompt: control tokens by name, text without them, white space trimmed. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/chat_internal.h"

/* Returns true for white space of Python's str.strip(): White_Space and four separators. */
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
        size_t last = utf8_start(s.s, 0, s.n - 1);

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

bool chat_same(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

static void grow(struct chat_writer *w, char **text, size_t *len, size_t *cap, const char *more,
                 size_t n)
{
    if (w->rc != 0 || n == 0)
        return;
    if (n >= *cap - *len) {
        size_t room = *len + n + 256 + (*len + n) / 2;
        char *larger = realloc(*text, room);

        if (larger == NULL) {
            w->rc = err_memory(w->e, "a prompt of %zu bytes", room);
            return;
        }
        *text = larger;
        *cap = room;
    }
    memcpy(*text + *len, more, n);
    *len += n;
    (*text)[*len] = '\0';
}

void chat_bytes(struct chat_writer *w, const char *text, size_t len)
{
    grow(w, &w->text, &w->len, &w->cap, text, len);
    if (w->shown != NULL)
        grow(w, &w->shown->text, &w->shown->len, &w->shown_cap, text, len);
}

void chat_text(struct chat_writer *w, const char *text)
{
    chat_bytes(w, text, strlen(text));
}

void chat_flush(struct chat_writer *w, bool strip_end)
{
    struct span s =
        strip((struct span){ w->text, w->len }, utf8_is_white, w->strips, strip_end);

    if (w->rc == 0 && s.n > 0 && w->continues)
        w->rc = tokenizer_encode_on(w->t, s.s, s.n, w->out, w->e);
    else if (w->rc == 0 && s.n > 0)
        w->rc = tokenizer_encode(w->t, s.s, s.n, false, w->out->n == w->start, w->out, w->e);
    if (w->len > 0)
        w->continues = false;
    w->len = 0;
}

void chat_control_id(struct chat_writer *w, uint32_t id)
{
    char piece[VOCAB_MAX_TEXT];
    bool left, right;

    tokenizer_strips(w->t, id, &left, &right);
    chat_flush(w, left);
    if (w->rc == 0)
        w->rc = ids_push(w->out, id, w->e);
    w->strips = right;
    w->continues = false;
    if (w->shown != NULL)
        grow(w, &w->shown->text, &w->shown->len, &w->shown_cap, piece,
             tokenizer_piece(w->t, id, true, piece, sizeof piece));
}

int64_t chat_bos_id(const struct tokenizer *t)
{
    static const char *const names[] = { "<bos>", "<s>", "<|begin_of_text|>" };
    int64_t id = tokenizer_info(t)->bos;

    for (size_t i = 0; id < 0 && i < sizeof names / sizeof names[0]; i++) {
        id = tokenizer_find(t, names[i], strlen(names[i]));
        if (id >= 0 && tokenizer_kind(t, (uint32_t)id) != TOKEN_CONTROL)
            id = -1;
    }
    return id;
}

void chat_bos(struct chat_writer *w)
{
    int64_t id = chat_bos_id(w->t);

    if (w->rc == 0 && id >= 0)
        chat_control_id(w, (uint32_t)id);
}

void chat_ids(struct chat_writer *w, const uint32_t *id, size_t n)
{
    if (n == 0)
        return;
    chat_flush(w, false);
    if (w->rc == 0)
        w->rc = ids_append(w->out, id, n, w->e);
    w->strips = false;
    w->continues = true;
}

static bool is_token(const struct chat_writer *w, uint32_t id, const char *text)
{
    return tokenizer_find(w->t, text, strlen(text)) == (int64_t)id;
}

static bool is_newlines(const struct tokenizer *t, uint32_t id)
{
    char piece[4];
    size_t len = tokenizer_piece(t, id, false, piece, sizeof piece);

    return len > 0 && len <= 2 && piece[0] == '\n' && piece[len - 1] == '\n';
}

static bool has_token(const struct chat_writer *w, const struct chat_message *m,
                      const char *text)
{
    for (size_t i = 0; i < m->n_ids; i++)
        if (is_token(w, m->ids[i], text))
            return true;
    return false;
}

/* Write the messages that belong to the answer.  One without any mark is written whole. */
static void message_ids(struct chat_writer *w, const struct chat_message *m)
{
    enum think_kind think = w->format->think;
    const char *opens = think == THINK_HARMONY ? HARMONY_CHANNEL : HARMONY_START;
    bool has_header = think == THINK_RECIPIENT && has_token(w, m, HARMONY_MESSAGE);
    bool in_header = has_header, shows = !has_header;
    char header[64];
    size_t n_header = 0;

    for (size_t i = 0; i < m->n_ids; i++) {
        uint32_t id = m->ids[i];
        char piece[sizeof header];

        if (is_token(w, id, opens)) {
            in_header = true;
            shows = false;
            n_header = 0;
        } else if (is_token(w, id, HARMONY_MESSAGE)) {
            shows = chat_shows_message(think, (struct span){ header, n_header });
            in_header = false;
        } else if (tokenizer_kind(w->t, id) == TOKEN_CONTROL) {
            shows = in_header = false;
        } else if (in_header) {
            size_t n = tokenizer_piece(w->t, id, false, piece, sizeof piece);

            if (n <= sizeof header - n_header) {
                memcpy(header + n_header, piece, n);
                n_header += n;
            }
        } else if (shows) {
            chat_ids(w, &id, 1);
        }
    }
}

static int64_t find_mark(const struct chat_writer *w, const char *mark)
{
    return mark[0] != '\0' ? tokenizer_find(w->t, mark, strlen(mark)) : -1;
}

void chat_answer_ids(struct chat_writer *w, const struct chat_message *m)
{
    enum think_kind think = w->format->think;
    int64_t open = find_mark(w, w->format->open), close = find_mark(w, w->format->close);
    size_t n = m->n_ids, i = 0;
    bool thinks = false;

    if (chat_has_messages(think)) {
        message_ids(w, m);
        return;
    }
    while (n > 0 && tokenizer_kind(w->t, m->ids[n - 1]) == TOKEN_CONTROL &&
           m->ids[n - 1] != close)
        n--;
    if (think == THINK_NONE) {
        chat_ids(w, m->ids, n);
        return;
    }
    /* If thinking ends without having begun, the prompt already contains the opening mark. */
    for (size_t k = 0; k < n && m->ids[k] != open; k++)
        if (m->ids[k] == close)
            thinks = true;
    for (; i < n; i++) {
        bool closes = m->ids[i] == close;

        thinks = thinks || m->ids[i] == open;
        if (!thinks && !closes)
            chat_ids(w, &m->ids[i], 1);
        if (!closes)
            continue;
        thinks = false;
        /* The newlines between thinking and answer belong to the thinking. */
        while (think == THINK_TAGS && i + 1 < n && is_newlines(w->t, m->ids[i + 1]))
            i++;
    }
}
