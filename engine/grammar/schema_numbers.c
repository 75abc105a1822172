/*
 * Whole numbers between two bounds, as digits.
 *
 *     from 7 to 238      7-9 | 1-9 0-9 | 1 0-9 0-9 | 2 (0-2 0-9 | 3 0-8)
 *
 * Numbers of each length are a range of their own.  In a range of one length, the first digit is
 * that of the lower bound, that of the upper bound, or one between them with any digits after it.
 */
#include "config.h"

#include <string.h>

#include "engine/grammar/schema_internal.h"

#define DIGITS 16
#define LARGEST ((int64_t)9999999999999999)

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
    if (n == 1) {
        json_print(out, " [%c-%c]", *a, *b);
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

/* Narrow a bound by a keyword: raise the least number, or lower the greatest one.  `step` is added
 * to its value. */
static int take_bound(struct schema *s, const struct json_node *n, const char *key, int step,
                      bool is_least, int64_t *bound)
{
    const struct json_node *m = json_member(n, key);
    int64_t v;

    if (m == NULL)
        return 0;
    if (!json_as_int(m, &v) || v < -LARGEST || v > LARGEST)
        return schema_wrong(s, key, ERR_UNSUPPORTED,
                            "is not a whole number of at most 16 digits");
    v += step;
    if (is_least ? v > *bound : v < *bound)
        *bound = v;
    return 0;
}

int schema_integer(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    int64_t least = -LARGEST, most = LARGEST;

    if (take_bound(s, n, "minimum", 0, true, &least) != 0 ||
        take_bound(s, n, "exclusiveMinimum", 1, true, &least) != 0 ||
        take_bound(s, n, "maximum", 0, false, &most) != 0 ||
        take_bound(s, n, "exclusiveMaximum", -1, false, &most) != 0)
        return -1;
    if (least > most)
        return schema_wrong(s, "maximum", ERR_ARGUMENT, "leaves no whole number");
    *rule = schema_begin(s);
    if (least == -LARGEST && most == LARGEST) {
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
