/*
 * Classes and case of characters, as in Python's str.
 */
#include "config.h"

#include <string.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

/* clang-format off */
/* Characters whose upper or title case has more characters than utf8proc returns. */
static const struct special {
    uint32_t cp, upper[3], title[3];
} special[] = {
    { 0xdf, { 0x53, 0x53 }, { 0x53, 0x73 } },
    { 0x149, { 0x2bc, 0x4e }, { 0x2bc, 0x4e } },
    { 0x1f0, { 0x4a, 0x30c }, { 0x4a, 0x30c } },
    { 0x390, { 0x399, 0x308, 0x301 }, { 0x399, 0x308, 0x301 } },
    { 0x3b0, { 0x3a5, 0x308, 0x301 }, { 0x3a5, 0x308, 0x301 } },
    { 0x587, { 0x535, 0x552 }, { 0x535, 0x582 } },
    { 0x1e96, { 0x48, 0x331 }, { 0x48, 0x331 } },
    { 0x1e97, { 0x54, 0x308 }, { 0x54, 0x308 } },
    { 0x1e98, { 0x57, 0x30a }, { 0x57, 0x30a } },
    { 0x1e99, { 0x59, 0x30a }, { 0x59, 0x30a } },
    { 0x1e9a, { 0x41, 0x2be }, { 0x41, 0x2be } },
    { 0x1f50, { 0x3a5, 0x313 }, { 0x3a5, 0x313 } },
    { 0x1f52, { 0x3a5, 0x313, 0x300 }, { 0x3a5, 0x313, 0x300 } },
    { 0x1f54, { 0x3a5, 0x313, 0x301 }, { 0x3a5, 0x313, 0x301 } },
    { 0x1f56, { 0x3a5, 0x313, 0x342 }, { 0x3a5, 0x313, 0x342 } },
    { 0x1fb2, { 0x1fba, 0x399 }, { 0x1fba, 0x345 } },
    { 0x1fb3, { 0x391, 0x399 }, { 0x1fbc } },
    { 0x1fb4, { 0x386, 0x399 }, { 0x386, 0x345 } },
    { 0x1fb6, { 0x391, 0x342 }, { 0x391, 0x342 } },
    { 0x1fb7, { 0x391, 0x342, 0x399 }, { 0x391, 0x342, 0x345 } },
    { 0x1fbc, { 0x391, 0x399 }, { 0x1fbc } },
    { 0x1fc2, { 0x1fca, 0x399 }, { 0x1fca, 0x345 } },
    { 0x1fc3, { 0x397, 0x399 }, { 0x1fcc } },
    { 0x1fc4, { 0x389, 0x399 }, { 0x389, 0x345 } },
    { 0x1fc6, { 0x397, 0x342 }, { 0x397, 0x342 } },
    { 0x1fc7, { 0x397, 0x342, 0x399 }, { 0x397, 0x342, 0x345 } },
    { 0x1fcc, { 0x397, 0x399 }, { 0x1fcc } },
    { 0x1fd2, { 0x399, 0x308, 0x300 }, { 0x399, 0x308, 0x300 } },
    { 0x1fd3, { 0x399, 0x308, 0x301 }, { 0x399, 0x308, 0x301 } },
    { 0x1fd6, { 0x399, 0x342 }, { 0x399, 0x342 } },
    { 0x1fd7, { 0x399, 0x308, 0x342 }, { 0x399, 0x308, 0x342 } },
    { 0x1fe2, { 0x3a5, 0x308, 0x300 }, { 0x3a5, 0x308, 0x300 } },
    { 0x1fe3, { 0x3a5, 0x308, 0x301 }, { 0x3a5, 0x308, 0x301 } },
    { 0x1fe4, { 0x3a1, 0x313 }, { 0x3a1, 0x313 } },
    { 0x1fe6, { 0x3a5, 0x342 }, { 0x3a5, 0x342 } },
    { 0x1fe7, { 0x3a5, 0x308, 0x342 }, { 0x3a5, 0x308, 0x342 } },
    { 0x1ff2, { 0x1ffa, 0x399 }, { 0x1ffa, 0x345 } },
    { 0x1ff3, { 0x3a9, 0x399 }, { 0x1ffc } },
    { 0x1ff4, { 0x38f, 0x399 }, { 0x38f, 0x345 } },
    { 0x1ff6, { 0x3a9, 0x342 }, { 0x3a9, 0x342 } },
    { 0x1ff7, { 0x3a9, 0x342, 0x399 }, { 0x3a9, 0x342, 0x345 } },
    { 0x1ffc, { 0x3a9, 0x399 }, { 0x1ffc } },
    { 0xfb00, { 0x46, 0x46 }, { 0x46, 0x66 } },
    { 0xfb01, { 0x46, 0x49 }, { 0x46, 0x69 } },
    { 0xfb02, { 0x46, 0x4c }, { 0x46, 0x6c } },
    { 0xfb03, { 0x46, 0x46, 0x49 }, { 0x46, 0x66, 0x69 } },
    { 0xfb04, { 0x46, 0x46, 0x4c }, { 0x46, 0x66, 0x6c } },
    { 0xfb05, { 0x53, 0x54 }, { 0x53, 0x74 } },
    { 0xfb06, { 0x53, 0x54 }, { 0x53, 0x74 } },
    { 0xfb13, { 0x544, 0x546 }, { 0x544, 0x576 } },
    { 0xfb14, { 0x544, 0x535 }, { 0x544, 0x565 } },
    { 0xfb15, { 0x544, 0x53b }, { 0x544, 0x56b } },
    { 0xfb16, { 0x54e, 0x546 }, { 0x54e, 0x576 } },
    { 0xfb17, { 0x544, 0x53d }, { 0x544, 0x56d } },
};
/* clang-format on */

static utf8proc_category_t category(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp);
}

bool jv_is_space(uint32_t cp)
{
    return (cp >= 0x1c && cp <= 0x1f) || utf8_is_white(cp);
}

static bool is_alpha(uint32_t cp)
{
    utf8proc_category_t c = category(cp);

    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

static bool is_numeric(uint32_t cp)
{
    utf8proc_category_t c = category(cp);

    return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

static bool is_decimal(uint32_t cp)
{
    return category(cp) == UTF8PROC_CATEGORY_ND;
}

/* Decimal digits, and characters that represent one: superscripts, circled digits. */
static bool is_digit(uint32_t cp)
{
    static const uint32_t ranges[][2] = {
        { 0xb2, 0xb3 },       { 0xb9, 0xb9 },       { 0x1369, 0x1371 },   { 0x19da, 0x19da },
        { 0x2070, 0x2070 },   { 0x2074, 0x2079 },   { 0x2080, 0x2089 },   { 0x2460, 0x2468 },
        { 0x2474, 0x247c },   { 0x2488, 0x2490 },   { 0x24ea, 0x24ea },   { 0x24f5, 0x24fd },
        { 0x24ff, 0x24ff },   { 0x2776, 0x277e },   { 0x2780, 0x2788 },   { 0x278a, 0x2792 },
        { 0x10a40, 0x10a43 }, { 0x10e60, 0x10e68 }, { 0x11052, 0x1105a }, { 0x1f100, 0x1f10a },
    };

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (cp >= ranges[i][0] && cp <= ranges[i][1])
            return true;
    }
    return is_decimal(cp);
}

bool jv_is_word(uint32_t cp)
{
    if (cp < 0x80)
        return (cp >= '0' && cp <= '9') || ((cp | 0x20) >= 'a' && (cp | 0x20) <= 'z') ||
               cp == '_';
    return cp < UTF8_SHORT && (is_alpha(cp) || is_numeric(cp));
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

static uint32_t to_upper(uint32_t cp)
{
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp);
}

static uint32_t to_lower(uint32_t cp)
{
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

/* Upper case letters, and the few symbols that have case. */
static bool is_upper(uint32_t cp)
{
    return category(cp) == UTF8PROC_CATEGORY_LU || (cp >= 0x2160 && cp <= 0x216f) ||
           (cp >= 0x24b6 && cp <= 0x24cf) || (cp >= 0x1f130 && cp <= 0x1f149) ||
           (cp >= 0x1f150 && cp <= 0x1f169) || (cp >= 0x1f170 && cp <= 0x1f189);
}

static bool is_lower(uint32_t cp)
{
    return category(cp) == UTF8PROC_CATEGORY_LL || cp == 0xaa || cp == 0xba ||
           (cp >= 0x2b0 && cp <= 0x2b8) || cp == 0x2c0 || cp == 0x2c1 ||
           (cp >= 0x2e0 && cp <= 0x2e4) || cp == 0x345 || cp == 0x37a ||
           (cp >= 0x1d2c && cp <= 0x1d6a) || cp == 0x1d78 || (cp >= 0x1d9b && cp <= 0x1dbf) ||
           cp == 0x2071 || cp == 0x207f || (cp >= 0x2090 && cp <= 0x209c) ||
           (cp >= 0x2170 && cp <= 0x217f) || (cp >= 0x24d0 && cp <= 0x24e9) || cp == 0x2c7c ||
           cp == 0x2c7d || cp == 0xa69c || cp == 0xa69d || cp == 0xa770 || cp == 0xa7f8 ||
           cp == 0xa7f9 || (cp >= 0xab5c && cp <= 0xab5f);
}

static bool is_cased(uint32_t cp)
{
    return cp < UTF8_SHORT &&
           (is_upper(cp) || is_lower(cp) || category(cp) == UTF8PROC_CATEGORY_LT);
}

/* Characters between letters that do not end a word for the rule of the final sigma. */
static bool is_ignorable(uint32_t cp)
{
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default:
        return cp == '\'' || cp == '.' || cp == ':' || cp == 0xb7 || cp == 0x387 ||
               cp == 0x55f || cp == 0x5f4 || cp == 0x2018 || cp == 0x2019 || cp == 0x2024 ||
               cp == 0x2027 || cp == 0xfe13 || cp == 0xfe52 || cp == 0xfe55 || cp == 0xff07 ||
               cp == 0xff0e || cp == 0xff1a;
    }
}

/* A capital sigma at the end of a word has a special small form. */
static uint32_t small_sigma(struct vm *vm, const struct str *s, size_t at)
{
    bool before = false, after = false;
    uint32_t cp;

    for (size_t i = at; i > 0 && !before;) {
        size_t from = i - 1;

        while (from > 0 && ((unsigned char)s->p[from] & 0xc0u) == 0x80)
            from--;
        jv_charge(vm, 1);
        (void)utf8_decode(s->p + from, i - from, &cp);
        i = from;
        if (cp >= UTF8_SHORT)
            break;
        if (!is_ignorable(cp)) {
            before = is_cased(cp);
            break;
        }
    }
    for (size_t i = at + 2; i < s->len;) {
        i += utf8_decode(s->p + i, s->len - i, &cp);
        jv_charge(vm, 1);
        if (cp >= UTF8_SHORT)
            break;
        if (!is_ignorable(cp)) {
            after = is_cased(cp);
            break;
        }
    }
    return before && !after ? 0x3c2 : 0x3c3;
}

/* Store the other case of a character: up to three characters, the rest of out is 0. */
static void convert(uint32_t cp, enum str_case c, uint32_t out[3])
{
    out[0] = cp;
    out[1] = out[2] = 0;
    if (cp >= 0x1f80 && cp <= 0x1faf) {
        static const uint32_t plain[3] = { 0x1f08, 0x1f28, 0x1f68 };

        if (c == CASE_LOWER) {
            out[0] = cp & ~8u;
        } else if (c == CASE_TITLE) {
            out[0] = cp | 8u;
        } else {
            out[0] = plain[(cp - 0x1f80) / 16] + (cp & 7);
            out[1] = 0x399;
        }
        return;
    }
    if (c == CASE_LOWER) {
        out[0] = cp == 0x130 ? 'i' : to_lower(cp);
        out[1] = cp == 0x130 ? 0x307 : 0;
        return;
    }
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (special[i].cp == cp) {
            memcpy(out, c == CASE_TITLE ? special[i].title : special[i].upper,
                   3 * sizeof out[0]);
            return;
        }
    }
    out[0] = c == CASE_TITLE ? (uint32_t)utf8proc_totitle((utf8proc_int32_t)cp) : to_upper(cp);
}

static void write_converted(struct vm *vm, const struct str *s, size_t at, uint32_t cp,
                            enum str_case c, uint32_t source)
{
    uint32_t to[3];

    jv_charge(vm, 4);
    if (cp == 0x3a3 && c == CASE_LOWER)
        to[0] = small_sigma(vm, s, at), to[1] = to[2] = 0;
    else
        convert(cp, c, to);
    for (int i = 0; i < 3 && (i == 0 || to[i] != 0); i++)
        jv_write_cp(vm, to[i], source);
}

/* Returns the case of a character, given the one before. */
static enum str_case case_here(enum str_case c, uint32_t cp, bool first, bool after_cased)
{
    switch (c) {
    case CASE_TITLE: return after_cased ? CASE_LOWER : CASE_TITLE;
    case CASE_CAPITALIZE: return first ? CASE_TITLE : CASE_LOWER;
    case CASE_SWAP: return is_upper(cp) ? CASE_LOWER : CASE_UPPER;
    default: return c;
    }
}

static char ascii_case(char c, enum str_case to)
{
    bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';

    return (char)((to == CASE_LOWER && upper) || (to != CASE_LOWER && lower) ? c ^ 0x20 : c);
}

void jv_write_case(struct vm *vm, const struct str *s, size_t from, size_t to, enum str_case c)
{
    bool first = true, after_cased = false;
    struct piece piece;

    for (size_t at = from; jv_piece(s, &at, to, &piece);) {
        for (size_t i = 0; i < piece.len;) {
            char buf[256];
            size_t n = 0, len;
            uint32_t cp;

            while (i < piece.len && n < sizeof buf && (unsigned char)piece.p[i] < 0x80) {
                char ch = piece.p[i++];

                buf[n++] = ascii_case(ch, case_here(c, (unsigned char)ch, first, after_cased));
                after_cased = ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z');
                first = false;
            }
            jv_write(vm, buf, n, piece.source);
            if (i == piece.len || n == sizeof buf)
                continue;
            len = utf8_decode(piece.p + i, piece.len - i, &cp);
            if (cp >= UTF8_SHORT)
                jv_write(vm, piece.p + i, len, piece.source);
            else
                write_converted(vm, s, (size_t)(piece.p + i - s->p), cp,
                                case_here(c, cp, first, after_cased), piece.source);
            after_cased = is_cased(cp);
            first = false;
            i += len;
        }
    }
}

/* ---- predicates ---- */

enum predicate {
    IS_ALNUM,
    IS_ALPHA,
    IS_ASCII,
    IS_DECIMAL,
    IS_DIGIT,
    IS_LOWER,
    IS_NUMERIC,
    IS_PRINTABLE,
    IS_SPACE,
    IS_TITLE,
    IS_UPPER,
    N_PREDICATES
};

static bool holds(enum predicate p, uint32_t cp)
{
    switch (p) {
    case IS_ALNUM: return is_alpha(cp) || is_numeric(cp) || is_digit(cp);
    case IS_ALPHA: return is_alpha(cp);
    case IS_ASCII: return cp < 0x80;
    case IS_DECIMAL: return is_decimal(cp);
    case IS_DIGIT: return is_digit(cp);
    case IS_NUMERIC: return is_numeric(cp);
    case IS_PRINTABLE: return jv_is_printable(cp);
    default: return jv_is_space(cp);
    }
}

/* isupper, islower, istitle: all cased characters match, and there is at least one. */
static bool cased_right(struct vm *vm, const struct str *s, enum predicate p)
{
    bool any = false, after_cased = false;
    uint32_t cp;

    for (size_t i = 0; i < s->len;) {
        bool small, large;

        i += utf8_decode(s->p + i, s->len - i, &cp);
        jv_charge(vm, 1);
        if (cp >= UTF8_SHORT)
            continue;
        small = is_lower(cp);
        large = is_upper(cp) || category(cp) == UTF8PROC_CATEGORY_LT;
        if ((p == IS_UPPER && (small || category(cp) == UTF8PROC_CATEGORY_LT)) ||
            (p == IS_LOWER && large) ||
            (p == IS_TITLE && ((large && after_cased) || (small && !after_cased))))
            return false;
        after_cased = small || large;
        any |= after_cased;
    }
    return any;
}

bool jv_all(struct vm *vm, const struct str *s, const char *predicate)
{
    static const char *const names[N_PREDICATES] = {
        [IS_ALNUM] = "isalnum",     [IS_ALPHA] = "isalpha",         [IS_ASCII] = "isascii",
        [IS_DECIMAL] = "isdecimal", [IS_DIGIT] = "isdigit",         [IS_LOWER] = "islower",
        [IS_NUMERIC] = "isnumeric", [IS_PRINTABLE] = "isprintable", [IS_SPACE] = "isspace",
        [IS_TITLE] = "istitle",     [IS_UPPER] = "isupper",
    };
    enum predicate p = 0;
    uint32_t cp;

    while (p < N_PREDICATES - 1 && strcmp(names[p], predicate) != 0)
        p++;
    if (p == IS_UPPER || p == IS_LOWER || p == IS_TITLE)
        return cased_right(vm, s, p);
    for (size_t i = 0; i < s->len;) {
        i += utf8_decode(s->p + i, s->len - i, &cp);
        jv_charge(vm, 1);
        if (cp >= UTF8_SHORT || !holds(p, cp))
            return false;
    }
    return s->len > 0 || p == IS_ASCII || p == IS_PRINTABLE;
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
