/* A character joins the previous one if its width is 0, if it is a skin tone, if it follows a
 * zero-width joiner and is 2 wide, or if it is the second of a pair of regional indicators. */
#include "config.h"

#include "ui/words/cluster.h"

#include <stdbool.h>
#include <stdint.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"

#define REPLACEMENT 0xfffd
#define JOINER      0x200d

/* Decode one code point; each broken byte counts as one. */
static size_t decode(const char *s, size_t n, int32_t *cp)
{
    uint32_t code;
    size_t used = utf8_decode(s, n, &code);

    *cp = code < UTF8_SHORT ? (int32_t)code : -1;
    return *cp >= 0 ? used : 1;
}

static bool is_regional(int32_t cp)
{
    return cp >= 0x1f1e6 && cp <= 0x1f1ff;
}

static bool is_skin_tone(int32_t cp)
{
    return cp >= 0x1f3fb && cp <= 0x1f3ff;
}

/* Combining marks are drawn, other zero-width characters are not. */
static bool is_mark(int32_t cp)
{
    utf8proc_category_t c = utf8proc_category(cp);

    return (c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC ||
            c == UTF8PROC_CATEGORY_ME) &&
           !(cp >= 0xfe00 && cp <= 0xfe0f) && !(cp >= 0xe0100 && cp <= 0xe01ef) &&
           cp != 0x20e3 && cp != 0x34f && !(cp >= 0x180b && cp <= 0x180f);
}

static int width_of(int32_t cp)
{
    return cp < 0 ? -1 : wcwidth((wchar_t)cp);
}

static void base(int32_t cp, struct cluster *out, int *n_shown)
{
    int width = width_of(cp);

    if (width < 0 || cp == 0xad) { /* soft hyphen: terminals differ */
        out->shown[(*n_shown)++] = REPLACEMENT;
        out->width = 1;
    } else if (width > 0) {
        out->shown[(*n_shown)++] = (wchar_t)cp;
        out->width = width;
    }
}

/* Add a vowel or a final consonant to a syllable of Hangul, which terminals draw better as one
 * character.  Returns false if both do not make one. */
static bool compose(wchar_t *syllable, int32_t cp)
{
    enum { LEAD = 0x1100, VOWEL = 0x1161, FINAL = 0x11a7, FIRST = 0xac00, LAST = 0xd7a3 };
    wchar_t s = *syllable;

    if (s >= LEAD && s < LEAD + 19 && cp >= VOWEL && cp < VOWEL + 21)
        *syllable = FIRST + ((s - LEAD) * 21 + (cp - VOWEL)) * 28;
    else if (s >= FIRST && s <= LAST && (s - FIRST) % 28 == 0 && cp > FINAL && cp < FINAL + 28)
        *syllable = s + cp - FINAL;
    else
        return false;
    return true;
}

/* The other vowels and finals, of old Hangul, have no width either. */
static bool is_jamo(int32_t cp)
{
    return (cp >= 0x1160 && cp <= 0x11ff) || (cp >= 0xd7b0 && cp <= 0xd7ff);
}

void cluster_next(const char *s, size_t n, struct cluster *out)
{
    int32_t first, before, cp;
    bool joined = false;
    int n_shown = 0;

    out->width = 0;
    out->bytes = decode(s, n, &first);
    base(first, out, &n_shown);
    before = first;
    while (out->bytes < n && first >= 0x20) {
        size_t used = decode(s + out->bytes, n - out->bytes, &cp);
        int width = width_of(cp);

        if (width == 0) {
            if (n_shown == 1 && compose(out->shown, cp))
                ;
            else if (n_shown > 0 && n_shown < CLUSTER_CHARS && !joined &&
                     (is_mark(cp) || is_jamo(cp)))
                out->shown[n_shown++] = (wchar_t)cp;
            joined = joined || cp == JOINER;
        } else if (is_regional(cp) && before == first && is_regional(first)) {
            out->shown[n_shown++] = (wchar_t)cp;
            out->width += width;
        } else if (!is_skin_tone(cp) && !(before == JOINER && width == 2)) {
            break;
        }
        before = cp;
        out->bytes += used;
        if (is_regional(cp))
            first = 0x20; /* a flag has two, never three */
    }
    out->shown[n_shown] = 0;
}

int cluster_width(const char *s, size_t n)
{
    struct cluster c;
    int width = 0;

    for (size_t at = 0; at < n; at += c.bytes) {
        cluster_next(s + at, n - at, &c);
        width += c.width;
    }
    return width;
}

size_t cluster_fit(const char *s, size_t n, int width)
{
    struct cluster c;
    size_t at = 0;

    while (at < n) {
        cluster_next(s + at, n - at, &c);
        if (c.width > width)
            break;
        width -= c.width;
        at += c.bytes;
    }
    return at;
}
