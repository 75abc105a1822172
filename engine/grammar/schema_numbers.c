/*
 * Numbers between two bounds, as digits.
 *
 *     from 7 to 238        7-9 | 1-9 0-9 | 1 0-9 0-9 | 2 (0-2 0-9 | 3 0-8)
 *     from 1.25 to 3.5     1 . (2 (5-9 0-9*) | 3-9 0-9*) | 2 (. 0-9+)? | 3 (. (0-4 0-9* | 5))?
 *
 * Numbers of each length are a range of their own.  In a range of one length, the first digit is
 * that of the lower bound, that of the upper bound, or one between them with any digits after it.
 * The digits after the point follow the same rule, where an end counts as zeros.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/schema_internal.h"

#define DIGITS NUMBER_DIGITS
#define LARGEST ((int64_t)9999999999999999)
#define EXPONENT_MOST 1000 /* a number of 64 digits with a greater one has too many */

/* Numbers from 0 on. */
struct range {
    struct number_bound least, most;
    unsigned n_part; /* digits after the point, at most */
};

/* ---- whole digits ---- */

/* n digits from a to b, which are as long. */
static void write_between(struct json *out, const char *a, const char *b, size_t n)
{
    static const char zeros[] = "0000000000000000", nines[] = "9999999999999999";

    if (n == 0)
        return;
    if (memcmp(a, zeros, n) == 0 && memcmp(b, nines, n) == 0) {
        json_print(out, " [0-9]{%zu}", n);
        return;
    }
    if (memcmp(a + 1, zeros, n - 1) == 0 && memcmp(b + 1, nines, n - 1) == 0) {
        json_print(out, " [%c-%c]", *a, *b);
        write_between(out, a + 1, b + 1, n - 1);
        return;
    }
    if (*a == *b) {
        json_print(out, " \"%c\"", *a);
        write_between(out, a + 1, b + 1, n - 1);
        return;
    }
    json_print(out, " (\"%c\"", *a);
    write_between(out, a + 1, nines, n - 1);
    if (*a + 1 < *b)
        json_print(out, " | [%c-%c] [0-9]{%zu}", *a + 1, *b - 1, n - 1);
    json_print(out, " | \"%c\"", *b);
    write_between(out, zeros, b + 1, n - 1);
    json_print(out, ")");
}

/* Alternatives for 0 <= from <= to. */
static void write_range(struct json *out, int64_t from, int64_t to)
{
    int64_t low = 0, high = 9;
    const char *bar = "";

    for (size_t n = 1; n <= DIGITS; n++, low = high + 1, high = high * 10 + 9) {
        int64_t a = from > low ? from : low, b = to < high ? to : high;
        char x[DIGITS + 1], y[DIGITS + 1];

        if (a > b)
            continue;
        for (size_t i = n; i-- > 0; a /= 10, b /= 10) {
            x[i] = (char)('0' + a % 10);
            y[i] = (char)('0' + b % 10);
        }
        json_print(out, "%s", bar);
        write_between(out, x, y, n);
        bar = " |";
    }
}

/* ---- digits after the point ---- */

/* The text of a part, or an end that counts as zero. */
static char digit(const char *part)
{
    return *part != '\0' ? *part : '0';
}

static const char *rest(const char *part)
{
    return *part != '\0' ? part + 1 : part;
}

static bool may_end(const struct range *r, const char *low, const char *high)
{
    if (low != NULL && (*low != '\0' || r->least.is_open))
        return false;
    return high == NULL || *high != '\0' || !r->most.is_open;
}

/*
 * Write n digits or fewer with low <= digits <= high, where NULL means any.  is_first: a point
 * comes before the first of them.  Returns whether there are such digits.
 */
static bool write_part(struct json *out, const struct range *r, const char *low,
                       const char *high, unsigned n, bool is_first);

/* Add "before (inner)" to the alternatives in *out if inner has any, and release inner.  Returns
 * whether it has. */
static bool add_choice(struct json *out, bool is_later, const char *before, struct json *inner,
                       bool has_any)
{
    if (has_any) {
        json_print(out, "%s%s(", is_later ? " | " : "", before);
        json_raw(out, inner->buf, inner->used);
        json_print(out, ")");
    }
    out->failed = out->failed || inner->failed;
    json_release(inner);
    return has_any;
}

/* Alternatives with at least one digit. */
static bool write_step(struct json *out, const struct range *r, const char *low,
                       const char *high, unsigned n)
{
    char a = low != NULL ? digit(low) : '0', b = high != NULL ? digit(high) : '9';
    bool is_any = false;

    for (char d = a; d <= b; d++) {
        const char *l = low != NULL && d == a ? rest(low) : NULL;
        const char *h = high != NULL && d == b ? rest(high) : NULL;
        struct json inner;
        char before[8];

        if (l == NULL && h == NULL) { /* all up to the upper bound are alike */
            char last = high != NULL ? (char)(b - 1) : b;

            json_print(out, "%s[%c-%c] [0-9]{0,%u}", is_any ? " | " : "", d, last, n - 1);
            is_any = true;
            d = last;
            continue;
        }
        json_start(&inner);
        snprintf(before, sizeof before, "\"%c\" ", d);
        is_any |= add_choice(out, is_any, before, &inner,
                             write_part(&inner, r, l, h, n - 1, false));
    }
    return is_any;
}

static bool write_part(struct json *out, const struct range *r, const char *low,
                       const char *high, unsigned n, bool is_first)
{
    struct json inner;
    bool is_any, has_step;

    if (low != NULL && *low == '\0' && !r->least.is_open)
        low = NULL; /* any digits are enough */
    if (low == NULL && high == NULL && n > 0) {
        json_print(out, is_first ? "(\".\" [0-9]{1,%u})?" : "[0-9]{0,%u}", n);
        return true;
    }
    is_any = may_end(r, low, high);
    if (is_any)
        json_print(out, "\"\"");
    if (n == 0 || (high != NULL && *high == '\0'))
        return is_any;
    json_start(&inner);
    has_step = write_step(&inner, r, low, high, n);
    return add_choice(out, is_any, is_first ? "\".\" " : "", &inner, has_step) || is_any;
}

/* Numbers whose digits before the point are from a to b. */
static bool write_wholes(struct json *out, const struct range *r, int64_t a, int64_t b,
                         const char *low, const char *high, bool is_any)
{
    struct json inner;

    json_start(&inner);
    if (a <= b && write_part(&inner, r, low, high, r->n_part, true)) {
        json_print(out, "%s(", is_any ? " | " : " ");
        write_range(out, a, b);
        json_print(out, ") (");
        json_raw(out, inner.buf, inner.used);
        json_print(out, ")");
        is_any = true;
    }
    out->failed = out->failed || inner.failed;
    json_release(&inner);
    return is_any;
}

/* Write alternatives after those that are there, if is_any.  Returns whether there are any. */
static bool write_numbers(struct json *out, const struct range *r, bool is_any)
{
    int64_t a = r->least.whole, b = r->most.whole;
    const char *low = r->least.is_free ? NULL : r->least.part;
    const char *high = r->most.is_free ? NULL : r->most.part;

    if (a == b)
        return write_wholes(out, r, a, b, low, high, is_any);
    is_any = write_wholes(out, r, a, a, low, NULL, is_any);
    if (r->most.is_free)
        return write_wholes(out, r, a + 1, b, NULL, NULL, is_any);
    is_any = write_wholes(out, r, a + 1, b - 1, NULL, NULL, is_any);
    return write_wholes(out, r, b, b, NULL, high, is_any);
}

/* ---- bounds ---- */

/* Read a number.  -1: it has too many digits. */
int schema_decimal(const char *text, struct number_bound *out)
{
    char digits[64];
    int n = 0, point = 0;
    long exponent = 0;
    bool has_point = false, is_negative = *text == '-';

    *out = (struct number_bound){ .is_negative = false };
    for (text += is_negative;  *text != '\0' && *text != 'e' && *text != 'E'; text++) {
        if (*text == '.') {
            has_point = true;
            continue;
        }
        point += !has_point;
        if (n == 0 && *text == '0')
            point--; /* a zero before all others */
        else if (n < (int)sizeof digits)
            digits[n++] = *text;
        else
            return -1;
    }
    if (*text != '\0')
        exponent = strtol(text + 1, NULL, 10);
    while (n > 0 && digits[n - 1] == '0')
        n--;
    if (n == 0)
        return 0;
    if (exponent < -EXPONENT_MOST || exponent > EXPONENT_MOST)
        return -1;
    out->is_negative = is_negative;
    point += (int)exponent;
    if (point > DIGITS || n - point > DIGITS || point < -DIGITS)
        return -1;
    for (int i = 0; i < point; i++)
        out->whole = out->whole * 10 + (i < n ? digits[i] - '0' : 0);
    for (int i = point, k = 0; i < n; i++)
        out->part[k++] = i < 0 ? '0' : digits[i];
    return 0;
}

/* Below 0, 0, or above it: the order of two bounds. */
int schema_compare(const struct number_bound *a, const struct number_bound *b)
{
    int sign = a->is_negative ? -1 : 1, part = strcmp(a->part, b->part);

    if (a->is_negative != b->is_negative)
        return sign;
    if (a->whole != b->whole)
        return a->whole < b->whole ? -sign : sign;
    return part < 0 ? -sign : part > 0 ? sign : 0;
}

/* Narrow a bound by a keyword. */
static int take_bound(struct schema *s, const struct json_node *n, const char *key, bool is_open,
                      bool is_least, struct number_bound *bound)
{
    const struct json_node *m = json_member(n, key);
    struct number_bound v;
    int order;

    if (m == NULL)
        return 0;
    if (m->kind != JSON_IS_NUMBER)
        return schema_wrong(s, key, ERR_ARGUMENT, "is not a number");
    if (schema_decimal(m->text, &v) != 0)
        return schema_wrong(s, key, ERR_UNSUPPORTED,
                            "has more than 16 digits before or after the point");
    v.is_open = is_open;
    order = bound->is_free ? 1 : is_least ? schema_compare(&v, bound) : schema_compare(bound, &v);
    if (order > 0 || (order == 0 && is_open))
        *bound = v;
    return 0;
}

int schema_bounds(struct schema *s, const struct json_node *n, struct number_bound *least,
                  struct number_bound *most)
{
    *least = (struct number_bound){ .is_free = true, .is_negative = true, .whole = LARGEST };
    *most = (struct number_bound){ .is_free = true, .whole = LARGEST };
    if (take_bound(s, n, "minimum", false, true, least) != 0 ||
        take_bound(s, n, "exclusiveMinimum", true, true, least) != 0 ||
        take_bound(s, n, "maximum", false, false, most) != 0 ||
        take_bound(s, n, "exclusiveMaximum", true, false, most) != 0)
        return -1;
    return 0;
}

/* The nearest whole number inside a bound. */
static int64_t whole_of(const struct number_bound *b, bool is_least)
{
    bool is_between = b->part[0] != '\0';
    int64_t v = b->is_negative ? -b->whole : b->whole;

    /* -1.5 as a lower bound is -1, and 1.5 is 2 */
    if (is_between)
        return is_least ? v + !b->is_negative : v - b->is_negative;
    return b->is_open ? (is_least ? v + 1 : v - 1) : v;
}

int schema_integer(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    struct number_bound low, high;
    int64_t least, most;

    if (schema_bounds(s, n, &low, &high) != 0)
        return -1;
    least = whole_of(&low, true);
    most = whole_of(&high, false);
    if (least > most || least > LARGEST || most < -LARGEST)
        return schema_wrong(s, "maximum", ERR_ARGUMENT, "leaves no whole number");
    if (json_member(n, "multipleOf") != NULL)
        return schema_multiples(s, n, &low, &high, true, rule);
    *rule = schema_begin(s);
    if (low.is_free && high.is_free) {
        schema_raw(s, "@-integer\n");
        return 0;
    }
    if (least < 0) {
        json_print(s->out, "\"-\" (");
        write_range(s->out, most < 0 ? -most : 1, -least);
        json_print(s->out, ")%s", most >= 0 ? " |" : "");
    }
    if (most >= 0)
        write_range(s->out, least > 0 ? least : 0, most);
    json_print(s->out, "\n");
    return 0;
}

/* "-" and the numbers from `least` on, without their sign: the greater one is the lower bound. */
static bool write_negative(struct json *out, const struct number_bound *least,
                           const struct number_bound *most)
{
    struct range r = { .least = *most, .most = *least, .n_part = DIGITS };
    struct json inner;
    bool is_any;

    if (!most->is_negative) /* without -0 */
        r.least = (struct number_bound){ .is_open = true };
    json_start(&inner);
    is_any = write_numbers(&inner, &r, false);
    if (is_any) {
        json_print(out, "\"-\" (");
        json_raw(out, inner.buf, inner.used);
        json_print(out, ")");
    }
    out->failed = out->failed || inner.failed;
    json_release(&inner);
    return is_any;
}

int schema_number(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    struct range r = { .n_part = DIGITS };
    struct number_bound least, most;
    bool is_any = false;

    if (schema_bounds(s, n, &least, &most) != 0)
        return -1;
    if (json_member(n, "multipleOf") != NULL)
        return schema_multiples(s, n, &least, &most, false, rule);
    *rule = schema_begin(s);
    if (least.is_free && most.is_free) {
        schema_raw(s, "@-number\n");
        return 0;
    }
    if (schema_compare(&least, &most) <= 0 && least.is_negative)
        is_any = write_negative(s->out, &least, &most);
    r.least = least.is_negative ? (struct number_bound){ .whole = 0 } : least;
    r.most = most;
    if (schema_compare(&least, &most) <= 0 && !most.is_negative)
        is_any = write_numbers(s->out, &r, is_any);
    json_print(s->out, "\n");
    return is_any ? 0 : schema_wrong(s, "maximum", ERR_ARGUMENT, "leaves no number");
}
