#include "config.h"

#include "ui/text/formula.h"

#include <stdbool.h>
#include <string.h>

#include "ui/text/block_line.h"

#define BEGIN     "\\begin{"
#define END       "\\end{"
#define NAME_MOST 60 /* bytes of \end{NAME} */

#define CODE_MARKS 32 /* backticks around a code span: fewer than these, as in md4c */

struct scan {
    char *copy;
    const char *text;
    size_t end;          /* of the paragraph, or of a list without blank lines */
    struct block_line l; /* the current line */
    bool in_table;       /* it is a row: pipes end its cells */
    size_t word_end;     /* stars before it were looked at */
    /* Up to these positions, no closing mark was found.  They keep the time linear. */
    size_t no_code[CODE_MARKS], no_round, no_square, no_environment, no_address;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_point(char c)
{
    return c > 0x20 && c < 0x7f && !is_word(c);
}

/* Returns the character at i, 0 at the ends of the line. */
static char look(const struct scan *s, size_t i)
{
    return i < s->l.end ? s->text[i] : '\0';
}

static char before(const struct scan *s, size_t i)
{
    return i > s->l.words ? s->text[i - 1] : '\0';
}

static size_t run_end(const struct scan *s, size_t i)
{
    size_t end = i;

    while (look(s, end) == s->text[i])
        end++;
    return end;
}

/* Replace leading blanks of the next line too, except those that a quote or an item needs: md4c
 * would drop them. */
static size_t protect_indent(const struct scan *s, size_t at, size_t to)
{
    size_t own = 0;

    for (size_t i = s->l.at; i < s->l.words; i++) {
        own++;
        if (s->text[i] != '>')
            continue;
        while (at < to && s->text[at] == ' ')
            at++;
        at += at < to && s->text[at] == '>';
        own = 0;
    }
    while (at < to && own > 0 && s->text[at] == ' ') {
        at++;
        own--;
    }
    for (; at < to && s->text[at] == ' '; at++)
        s->copy[at] = 'x';
    return at;
}

static void protect(const struct scan *s, size_t from, size_t to)
{
    while (from < to) {
        char c = s->text[from];

        if (is_point(c))
            s->copy[from] = 'x';
        from++;
        if (c == '\n')
            from = protect_indent(s, from, to);
    }
}

/* Can text[from .. to) be the content of a formula?  A number in brackets is a reference. */
static bool is_content(const char *text, size_t from, size_t to, bool square)
{
    while (from < to && (is_blank(text[from]) || (square && is_digit(text[from]))))
        from++;
    return from < to;
}

/* Returns the end of the formula from i to a mark of the two characters, 0 if it is not one.
 * *no_close: no mark follows before it. */
static size_t pair_end(const struct scan *s, size_t i, const char *mark, bool lines,
                       size_t *no_close)
{
    bool at_edge = i == s->l.words || i + 2 == s->l.end;
    size_t end = lines && at_edge && !s->in_table ? s->end : s->l.end;

    if (i < *no_close)
        return 0;
    for (size_t j = i + 2; j + 1 < end; j++) {
        if (s->text[j] == mark[0] && s->text[j + 1] == mark[1]) {
            if (is_content(s->text, i + 2, j, mark[1] == ']') &&
                (mark[1] != ']' || j + 2 == end || s->text[j + 2] != '('))
                return j + 2;
            end = j;
        } else if (s->in_table && s->text[j] == '|') {
            end = j;
        }
        j += s->text[j] == '\\';
    }
    *no_close = end;
    return 0;
}

/* Returns the end of the formula $...$ from i, or 0.  Code, a $ that cannot close it, and two
 * stars, which formulas do not have, end the search. */
static size_t dollar_end(const struct scan *s, size_t i)
{
    if (is_word(before(s, i)) || is_blank(look(s, i + 1)))
        return 0;
    for (size_t j = i + 1; j < s->l.end; j++) {
        char c = s->text[j], next = look(s, j + 1);

        if (c == '`' || (c == '*' && next == '*') || (c == '|' && s->in_table))
            return 0;
        if (c == '$')
            return j == i + 1 || is_blank(s->text[j - 1]) || is_digit(next) || next == '$'
                       ? 0
                       : j + 1;
        j += c == '\\';
    }
    return 0;
}

static size_t formula(const struct scan *s, size_t i, size_t end, size_t otherwise)
{
    if (end == 0)
        return otherwise;
    protect(s, i, end);
    return end;
}

static size_t dollars(struct scan *s, size_t i)
{
    size_t run = run_end(s, i), never = 0;

    if (run == i + 1)
        return formula(s, i, dollar_end(s, i), run);
    return run > i + 2 ? run : formula(s, i, pair_end(s, i, "$$", true, &never), run);
}

static bool is_at(const char *text, size_t at, size_t end, const char *mark)
{
    return end - at >= strlen(mark) && memcmp(text + at, mark, strlen(mark)) == 0;
}

/* Read text[*at .. end), with depth open environments, up to the end of the last one, or of the
 * cell.  Returns how many are open there. */
static unsigned read_environments(const char *text, size_t *at, size_t end, unsigned depth,
                                  bool in_table)
{
    while (*at < end && !(in_table && text[*at] == '|')) {
        size_t most = end - *at < NAME_MOST ? end - *at : NAME_MOST;
        const char *brace;

        if (is_at(text, *at, end, BEGIN)) {
            depth++;
        } else if (depth > 0 && is_at(text, *at, end, END) &&
                   (brace = memchr(text + *at, '}', most)) != NULL) {
            *at = (size_t)(brace + 1 - text);
            if (--depth == 0)
                return 0;
            continue;
        }
        *at += text[*at] == '\\' && *at + 1 < end ? 2 : 1;
    }
    return depth;
}

/* Returns the end of the environment that begins at i, 0 if it is not one. */
static size_t environment_end(struct scan *s, size_t i)
{
    size_t at = i;

    if (i < s->no_environment)
        return 0;
    if (read_environments(s->text, &at, s->in_table ? s->l.end : s->end, 0, s->in_table) == 0)
        return at;
    s->no_environment = at;
    return 0;
}

static size_t backslash(struct scan *s, size_t i)
{
    if (is_at(s->text, i, s->l.end, BEGIN))
        return formula(s, i, environment_end(s, i), i + 2);
    if (look(s, i + 1) == '(')
        return formula(s, i, pair_end(s, i, "\\)", false, &s->no_round), i + 2);
    if (look(s, i + 1) == '[')
        return formula(s, i, pair_end(s, i, "\\]", true, &s->no_square), i + 2);
    return i + 2;
}

/* Returns the end of the code span from i, or of its mark if it is not one. */
static size_t code_end(struct scan *s, size_t i)
{
    size_t run = run_end(s, i), n = run - i;

    if (n >= CODE_MARKS || i < s->no_code[n])
        return run;
    for (size_t j = run; j < s->end;) {
        size_t from = j;

        while (j < s->end && s->text[j] == '`')
            j++;
        if (j - from == n)
            return j;
        j += j == from;
    }
    s->no_code[n] = s->end;
    return run;
}

/* The parser copies addresses with escapes, so they must be right: skip them. */
static size_t address_end(struct scan *s, size_t i)
{
    size_t j = i + 1, depth = 0;

    switch (s->text[i]) {
    case ']':
        if (look(s, j) != '(' || i < s->no_address)
            return j;
        for (; j < s->l.end; j++) {
            depth += s->text[j] == '(';
            depth -= s->text[j] == ')';
            if (depth == 0)
                return j + 1;
        }
        s->no_address = s->l.end;
        return i + 1;
    case '<':
        while (j < s->l.end && !is_blank(s->text[j]) && s->text[j] != '<' && s->text[j] != '>')
            j++;
        return look(s, j) == '>' && (memchr(s->text + i, ':', j - i) != NULL ||
                                     memchr(s->text + i, '@', j - i) != NULL)
                   ? j
                   : i + 1;
    default:
        if (s->l.end - i < 4 || (memcmp(s->text + i, "://", 3) != 0 &&
                                 (memcmp(s->text + i, "www.", 4) != 0 || is_word(before(s, i)))))
            return j;
        while (j < s->l.end && !is_blank(s->text[j]))
            j++;
        return j;
    }
}

static bool is_inner(char left, char right)
{
    return left != '\0' && right != '\0' && (is_word(left) || strchr(").!", left) != NULL) &&
           (is_word(right) || strchr("(.-", right) != NULL);
}

/* Is the word around the star at i a product like 2*x*(y+1) or 3*x**2?  Its stars are operators
 * between letters, digits and parentheses, and one of them is beside a digit.  Emphasis within a
 * word of letters stays: people write it. */
static bool is_product(struct scan *s, size_t i)
{
    size_t at = i;
    bool has_digit = false, good = true;

    while (at > s->l.words && !is_blank(s->text[at - 1]))
        at--;
    for (; at < s->l.end && !is_blank(s->text[at]); at++) {
        char left = before(s, at), right;
        size_t run;

        if (strchr("`\\[]<>:@&$_", s->text[at]) != NULL)
            good = false;
        if (s->text[at] != '*')
            continue;
        run = run_end(s, at);
        right = look(s, run);
        good = good && run <= at + 2 && is_inner(left, right);
        has_digit = has_digit || is_digit(left) || is_digit(right);
        at = run - 1;
    }
    s->word_end = at;
    return good && has_digit;
}

/* One or two stars between digits are a product or a power: emphasis would make another number. */
static size_t stars(struct scan *s, size_t i)
{
    size_t run = run_end(s, i);

    if (run <= i + 2 && is_digit(before(s, i)) && is_digit(look(s, run)))
        protect(s, i, run);
    if (i >= s->word_end && is_product(s, i))
        for (size_t j = i; j < s->word_end; j++)
            s->copy[j] = s->text[j] == '*' ? 'x' : s->copy[j];
    return run;
}

static size_t next(struct scan *s, size_t i)
{
    switch (s->text[i]) {
    case '$': return dollars(s, i);
    case '\\': return backslash(s, i);
    case '`': return code_end(s, i);
    case '*': return stars(s, i);
    case ']':
    case '<':
    case ':':
    case 'w': return address_end(s, i);
    default: return i + 1;
    }
}

/* [name]: address */
static bool is_definition(const struct block_line *l)
{
    const char *end;

    if (l->words == l->end || l->text[l->words] != '[')
        return false;
    end = memchr(l->text + l->words, ']', l->end - l->words);
    return end != NULL && end + 1 < l->text + l->end && end[1] == ':';
}

/* Returns the end of the lines from at without a blank line or a fence. */
static size_t paragraph_end(const char *text, size_t at, size_t n)
{
    while (at < n) {
        struct block_line l = block_line_read(text, at, n);
        char fence = '\0';

        if (l.body == l.end || block_line_in_code(&l, &fence))
            break;
        at = l.next;
    }
    return at < n ? at : n;
}

void formula_protect(char *copy, const char *text, size_t n)
{
    struct scan s = { .copy = copy, .text = text };
    char fence = '\0';
    size_t done = 0;

    for (size_t at = 0; at < n; at = s.l.next) {
        size_t i;

        s.l = block_line_read(text, at, n);
        if (block_line_in_code(&s.l, &fence) || s.l.body == s.l.end)
            continue;
        if (at >= s.end)
            s.end = paragraph_end(text, at, n);
        s.in_table = s.l.words < s.l.end && text[s.l.words] == '|';
        i = done > s.l.words ? done : s.l.words;
        if (i == s.l.words && is_definition(&s.l))
            continue;
        while (i < s.l.end)
            i = next(&s, i);
        done = i;
    }
}

/* Find the two characters of a mark in text[at .. end); end if they are not there. */
static size_t find_mark(const char *text, size_t at, size_t end, char first, char second)
{
    while (at + 1 < end) {
        if (text[at] == first && text[at + 1] == second)
            return at;
        at += text[at] == '\\' ? 2 : 1;
    }
    return end;
}

/* Less than the characters of the other marks. */
#define ENVIRONMENTS_MOST 31

char formula_open(const char *text, size_t at, size_t next, char open)
{
    struct block_line l = block_line_read(text, at, next);
    size_t i = open != '\0' ? l.at : l.words;
    unsigned depth = (unsigned char)open;

    if (open > ENVIRONMENTS_MOST)
        return find_mark(text, l.at, l.end, open == '$' ? '$' : '\\', open) < l.end ? '\0' : open;
    for (int k = 0; open == '\0' && k < 2; k++) {
        char first = "$\\"[k], opening = "$["[k], closing = "$]"[k];
        size_t mark = find_mark(text, l.words, l.end, first, opening);

        if ((mark == l.words || mark + 2 == l.end) && mark < l.end &&
            find_mark(text, mark + 2, l.end, first, closing) == l.end)
            return closing;
    }
    while (i < l.end)
        depth = read_environments(text, &i, l.end, depth, false);
    return (char)(depth < ENVIRONMENTS_MOST ? depth : ENVIRONMENTS_MOST);
}
