#include "config.h"

#include "ui/term/direct.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#define MAGIC     0x21e
#define MAX_BYTES 16384 /* ncurses allows entries of 32768 */

/* Colours 0 to 7 are those of the palette (ink.c avoids them). */
#define SET_COLOUR(base)                                                                       \
    "\033[%?%p1%{8}%<%t" #base "%p1%d%e" #base "8;2;%p1%{65536}%/%d;%p1%{256}%/%{255}%&%d;"    \
    "%p1%{255}%&%d%;m"

struct entry {
    uint8_t at[MAX_BYTES];
    size_t n;
};

static void put(struct entry *e, const void *from, size_t n)
{
    if (e->n + n <= sizeof e->at)
        memcpy(e->at + e->n, from, n);
    e->n += n; /* too large an entry is refused at the end */
}

/* Write the lowest bytes of v, least significant first. */
static void put_number(struct entry *e, int v, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        put(e, &(uint8_t){ (uint8_t)((unsigned)v >> 8 * i) }, 1);
}

static void pad(struct entry *e)
{
    if (e->n % 2 != 0)
        put_number(e, 0, 1);
}

/* ---- the values of the new entry ---- */

static int number_of(const char *name)
{
    if (strcmp(name, "colors") == 0)
        return 0x1000000;
    return strcmp(name, "pairs") == 0 ? 0x10000 : tigetnum(name);
}

static const char *string_of(const char *name)
{
    const char *s;

    if (strcmp(name, "setaf") == 0)
        return SET_COLOUR(3);
    if (strcmp(name, "setab") == 0)
        return SET_COLOUR(4);
    if (strcmp(name, "initc") == 0 || strcmp(name, "oc") == 0)
        return NULL; /* the palette stays as it is */
    s = tigetstr(name);
    return s == (char *)-1 ? NULL : s;
}

static int count(NCURSES_CONST char *const *names)
{
    int n = 0;

    while (names[n] != NULL)
        n++;
    return n;
}

/* ---- parts of the entry ---- */

static void put_flags(struct entry *e)
{
    for (int i = 0; boolnames[i] != NULL; i++)
        put_number(e, strcmp(boolnames[i], "ccc") != 0 && tigetflag(boolnames[i]) > 0, 1);
    pad(e);
}

static void put_strings(struct entry *e, const struct entry *table)
{
    int at = 0;

    for (int i = 0; strnames[i] != NULL; i++) {
        const char *s = string_of(strnames[i]);

        put_number(e, s == NULL ? -1 : at, 2);
        at += s == NULL ? 0 : (int)strlen(s) + 1;
    }
    put(e, table->at, table->n);
    pad(e);
}

static void make_table(struct entry *table)
{
    for (int i = 0; strnames[i] != NULL; i++) {
        const char *s = string_of(strnames[i]);

        if (s != NULL)
            put(table, s, strlen(s) + 1);
    }
}

static void put_extended(struct entry *e)
{
    static const char names[] = "AX\0RGB";

    put_number(e, 2, 2); /* flags */
    put_number(e, 0, 2); /* numbers */
    put_number(e, 0, 2); /* strings */
    put_number(e, 2, 2); /* texts in the table: the names of the flags */
    put_number(e, (int)sizeof names, 2);
    put_number(e, tigetflag("AX") > 0, 1);
    put_number(e, 1, 1);
    put_number(e, 0, 2);
    put_number(e, 3, 2);
    put(e, names, sizeof names);
}

static void make(struct entry *e, const char *term, const struct entry *table)
{
    put_number(e, MAGIC, 2);
    put_number(e, (int)strlen(term) + 1, 2);
    put_number(e, count(boolnames), 2);
    put_number(e, count(numnames), 2);
    put_number(e, count(strnames), 2);
    put_number(e, (int)table->n, 2);
    put(e, term, strlen(term) + 1);
    put_flags(e);
    for (int i = 0; numnames[i] != NULL; i++)
        put_number(e, number_of(numnames[i]), 4);
    put_strings(e, table);
    put_extended(e);
}

static char *as_hex(const struct entry *e)
{
    static const char head[] = "hex:";
    char *text = e->n > sizeof e->at ? NULL : malloc(sizeof head + 2 * e->n);

    if (text == NULL)
        return NULL;
    memcpy(text, head, sizeof head);
    for (size_t i = 0; i < e->n; i++)
        snprintf(text + sizeof head - 1 + 2 * i, 3, "%02X", e->at[i]);
    return text;
}

/* ---- for term.c ---- */

bool direct_is_promised(const char *term)
{
    const char *deep = getenv("COLORTERM");
    bool in_tmux = getenv("TMUX") != NULL;

    if (deep == NULL || (strcmp(deep, "truecolor") != 0 && strcmp(deep, "24bit") != 0))
        return false;
    if (strncmp(term, "linux", 5) == 0 || getenv("STY") != NULL)
        return false;
    return in_tmux || strncmp(term, "screen", 6) != 0;
}

char *direct_entry(const char *term)
{
    struct entry *e = calloc(2, sizeof *e);
    char *text = NULL;
    int found;

    if (e == NULL)
        return NULL;
    if (setupterm(term, STDOUT_FILENO, &found) == OK) {
        if (tigetnum("colors") >= 8 && tigetflag("RGB") <= 0 && tigetnum("RGB") <= 0) {
            make_table(&e[1]);
            make(&e[0], term, &e[1]);
            text = as_hex(&e[0]);
        }
        del_curterm(cur_term);
    }
    free(e);
    return text;
}
