#include "config.h"

#include "ui/term/sgr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ESC       '\033'
#define UNKNOWN   1u /* in attrs */
#define BIT(n)    (1u << (n))
#define ON_BLANKS (BIT(4) | BIT(7) | BIT(9) | 1u) /* underline, reverse, strike */

/* ---- the look that is asked for ---- */

/* Take a colour: "38;5;n", "38;2;r;g;b" or one parameter with colons.  Returns its end. */
static const char *take_colour(char out[SGR_COLOUR], const char *p)
{
    size_t n = strcspn(p, ";");
    int more = n > 2                          ? 0
               : strncmp(p + n, ";5", 2) == 0 ? 2
               : strncmp(p + n, ";2", 2) == 0 ? 4
                                              : 0;

    while (more-- > 0 && p[n] == ';')
        n += 1 + strcspn(p + n + 1, ";");
    snprintf(out, SGR_COLOUR, "%.*s", (int)n, p);
    return p + n;
}

static void set_number(struct sgr_look *l, int n, const char *text, size_t len)
{
    /* 22 ends bold and dim. */
    static const unsigned ends[] = { BIT(1) | BIT(2), BIT(3), BIT(4), BIT(5), 0,
                                     BIT(7),          BIT(8), BIT(9) };

    if (n == 0)
        *l = (struct sgr_look){ 0 };
    else if (n >= 1 && n <= 9)
        l->attrs |= BIT(n);
    else if (n >= 22 && n <= 29)
        l->attrs &= ~ends[n - 22];
    else if (n == 39)
        l->fg[0] = '\0';
    else if (n == 49)
        l->bg[0] = '\0';
    else if ((n >= 30 && n <= 37) || (n >= 90 && n <= 97))
        snprintf(l->fg, sizeof l->fg, "%.*s", (int)len, text);
    else if ((n >= 40 && n <= 47) || (n >= 100 && n <= 107))
        snprintf(l->bg, sizeof l->bg, "%.*s", (int)len, text);
    else
        l->attrs |= UNKNOWN;
}

/* p is what is between "ESC[" and "m". */
static void take_look(struct sgr_look *l, const char *p)
{
    for (;;) {
        size_t n = strcspn(p, ";");
        int number = atoi(p);

        if (number == 38 || number == 48) {
            p = take_colour(number == 38 ? l->fg : l->bg, p);
        } else if (memchr(p, ':', n) != NULL) { /* such as an underline of another shape */
            l->attrs |= UNKNOWN;
            p += n;
        } else {
            set_number(l, number, p, n);
            p += n;
        }
        if (*p == '\0')
            return;
        p++;
    }
}

/* ---- the look of the terminal ---- */

struct text {
    char bytes[2 * SGR_SEQUENCE];
    size_t n;
};

static void add(struct text *t, const char *parameter)
{
    int n = snprintf(t->bytes + t->n, sizeof t->bytes - t->n, "%s%s", t->n > 0 ? ";" : "",
                     parameter);

    t->n += n > 0 ? (size_t)n : 0;
}

static void add_number(struct text *t, unsigned n)
{
    char parameter[16];

    snprintf(parameter, sizeof parameter, "%u", n);
    add(t, parameter);
}

/* All of a look, from any other. */
static void whole(struct text *t, const struct sgr_look *to)
{
    add(t, "0");
    for (unsigned n = 1; n <= 9; n++)
        if (to->attrs & BIT(n))
            add_number(t, n);
    if (to->fg[0] != '\0')
        add(t, to->fg);
    if (to->bg[0] != '\0')
        add(t, to->bg);
}

static void difference(struct text *t, const struct sgr_look *from, const struct sgr_look *to)
{
    unsigned off = from->attrs & ~to->attrs, on = to->attrs & ~from->attrs;

    if (off & (BIT(1) | BIT(2))) {
        add(t, "22");
        on |= to->attrs & (BIT(1) | BIT(2));
    }
    for (unsigned n = 3; n <= 9; n++)
        if (off & BIT(n))
            add_number(t, 20 + n);
    for (unsigned n = 1; n <= 9; n++)
        if (on & BIT(n))
            add_number(t, n);
    if (strcmp(from->fg, to->fg) != 0)
        add(t, to->fg[0] != '\0' ? to->fg : "39");
    if (strcmp(from->bg, to->bg) != 0)
        add(t, to->bg[0] != '\0' ? to->bg : "49");
}

static bool is_same(const struct sgr_look *a, const struct sgr_look *b)
{
    return a->attrs == b->attrs && strcmp(a->fg, b->fg) == 0 && strcmp(a->bg, b->bg) == 0;
}

static void change(struct sgr_filter *f, const struct sgr_look *to, sgr_out *out, void *ctx)
{
    struct text all = { { 0 }, 0 }, changed = { { 0 }, 0 };
    const struct text *best = &changed;

    if (is_same(&f->have, to))
        return;
    whole(&all, to);
    difference(&changed, &f->have, to);
    if (((f->have.attrs | to->attrs) & UNKNOWN) || all.n < changed.n)
        best = &all;
    out(ctx, "\033[", 2);
    if (best->n != 1 || best->bytes[0] != '0') /* "ESC[m" resets as well */
        out(ctx, best->bytes, best->n);
    out(ctx, "m", 1);
    f->have = *to;
}

void sgr_settle(struct sgr_filter *f, sgr_out *out, void *ctx)
{
    change(f, &f->want, out, ctx);
}

/* A blank shows its background, and lines through or below it. */
static void settle_blank(struct sgr_filter *f, sgr_out *out, void *ctx)
{
    struct sgr_look to = f->want;

    if (((f->want.attrs | f->have.attrs) & ON_BLANKS) == 0) {
        to.attrs = f->have.attrs;
        memcpy(to.fg, f->have.fg, sizeof to.fg);
    }
    change(f, &to, out, ctx);
}

/* ---- bytes ---- */

/* Does this sequence move the cursor, or switch a mode? */
static bool draws_nothing(const char *s, size_t n)
{
    return strchr("HfdG`ABCD", s[n - 1]) != NULL ||
           (s[2] == '?' && (s[n - 1] == 'h' || s[n - 1] == 'l'));
}

static void pass_csi(struct sgr_filter *f, char *s, size_t n, sgr_out *out, void *ctx)
{
    if (s[n - 1] == 'm' && strchr("<=>?", s[2]) == NULL) {
        struct sgr_look to = f->want;

        s[n - 1] = '\0';
        take_look(&to, s + 2);
        s[n - 1] = 'm';
        if (to.attrs & UNKNOWN) { /* the terminal may know it */
            sgr_settle(f, out, ctx);
            out(ctx, s, n);
            f->have = to;
        }
        f->want = to;
        return;
    }
    if (strchr("XKJ", s[n - 1]) != NULL) /* erased cells get the background */
        settle_blank(f, out, ctx);
    else if (!draws_nothing(s, n))
        sgr_settle(f, out, ctx);
    out(ctx, s, n);
}

/* ESC ( B and Ctrl-O select ASCII, which nearly always is in use already. */
static bool selects_ascii(const struct sgr_filter *f)
{
    return (f->n_held == 3 && memcmp(f->held, "\033(B", 3) == 0) ||
           (f->n_held == 1 && f->held[0] == '\017');
}

static void pass_held(struct sgr_filter *f, sgr_out *out, void *ctx)
{
    size_t n = f->n_held;

    if (selects_ascii(f)) {
        if (f->is_shifted)
            out(ctx, f->held, n);
        f->is_shifted = false;
    } else if (n > 2 && f->held[1] == '[') {
        f->held[n] = '\0';
        pass_csi(f, f->held, n, out, ctx);
    } else {
        f->is_shifted = f->is_shifted || f->held[0] == '\016' || (n == 3 && f->held[1] == '(');
        sgr_settle(f, out, ctx);
        out(ctx, f->held, n);
    }
    f->n_held = 0;
}

/* Is the sequence that is held complete? */
static bool is_complete(const struct sgr_filter *f)
{
    unsigned char last = (unsigned char)f->held[f->n_held - 1];

    if (f->n_held + 1 >= sizeof f->held)
        return true;
    if (f->n_held == 1)
        return false;
    if (f->held[1] == '[')
        return f->n_held > 2 && last >= 0x40 && last <= 0x7e;
    return last < 0x20 || last > 0x2f; /* "(" and the like have one more byte */
}

static void pass_control(struct sgr_filter *f, char c, sgr_out *out, void *ctx)
{
    if (c == '\016' || c == '\017') {
        f->held[0] = c;
        f->n_held = 1;
        pass_held(f, out, ctx);
        return;
    }
    if (c == '\n') /* may scroll, and the new line has the background */
        settle_blank(f, out, ctx);
    out(ctx, &c, 1);
}

static bool is_text(char c)
{
    return (unsigned char)c > ' ' && c != 0x7f;
}

void sgr_pass(struct sgr_filter *f, const char *bytes, size_t n, sgr_out *out, void *ctx)
{
    for (size_t i = 0; i < n;) {
        size_t from = i;

        if (f->n_held > 0 || bytes[i] == ESC) {
            f->held[f->n_held++] = bytes[i++];
            if (is_complete(f))
                pass_held(f, out, ctx);
        } else if (is_text(bytes[i])) {
            while (i < n && is_text(bytes[i]))
                i++;
            sgr_settle(f, out, ctx);
            out(ctx, bytes + from, i - from);
        } else if (bytes[i] == ' ') {
            while (i < n && bytes[i] == ' ')
                i++;
            settle_blank(f, out, ctx);
            out(ctx, bytes + from, i - from);
        } else {
            pass_control(f, bytes[i++], out, ctx);
        }
    }
}
