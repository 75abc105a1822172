/* Markdown becomes the lines that are shown, complete or while it streams. */
#include "config.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <cmocka.h>

#include "tests/lib/random_text.h"
#include "ui/text/body.h"
#include "ui/text/entity.h"
#include "ui/text/highlight.h"
#include "ui/text/markdown.h"
#include "ui/words/cluster.h"

struct row {
    const char *name;
    int width;
    const char *text, *want, *copied; /* NULL: not checked */
};

#define RULE   "\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80"
#define RULE_GRID "\xe2\x94\x80\xe2\x94\x80\xe2\x94\xbc\xe2\x94\x80\xe2\x94\x80"
#define GRID   "a " BAR "b\n" RULE_GRID "\n1 " BAR "2"
#define BULLET "\xe2\x80\xa2 "
#define BAR    "\xe2\x94\x82 "
#define MORE   "\xe2\x86\xb3 "

/* clang-format off */
static struct row rows[] = {
    { "a paragraph is wrapped", 12, "some words that wrap", "some words\nthat wrap", "some words that wrap" },
    { "line breaks of the source stay", 40, "one\ntwo  \nthree", "one\ntwo\nthree", "one\ntwo\nthree" },
    { "paragraphs are parted", 40, "one\n\n\n\ntwo\n", "one\n\ntwo", NULL },
    { "markup goes, text stays", 40, "**b** *i* ~~s~~ `c` \\*", "b i s c *", "b i s c *" },
    { "a heading has an empty line before it", 40, "text\n## Head\nmore", "text\n\nHead\nmore", NULL },
    { "a list with a hanging indent", 12, "- one two three\n- four", BULLET "one two\n  three\n" BULLET "four", "- one two three\n- four" },
    { "lists in lists", 40, "- a\n  - b\n    1. c\n", BULLET "a\n  " BULLET "b\n    1. c", NULL },
    { "numbers as they are written", 40, "3. c\n4. d\n", "3. c\n4. d", "3. c\n4. d" },
    { "a loose list", 40, "- a\n\n- b\n", BULLET "a\n\n" BULLET "b", NULL },
    { "tasks", 40, "- [x] a\n- [ ] b", "- [x] a\n- [ ] b", "- [x] a\n- [ ] b" },
    { "an empty item", 40, "-\n\ntext", BULLET "\n\ntext", NULL },
    { "a quote", 12, "> one two three\n> - four", BAR "one two\n" BAR "three\n" BAR BULLET "four", NULL },
    { "a quote in a quote", 40, "> a\n> > b", BAR "a\n" BAR "\n" BAR BAR "b", NULL },
    { "nesting never eats the line", 12, "> > > > > > > > text", BAR BAR BAR "text", NULL },
    { "code with a label", 14, "```c\nint x;\n\n  y\n```", NULL, "int x;\n\n  y" },
    { "code that is too long", 14, "```\n1234567890123456\n```\n", NULL, "1234567890123456" },
    { "indented code", 8, "    a\n      b\n", RULE RULE "\na\n  b\n" RULE RULE, "a\n  b" },
    { "a fence in a list", 40, "1. x\n   ```sh\n   ls\n   ```\n", NULL, "1. x\nls" },
    { "a tab in code", 40, "```\n\tx\n```", NULL, "\tx" },
    { "a rule", 4, "***", RULE, NULL },
    { "a table that fits", 40, "|a|bb|\n|---|--:|\n|ccc|d|\n", "a   " BAR "bb\n" RULE "\xe2\x94\xbc\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\nccc " BAR " d", "a bb\nccc d" },
    { "a table that does not fit", 8, "|a|bb|\n|---|---|\n|long cell|d|\n|e|f|", "a: long\ncell\nbb: d\n\na: e\nbb: f", NULL },
    { "a table of wide characters", 40, "|\xe4\xb8\xad|b|\n|---|---|\n|c|d|\n", "\xe4\xb8\xad " BAR "b\n\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\xbc\xe2\x94\x80\xe2\x94\x80\nc  " BAR "d", NULL },
    { "a table after a line of text", 40, "Here it is:\n| a | b |\n|---|---|\n| 1 | 2 |", "Here it is:\n\n" GRID, "Here it is:\n\na b\n1 2" },
    { "a table after lines of text, with carriage returns", 40, "x\r\ny\r\n| a | b |\r\n|---|---|\r\n| 1 | 2 |\r\n", "x\ny\n\n" GRID, NULL },
    { "a table without outer pipes after text", 40, "x\na | b\n--- | ---\n1 | 2", "x\n\n" GRID, NULL },
    { "a table after the text of an item", 40, "- x\n  |a|b|\n  |-|-|\n  |1|2|", BULLET "x\n  \n  a " BAR "b\n  " RULE_GRID "\n  1 " BAR "2", NULL },
    { "a table in an item after a table", 40, "- x\n\n  |a|\n  |-|\n  - y\n    |b|\n    |-|", BULLET "x\n  \n  a\n  \xe2\x94\x80\n  \n  " BULLET "y\n    \n    b\n    \xe2\x94\x80", NULL },
    { "a table beside an item", 40, "1. x\n|a|b|\n|-|-|\n|1|2|", "1. x\n\n" GRID, NULL },
    { "a table after the text of a quote", 40, "> x\n> |a|b|\n> |-|-|\n> |1|2|", BAR "x\n" BAR "\n" BAR "a " BAR "b\n" BAR RULE_GRID "\n" BAR "1 " BAR "2", NULL },
    { "a table with one dash a cell", 40, "|a|b|\n|-|-|\n|1|2|", GRID, "a b\n1 2" },
    { "a table with short cells of dashes", 40, "|aa|bbb|\n|:-:|-:|\n|1|2|", "aa " BAR "bbb\n\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\xbc" RULE "\n1  " BAR "  2", NULL },
    { "two tables with text between them", 40, "|a|b|\n|-|-|\n|1|2|\n\nx\n|a|b|\n|--|:-|\n|1|2|", GRID "\n\nx\n\n" GRID, NULL },
    { "dashes in a table are a row of it", 40, "|a|b|\n|-|-|\n|1|2|\n|-|-|", GRID "\n- " BAR "-", NULL },
    { "pipes in text are not a table", 40, "x\nls | wc\n---\ny", "x\nls | wc\ny", NULL },
    { "dashes for other columns are not a table", 40, "x\nls | sort | wc\n---|---\ny", "x\nls | sort | wc\n---|---\ny", NULL },
    { "dashes below words are not a table", 40, "x\nword\n|-|\ny", "x\nword\n|-|\ny", NULL },
    { "pipes in code in an item are not a table", 40, "- x\n  ```\n  y\n  |a|b|\n  |-|-|\n  ```", NULL, "- x\ny\n|a|b|\n|-|-|" },
    { "a break in a cell is a blank", 40, "|a<br>x|b|\n|---|---|\n|1|2<BR />3|", "a x " BAR "b\n\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\xbc\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\n1   " BAR "2 3", "a<br>x b\n1 2<BR />3" },
    { "a break in a cell as code stays", 40, "|`a<br>`|b|\n|---|---|\n", "a<br> " BAR "b\n" RULE "\xe2\x94\x80\xe2\x94\x80\xe2\x94\xbc\xe2\x94\x80\xe2\x94\x80", NULL },
    { "a formula keeps its stars", 60, "so $x^*y^*z$ and $a*b*c$", "so $x^*y^*z$ and $a*b*c$", NULL },
    { "a formula keeps its backslashes", 60, "$\\{x\\}$ and $$a \\\\ b$$", "$\\{x\\}$ and $$a \\\\ b$$", NULL },
    { "a formula keeps its underscores", 60, "_so_ $_a_1 + b_2_$", "so $_a_1 + b_2_$", NULL },
    { "a formula in round brackets", 60, "\\(x*y*z\\) and (\\(\\alpha_1\\))", "\\(x*y*z\\) and (\\(\\alpha_1\\))", NULL },
    { "a formula in square brackets", 60, "\\[ x*y*z \\]", "\\[ x*y*z \\]", NULL },
    { "a formula of lines", 60, "so:\n$$\na*b \\\\\n- c*d\n= 1. \\{x\\}\n  + e\n$$\n*end*", "so:\n$$\na*b \\\\\n- c*d\n= 1. \\{x\\}\n  + e\n$$\nend", NULL },
    { "a formula of lines in square brackets", 60, "\\[\n1. x*y\n# z*\n    \\sum_{i}_i\n\\]", "\\[\n1. x*y\n# z*\n    \\sum_{i}_i\n\\]", NULL },
    { "a formula of lines in an item", 60, "- so:\n  \\[\n  - x*y*\n    z\n  \\]\n- *b*", BULLET "so:\n  \\[\n  - x*y*\n    z\n  \\]\n" BULLET "b", NULL },
    { "a formula of lines in a quote", 60, "> $$\n> x*y*z\n>   a\n> $$", BAR "$$\n" BAR "x*y*z\n" BAR "  a\n" BAR "$$", NULL },
    { "an environment", 60, "so \\begin{pmatrix*}[r] a*b*c & _d_ \\\\ e \\end{pmatrix*} *is*", "so \\begin{pmatrix*}[r] a*b*c & _d_ \\\\ e \\end{pmatrix*} is", NULL },
    { "an environment of lines", 60, "\\begin{align*}\na*b*c &= \\{d\\} \\\\\n- e_1*_f_\n\\end{align*}\n*end*", "\\begin{align*}\na*b*c &= \\{d\\} \\\\\n- e_1*_f_\n\\end{align*}\nend", NULL },
    { "an environment in an environment", 60, "f = \\begin{cases}\n1. \\begin{gather*}\n- a*b* \\end{gather*}\n- c*d*\n# e\n\\end{cases}\n- *g*", "f = \\begin{cases}\n1. \\begin{gather*}\n- a*b* \\end{gather*}\n- c*d*\n# e\n\\end{cases}\n" BULLET "g", NULL },
    { "an environment in a cell", 60, "|\\begin{x*}a*b*c|*d*|\n|-|-|\n|\\begin{x*}*a*\\end{x*}|e|", NULL, "\\begin{x*}abc d\n\\begin{x*}*a*\\end{x*} e" },
    { "an environment that is not closed", 60, "\\begin{x} *a*\n\\begin{y} *b*\n\\end{y\n\n*c* \\end{x}", "\\begin{x} a\n\\begin{y} b\n\\end{y\n\nc \\end{x}", NULL },
    { "a line break before a word is not an environment", 60, "\\\\begin{x} *a* \\end{x}", "\\begin{x} a \\end{x}", NULL },
    { "a formula in emphasis", 60, "**$a*b*c$** *\\(d\\)*", "$a*b*c$ \\(d\\)", NULL },
    { "a formula in a cell", 60, "|$a*b*c$|$d$|\n|-|-|\n", "$a*b*c$ " BAR "$d$\n\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\xbc\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80", NULL },
    { "prices in cells", 60, "|$5|$6|*$7*|\n|-|-|-|\n", "$5 " BAR "$6 " BAR "$7\n\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\xbc\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\xbc\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80", NULL },
    { "prices are not formulas", 60, "it costs $5 and *not* $6, or $7-*8*$9", "it costs $5 and not $6, or $7-8$9", NULL },
    { "variables are not formulas", 60, "US$ *a* and $HOME *b* $PATH", "US$ a and $HOME b $PATH", NULL },
    { "a formula that is not closed", 60, "$x *a*\n\n$$ y *b*\n\n\\(z *c*\n\n\\[w *d*", "$x a\n\n$$ y b\n\n(z c\n\n[w d", NULL },
    { "a formula ends at a blank line", 60, "$$\n*a*\n\n*b*\n$$", "$$\na\n\nb\n$$", NULL },
    { "dollars in code are not formulas", 60, "`$a` *b* `c$` $d `e$` *f*", "$a b c$ $d e$ f", NULL },
    { "brackets that are not formulas", 60, "\\[1\\] \\[a\\](b) \\[ \\] *c*", "[1] [a](b) [ ] c", NULL },
    { "an address with dollars keeps its characters", 60, "[a](http://b/$c*d$?e&amp;f) www.g.h/$ij$&amp;k", "a (http://b/$c*d$?e&amp;f) www.g.h/$ij$&k", NULL },
    { "a definition with dollars", 60, "[a]: u?$b*c$&amp;d\n[a]", "a (u?$b*c$&amp;d)\n[a]: u?$b*c$&amp;d", NULL },
    { "code in an item is not a formula", 40, "- x\n  ```$a$\n  $y$\n  ```\n", NULL, "- x\n$y$" },
    { "a product", 60, "5*4*3*2*1 = 120", "5*4*3*2*1 = 120", NULL },
    { "a product with letters and brackets", 60, "2*x*3 + (1+2)*3*(4+5) - n*(n+1)*2", "2*x*3 + (1+2)*3*(4+5) - n*(n+1)*2", NULL },
    { "a power", 60, "2**10 and 3**2 or x**2 + 3*y**2", "2**10 and 3**2 or x**2 + 3*y**2", NULL },
    { "products with points", 60, "n! = n*(n-1)*...*1 = 1*2*...*n or 2*-x*.5", "n! = n*(n-1)*...*1 = 1*2*...*n or 2*-x*.5", NULL },
    { "emphasis beside numbers", 60, "*5*4* **2** x*y*z 1*a* **CO**2", "5*4 2 xyz 1a CO2", NULL },
    { "a link says where it leads", 60, "[text](http://a.example)", "text (http://a.example)", "text (http://a.example)" },
    { "a link whose text is its address is not repeated", 60, "<http://a.example> and www.b.example", "http://a.example and www.b.example", NULL },
    { "a title is text too", 60, "[t](u \"why\")", "t (u why)", NULL },
    { "an image", 60, "![alt](p.png)", "[image] alt (p.png)", NULL },
    { "a definition is not lost", 60, "[a]: http://x.example\n", "[a]: http://x.example", "[a]: http://x.example" },
    { "raw HTML is text", 60, "<b>x</b>\n\n<script>\ny", "<b>x</b>\n\n<script>\ny", NULL },
    { "entities", 60, "&lt;a&gt; &amp; &#65; &nosuch;", "<a> & A &nosuch;", "&lt;a&gt; &amp; &#65; &nosuch;" },
    { "an escape by entity is shown", 60, "&#27;[2J", "^[[2J", "&#27;[2J" },
    { "escapes are shown", 60, "a\x1b[2Jb", "a^[[2Jb", "a\x1b[2Jb" },
    { "hidden characters are copied", 60, "a\xe2\x80\x8b" "b", "ab", "ab" },
    { "a joined emoji is copied whole", 60, "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb" },
    { "emphasis ends after a Chinese point", 60, "**\xe6\x98\x9f\xe5\x8f\xb7\xe3\x80\x82**\xe8\xbf\x99\xe6\x98\xaf", "\xe6\x98\x9f\xe5\x8f\xb7\xe3\x80\x82\xe8\xbf\x99\xe6\x98\xaf", NULL },
    { "emphasis begins before a Chinese point", 60, "\xe8\xbf\x99\xe6\x98\xaf**\xef\xbc\x88\xe5\x8f\x96\xe5\x87\xba\xef\xbc\x89**", "\xe8\xbf\x99\xe6\x98\xaf\xef\xbc\x88\xe5\x8f\x96\xe5\x87\xba\xef\xbc\x89", NULL },
    { "emphasis with quotes between Chinese words", 60, "\xe8\xbf\x99\xe6\x98\xaf**\"\xe5\x8f\x96\xe5\x87\xba\"\xef\xbc\x88" "a\xef\xbc\x89\xe6\xa8\xa1\xe5\xbc\x8f**\xe3\x80\x82", "\xe8\xbf\x99\xe6\x98\xaf\"\xe5\x8f\x96\xe5\x87\xba\"\xef\xbc\x88" "a\xef\xbc\x89\xe6\xa8\xa1\xe5\xbc\x8f\xe3\x80\x82", NULL },
    { "emphasis with round quotes between Chinese words", 60, "\xe8\xbf\x99**\xe2\x80\x9c\xe5\x8f\x96\xe5\x87\xba\xe2\x80\x9d**\xe6\xa8\xa1\xe5\xbc\x8f", "\xe8\xbf\x99\xe2\x80\x9c\xe5\x8f\x96\xe5\x87\xba\xe2\x80\x9d\xe6\xa8\xa1\xe5\xbc\x8f", NULL },
    { "emphasis in Korean", 60, "**\xec\x8a\xa4\xed\x81\xac\xeb\xa6\xbd\xed\x8a\xb8(script)**\xeb\x9d\xbc\xea\xb3\xa0", "\xec\x8a\xa4\xed\x81\xac\xeb\xa6\xbd\xed\x8a\xb8(script)\xeb\x9d\xbc\xea\xb3\xa0", NULL },
    { "emphasis in Japanese", 60, "\xe3\x81\x93\xe3\x82\x8c\xe3\x81\xaf*\xe3\x80\x8c\xe4\xbe\x8b\xe3\x80\x8d*\xe3\x81\xa7\xe3\x81\x99", "\xe3\x81\x93\xe3\x82\x8c\xe3\x81\xaf\xe3\x80\x8c\xe4\xbe\x8b\xe3\x80\x8d\xe3\x81\xa7\xe3\x81\x99", NULL },
    { "emphasis beside rare characters", 60, "\xf0\xa0\x80\x80**\"a\"**\xf0\xa0\x80\x81 **b\xef\xbc\x81**\xf0\xa0\x80\x81", "\xf0\xa0\x80\x80\"a\"\xf0\xa0\x80\x81 b\xef\xbc\x81\xf0\xa0\x80\x81", NULL },
    { "two pieces of emphasis share a character", 60, "**a\xe3\x80\x82**\xef\xbc\x8c**\xe3\x80\x82" "b**", "a\xe3\x80\x82\xef\xbc\x8c\xe3\x80\x82" "b", NULL },
    { "Chinese marks that are not emphasis", 60, "2 * \xe4\xb8\x89 * \xe5\x9b\x9b **", "2 * \xe4\xb8\x89 * \xe5\x9b\x9b **", NULL },
    { "an address beside Chinese emphasis", 60, "**\xe8\xaf\x8d\xe3\x80\x82**\xe8\xa7\x81[\xe9\x93\xbe](http://a.example/*\xe8\xaf\x8d)", "\xe8\xaf\x8d\xe3\x80\x82\xe8\xa7\x81\xe9\x93\xbe (http://a.example/*\xe8\xaf\x8d)", NULL },
    { "an address with an entity keeps its characters", 60, "[a](http://b.example/*\xe8\xaf\x8d?c&amp;d)", "a (http://b.example/*\xe8\xaf\x8d?c&amp;d)", NULL },
    { "code keeps Chinese marks", 60, "`**\xe3\x80\x82**\xe8\xaf\x8d`", "**\xe3\x80\x82**\xe8\xaf\x8d", NULL },
    { "too narrow for anything", 3, "text", "", NULL },
};
/* clang-format on */

/* Returns all rows, separated by newlines, with blank rows for gaps between segments. */
static char *shown(struct body *b, int width, bool ascii)
{
    struct body_look look = { width, ascii, ROLE_TEXT };
    char *out = calloc(1, 1 << 20);
    size_t n = 0;

    assert_non_null(out);
    for (uint32_t s = 0; s < body_count(b); s++) {
        const struct rich *r;

        if (body_segment(b, s)->gap)
            out[n++] = '\n';
        r = body_rich(b, s, &look);
        for (uint32_t i = 0; i < r->n_row; i++)
            n += (size_t)sprintf(out + n, "%s%.*s\n", rich_prefix(r, i),
                                 (int)(r->row[i].end - r->row[i].start),
                                 r->text + r->row[i].start);
    }
    if (n > 0)
        out[n - 1] = '\0';
    return out;
}

static char *copied(struct body *b, int width)
{
    struct body_look look = { width, false, ROLE_TEXT };
    char *out = calloc(1, 1);
    size_t n = 0;

    for (uint32_t s = 0; s < body_count(b); s++) {
        const struct rich *r = body_rich(b, s, &look);

        if (n > 0)
            out[n++] = '\n'; /* rich_copy needs a byte for the NUL */
        assert_true(rich_copy(r, 0, r->n_text, b->text, &out, &n));
    }
    return out;
}

static struct body body_with(const char *text, size_t n)
{
    struct body b = { 0 };

    body_start(&b, true);
    assert_true(body_append(&b, text, n));
    body_finish(&b);
    return b;
}

static void shows(void **state)
{
    const struct row *r = *state;
    struct body b = body_with(r->text, strlen(r->text));
    char *got = shown(&b, r->width, false), *copy = copied(&b, r->width);

    if (r->want != NULL)
        assert_string_equal(got, r->want);
    if (r->copied != NULL)
        assert_string_equal(copy, r->copied);
    free(got);
    free(copy);
    body_free(&b);
}

/* Some versions of md4c take what is beyond the end for a part of the text. */
static void nothing_beyond_the_end_is_read(void **state)
{
    static const struct {
        const char *text, *beyond;
    } ends[] = {
        { "[Ri](j", ")" },        { "*a* ![Ri](j", ")" },   { "[Ri](j ", "\n)" },
        { "[Ri](j\n", ")" },      { "[Ri](j 'k'", ")" },    { "a\n\n6", ") b" },
        { "a\n\n6", "." },        { "**a*", "*" },          { "`a", "`" },
        { "[a]: b\n\n[a", "]" },  { "&am", "p;" },          { "<http://a.b", ">" },
        { "http://a.b", ".c/d" }, { "|a|\n|-", "-|\n|b|" }, { "|a|\n|-", "|\n" },
        { "- [x", "] a" },        { "# a", " #" },          { "a\\", "*" },
        { "```c", "\nx" },        { "a\n-", "-" },          { "a  ", "\nb" },
        { "<!--", "-->" },        { "[](r[](", ")" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct segment seg = { .kind = SEGMENT_MARKDOWN, .n = (uint32_t)strlen(ends[i].text) };
        struct rich alone = { 0 }, other = { 0 };
        char text[80];

        snprintf(text, sizeof text, "%s%s", ends[i].text, ends[i].beyond);
        markdown_render(&other, text, &seg, 60, ROLE_TEXT, false);
        memset(text + seg.n, 0, sizeof text - seg.n);
        markdown_render(&alone, text, &seg, 60, ROLE_TEXT, false);
        if (alone.n_text != other.n_text || memcmp(alone.text, other.text, alone.n_text) != 0)
            fail_msg("\"%s\" with \"%s\" after it: \"%.*s\"", ends[i].text, ends[i].beyond,
                     (int)other.n_text, other.text);
        rich_free(&alone);
        rich_free(&other);
    }
}

static bool is_code(void *ctx, const char *label, size_t label_n, const char *code, size_t n)
{
    struct iovec *got = ctx;

    (void)label, (void)label_n;
    snprintf(got->iov_base, got->iov_len, "%.*s", (int)n, code);
    return true;
}

/* The same of code that is copied. */
static void code_ends_with_the_text(void **state)
{
    char got[40] = "none";

    (void)state;
    markdown_code("6.\n    a", 1, is_code, &(struct iovec){ got, sizeof got });
    assert_string_equal(got, "none");
    markdown_code("    ab", 5, is_code, &(struct iovec){ got, sizeof got });
    assert_string_equal(got, "a");
}

static void code_has_a_label_above_and_a_line_below(void **state)
{
    static const char text[] = "x\n```python\n12345678901234567\n\tif\n```\nafter";
    struct body b = body_with(text, sizeof text - 1);
    char *got = shown(&b, 16, false), *ascii = shown(&b, 16, true);

    (void)state;
    assert_string_equal(
        got, "x\n\xe2\x94\x80\xe2\x94\x80 python " RULE "\xe2\x94\x80\xe2\x94\x80"
             "\n1234567890123456\n" MORE "7\n    if\n" RULE RULE RULE RULE "\nafter");
    free(got);
    free(ascii);
    body_forget(&b, 1, 0);
    ascii = shown(&b, 16, true);
    assert_string_equal(ascii, "x\n-- python ------\n1234567890123456\n> 7\n    if\n"
                               "----------------\nafter");
    free(ascii);
    body_free(&b);
}

/* A letter for the kind of each byte. */
static const char letters[UI_ROLES + 1] = {
    [ROLE_TEXT] = '.',         [ROLE_HEADING] = 'H',     [ROLE_CODE] = 'c',
    [ROLE_CODE_KEYWORD] = 'k', [ROLE_CODE_STRING] = 's', [ROLE_CODE_COMMENT] = '/',
    [ROLE_CODE_NUMBER] = '0',  [ROLE_LINK] = 'L',        [ROLE_DIM] = 'd',
    [ROLE_ODD] = '!',          [ROLE_QUOTE] = 'q',       [ROLE_GOOD] = '+',
    [ROLE_BAD] = '-',          [ROLE_CODE_LABEL] = '_',
};

static struct styled {
    const char *name, *text, *want; /* lines, separated by | */
} styles[] = {
    { "words in a paragraph", "a **b** `c` [d](e)", "....c.Ldd.d" },
    { "C", "```c\nint x = 0x1f; // y\n```", "_|kkkccccc0000cc////|_" },
    { "a comment of many lines", "```c\na /* b\nc */ d\n```", "_|cc////|////cc|_" },
    { "a string with an escape", "```c\n\"a\\\"b\" 'c'\n```", "_|sssssscsss|_" },
    { "python", "```py\ndef f(): # x\n\"\"\"a\nif\"\"\" if\n```",
      "_|kkkcccccc///|ssss|sssssckk|_" },
    { "shell", "```sh\nif [ \"$a\" ]; then\n```", "_|kkcccsssscccckkkk|_" },
    { "json", "```json\n{\"a\": [1.5e3, null]}\n```", "_|csssccc00000cckkkkcc|_" },
    { "sql in any case", "```sql\nSELECT 'x' -- y\n```", "_|kkkkkkcsssc////|_" },
    { "a difference", "```diff\n+a\n-b\n c\n```", "_|++|--|cc|_" },
    { "no language that is known", "```nosuch\nint x;\n```", "_|cccccc|_" },
    { "hidden text in code",
      "```\na\xe2\x80\xae"
      "b\n```",
      "_|c!!!c|_" },
};

static void colours(void **state)
{
    const struct styled *s = *state;
    struct body b = body_with(s->text, strlen(s->text));
    struct body_look look = { 60, false, ROLE_TEXT };
    char got[256] = "";
    size_t n = 0;

    for (uint32_t seg = 0; seg < body_count(&b); seg++) {
        const struct rich *r = body_rich(&b, seg, &look);

        for (uint32_t line = 0; line < r->n_line; line++) {
            uint32_t at = r->line[line].at, end = rich_line_end(r, line);

            if (n > 0)
                got[n++] = '|';
            for (; at < end && n < 250; at++) {
                char c = letters[rich_run_at(r, at)->role];

                if (c != '_' || n == 0 || got[n - 1] != '_')
                    got[n++] = c;
            }
        }
    }
    got[n] = '\0';
    body_free(&b);
    assert_string_equal(got, s->want);
}

/* Pieces of Markdown that change the text before or after them. */
static const char *const pieces[] = {
    "word ",
    "**",
    "*",
    "`",
    "```",
    "```c\n",
    "~~~\n",
    "\n",
    "\n",
    "\n\n",
    "- ",
    "  - ",
    "1. ",
    "2) ",
    "# ",
    "> ",
    "| a | b |\n",
    "|---|:-:|\n",
    "|-|:-|\n",
    "$",
    "$$",
    "\n$$\n",
    "\\(",
    "\\)",
    "\n\\[\n",
    "\\]",
    "\\begin{a*}",
    "\n\\end{a*}",
    "2*3",
    "    ",
    "---\n",
    "===\n",
    "[a](b)",
    "[a]: b\n",
    "\xe4\xb8\xad",
    "\xf0\x9f\x98\x80",
    "\"",
    "/*",
    "*/",
    "int ",
    "\t",
    "\\",
    "&amp;",
    "<b>",
    "\r\n",
    "-",
    "=",
};

static size_t random_markdown(struct chance *c, char *buf, size_t n)
{
    size_t used = 0;

    while (used < n) {
        const char *piece = pieces[chance_below(c, sizeof pieces / sizeof pieces[0])];

        memcpy(buf + used, piece, strlen(piece));
        used += strlen(piece);
    }
    return used;
}

static void text_in_pieces_looks_like_the_whole_in_the_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct chance chance = { seed * 0x9e3779b97f4a7c15u };
        char text[1100], *a, *b;
        size_t n = random_markdown(&chance, text, 1000), at = 0;
        int width = 10 + (int)chance_below(&chance, 60);
        struct body whole = body_with(text, n), cut = { 0 };

        body_start(&cut, true);
        while (at < n) {
            size_t step = 1 + chance_below(&chance, 60);

            step = step > n - at ? n - at : step;
            assert_true(body_append(&cut, text + at, step));
            at += step;
            if (chance_below(&chance, 3) == 0)
                free(shown(&cut, width, false));
        }
        body_finish(&cut);
        a = shown(&whole, width, false);
        b = shown(&cut, width, false);
        if (strcmp(a, b) != 0)
            fail_msg("seed %llu", (unsigned long long)seed);
        free(a);
        free(b);
        body_free(&whole);
        body_free(&cut);
    }
}

static void no_word_is_dropped(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct chance chance = { seed * 0x9e3779b97f4a7c15u };
        char text[2000] = "", *got;
        size_t n = 0, words = 0;
        struct body b;

        while (n < 1200) {
            size_t piece = chance_below(&chance, sizeof pieces / sizeof pieces[0]);

            /* Markdown drops columns that a table's head does not have. */
            if (strchr(pieces[piece], '|') != NULL)
                continue;
            n += (size_t)sprintf(text + n, "%s", pieces[piece]);
            if (chance_below(&chance, 4) == 0)
                n += (size_t)sprintf(text + n, "w%zuw", ++words);
        }
        b = body_with(text, n);
        got = shown(&b, 3000, false);
        for (size_t i = 1; i <= words; i++) {
            char word[32];

            snprintf(word, sizeof word, "w%zuw", i);
            if (strstr(got, word) == NULL)
                fail_msg("seed %llu: %s is lost", (unsigned long long)seed, word);
        }
        free(got);
        body_free(&b);
    }
}

/* The cost of a piece must not grow with the text before it. */
static void a_piece_renders_the_open_end_only(void **state)
{
    static const char *const kinds[] = { "words of a paragraph\n\n", "- an item\n",
                                         "```c\nint x;\n```\n", "| a | b |\n", "word " };

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct body b = { 0 };
        struct segment tail;
        size_t len = strlen(kinds[k]);

        body_start(&b, true);
        for (size_t n = 0; n < 200000; n += len)
            assert_true(body_append(&b, kinds[k], len));
        if (body_count(&b) > 0) {
            tail = *body_segment(&b, body_count(&b) - 1);
            assert_true(tail.n <= SEGMENT_MAX + 8);
            assert_true(tail.at + tail.n <= b.n);
        }
        body_free(&b);
    }
}

static void a_hostile_table_is_shown_as_it_is(void **state)
{
    enum { COLUMNS = 500, ROWS = 2000 };
    char *text = malloc(COLUMNS * 4 + ROWS * 4 + 10), *p = text, *got;
    struct body b;

    (void)state;
    assert_non_null(text);
    for (int i = 0; i < COLUMNS; i++)
        p += sprintf(p, "|a");
    p += sprintf(p, "\n");
    for (int i = 0; i < COLUMNS; i++)
        p += sprintf(p, "|---");
    p += sprintf(p, "\n");
    for (int i = 0; i < ROWS; i++)
        p += sprintf(p, "|b\n");
    b = body_with(text, (size_t)(p - text));
    got = shown(&b, 80, false);
    assert_memory_equal(got, "|a|a|a", 6);
    assert_true(b.bytes < 2000000);
    free(got);
    free(text);
    body_free(&b);
}

static bool collect(void *ctx, const char *label, size_t label_n, const char *code, size_t n)
{
    char *out = ctx;

    sprintf(out + strlen(out), "[%.*s]%.*s$", (int)label_n, label, (int)n, code);
    return true;
}

static void code_blocks_are_copied_unchanged(void **state)
{
    static const char text[] =
        "```make\nall:\n\tgcc x\n  \ty\n```\n- item\n\n  ```sh x\n  a\n\n"
        "    b\n  ```\n\n      indented\n\n~~~\n```\n~~~\n```\nopen";
    char got[512] = "";

    (void)state;
    markdown_code(text, sizeof text - 1, collect, got);
    assert_string_equal(got,
                        "[make]all:\n\tgcc x\n  \ty$[sh x]a\n\n  b$[]indented$[]```$[]open$");
}

static void a_language_has_many_names(void **state)
{
    uint8_t c = highlight_language("c", 1);

    (void)state;
    assert_true(c > 0);
    assert_int_equal(highlight_language("C++", 3), c);
    assert_int_equal(highlight_language("{.cpp .numberLines}", 19), c);
    assert_int_equal(highlight_language("cpp title=\"x\"", 13), c);
    assert_int_equal(highlight_language("cp", 2), 0);
    assert_int_equal(highlight_language("", 0), 0);
}

static void entities_have_bounds(void **state)
{
    char out[8];

    (void)state;
    assert_int_equal(entity_decode("&#x10ffff;", 10, out), 4);
    assert_int_equal(entity_decode("&#x110000;", 10, out), 0);
    assert_int_equal(entity_decode("&#xd800;", 8, out), 0);
    assert_int_equal(entity_decode("&#0;", 4, out), 0);
    assert_int_equal(entity_decode("&#;", 3, out), 0);
    assert_int_equal(entity_decode("&#99999999;", 11, out), 0);
    assert_int_equal(entity_decode("&euro;", 6, out), 3);
}

int main(void)
{
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test(nothing_beyond_the_end_is_read),
        cmocka_unit_test(code_ends_with_the_text),
        cmocka_unit_test(code_has_a_label_above_and_a_line_below),
        cmocka_unit_test(text_in_pieces_looks_like_the_whole_in_the_end),
        cmocka_unit_test(no_word_is_dropped),
        cmocka_unit_test(a_piece_renders_the_open_end_only),
        cmocka_unit_test(a_hostile_table_is_shown_as_it_is),
        cmocka_unit_test(code_blocks_are_copied_unchanged),
        cmocka_unit_test(a_language_has_many_names),
        cmocka_unit_test(entities_have_bounds),
    };
    enum {
        FIXED = sizeof fixed / sizeof fixed[0],
        ROWS = sizeof rows / sizeof rows[0],
        STYLES = sizeof styles / sizeof styles[0],
    };
    struct CMUnitTest tests[FIXED + ROWS + STYLES];

    setlocale(LC_CTYPE, "C.UTF-8");
    for (size_t i = 0; i < FIXED; i++)
        tests[i] = fixed[i];
    for (size_t i = 0; i < ROWS; i++)
        tests[FIXED + i] = (struct CMUnitTest){ rows[i].name, shows, NULL, NULL, &rows[i] };
    for (size_t i = 0; i < STYLES; i++)
        tests[FIXED + ROWS + i] =
            (struct CMUnitTest){ styles[i].name, colours, NULL, NULL, &styles[i] };
    return cmocka_run_group_tests_name("markdown", tests, NULL, NULL);
}
