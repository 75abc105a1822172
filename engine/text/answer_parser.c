/*
 * Split an answer into thinking and text.
 *
 * Gemma 4 marks thinking with control tokens, Qwen 3 with tokens that decode to tags.  gpt-oss
 * writes messages, each with the name of its channel; all but those in "final" are thinking.
 * Muse writes messages to a recipient; those to itself are thinking.  A vocabulary without such
 * tokens spells the tags, so they may arrive in pieces.  The parser therefore holds back the
 * end of a text while it could be the beginning of a tag.  The format has the marks of the
 * model.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/text/chat_internal.h"

enum {
    AT_START, /* only white space so far: a tag may follow; gpt-oss: the rest of a header may */
    IN_LABEL, /* after <|channel>: the label up to the newline is dropped */
    IN_THOUGHT,
    AFTER, /* right after thinking: newlines are dropped */
    IN_ANSWER,
    IN_ROLE, /* before a message, dropped */
};

#define NO_MARK   (-1)
#define LABEL_MAX 64
#define ASSISTANT "assistant" /* the role in the header of a message */

static bool is_token(const struct answer_parser *p, uint32_t id, const char *text)
{
    return tokenizer_find(p->tokenizer, text, strlen(text)) == (int64_t)id;
}

static size_t drop_newlines(char *buf, size_t n)
{
    struct span s = chat_trim_newlines((struct span){ buf, n }, true, false);

    memmove(buf, s.s, s.n);
    return s.n;
}

/* Hold the label of a channel until its newline.  A label that gets too long is text. */
static size_t take_label(struct answer_parser *p, char *buf, size_t n)
{
    const char *newline = memchr(buf, '\n', n);
    size_t held = p->n_held;

    if (newline != NULL) {
        size_t rest = n - (size_t)(newline + 1 - buf);

        memmove(buf, newline + 1, rest);
        p->n_held = 0;
        p->state = IN_THOUGHT;
        return rest;
    }
    if (held + n <= LABEL_MAX) {
        memcpy(p->held + held, buf, n);
        p->n_held += n;
        return 0;
    }
    memmove(buf + held, buf, n);
    memcpy(buf, p->held, held);
    p->n_held = 0;
    p->state = IN_THOUGHT;
    return held + n;
}

/* Returns the number of bytes at the end of s that could be the beginning of the tag. */
static size_t tail_of(struct span s, const char *tag)
{
    size_t n = strlen(tag) - 1 < s.n ? strlen(tag) - 1 : s.n;

    while (n > 0 && memcmp(s.s + s.n - n, tag, n) != 0)
        n--;
    return n;
}

static void hold(struct answer_parser *p, const char *text, size_t n)
{
    memcpy(p->held, text, n);
    p->n_held = n;
}

/* Handle text after thinking, which may be in marks of its own.  Returns the length that can be
 * shown. */
static size_t take_reply(struct answer_parser *p, char *buf, size_t n)
{
    const char *open = p->format->reply_open, *close = p->format->reply_close;
    size_t at, keep, n_open = strlen(open);

    if (p->state == AFTER) {
        n = drop_newlines(buf, n);
        if (n > 0 && n < n_open && memcmp(buf, open, n) == 0) {
            hold(p, buf, n);
            return 0;
        }
        if (n_open > 0 && mark_begins((struct span){ buf, n }, open)) {
            p->is_in_reply = true;
            memmove(buf, buf + n_open, n - n_open);
            n = drop_newlines(buf, n - n_open);
        }
        /* The mark that ends thinking may begin the answer. */
        p->is_in_reply = p->is_in_reply || (n_open == 0 && close[0] != '\0');
        p->state = n > 0 ? IN_ANSWER : AFTER;
    }
    if (!p->is_in_reply)
        return n;
    if (chat_find((struct span){ buf, n }, close, false, &at)) {
        p->is_over = true;
        return at;
    }
    keep = tail_of((struct span){ buf, n }, close);
    hold(p, buf + n - keep, keep);
    return n - keep;
}

/* Whether text is in quotes: an answer about marks names them like this. */
static bool is_quoted(const struct answer_parser *p, const char *buf, size_t at)
{
    char before = at > 0 ? buf[at - 1] : p->last;

    return before != '\0' && strchr("`'\"", before) != NULL;
}

/* Find a closing tag that nothing opened in the text of an answer.  An answer that names the
 * opening tag has text about tags.  *keep: the bytes at the end that may become a tag. */
static bool finds_end(struct answer_parser *p, const char *buf, size_t n, size_t *keep)
{
    struct span s = { buf, n };
    size_t at, open_at, n_open = tail_of(s, p->format->open);

    *keep = 0;
    if (p->has_thought)
        return false;
    if (!chat_find(s, p->format->close, false, &at))
        at = n;
    if (chat_find(s, p->format->open, false, &open_at) && open_at < at) {
        p->has_thought = true;
        return false;
    }
    if (at < n)
        return !is_quoted(p, buf, at) || (p->has_thought = true, false);
    *keep = tail_of(s, p->format->close);
    *keep = *keep > n_open ? *keep : n_open;
    return false;
}

static size_t take_tagged(struct answer_parser *p, char *buf, size_t n, bool *is_thinking);

/* Handle text that is not inside the thinking.  Returns the length that can be shown. */
static size_t take_answer(struct answer_parser *p, char *buf, size_t n, bool *is_thinking)
{
    size_t keep = 0;

    *is_thinking = false;
    if (p->state == AFTER || p->has_thought)
        return take_reply(p, buf, n);
    if (finds_end(p, buf, n, &keep)) {
        p->was_inside = p->has_thought = true;
        p->state = IN_THOUGHT;
        return take_tagged(p, buf, n, is_thinking);
    }
    n -= keep;
    hold(p, buf + n, keep);
    if (n > 0)
        p->last = buf[n - 1];
    return n;
}

/* Handle text that may contain tags.  Returns the length that can be shown, holds the rest. */
static size_t take_tagged(struct answer_parser *p, char *buf, size_t n, bool *is_thinking)
{
    const char *tag = p->state == IN_THOUGHT ? p->format->close : p->format->open;
    size_t at, keep;

    memmove(buf + p->n_held, buf, n);
    memcpy(buf, p->held, p->n_held);
    n += p->n_held;
    p->n_held = 0;
    if (p->state == AFTER || p->state == IN_ANSWER)
        return take_answer(p, buf, n, is_thinking);
    if (p->state == AT_START && n > 0) {
        struct span rest = chat_trim((struct span){ buf, n });

        if (rest.n > 0 && tail_of(rest, tag) != rest.n &&
            (rest.n < strlen(tag) || memcmp(rest.s, tag, strlen(tag)) != 0)) {
            p->state = IN_ANSWER;
            return take_answer(p, buf, n, is_thinking);
        }
    }
    if (chat_find((struct span){ buf, n }, tag, false, &at)) {
        size_t after = at + strlen(tag), rest = n - after;
        bool opens = p->state == AT_START;

        *is_thinking = !opens;
        p->has_thought = true;
        p->state = opens ? IN_THOUGHT : AFTER;
        if (opens || at == 0) {
            memmove(buf, buf + after, rest);
            return take_tagged(p, buf, rest, is_thinking);
        }
        if (rest <= sizeof p->held) {
            memcpy(p->held, buf + after, rest);
            p->n_held = rest;
            return at;
        }
        memmove(buf + at, buf + after, rest); /* too long to hold: show it as thinking */
        return at + rest;
    }
    keep = p->state == AT_START ? n : tail_of((struct span){ buf, n }, tag);
    if (keep > sizeof p->held)
        keep = 0;
    memcpy(p->held, buf + n - keep, keep);
    p->n_held = keep;
    *is_thinking = p->state == IN_THOUGHT;
    return n - keep;
}

/* Keep the beginning of the name of a channel or a role. */
static void take_name(struct answer_parser *p, const char *buf, size_t n)
{
    size_t room = sizeof p->held - p->n_held;

    memcpy(p->held + p->n_held, buf, n < room ? n : room);
    p->n_held += n < room ? n : room;
}

/* Whether a message of another role than the assistant begins.  Its name is complete. */
static bool is_other_role(const struct answer_parser *p)
{
    return p->state == IN_ROLE && p->n_held > 0 &&
           !mark_begins((struct span){ p->held, p->n_held }, ASSISTANT);
}

/* Returns the state after id if it is a mark of a message, or NO_MARK. */
static int after_message_mark(const struct answer_parser *p, uint32_t id)
{
    bool is_harmony = p->format->think == THINK_HARMONY;
    bool has_header = p->state == (is_harmony ? IN_LABEL : IN_ROLE);
    struct span header = { p->held, p->n_held };

    if (is_harmony && is_token(p, id, HARMONY_CHANNEL))
        return IN_LABEL;
    if (is_token(p, id, HARMONY_MESSAGE))
        return !has_header || chat_shows_message(p->format->think, header) ? IN_ANSWER
                                                                           : IN_THOUGHT;
    if (is_token(p, id, HARMONY_START) ||
        is_token(p, id, is_harmony ? HARMONY_END : RECIPIENT_END))
        return IN_ROLE;
    return NO_MARK;
}

/* Muse: the text of a header that is no header, because it names no recipient, belongs to the
 * answer.  Returns its length. */
static size_t take_header(struct answer_parser *p, char *buf)
{
    static const char begins[] = ASSISTANT " to=";
    size_t n = p->n_held < sizeof begins - 1 ? p->n_held : sizeof begins - 1;
    size_t role = strlen(ASSISTANT);

    if (p->format->think != THINK_RECIPIENT || p->state != IN_ROLE || p->n_held <= role ||
        memcmp(p->held, begins, n) == 0 || memcmp(p->held, begins, role) != 0)
        return 0;
    n = p->n_held - role;
    memcpy(buf, p->held + role, n);
    p->n_held = 0;
    p->state = IN_ANSWER;
    return n;
}

/* gpt-oss: an answer may begin with the rest of the header that the prompt ends with, where the
 * recipient is.  Other text is the answer.  Returns its length. */
static size_t take_recipient(struct answer_parser *p, char *buf, size_t n)
{
    static const char to[] = " to=";

    memmove(buf + p->n_held, buf, n);
    memcpy(buf, p->held, p->n_held);
    n += p->n_held;
    p->n_held = 0;
    if (n < sizeof to - 1 && memcmp(buf, to, n) == 0) {
        hold(p, buf, n);
        return 0;
    }
    if (!mark_begins((struct span){ buf, n }, to)) {
        p->state = IN_ANSWER;
        return n;
    }
    p->state = IN_ROLE;
    take_name(p, ASSISTANT, strlen(ASSISTANT));
    take_name(p, buf, n);
    return 0;
}

/* gpt-oss: the role or the channel of a message to a tool has its name, up to a space or a mark.
 * A name that is cut because it is too long is none. */
static void note_tool(struct answer_parser *p)
{
    static const char to[] = "to=functions.";
    size_t at, n = 0;

    if (!chat_find((struct span){ p->held, p->n_held }, to, false, &at))
        return;
    at += sizeof to - 1;
    while (at + n < p->n_held && !isspace((unsigned char)p->held[at + n]) && p->held[at + n] != '<')
        n++;
    if (at + n == sizeof p->held)
        return;
    memcpy(p->tool, p->held + at, n);
    p->tool[n] = '\0';
}

/* gpt-oss with tools: returns the text that begins a message to one of them; 0: it is another
 * message, or it has not begun. */
static size_t begin_tool(struct answer_parser *p, uint32_t id, char *buf)
{
    bool is_begun = is_token(p, id, HARMONY_MESSAGE);
    size_t n = 0;

    if (p->format->think != THINK_HARMONY || !p->shows_marks)
        return 0;
    if (p->state == IN_LABEL || p->state == IN_ROLE)
        note_tool(p);
    if (is_begun && p->tool[0] != '\0')
        n = (size_t)sprintf(buf, HARMONY_CHANNEL "commentary to=functions.%s" HARMONY_MESSAGE,
                            p->tool);
    if (is_begun || is_token(p, id, HARMONY_END))
        p->tool[0] = '\0';
    return n;
}

static int64_t find_mark(const struct answer_parser *p, const char *mark)
{
    return mark[0] != '\0' ? tokenizer_find(p->tokenizer, mark, strlen(mark)) : -1;
}

/* Look the marks up once: a text that is not a token takes a search of the vocabulary. */
static void find_marks(struct answer_parser *p)
{
    if (p->has_marks)
        return;
    p->open = find_mark(p, p->format->open);
    p->close = find_mark(p, p->format->close);
    p->has_marks = true;
}

/* Returns the state after id if it begins or ends thinking, or NO_MARK. */
static int after_mark(struct answer_parser *p, uint32_t id)
{
    if (p->format->think == THINK_NONE)
        return NO_MARK;
    if (chat_has_messages(p->format->think))
        return after_message_mark(p, id);
    find_marks(p);
    if (id == p->open)
        return p->format->think == THINK_CHANNEL ? IN_LABEL : IN_THOUGHT;
    if (p->format->has_other && id == p->format->other_open)
        return IN_LABEL;
    return id == p->close || (p->format->has_other && id == p->format->other_close) ? AFTER
                                                                                    : NO_MARK;
}

bool answer_parser_thinks(const struct answer_parser *p)
{
    return p->state == IN_THOUGHT || p->state == IN_LABEL;
}

bool answer_parser_hides(const struct answer_parser *p)
{
    return answer_parser_thinks(p) || p->state == IN_ROLE;
}

bool answer_parser_mark(struct answer_parser *p, uint32_t i, uint32_t *id)
{
    enum think_kind kind = p->format->think;
    int64_t open;

    find_marks(p);
    open = kind == THINK_HARMONY                           ? find_mark(p, HARMONY_CHANNEL)
           : kind == THINK_NONE || kind == THINK_RECIPIENT ? -1
                                                           : p->open;
    if (i == 0 && open >= 0) {
        *id = (uint32_t)open;
        return true;
    }
    *id = p->format->other_open;
    return i == (open >= 0) && kind != THINK_NONE && !chat_has_messages(kind) &&
           p->format->has_other;
}

size_t answer_parser_closing(const struct answer_parser *p, uint32_t id, char *buf, size_t n)
{
    bool is_other = p->format->has_other && id == p->format->other_close;
    size_t len = is_other ? tokenizer_piece(p->tokenizer, id, true, buf, n)
                          : (size_t)snprintf(buf, n, "%s", p->format->close);

    return len < n ? len : n - 1;
}

/* Store the text that is held back, because a mark or the end of the answer follows. */
static size_t release(struct answer_parser *p, char *buf, bool *is_thinking)
{
    size_t n = p->n_held;

    *is_thinking = answer_parser_thinks(p);
    memcpy(buf, p->held, n);
    p->n_held = 0;
    if (p->state == AFTER)
        n = drop_newlines(buf, n);
    n += decoder_end(&p->decoder, buf + n);
    return p->state == IN_LABEL || p->state == IN_ROLE ? 0 : n; /* only a label: drop it */
}

/* The same before a mark, which also drops the white space at the start of an answer. */
static size_t release_before_mark(struct answer_parser *p, char *buf, bool *is_thinking)
{
    size_t n = release(p, buf, is_thinking);

    return p->state == AT_START && chat_trim((struct span){ buf, n }).n == 0 ? 0 : n;
}

/* Whether the last mark of the prompt opens a channel.  The label follows it. */
static bool opens_channel(struct answer_parser *p, const uint32_t *prompt, size_t n)
{
    find_marks(p);
    while (n > 0 && prompt[n - 1] != p->open &&
           tokenizer_kind(p->tokenizer, prompt[n - 1]) != TOKEN_CONTROL)
        n--;
    return n > 0 && prompt[n - 1] == p->open;
}

/* Begin inside the header that the prompt ends with, or after one.  An answer of gpt-oss may have
 * no header. */
static void begin_in_header(struct answer_parser *p, const uint32_t *prompt, size_t n)
{
    int64_t start = find_mark(p, HARMONY_START);
    size_t from = n;

    while (from > 0 && prompt[from - 1] != start)
        from--;
    if (from == 0)
        return;
    p->state = IN_ROLE;
    for (size_t i = from; i < n; i++) {
        char piece[sizeof p->held];
        int next = after_message_mark(p, prompt[i]);

        if (next == NO_MARK) {
            size_t len = tokenizer_piece(p->tokenizer, prompt[i], false, piece, sizeof piece);

            take_name(p, piece, len < sizeof piece ? len : sizeof piece);
            continue;
        }
        p->state = next;
        p->n_held = 0;
    }
    if (p->format->think == THINK_HARMONY && p->state == IN_ROLE &&
        p->n_held <= strlen(ASSISTANT))
        p->state = AT_START;
    if (p->state != IN_ROLE && p->state != IN_LABEL)
        p->n_held = 0;
}

/* Whether the prompt ends with the opening mark. */
static bool opens_tag(struct answer_parser *p, const uint32_t *prompt, size_t n)
{
    const char *open = p->format->open;
    char tail[64], piece[sizeof tail];
    size_t used = sizeof tail;
    struct span end;

    /* Collect the last bytes of the prompt from its end. */
    while (n > 0 && used > 0) {
        size_t len = tokenizer_piece(p->tokenizer, prompt[--n], true, piece, sizeof piece);
        size_t have = len < sizeof piece ? len : sizeof piece;

        if (len > used || have < len)
            break;
        used -= len;
        memcpy(tail + used, piece, len);
    }
    end = chat_trim((struct span){ tail + used, sizeof tail - used });
    return end.n >= strlen(open) &&
           memcmp(end.s + end.n - strlen(open), open, strlen(open)) == 0;
}

void answer_parser_start(struct answer_parser *p, const uint32_t *prompt, size_t n,
                         bool is_inside)
{
    enum think_kind kind = p->format->think;

    is_inside = is_inside || (kind == THINK_CHANNEL && opens_channel(p, prompt, n)) ||
                (kind == THINK_TAGS && opens_tag(p, prompt, n));
    if (is_inside)
        p->state = IN_THOUGHT;
    else if (chat_has_messages(kind))
        begin_in_header(p, prompt, n);
    p->has_thought = is_inside;
    p->decoder.show_control = p->shows_marks;
}

size_t answer_parser_push(struct answer_parser *p, uint32_t id, char *buf, bool *is_thinking)
{
    int next = after_mark(p, id);
    size_t n;

    if (next != NO_MARK) {
        bool is_unopened = next == AFTER && !p->has_thought;

        n = begin_tool(p, id, buf);
        if (n > 0) {
            p->n_held = 0;
            p->state = IN_ANSWER;
            p->has_thought = true;
            *is_thinking = false;
            return n;
        }
        p->is_over = is_other_role(p);
        n = release_before_mark(p, buf, is_thinking);
        *is_thinking = *is_thinking || is_unopened;
        p->was_inside = p->was_inside || is_unopened;
        p->has_thought = true;
        p->state = next;
        return n;
    }
    *is_thinking = answer_parser_thinks(p);
    n = decoder_push(&p->decoder, p->tokenizer, id, buf);
    if (p->format->think == THINK_HARMONY && p->state == AT_START)
        return take_recipient(p, buf, n);
    if (chat_has_messages(p->format->think) && (p->state == IN_LABEL || p->state == IN_ROLE)) {
        take_name(p, buf, n);
        return take_header(p, buf);
    }
    if (p->state == IN_LABEL)
        return take_label(p, buf, n);
    return p->format->think == THINK_TAGS ? take_tagged(p, buf, n, is_thinking) : n;
}

size_t answer_parser_cut(struct answer_parser *p, char *buf, bool *is_thinking)
{
    p->decoder.n_held = 0;
    return release(p, buf, is_thinking);
}

size_t answer_parser_end(struct answer_parser *p, char *buf, bool *is_thinking)
{
    return release(p, buf, is_thinking);
}
