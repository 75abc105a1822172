/*
 * White space and case of characters, as in Python's str.
 */
#include "config.h"

#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

static utf8proc_category_t category(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp);
}

bool jv_is_space(uint32_t cp)
{
    return (cp >= 0x1c && cp <= 0x1f) || utf8_is_white(cp);
}

bool jv_is_word(uint32_t cp)
{
    utf8proc_category_t c;

    if (cp < 0x80)
        return (cp >= '0' && cp <= '9') || ((cp | 0x20) >= 'a' && (cp | 0x20) <= 'z') ||
               cp == '_';
    if (cp >= UTF8_SHORT)
        return false;
    c = category(cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) ||
           (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO);
}

bool jv_is_printable(uint32_t cp)
{
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return cp == ' ';
    default: return true;
    }
}

/* ---- case ---- */

/* Characters that are the same in upper and lower case, and do not count as letters of a word. */
static bool has_no_case(uint32_t cp)
{
    utf8proc_category_t c = category(cp);

    return utf8proc_toupper((utf8proc_int32_t)cp) == (utf8proc_int32_t)cp &&
           utf8proc_tolower((utf8proc_int32_t)cp) == (utf8proc_int32_t)cp &&
           (c < UTF8PROC_CATEGORY_LU || c > UTF8PROC_CATEGORY_LM) && cp != 0xaa && cp != 0xba &&
           (cp < 0x1f130 || cp > 0x1f189);
}

/*
 * Returns the other case of a character outside ASCII where one character becomes one.  Python's
 * other rules are refused: letters that become two, title case, a capital sigma at the end of a
 * word.  Templates change the case of roles and of the types of parameters.
 */
static uint32_t other_case(struct vm *vm, uint32_t cp, enum str_case c)
{
    uint32_t upper = (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp);

    if (has_no_case(cp))
        return cp;
    if (c == CASE_LOWER && cp != 0x130 && cp != 0x3a3)
        return (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
    if (c == CASE_UPPER && cp != 0xdf && category(upper) != UTF8PROC_CATEGORY_LT &&
        (upper != cp || category(cp) != UTF8PROC_CATEGORY_LL))
        return upper;
    jv_fail(vm, ERR_UNSUPPORTED, "the case of U+%04X cannot be changed", cp);
}

static char ascii_case(char c, enum str_case to, bool first, bool after_letter)
{
    bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';

    if (to == CASE_TITLE)
        to = after_letter ? CASE_LOWER : CASE_UPPER;
    else if (to == CASE_CAPITALIZE)
        to = first ? CASE_UPPER : CASE_LOWER;
    return (char)((to == CASE_LOWER && upper) || (to == CASE_UPPER && lower) ? c ^ 0x20 : c);
}

void jv_write_case(struct vm *vm, const struct str *s, enum str_case c)
{
    bool first = true, after_letter = false;
    struct piece piece;

    for (size_t at = 0; jv_piece(s, &at, s->len, &piece);) {
        for (size_t i = 0; i < piece.len;) {
            char buf[256];
            size_t n = 0, len;
            uint32_t cp;

            while (i < piece.len && n < sizeof buf && (unsigned char)piece.p[i] < 0x80) {
                char ch = piece.p[i++];

                buf[n++] = ascii_case(ch, c, first, after_letter);
                after_letter = ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z');
                first = false;
            }
            jv_write(vm, buf, n, piece.source);
            if (i == piece.len || n == sizeof buf)
                continue;
            len = utf8_decode(piece.p + i, piece.len - i, &cp);
            jv_charge(vm, 4);
            if (cp >= UTF8_SHORT)
                jv_write(vm, piece.p + i, len, piece.source);
            else
                jv_write_cp(vm, other_case(vm, cp, c), piece.source);
            first = after_letter = false;
            i += len;
        }
    }
}

/* ---- stripping ---- */

static bool is_one_of(struct vm *vm, uint32_t cp, const struct str *chars)
{
    if (chars == NULL)
        return cp < UTF8_SHORT && jv_is_space(cp);
    jv_charge(vm, 1 + chars->len / 4);
    for (size_t i = 0; i < chars->len;) {
        uint32_t one;

        i += utf8_decode(chars->p + i, chars->len - i, &one);
        if (one == cp)
            return true;
    }
    return false;
}

val jv_strip(struct vm *vm, const struct str *s, const struct str *chars, bool left, bool right)
{
    size_t from = 0, to = s->len;
    uint32_t cp;

    while (left && from < to) {
        size_t len = utf8_decode(s->p + from, to - from, &cp);

        if (!is_one_of(vm, cp, chars))
            break;
        from += len;
    }
    jv_charge_bytes(vm, from);
    while (right && to > from) {
        size_t at = to - 1;

        while (at > from && ((unsigned char)s->p[at] & 0xc0u) == 0x80)
            at--;
        (void)utf8_decode(s->p + at, to - at, &cp);
        if (!is_one_of(vm, cp, chars))
            break;
        to = at;
    }
    jv_charge_bytes(vm, s->len - to);
    return jv_cut(vm, s, from, to);
}
