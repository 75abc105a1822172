/*
 * An encoder that receives text in pieces keeps the text that is not encoded yet.  It cuts it
 * where the ids before and after the cut do not depend on each other:
 *
 *     pending   ... the quick brown| fox <start_of  ...
 *                                  cut   ^ closer to the end than the longest added token:
 *                                          undecided until more text arrives
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/encode_internal.h"
#include "engine/text/split.h"

int encoder_new(struct encoder **out, const struct tokenizer *t, bool parse_special,
                size_t run_max, struct err *e)
{
    struct encoder *x = malloc(sizeof *x);
    const struct added *added;

    *out = NULL;
    if (x == NULL)
        return err_memory(e, "reading a text");
    if (encoder_start(x, t, parse_special, true, e) != 0) {
        encoder_free(x);
        return -1;
    }
    x->run_max = run_max;
    added = encoder_added(x);
    for (uint32_t i = 0; i < added->n; i++) {
        size_t len;

        token_text(t, added->id[i], &len);
        x->longest = len > x->longest ? len : x->longest;
    }
    *out = x;
    return 0;
}

void encoder_free(struct encoder *x)
{
    if (x == NULL)
        return;
    encoder_finish(x);
    free(x);
}

/* Returns the character that ends before text[at], or UTF8_BAD if none does. */
static uint32_t char_before(const char *text, size_t at)
{
    size_t from = utf8_start(text, at > 4 ? at - 4 : 0, at - 1);
    uint32_t cp;

    return utf8_decode(text + from, at - from, &cp) == at - from && cp < UTF8_SHORT ? cp
                                                                                    : UTF8_BAD;
}

static bool is_ascii_word(uint32_t cp)
{
    return (cp >= '0' && cp <= '9') || (cp >= 'A' && cp <= 'Z') || (cp >= 'a' && cp <= 'z');
}

/* Returns true for letters of scripts without spaces: kana, Chinese characters and Hangul that
 * normalisation does not change. */
static bool is_dense_letter(uint32_t cp)
{
    return (cp >= 0x3041 && cp <= 0x3096) || (cp >= 0x30a1 && cp <= 0x30fa) ||
           (cp >= 0x4e00 && cp <= 0x9fa5) || (cp >= 0xac00 && cp <= 0xd7a3);
}

/*
 * Returns true if every published pattern that cuts words (split.c) ends a piece between these
 * two characters in any text.  None of them has a blank inside a piece after anything but white
 * space, and none continues a word or number with punctuation other than an apostrophe.  No
 * pattern looks back, and only the rules for white space look ahead.  Normalisation never
 * joins these two characters.
 */
static bool is_seam_of_patterns(uint32_t before, uint32_t after)
{
    if (after == ' ' || after == '\t')
        return true;
    if (!is_ascii_word(before) && !is_dense_letter(before))
        return false;
    return (after < 0x80 && after != '\'' && !is_ascii_word(after)) || after == 0x3001 ||
           after == 0x3002 || after == 0xff0c;
}

static bool is_seam_of_bytes(const struct tokenizer *t, const char *text, size_t at,
                             uint32_t before, uint32_t after)
{
    bool is_cut = is_seam_of_patterns(before, after);
    enum words words = split_words(t->split);

    if (words == WORDS_CUT)
        return is_cut;
    /* A piece that may be one token stays complete. */
    if (words == WORDS_JOINED && t->info.ignore_merges)
        return is_cut && after != ' ';
    return (is_cut || (!t->info.nfc && words == WORDS_KEPT)) &&
           !seam_has(t->seams,
                     seam_of_bytes((unsigned char)text[at - 1], (unsigned char)text[at]));
}

static bool is_seam_of_chars(const struct tokenizer *t, uint32_t before, uint32_t after)
{
    const struct vocab_info *info = &t->info;
    bool is_cut = is_seam_of_patterns(before, after);

    if (t->split != NULL && split_words(t->split) != WORDS_KEPT) {
        if (split_words(t->split) == WORDS_JOINED && after == ' ')
            return false;
        /* A pattern that sees U+2581 for a space takes it for punctuation. */
        if (info->pieces == PIECES_OF_BLOCKS)
            return is_cut && (is_ascii_word(before) || is_dense_letter(before));
        /* The next piece gets a prefix unless it begins with a space. */
        return is_cut && (!info->add_space_prefix || after == ' ');
    }
    if (info->nfc && !is_cut)
        return false;
    after = after == ' ' ? BLOCK_CP : after;
    return (info->split_at_space && after == BLOCK_CP) ||
           !seam_has(t->seams, seam_of_chars(before, after));
}

/*
 * Returns true if no merge can join text[0..at) with the rest.  Always false after white
 * space, because the next token may absorb it.
 */
static bool is_seam(const struct encoder *x, const char *text, size_t len, size_t at)
{
    const struct tokenizer *t = x->t;
    uint32_t before, after;

    if (utf8_is_inside(text[at]))
        return false;
    utf8_decode(text + at, len - at, &after);
    before = char_before(text, at);
    if (before >= UTF8_SHORT || after >= UTF8_SHORT || utf8_is_white(before))
        return false;
    return t->info.model == VOCAB_BPE_BYTES ? is_seam_of_bytes(t, text, at, before, after)
                                            : is_seam_of_chars(t, before, after);
}

/* Returns the last position where pending can be cut, or 0.  Added tokens that begin before
 * the last `longest` bytes are complete. */
static size_t find_cut(const struct encoder *x)
{
    const struct added *added = encoder_added(x);
    size_t ahead = x->longest > 4 ? x->longest : 4, limit = x->n > ahead ? x->n - ahead : 0;
    size_t from = 0, best = 0;

    while (from < limit) {
        size_t at, len, end = limit;
        uint32_t id;
        bool found = added_find(added, x->t, x->pending, from, x->n, &at, &len, &id);

        if (found && at < limit)
            end = at;
        for (size_t cut = end; cut > from; cut--)
            if (is_seam(x, x->pending, x->n, cut)) {
                best = cut;
                break;
            }
        if (end == limit)
            break;
        from = at + len;
    }
    return best;
}

static int encode_pending(struct encoder *x, size_t n, struct ids *out, struct err *e)
{
    if (n == 0)
        return 0;
    x->out = out;
    if (encoder_encode(x, x->pending, n, x->begins, e) != 0)
        return -1;
    memmove(x->pending, x->pending + n, x->n - n);
    x->n -= n;
    x->offset += n;
    x->begins = INSIDE;
    return 0;
}

/* Make room by encoding the text before a cut, or by growing the buffer. */
static int make_room(struct encoder *x, struct ids *out, struct err *e)
{
    size_t cut = find_cut(x), room = x->room == 0 ? ENCODER_BLOCK : x->room * 2;
    char *more;

    if (cut > 0)
        return encode_pending(x, cut, out, e);
    if (x->run_max > 0 && x->n >= x->run_max)
        return err_set(e, ERR_UNSUPPORTED,
                       "%zu bytes from byte %llu on cannot be split; insert spaces or "
                       "line breaks",
                       x->n, (unsigned long long)x->offset);
    if (x->run_max > 0 && room > x->run_max)
        room = x->run_max;
    more = realloc(x->pending, room);
    if (more == NULL)
        return err_memory(e, "a text of %zu bytes", room);
    x->pending = more;
    x->room = room;
    return 0;
}

int encoder_push(struct encoder *x, const char *text, size_t len, struct ids *out,
                 struct err *e)
{
    while (len > 0) {
        size_t n = x->room - x->n < len ? x->room - x->n : len;

        if (n > 0)
            memcpy(x->pending + x->n, text, n);
        x->n += n;
        text += n;
        len -= n;
        if (len > 0 && make_room(x, out, e) != 0)
            return -1;
    }
    return 0;
}

int encoder_end(struct encoder *x, struct ids *out, struct err *e)
{
    return encode_pending(x, x->n, out, e);
}
