#include "config.h"

#include "ui/text/highlight.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { OPEN_NOTHING, OPEN_COMMENT, OPEN_STRING }; /* OPEN_STRING + its number */

struct quote {
    const char *begin, *end;
    bool many_lines;
    char escape; /* 0: none */
};

struct language {
    const char *names;    /* separated by blanks; the first is the proper name */
    const char *keywords; /* separated by blanks */
    const char *comment[2];
    const char *block[2]; /* multi-line comment: start, end */
    struct quote quote[4];
    bool any_case;     /* keywords ignore case */
    bool by_first;     /* diff: the first character of a line decides */
    const char *extra; /* characters of words besides letters, digits, _ */
};

#define C_STRINGS                                                                              \
    {                                                                                          \
        { "\"", "\"", false, '\\' },                                                           \
        {                                                                                      \
            "'", "'", false, '\\'                                                              \
        }                                                                                      \
    }

/* clang-format off */
static const struct language languages[] = {
    { .names = "c h cpp c++ cc cxx hpp objc cuda arduino",
      .keywords = "alignas alignof auto bool break case catch char class const constexpr "
          "continue default delete do double else enum explicit extern false float for "
          "friend goto if inline int int16_t int32_t int64_t int8_t long namespace new "
          "noexcept nullptr NULL operator override private protected public register "
          "restrict return short signed size_t sizeof ssize_t static struct switch template "
          "this throw true try typedef typename uint16_t uint32_t uint64_t uint8_t union "
          "unsigned using virtual void volatile while #define #elif #else #endif #if #ifdef "
          "#ifndef #include #pragma #undef",
      .comment = { "//" }, .block = { "/*", "*/" }, .quote = C_STRINGS, .extra = "#" },
    { .names = "python py python3 pycon",
      .keywords = "False None True and as assert async await break case class continue def "
          "del elif else except finally for from global if import in is lambda match "
          "nonlocal not or pass raise return self try while with yield",
      .comment = { "#" },
      .quote = { { "\"\"\"", "\"\"\"", true, '\\' }, { "'''", "'''", true, '\\' },
                 { "\"", "\"", false, '\\' }, { "'", "'", false, '\\' } } },
    { .names = "javascript js jsx ts tsx typescript mjs node",
      .keywords = "any as async await boolean break case catch class const continue debugger "
          "declare default delete do else enum export extends false finally for from "
          "function if implements import in instanceof interface let new null number of "
          "private protected public readonly return static string super switch this throw "
          "true try type typeof undefined var void while with yield",
      .comment = { "//" }, .block = { "/*", "*/" },
      .quote = { { "\"", "\"", false, '\\' }, { "'", "'", false, '\\' },
                 { "`", "`", true, '\\' } } },
    { .names = "rust rs",
      .keywords = "Err None Ok Option Result Self Some String Vec as async await bool break "
          "char const continue crate dyn else enum extern f32 f64 false fn for i16 i32 i64 "
          "i8 if impl in isize let loop match mod move mut pub ref return self static str "
          "struct super trait true type u16 u32 u64 u8 unsafe use usize where while",
      .comment = { "//" }, .block = { "/*", "*/" },
      .quote = { { "\"", "\"", true, '\\' } } },
    { .names = "go golang",
      .keywords = "bool break byte case chan const continue default defer else error "
          "fallthrough false float64 for func go goto if import int int64 interface iota "
          "make map nil package range return rune select string struct switch true type "
          "uint64 var",
      .comment = { "//" }, .block = { "/*", "*/" },
      .quote = { { "\"", "\"", false, '\\' }, { "'", "'", false, '\\' },
                 { "`", "`", true, 0 } } },
    { .names = "java kotlin kt scala csharp cs c# swift dart",
      .keywords = "abstract as assert async await boolean break byte case catch char class "
          "const continue data default do double else enum extends false final finally "
          "float for foreach fun func guard if implements import in instanceof int "
          "interface internal is let long namespace native new null object open override "
          "package private protected public return short static string struct super switch "
          "synchronized this throw throws true try using val var void volatile when while",
      .comment = { "//" }, .block = { "/*", "*/" },
      .quote = { { "\"\"\"", "\"\"\"", true, '\\' }, { "\"", "\"", false, '\\' },
                 { "'", "'", false, '\\' } } },
    { .names = "bash sh shell zsh console terminal shell-session fish",
      .keywords = "case do done echo elif else esac exit export fi for function if in local "
          "read readonly return set shift source test then trap unset until while",
      .comment = { "#" },
      .quote = { { "\"", "\"", true, '\\' }, { "'", "'", true, 0 } }, .extra = "-" },
    { .names = "json jsonc json5", .keywords = "false null true",
      .comment = { "//" }, .quote = { { "\"", "\"", false, '\\' } } },
    { .names = "yaml yml toml ini conf cfg properties dockerfile makefile make cmake",
      .keywords = "false no null off on true yes",
      .comment = { "#" }, .quote = C_STRINGS, .any_case = true },
    { .names = "sql sqlite postgresql mysql psql",
      .keywords = "add all alter and as asc begin between by case check commit constraint "
          "create cross default delete desc distinct drop else end exists foreign from full "
          "group having if in index inner insert int integer into is join key left like "
          "limit not null numeric offset on or order outer primary references returning "
          "right rollback select set table text then timestamp union unique update using "
          "values varchar view when where with",
      .comment = { "--" }, .block = { "/*", "*/" },
      .quote = { { "'", "'", true, 0 }, { "\"", "\"", false, 0 } }, .any_case = true },
    { .names = "html xml svg vue xhtml", .keywords = "",
      .block = { "<!--", "-->" }, .quote = { { "\"", "\"", true, 0 } } },
    { .names = "css scss less", .keywords = "auto important inherit initial none",
      .comment = { "//" }, .block = { "/*", "*/" }, .quote = C_STRINGS },
    { .names = "lua",
      .keywords = "and break do else elseif end false for function goto if in local nil not "
          "or repeat return then true until while",
      .comment = { "--" }, .block = { "--[[", "]]" }, .quote = C_STRINGS },
    { .names = "ruby rb perl pl php r elixir ex",
      .keywords = "alias and begin break case class def default defined do echo else elsif "
          "elseif end ensure extends false for foreach function if implements in include "
          "module my namespace new next nil not null or our package private protected "
          "public redo require rescue return self sub super then true undef unless until "
          "use when while yield",
      .comment = { "#" }, .quote = C_STRINGS },
    { .names = "haskell hs ocaml ml",
      .keywords = "case class data deriving do else end fun function if import in instance "
          "let match module newtype of open rec then type val where with",
      .comment = { "--" }, .block = { "{-", "-}" },
      .quote = { { "\"", "\"", false, '\\' } } },
    { .names = "diff patch", .keywords = "", .by_first = true },
};
/* clang-format on */

/* Is word in list, whose words are separated by blanks? */
static bool is_in(const char *list, const char *word, size_t n, bool any_case)
{
    while (*list != '\0') {
        size_t len = strcspn(list, " ");

        if (len == n &&
            (any_case ? strncasecmp(list, word, n) == 0 : memcmp(list, word, n) == 0))
            return true;
        list += len;
        list += *list == ' ';
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

static bool is_figure(char c)
{
    return c >= '0' && c <= '9';
}

uint8_t highlight_language(const char *label, size_t n)
{
    size_t end = 0;

    while (n > 0 && (*label == '{' || *label == '.' || *label == ' ')) {
        label++;
        n--;
    }
    while (end < n && strchr(" ,:{}\t", label[end]) == NULL)
        end++;
    if (end == 0)
        return 0;
    for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++)
        if (is_in(languages[i].names, label, end, true))
            return (uint8_t)(i + 1);
    return 0;
}

struct line {
    const struct language *l;
    const char *text;
    size_t n;
    highlight_fn *fn;
    void *ctx;
};

static void colour(const struct line *in, size_t from, size_t to, enum ui_role role)
{
    if (in->fn != NULL && from < to)
        in->fn(in->ctx, from, to, role);
}

static bool starts(const struct line *in, size_t at, const char *mark)
{
    size_t len = mark == NULL ? 0 : strlen(mark);

    return len > 0 && in->n - at >= len && memcmp(in->text + at, mark, len) == 0;
}

/* Returns the byte after the end of a multi-line comment, or n if it stays open. */
static size_t comment_end(const struct line *in, size_t at, bool *closed)
{
    for (; at < in->n; at++)
        if (starts(in, at, in->l->block[1])) {
            *closed = true;
            return at + strlen(in->l->block[1]);
        }
    *closed = false;
    return in->n;
}

static size_t string_end(const struct line *in, size_t at, const struct quote *q, bool *closed)
{
    *closed = true;
    while (at < in->n) {
        if (q->escape != 0 && in->text[at] == q->escape)
            at += 2;
        else if (starts(in, at, q->end))
            return at + strlen(q->end);
        else
            at++;
    }
    *closed = !q->many_lines;
    return in->n;
}

static bool is_word(const struct line *in, size_t at)
{
    char c = in->text[at];

    return is_letter(c) || is_figure(c) ||
           (c != '\0' && in->l->extra != NULL && strchr(in->l->extra, c) != NULL);
}

static size_t number_end(const struct line *in, size_t at)
{
    while (at < in->n &&
           (is_figure(in->text[at]) || is_letter(in->text[at]) || in->text[at] == '.' ||
            ((in->text[at] == '+' || in->text[at] == '-') && (in->text[at - 1] | 0x20) == 'e')))
        at++;
    return at;
}

static uint8_t diff_line(const struct line *in)
{
    if (in->n > 0 && in->text[0] == '+')
        colour(in, 0, in->n, ROLE_GOOD);
    else if (in->n > 0 && in->text[0] == '-')
        colour(in, 0, in->n, ROLE_BAD);
    else if (in->n > 0 && in->text[0] == '@')
        colour(in, 0, in->n, ROLE_CODE_KEYWORD);
    return OPEN_NOTHING;
}

/* Colour a comment or string that begins at *at or is open; move *at after it and set *open.
 * Returns false if there is none. */
static bool take_quoted(const struct line *in, size_t *at, uint8_t *open)
{
    const struct language *l = in->l;
    size_t from = *at;
    bool closed;

    if (*open == OPEN_COMMENT || (*open == OPEN_NOTHING && starts(in, from, l->block[0]))) {
        size_t skip = *open == OPEN_COMMENT ? 0 : strlen(l->block[0]);

        *at = comment_end(in, from + skip, &closed);
        *open = closed ? OPEN_NOTHING : OPEN_COMMENT;
        colour(in, from, *at, ROLE_CODE_COMMENT);
        return true;
    }
    for (uint8_t i = 0; i < 4; i++) {
        const struct quote *q = &l->quote[i];

        if (*open == OPEN_NOTHING ? !starts(in, from, q->begin) : *open != OPEN_STRING + i)
            continue;
        *at = string_end(in, from + (*open == OPEN_NOTHING ? strlen(q->begin) : 0), q, &closed);
        *at = *at > in->n ? in->n : *at;
        *open = closed ? OPEN_NOTHING : (uint8_t)(OPEN_STRING + i);
        colour(in, from, *at, ROLE_CODE_STRING);
        return true;
    }
    return false;
}

uint8_t highlight_line(uint8_t language, uint8_t open, const char *text, size_t n,
                       highlight_fn *fn, void *ctx)
{
    struct line in = { NULL, text, n, fn, ctx };
    size_t at = 0;

    if (language == 0 || language > sizeof languages / sizeof languages[0])
        return OPEN_NOTHING;
    in.l = &languages[language - 1];
    if (in.l->by_first)
        return diff_line(&in);
    while (at < n) {
        size_t from = at;

        if (open != OPEN_NOTHING || !is_word(&in, at)) {
            if (take_quoted(&in, &at, &open))
                continue;
        }
        if (starts(&in, at, in.l->comment[0]) &&
            (in.l->comment[0][0] != '#' || at == 0 || text[at - 1] == ' ')) {
            colour(&in, at, n, ROLE_CODE_COMMENT);
            break;
        }
        if (is_figure(text[at])) {
            at = number_end(&in, at + 1);
            colour(&in, from, at, ROLE_CODE_NUMBER);
        } else if (is_word(&in, at)) {
            while (at < n && is_word(&in, at))
                at++;
            if (is_in(in.l->keywords, text + from, at - from, in.l->any_case))
                colour(&in, from, at, ROLE_CODE_KEYWORD);
        } else {
            at++;
        }
    }
    return open;
}
