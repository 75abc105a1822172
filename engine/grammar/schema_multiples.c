/*
 * Multiples of a number.
 *
 *     of 3        0 | [1-9] and a rule for each remainder of the digits so far
 *     of 0.25     the same for the number times 100, with at most two digits after the point
 *
 * Between two bounds they are listed, if they are few.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/grammar/schema_internal.h"

#define LISTED_MOST 256
#define RULES_MOST  512
#define PART_MOST   6
#define WHOLE_MOST  ((int64_t)1000000000)

/* Multiples of m / 10^k. */
struct multiples {
    struct schema *s;
    uint32_t rule;
    int64_t m;
    unsigned k;
    bool is_open;                 /* 0 is not one of them */
    bool can[PART_MOST + 1][RULES_MOST]; /* after j digits of the part, with this remainder */
    bool can_zero[PART_MOST + 2];        /* after j zeros and nothing else */
};

static int64_t power(unsigned k)
{
    return k == 0 ? 1 : 10 * power(k - 1);
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

/* ---- a list ---- */

/* A bound times 10^k, rounded down.  *is_exact: nothing was rounded. */
static int64_t scaled(const struct number_bound *b, unsigned k, bool *is_exact)
{
    int64_t v = b->whole;
    size_t n = strlen(b->part);

    for (unsigned i = 0; i < k; i++)
        v = v * 10 + (i < n ? b->part[i] - '0' : 0);
    *is_exact = n <= k;
    return b->is_negative ? -v - !*is_exact : v;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool find_list(const struct multiples *x, const struct number_bound *least,
                      const struct number_bound *most, int64_t *from, int64_t *to)
{
    int64_t low, high;
    bool is_low, is_high;

    if (least->is_free || most->is_free || least->whole > WHOLE_MOST || most->whole > WHOLE_MOST)
        return false;
    low = scaled(least, x->k, &is_low);
    high = scaled(most, x->k, &is_high);
    low += !is_low || least->is_open;           /* the first number inside, */
    high -= is_high && most->is_open;           /* and the last one */
    *from = -floor_div(-low, x->m);
    *to = floor_div(high, x->m);
    return *to - *from < LISTED_MOST;
}

static int write_list(struct multiples *x, int64_t from, int64_t to)
{
    if (from > to)
        return schema_wrong(x->s, "multipleOf", ERR_ARGUMENT, "leaves no number");
    for (int64_t i = from; i <= to; i++) {
        int64_t v = i * x->m, all = v < 0 ? -v : v, unit = power(x->k), part = all % unit;
        unsigned k = x->k;

        for (; k > 0 && part % 10 == 0; k--)
            part /= 10;
        json_print(x->s->out, "%s\"%s%" PRId64, i > from ? " | " : "", v < 0 ? "-" : "",
                   all / unit);
        if (k > 0)
            json_print(x->s->out, ".%0*" PRId64, (int)k, part);
        json_print(x->s->out, "\"");
    }
    json_print(x->s->out, "\n");
    return 0;
}

/* ---- remainders ---- */

/* Whether zeros, or nothing, may come after j digits of the part. */
static bool is_multiple(const struct multiples *x, int64_t r, unsigned j)
{
    return r * power(x->k - j) % x->m == 0;
}

static int64_t after(const struct multiples *x, int64_t r, int d)
{
    return (r * 10 + d) % x->m;
}

static void find_ways(struct multiples *x)
{
    for (unsigned j = x->k + 1; j-- > 0;)
        for (int64_t r = 0; r < x->m; r++) {
            x->can[j][r] = is_multiple(x, r, j);
            for (int d = 0; j < x->k && d < 10; d++)
                x->can[j][r] = x->can[j][r] || x->can[j + 1][after(x, r, d)];
        }
    for (unsigned j = x->k + 1; j-- > 0;) {
        x->can_zero[j] = !x->is_open || (j < x->k && x->can_zero[j + 1]);
        for (int d = 1; j < x->k && d < 10; d++)
            x->can_zero[j] = x->can_zero[j] || x->can[j + 1][d % x->m];
    }
}

/* The name of the rule after j digits of the part, with remainder r; j of 0: before the point. */
static void write_name(struct multiples *x, unsigned j, int64_t r)
{
    schema_name(x->s, x->rule);
    json_print(x->s->out, "-r%u-%" PRId64, j, r);
}

static void write_zero_name(struct multiples *x, unsigned j)
{
    schema_name(x->s, x->rule);
    json_print(x->s->out, "-z%u", j);
}

static void begin_digit(struct multiples *x, bool *is_any, int d)
{
    json_print(x->s->out, "%s\"%d\" ", *is_any ? " | " : "", d);
    *is_any = true;
}

/* The digits of the part after j of them. */
static void write_digits(struct multiples *x, unsigned j, int64_t r, bool *is_any)
{
    for (int d = 0; d < 10; d++)
        if (x->can[j + 1][after(x, r, d)]) {
            begin_digit(x, is_any, d);
            write_name(x, j + 1, after(x, r, d));
        }
}

static bool has_part(const struct multiples *x, int64_t r)
{
    bool is_any = false;

    for (int d = 0; x->k > 0 && d < 10; d++)
        is_any = is_any || x->can[1][after(x, r, d)];
    return is_any;
}

/* Before the point, more digits always lead to a multiple. */
static void write_whole(struct multiples *x, int64_t r)
{
    bool is_any = is_multiple(x, r, 0), is_first = false;

    write_name(x, 0, r);
    json_print(x->s->out, " ::= %s", is_any ? "\"\"" : "");
    for (int d = 0; d < 10; d++) {
        begin_digit(x, &is_any, d);
        write_name(x, 0, after(x, r, d));
    }
    if (has_part(x, r)) {
        json_print(x->s->out, " | \".\" (");
        write_digits(x, 0, r, &is_first);
        json_print(x->s->out, ")");
    }
    json_print(x->s->out, "\n");
}

static void write_parts(struct multiples *x)
{
    for (unsigned j = 1; j <= x->k; j++)
        for (int64_t r = 0; r < x->m; r++) {
            bool is_any = is_multiple(x, r, j);

            if (!x->can[j][r])
                continue;
            write_name(x, j, r);
            json_print(x->s->out, " ::= %s", is_any ? "\"\"" : "");
            if (j < x->k)
                write_digits(x, j, r, &is_any);
            json_print(x->s->out, "\n");
        }
}

static bool leads_on(const struct multiples *x, unsigned j, int d)
{
    return d == 0 ? x->can_zero[j + 1] : x->can[j + 1][d % x->m];
}

/* The digits of the part after j zeros, and a point before the first one. */
static void write_after_zeros(struct multiples *x, unsigned j, bool is_any)
{
    bool has_digit = false;

    for (int d = 0; d < 10; d++) {
        if (!leads_on(x, j, d))
            continue;
        if (!has_digit)
            json_print(x->s->out, "%s%s(", is_any ? " | " : "", j == 0 ? "\".\" " : "");
        begin_digit(x, &has_digit, d);
        if (d == 0)
            write_zero_name(x, j + 1);
        else
            write_name(x, j + 1, d % x->m);
    }
    json_print(x->s->out, "%s", has_digit ? ")" : "");
}

/* After "0" and j zeros of the part. */
static void write_zeros(struct multiples *x)
{
    for (unsigned j = 0; j <= x->k; j++) {
        if (!x->can_zero[j])
            continue;
        write_zero_name(x, j);
        json_print(x->s->out, " ::= %s", x->is_open ? "" : "\"\"");
        if (j < x->k)
            write_after_zeros(x, j, !x->is_open);
        json_print(x->s->out, "\n");
    }
}

static void write_remainders(struct multiples *x, bool has_sign)
{
    find_ways(x);
    json_print(x->s->out, "%s(", has_sign ? "\"-\"? " : "");
    for (int d = 1; d < 10; d++) {
        json_print(x->s->out, "%s\"%d\" ", d > 1 ? " | " : "", d);
        write_name(x, 0, d % x->m);
    }
    if (x->can_zero[0]) {
        json_print(x->s->out, " | \"0\" ");
        write_zero_name(x, 0);
    }
    json_print(x->s->out, ")\n");
    for (int64_t r = 0; r < x->m; r++)
        write_whole(x, r);
    write_parts(x);
    if (x->can_zero[0])
        write_zeros(x);
}

/* ---- the keyword ---- */

static int read_step(struct multiples *x, const struct json_node *n, bool is_integer)
{
    const struct json_node *step = json_member(n, "multipleOf");
    struct number_bound v;
    bool ignored;

    if (step->kind != JSON_IS_NUMBER)
        return schema_wrong(x->s, "multipleOf", ERR_ARGUMENT, "is not a number");
    if (schema_decimal(step->text, &v) != 0 || v.whole > WHOLE_MOST || strlen(v.part) > PART_MOST)
        return schema_wrong(x->s, "multipleOf", ERR_UNSUPPORTED,
                            "is not at most 1000000000 with 6 digits after the point");
    x->k = (unsigned)strlen(v.part);
    x->m = scaled(&v, x->k, &ignored);
    if (x->m <= 0)
        return schema_wrong(x->s, "multipleOf", ERR_ARGUMENT, "is not greater than 0");
    if (is_integer) {
        x->m /= divisor(x->m, power(x->k));
        x->k = 0;
    }
    return 0;
}

static bool is_zero(const struct number_bound *b)
{
    return b->whole == 0 && b->part[0] == '\0';
}

int schema_multiples(struct schema *s, const struct json_node *n,
                     const struct number_bound *least, const struct number_bound *most,
                     bool is_integer, uint32_t *rule)
{
    struct multiples x = { .s = s };
    int64_t from, to;

    if (read_step(&x, n, is_integer) != 0)
        return -1;
    *rule = x.rule = schema_begin(s);
    if (find_list(&x, least, most, &from, &to))
        return write_list(&x, from, to);
    if (!most->is_free || (!least->is_free && !is_zero(least)))
        return schema_wrong(s, "multipleOf", ERR_UNSUPPORTED,
                            "is not supported together with bounds that leave more than 256 "
                            "numbers");
    if (x.m * (x.k + 1) > RULES_MOST)
        return schema_wrong(s, "multipleOf", ERR_UNSUPPORTED,
                            "has too many remainders: without bounds, its digits may be a number "
                            "up to 512");
    x.is_open = least->is_open;
    write_remainders(&x, least->is_free);
    return 0;
}
