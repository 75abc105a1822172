/* The text of an answer: from ids to the turn and to the events. */
#include "config.h"

#include <string.h>

#include "engine/session/answer_internal.h"

/*
 * An answer that goes on runs through the parser and the search for stop strings from its first
 * id on, so both are where they were when it was cut.  n_said counts the bytes that come out.
 * The turn already has the first of them: only those after its end are appended and posted.
 */
static void skip_known(struct answer_state *r, const char **text, size_t *len, bool is_thinking)
{
    const struct turn *t = answer_turn(r);
    size_t known = is_thinking ? t->thinking_len : t->len, n = 0;

    if (r->n_said[is_thinking] < known)
        n = known - r->n_said[is_thinking] < *len ? known - r->n_said[is_thinking] : *len;
    if (n > 0 &&
        memcmp((is_thinking ? t->thinking : t->text) + r->n_said[is_thinking], *text, n) != 0)
        r->differs = true;
    r->n_said[is_thinking] += n;
    *text += n;
    *len -= n;
}

void answer_say(struct answer_state *r, const char *text, size_t len, bool is_thinking)
{
    struct err e = ERR_INIT;

    skip_known(r, &text, &len, is_thinking);
    r->n_said[is_thinking] += len;
    if (len == 0 || r->is_lost || r->is_muted)
        return;
    if (turn_append(answer_turn(r), is_thinking, text, len, &e) == 0 &&
        events_text(r->a->events, text, len, is_thinking, &e) == 0)
        return;
    r->is_lost = true;
    r->err = e;
}

/* --- stop strings --- */

/* Returns text i that ends an answer: a stop string, or a word that opens a turn; NULL after
 * the last. */
static const char *stop_at(const struct answerer *a, size_t i)
{
    size_t n = 0;

    while (n < i && a->stop[n] != NULL)
        n++;
    if (a->stop[n] != NULL)
        return a->stop[n];
    return a->rendering.format != NULL ? chat_turn_word(a->rendering.format, i - n) : NULL;
}

/* Returns where such a text begins in text, or len.  *n_stop is its length.  *keep is the
 * number of bytes at the end that may be the start of one. */
static size_t find_stop(const struct answerer *a, const char *text, size_t len, size_t *n_stop,
                        size_t *keep)
{
    *keep = 0;
    for (size_t at = 0; at < len; at++) {
        const char *stop;

        for (size_t i = 0; (stop = stop_at(a, i)) != NULL; i++) {
            size_t n = strlen(stop), left = len - at;

            if (memcmp(text + at, stop, n < left ? n : left) != 0)
                continue;
            *n_stop = n;
            if (n <= left)
                return at;
            if (left > *keep)
                *keep = left;
        }
    }
    return len;
}

/* Whether text begins with a stop string, and the number of the first one. */
static bool begins_with_stop(const struct answerer *a, const char *text, size_t len, uint32_t *i)
{
    for (*i = 0; a->stop[*i] != NULL; (*i)++)
        if (strlen(a->stop[*i]) <= len && memcmp(text, a->stop[*i], strlen(a->stop[*i])) == 0)
            return true;
    return false;
}

/* Whether a text of n bytes, `at` bytes after those that were said, was shown before. */
static bool is_known(struct answer_state *r, size_t at, size_t n)
{
    return r->n_said[false] + at + n <= answer_turn(r)->len;
}

/*
 * Append text of the answer up to a stop string; thinking is not searched.  Returns whether
 * there was one.  A stop string in text that was shown before it was set ends nothing.
 */
static bool say_filtered(struct answer_state *r, const char *text, size_t len)
{
    char all[sizeof r->held + ANSWER_TEXT_MAX];
    size_t n = r->n_held, at = 0, end, n_stop, keep;

    memcpy(all, r->held, n);
    memcpy(all + n, text, len);
    n += len;
    while ((end = find_stop(r->a, all + at, n - at, &n_stop, &keep)) < n - at) {
        if (!is_known(r, end, n_stop)) {
            answer_say(r, all + at, end, false);
            r->n_held = 0;
            r->found_stop = true;
            r->is_own_stop = begins_with_stop(r->a, all + at + end, n - at - end,
                                              &r->receipt.stop_text);
            return true;
        }
        answer_say(r, all + at, end + 1, false);
        at += end + 1;
    }
    answer_say(r, all + at, n - at - keep, false);
    memcpy(r->held, all + n - keep, keep);
    r->n_held = keep;
    return false;
}

/* No stop string comes any longer: say the text that may have been the beginning of one. */
static void say_held(struct answer_state *r)
{
    answer_say(r, r->held, r->n_held, false);
    r->n_held = 0;
}

/* --- pieces --- */

/*
 * A closing mark that nothing opened: all text of the answer was thinking.  The last bytes before
 * the mark are in the same token.  They are said as text, too, so that the event is at the place of
 * the mark.
 * Text that is only counted is counted again by replay().
 */
static void take_for_thinking(struct answer_state *r, uint32_t id, const char *last,
                              size_t n_last)
{
    char mark[DECODE_MAX];

    answer_say(r, last, n_last, false);
    if (r->is_muted || r->is_lost)
        return;
    if (turn_take_for_thinking(answer_turn(r), &r->err) != 0) {
        r->is_lost = true;
        return;
    }
    r->n_said[true] += r->n_said[false];
    r->n_said[false] = 0;
    events_post(r->a->events,
                &(struct mw_event){ .kind = MW_EVENT_THOUGHT,
                                    .text = mark,
                                    .len = answer_parser_closing(&r->parser, id, mark,
                                                                 sizeof mark) });
}

bool answer_say_id(struct answer_state *r, uint32_t id)
{
    char buf[ANSWER_TEXT_MAX];
    bool is_thinking = false;
    size_t len = answer_parser_push(&r->parser, id, buf, &is_thinking);

    if (r->parser.was_inside && !r->is_inside) {
        r->is_inside = true;
        say_held(r);
        if (r->n_said[false] > 0) {
            take_for_thinking(r, id, buf, is_thinking ? len : 0);
            len = is_thinking ? 0 : len;
        }
    }
    if (is_thinking) {
        say_held(r);
        answer_say(r, buf, len, true);
    } else if (say_filtered(r, buf, len)) {
        return true;
    }
    return r->parser.is_over;
}

void answer_say_end(struct answer_state *r)
{
    char buf[ANSWER_TEXT_MAX];
    bool is_thinking = false;
    size_t len = answer_parser_end(&r->parser, buf, &is_thinking);

    if (is_thinking) {
        say_held(r);
        answer_say(r, buf, len, true);
    } else if (!say_filtered(r, buf, len)) {
        say_held(r);
    }
}

size_t answer_take_held(const struct answer_state *r, struct answer_parser *p, char *buf,
                        bool *is_thinking)
{
    size_t n = answer_parser_cut(p, buf + r->n_held, is_thinking);

    memcpy(buf, r->held, r->n_held);
    *is_thinking = *is_thinking && r->n_held == 0;
    return r->n_held + n;
}

void answer_keep_held(struct answer_state *r)
{
    struct turn *t = answer_turn(r);
    struct err ignored = ERR_INIT;
    char buf[TURN_HELD_MAX];
    size_t n = answer_take_held(r, &r->parser, buf, &t->holds_thinking);

    t->n_held = turn_append(t, t->holds_thinking, buf, n, &ignored) == 0 ? n : 0;
}
