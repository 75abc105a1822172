/* See tool_calls.h. */
#include "config.h"

#include "src/serve/tool_calls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/request_field.h"
#include "src/serve/tool_forms.h"

#define DSML "\uff5cDSML\uff5c" /* DeepSeek V3.2 and V4 */

/* A mark that opens calls, and the one that closes them; NULL: the end of the answer. */
static const struct mark {
    const char *open, *close;
    tool_form_fn *read;
} marks[] = {
    { "<tool_call>", "</tool_call>", tool_form_tagged },
    { "<|tool_call>", "<tool_call|>", tool_form_gemma },
    { "[TOOL_CALLS]", NULL, tool_form_mistral },
    { "<|python_tag|>", NULL, tool_form_json },
    { "<|channel|>commentary to=functions.", NULL, tool_form_harmony },
    { "<seed:tool_call>", "</seed:tool_call>", tool_form_seed },
    { "<|START_ACTION|>", "<|END_ACTION|>", tool_form_json },
    { "<|tool_call_start|>", "<|tool_call_end|>", tool_form_python },
    { "<minimax:tool_call>", "</minimax:tool_call>", tool_form_invoke },
    { "<atem:function_calls>", "</atem:function_calls>", tool_form_invoke },
    { "<" DSML "tool_calls>", "</" DSML "tool_calls>", tool_form_invoke },
    { "<" DSML "function_calls>", "</" DSML "function_calls>", tool_form_invoke },
    { TOOL_BARS("tool\u2581calls\u2581begin"), TOOL_BARS("tool\u2581calls\u2581end"),
      tool_form_deepseek },
    { "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", tool_form_kimi },
};
#define N_MARK (sizeof marks / sizeof marks[0])

#define READ_TIMES 8
#define READ_MORE  65536

/* The only mark of a form. */
static const struct mark *mark_of(enum call_form form)
{
    switch (form) {
    case CALLS_HERMES:
    case CALLS_TAGGED: return &marks[0];
    case CALLS_GEMMA: return &marks[1];
    case CALLS_MISTRAL:
    case CALLS_MISTRAL_ARGS: return &marks[2];
    case CALLS_LLAMA:
    case CALLS_UNKNOWN: break;
    }
    return NULL;
}

/* Where a text that does not change was found in a stream of bytes, or up to where it was not. */
struct search {
    uint64_t from;  /* nothing of it begins between the place that was asked for, and here */
    bool is_found;  /* it begins here */
};

struct tool_calls {
    struct json_doc *tools;
    const struct mark *first, *end; /* marks that count */
    bool reads_json;                /* an answer that begins with a brace may be a call */
    bool is_whole;
    tool_text_fn *text;
    tool_call_fn *call;
    void *ctx;
    struct json held;         /* from `begin` on: text that is not passed on yet */
    size_t begin;
    uint64_t offset;          /* in the answer, of held.buf[begin] */
    struct search open[N_MARK], close[N_MARK];
    uint64_t n_read, work;    /* bytes that forms were tried on, and all that were looked at */
    const struct mark *inside; /* held begins with this mark; NULL: it is text */
    size_t n_white;           /* held bytes at the beginning of the answer that are white space */
    bool is_json;             /* the answer begins with a brace: it may be a call as a whole */
    bool has_text;            /* something that is not white space came before */
    bool has_call;
};

int tool_calls_new(struct tool_calls **out, const struct tool_reading *how, tool_text_fn *text,
                   tool_call_fn *call, void *ctx, struct err *e)
{
    const struct mark *only = mark_of(how->form);
    struct tool_calls *t = calloc(1, sizeof *t);

    *out = NULL;
    if (t == NULL)
        return err_memory(e, "tools");
    *t = (struct tool_calls){ .first = only != NULL ? only : marks,
                              .end = only != NULL ? only + 1 : marks + N_MARK,
                              .reads_json = only == NULL,
                              .is_whole = how->is_whole,
                              .text = text,
                              .call = call,
                              .ctx = ctx };
    if (how->form == CALLS_LLAMA)
        t->end = t->first;
    json_start(&t->held);
    if (json_parse(&t->tools, how->tools, how->len, e) != 0) {
        tool_calls_free(t);
        return -1;
    }
    *out = t;
    return 0;
}

void tool_calls_free(struct tool_calls *t)
{
    if (t == NULL)
        return;
    json_free(t->tools);
    json_release(&t->held);
    free(t);
}

static const char *held(const struct tool_calls *t)
{
    return t->held.buf + t->begin;
}

static size_t n_held(const struct tool_calls *t)
{
    return t->held.used - t->begin;
}

/* Remove n bytes.  The rest moves when it is the smaller part, so each byte moves once or less. */
static void drop(struct tool_calls *t, size_t n)
{
    t->begin += n;
    t->offset += n;
    if (n_held(t) > t->begin)
        return;
    t->work += n_held(t);
    if (t->begin > 0)
        memmove(t->held.buf, held(t), n_held(t));
    t->held.used -= t->begin;
    t->begin = 0;
}

static size_t white(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && isspace((unsigned char)s[i]))
        i++;
    return i;
}

/* Pass on the first n bytes that are held.  White space after a call separates it from the next
 * one, and is not a part of the text. */
static int pass_text(struct tool_calls *t, size_t n, struct err *e)
{
    size_t skip = t->has_call && !t->has_text ? white(held(t), n) : 0;

    if (n > skip) {
        if (t->text(t->ctx, held(t) + skip, n - skip, e) != 0)
            return -1;
        t->has_text = true;
    }
    drop(t, n);
    return 0;
}

/*
 * Find `what` in the held text from byte `from` on.  The places that are asked for only grow, so
 * bytes that were searched are not searched again.
 */
static bool find(struct tool_calls *t, struct search *x, const char *what, size_t from, size_t *at)
{
    size_t len = strlen(what), n = n_held(t);
    const char *found;

    if (x->from < t->offset + from)
        *x = (struct search){ .from = t->offset + from };
    from = (size_t)(x->from - t->offset);
    if (!x->is_found && from + len <= n) {
        found = memmem(held(t) + from, n - from, what, len);
        x->is_found = found != NULL;
        x->from = t->offset + (found != NULL ? (size_t)(found - held(t)) : n - len + 1);
        t->work += x->from - t->offset - from + len;
    }
    *at = (size_t)(x->from - t->offset);
    return x->is_found;
}

/* The number of bytes at the end that may be the beginning of `what`. */
static size_t begun(struct tool_calls *t, const char *what)
{
    size_t len = strlen(what), n = n_held(t), tail = len - 1 < n ? len - 1 : n;

    t->work += tail;
    while (tail > 0 && memcmp(held(t) + n - tail, what, tail) != 0)
        tail--;
    return tail;
}

/* Find the first mark.  Returns the number of bytes before it, or before the end that may be the
 * beginning of one. */
static size_t find_mark(struct tool_calls *t, const struct mark **out)
{
    size_t n = n_held(t), first = n, at, tail;

    *out = NULL;
    for (const struct mark *m = t->first; m < t->end; m++) {
        if (find(t, &t->open[m - marks], m->open, 0, &at)) {
            if (*out == NULL || at < first)
                *out = m;
            first = at < first ? at : first;
            continue;
        }
        tail = begun(t, m->open);
        if (n - tail < first) {
            first = n - tail;
            *out = NULL;
        }
    }
    return first;
}

static int take_call(void *ctx, const char *name, const char *arguments, size_t len,
                     struct err *e)
{
    struct tool_calls *t = ctx;

    t->has_call = true;
    t->has_text = false;
    return t->call(t->ctx, name, arguments, len, e);
}

/* Read the calls of a body.  false: they are none.  *rc: of the functions that took them.
 * Marks that open nothing may each try the same text.  After several times the text of the answer
 * so far it stays text, whatever the pieces were in which it came. */
static bool read_calls(struct tool_calls *t, tool_form_fn *form, const char *body, size_t n,
                       int *rc, struct err *e)
{
    struct tool_list list = { .tools = json_root(t->tools) };
    uint64_t end = t->offset + (uint64_t)(body + n - held(t));
    bool is_call;

    *rc = 0;
    if (t->n_read + n > READ_TIMES * end + READ_MORE)
        return false;
    t->n_read += n;
    t->work += n;
    tool_list_start(&list);
    is_call = form(&list, body, n) && list.n > 0;
    for (size_t i = 0; i < list.n; i++) /* a request could not have it */
        is_call = is_call && list.call[i].arguments.deepest <= CALL_DEPTH;
    for (size_t i = 0; is_call && i < list.n && *rc == 0; i++)
        *rc = take_call(t, list.call[i].name, list.call[i].arguments.buf,
                        list.call[i].arguments.used, e);
    tool_list_free(&list);
    return is_call;
}

/* The held text begins with a mark.  Returns 1 if more of it must come. */
static int take_marked(struct tool_calls *t, bool is_end, struct err *e)
{
    const struct mark *m = t->inside;
    size_t from = strlen(m->open), at = n_held(t), after = at;
    int rc;

    if (m->close != NULL && find(t, &t->close[m - marks], m->close, from, &at))
        after = at + strlen(m->close);
    else if (!is_end)
        return 1;
    else
        at = after;
    t->inside = NULL;
    if (read_calls(t, m->read, held(t) + from, at - from, &rc, e)) {
        if (rc == 0)
            drop(t, after);
        return rc;
    }
    /* It is text, which may have another mark. */
    return pass_text(t, from, e);
}

/* The answer begins with a brace. */
static int take_json(struct tool_calls *t, struct err *e)
{
    int rc;

    t->is_json = false;
    if (!read_calls(t, tool_form_json, held(t), n_held(t), &rc, e))
        return 0;
    if (rc == 0)
        drop(t, n_held(t));
    return rc;
}

static int take(struct tool_calls *t, bool is_end, struct err *e)
{
    for (;;) {
        size_t n;
        int rc;

        if (t->inside != NULL) {
            rc = take_marked(t, is_end, e);
            if (rc != 0)
                return rc < 0 ? -1 : 0;
            continue;
        }
        n = find_mark(t, &t->inside);
        if (t->inside == NULL && is_end)
            n = n_held(t);
        if (n > 0 && pass_text(t, n, e) != 0)
            return -1;
        if (t->inside == NULL)
            return 0;
    }
}

/* The answer begins here.  If it is not a call, nothing in it is one.  Returns false if more of it
 * must come before this is known. */
static bool choose(struct tool_calls *t, const char *s, size_t n)
{
    size_t len = t->is_whole && t->first < t->end ? strlen(t->first->open) : 0;

    if (memcmp(s, t->first->open, n < len ? n : len) != 0)
        t->end = t->first;
    else if (n < len)
        return false;
    return true;
}

int tool_calls_push(struct tool_calls *t, const char *text, size_t len, struct err *e)
{
    size_t space;

    json_raw(&t->held, text, len);
    if (t->held.failed)
        return err_memory(e, "a call of a tool");
    if (!t->has_text && !t->has_call && t->inside == NULL) {
        space = t->n_white + white(held(t) + t->n_white, n_held(t) - t->n_white);
        t->work += space - t->n_white + 1;
        t->n_white = space;
        if (space == n_held(t))
            return 0;
        t->is_json = t->reads_json && (held(t)[space] == '{' || t->is_json);
        if (!choose(t, held(t) + space, n_held(t) - space))
            return 0;
    }
    return t->is_json ? 0 : take(t, false, e);
}

int tool_calls_restart(struct tool_calls *t, struct err *e)
{
    size_t n = n_held(t);

    if (n > 0 && t->text(t->ctx, held(t), n, e) != 0)
        return -1;
    if (n > 0)
        drop(t, n);
    t->inside = NULL;
    t->n_white = 0;
    t->is_json = t->has_text = t->has_call = false;
    return 0;
}

int tool_calls_end(struct tool_calls *t, struct err *e)
{
    if (n_held(t) == 0)
        return 0;
    if (t->is_json && take_json(t, e) != 0)
        return -1;
    return n_held(t) > 0 ? take(t, true, e) : 0;
}

uint64_t tool_calls_work(const struct tool_calls *t)
{
    return t->work;
}
