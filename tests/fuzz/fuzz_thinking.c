/* Thinking that a server leaves in the text: pieces of any length give what the rule of
 * thinking.h gives for the whole text. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_write.h"
#include "engine/remote/thinking.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const marks[][2] = {
    { "<think>", "</think>" },         { "[THINK]", "[/THINK]" },
    { "<thinking>", "</thinking>" },   { "<thought>", "</thought>" },
    { "<reasoning>", "</reasoning>" }, { "<seed:think>", "</seed:think>" },
};

#define N_MARK      (sizeof marks / sizeof marks[0])
#define BLANKS_MOST 8

/* The two parts of an answer. */
struct parts {
    struct json thinking, text;
};

static void parts_start(struct parts *p)
{
    json_start(&p->thinking);
    json_start(&p->text);
}

static void parts_free(struct parts *p)
{
    json_release(&p->thinking);
    json_release(&p->text);
}

static int take_text(void *ctx, const char *text, size_t len, bool is_thinking, struct err *e)
{
    struct parts *p = ctx;

    (void)e;
    if (len == 0)
        abort();
    json_raw(is_thinking ? &p->thinking : &p->text, text, len);
    return 0;
}

static int take_thought(void *ctx, struct err *e)
{
    struct parts *p = ctx;

    (void)e;
    if (p->thinking.used > 0)
        abort(); /* there is one rule for a text */
    if (p->text.used > 0)
        json_raw(&p->thinking, p->text.buf, p->text.used);
    json_release(&p->text);
    json_start(&p->text);
    return 0;
}

static void run(struct parts *out, const char *text, size_t len, size_t step, bool is_over)
{
    static const struct thinking_calls calls = { take_text, take_thought };
    struct thinking t;
    struct err e = ERR_INIT;

    parts_start(out);
    thinking_begin(&t, &calls, out, is_over);
    for (size_t i = 0; i < len; i += step)
        if (thinking_push(&t, text + i, len - i < step ? len - i : step, &e) != 0)
            abort();
    if (thinking_end(&t, &e) != 0)
        abort();
}

/* ---- the rule ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t blanks(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && is_blank(text[n]))
        n++;
    return n;
}

/* Returns the length of the mark at the beginning of the text, or 0. */
static size_t mark_at(const char *text, size_t len, const char *mark)
{
    size_t n = strlen(mark);

    return n <= len && memcmp(text, mark, n) == 0 ? n : 0;
}

static void add(struct json *to, const char *text, size_t len)
{
    if (len > 0)
        json_raw(to, text, len);
}

static void add_after_blanks(struct parts *out, const char *text, size_t len)
{
    size_t n = blanks(text, len);

    add(&out->text, text + n, len - n);
}

static bool has_opening(struct parts *out, const char *text, size_t len)
{
    size_t from = blanks(text, len), n = 0, pair = 0;

    while (from <= BLANKS_MOST && n == 0 && pair < N_MARK)
        n = mark_at(text + from, len - from, marks[pair++][0]);
    if (n == 0)
        return false;
    for (size_t i = from + n; i < len; i++) {
        size_t close = mark_at(text + i, len - i, marks[pair - 1][1]);

        if (close > 0) {
            add(&out->thinking, text + from + n, i - from - n);
            add_after_blanks(out, text + i + close, len - i - close);
            return true;
        }
    }
    add(&out->thinking, text + from + n, len - from - n);
    return true;
}

static bool has_closing_line(struct parts *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        for (size_t pair = 0; (i == 0 || text[i - 1] == '\n') && pair < N_MARK; pair++) {
            size_t n = mark_at(text + i, len - i, marks[pair][1]);

            if (n > 0 && (i + n == len || text[i + n] == '\n' || text[i + n] == '\r')) {
                add(&out->thinking, text, i);
                add_after_blanks(out, text + i + n, len - i - n);
                return true;
            }
        }
    return false;
}

static void follow_rule(struct parts *out, const char *text, size_t len, bool is_over)
{
    parts_start(out);
    if (is_over || (!has_opening(out, text, len) && !has_closing_line(out, text, len)))
        add(&out->text, text, len);
}

static bool is_same(const struct json *a, const struct json *b)
{
    return a->used == b->used && (a->used == 0 || memcmp(a->buf, b->buf, a->used) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    struct parts expected, pieces;
    bool is_over;

    if (size == 0)
        return 0;
    is_over = data[0] >= 0xf0;
    follow_rule(&expected, text, size - 1, is_over);
    run(&pieces, text, size - 1, data[0] % 16 + 1, is_over);
    if (!is_same(&expected.thinking, &pieces.thinking) ||
        !is_same(&expected.text, &pieces.text))
        abort();
    parts_free(&expected);
    parts_free(&pieces);
    return 0;
}
